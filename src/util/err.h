/* SPDX-License-Identifier: MIT */
/*
 * The error value. Owned by the caller, on its stack, never allocated.
 *
 * A function that can fail returns 0, or -1 with *e set; a look-up returns 1, 0 or -1. On failure
 * its outputs are untouched. The first error wins: err_set on an error that is already set keeps
 * the first. err_wrap prefixes context on the way up:
 *
 *	return err_set(e, ERR_IO, errno, "open %s", path);	-> "open x: No such file or directory"
 *	return err_wrap(e, "task %s", id);			-> "task a#b: open x: No such …"
 */
#ifndef UTIL_ERR_H
#define UTIL_ERR_H

#include "util/base.h"

enum err_kind {
	ERR_NONE,
	ERR_USAGE,   /* words on the command line */
	ERR_CONFIG,  /* content of a file the user wrote */
	ERR_IO,      /* the system said no */
	ERR_SANDBOX, /* the sandbox could not be set up */
	ERR_BUG,     /* ours */
};

struct err {
	int num; /* errno, or 0 */
	enum err_kind kind;
	char text[1200];
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		0, ERR_NONE, ""                                                                    \
	}

/* Both return -1. `num` is an errno whose text is appended, or 0. */
int err_set(struct err *e, enum err_kind kind, int num, const char *fmt, ...) attr_printf(4, 5);
int err_wrap(struct err *e, const char *fmt, ...) attr_printf(2, 3);
void err_clear(struct err *e);
/* No space on the disk, or none that this user may have. */
bool err_is_no_room(int num);
static inline bool
err_is_set(const struct err *e)
{
	return e->kind != ERR_NONE;
}

/* What main exits with when this error ends a command: 2, nothing was run (design: exit codes). */
int err_exit_code(const struct err *e);

/* For what cannot happen. Prints file and line, aborts. */
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
void bug_at(const char *file, int line, const char *fmt, ...) attr_printf(3, 4) attr_noreturn;

#endif
