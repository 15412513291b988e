/* SPDX-License-Identifier: MIT */
/*
 * A growable array of owned strings, always ended by NULL: an argv, an environment, a list of
 * names.
 */
#ifndef UTIL_STRVEC_H
#define UTIL_STRVEC_H

#include "util/base.h"

struct strvec {
	char **v; /* NULL while empty and never grown; use strvec_argv for exec */
	size_t n;
	size_t cap;
};

#define STRVEC_INIT                                                                                \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void strvec_init(struct strvec *sv);
void strvec_release(struct strvec *sv);
void strvec_push(struct strvec *sv, const char *s);
void strvec_push_take(struct strvec *sv, char *s);
void strvec_pushf(struct strvec *sv, const char *fmt, ...) attr_printf(2, 3);
bool strvec_contains(const struct strvec *sv, const char *s);
void strvec_sort(struct strvec *sv); /* by bytes */
/* The array for exec, ended by NULL, never NULL itself. Owned by sv. */
char **strvec_argv(struct strvec *sv);

/* As an environment: sets NAME=value, in the place of an earlier NAME. */
void strvec_setenv(struct strvec *sv, const char *name, const char *value);
/* The value of NAME, or NULL. */
const char *strvec_getenv(const struct strvec *sv, const char *name);

static inline void
cleanup_strvec_p(struct strvec *sv)
{
	strvec_release(sv);
}
#define cleanup_strvec __attribute__((cleanup(cleanup_strvec_p)))

#endif
