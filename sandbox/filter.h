/* SPDX-License-Identifier: MIT */
/*
 * The system calls that the command may not make.
 */
#ifndef SANDBOX_FILTER_H
#define SANDBOX_FILTER_H

#include "util/base.h"

struct sock_filter;

struct filter_options {
	bool unix_sockets;
	bool nested;
};

enum {
	FILTER_MAX = 1024
};

/* Writes the program, at most FILTER_MAX instructions; returns how many. */
size_t filter_build(const struct filter_options *o, struct sock_filter *ret);

/* Installs it for this process and its children. */
void filter_install(const struct filter_options *o);

/* For the test that compares the numbers with libseccomp's: row i, "" past the end. */
struct filter_row {
	const char *name;
	int native, compat; /* -1: the architecture has no such call */
};
struct filter_row filter_row(size_t i);

#endif
