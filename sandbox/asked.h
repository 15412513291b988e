/* SPDX-License-Identifier: MIT */
/*
 * The calls about which the seccomp filter asks the helper (filter.h: asks), so that what no layer sees has a name
 * in the report: a Unix socket that is refused, and a file that is to be given to an id without a name in the
 * sandbox.
 *
 * The answer is always the same, and rests on nothing that is read of the caller: EPERM for the socket; for the
 * owner the kernel goes on, and refuses that itself. When the helper is gone both are ENOSYS.
 */
#ifndef SANDBOX_ASKED_H
#define SANDBOX_ASKED_H

#include "proto/status.h"

enum {
	ASKED_KINDS = 2,
	ASKED_TOLD_MAX = 8, /* of each kind: programs that want sockets, pairs of ids */
	ASKED_KEY = 32,
};

struct asked_call {
	enum denial_op op;    /* SOCKET or CHOWN */
	char what[ASKED_KEY]; /* "unix"; "UID:GID", one of them empty where it is to stay */
	uint32_t pid;         /* of the caller, in `proc` */
};

struct asked {
	int fd;   /* the listener; -1: there is none */
	int proc; /* a procfs that has the caller by the number that the kernel gives this process */
	/* The first call of each program, or with each pair of ids; the caller waits meanwhile. */
	void (*told)(void *ctx, const struct asked_call *call);
	void *ctx;
	char keys[ASKED_KINDS][ASKED_TOLD_MAX][ASKED_KEY];
	unsigned ntold[ASKED_KINDS];
};

/* Answers one question. */
void asked_serve(struct asked *a);

#endif
