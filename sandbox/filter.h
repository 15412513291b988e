/* SPDX-License-Identifier: MIT */
/*
 * The system calls that the command may not make.
 */
#ifndef SANDBOX_FILTER_H
#define SANDBOX_FILTER_H

#include "util/base.h"

struct seccomp_data;
struct sock_filter;

enum {
	FILTER_MAX = 1024,
	FILTER_UNNAMED = 65534,
};

/* As chown takes it. */
#define FILTER_NO_ID UINT32_MAX

struct filter_options {
	bool unix_sockets;
	bool nested;
	/*
	 * The listener is asked before a Unix socket is refused and, unless `maps_all`, when a file is to be given
	 * to ids other than these (or FILTER_UNNAMED, what all others look like inside: who copies owners copies
	 * that).
	 */
	bool asks;
	bool maps_all;
	uint32_t uid, gid;
};

/* Writes the program, at most FILTER_MAX instructions; returns how many. */
size_t filter_build(const struct filter_options *o, struct sock_filter *ret);

/*
 * Installs it for this process and its children. Returns the listener, CLOEXEC; -1: there is none, as nothing asks
 * or as a surrounding sandbox has one (the kernel allows one for a process). Then the same calls are refused
 * without a word.
 */
int filter_install(const struct filter_options *o);

/* What the filter asks about: setting an owner, else a Unix socket. */
struct filter_question {
	bool is_owner;
	uint32_t uid, gid; /* FILTER_NO_ID: stays */
};
struct filter_question filter_question(const struct seccomp_data *d);

/* For the test that compares the numbers with libseccomp's: row i, "" past the end. */
struct filter_row {
	const char *name;
	int native, compat; /* -1: the architecture has no such call */
};
struct filter_row filter_row(size_t i);

#endif
