/* SPDX-License-Identifier: MIT */
/*
 * Attributes, array_len, and the functions nobody here may call.
 */
#ifndef UTIL_BASE_H
#define UTIL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define array_len(a) (sizeof(a) / sizeof((a)[0]))
#define attr_printf(f, a) __attribute__((format(printf, f, a)))
#define attr_noreturn __attribute__((noreturn))
#define attr_unused __attribute__((unused))
#define attr_warn_unused __attribute__((warn_unused_result))
/* Of a large buffer that is read only as far as it was written: locals are zeroed otherwise. */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define attr_not_zeroed __attribute__((uninitialized))
#endif
#endif
#ifndef attr_not_zeroed
#define attr_not_zeroed
#endif

/* The containing struct of a member. */
#define container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

/*
 * Functions without a bound, without an error or with a hidden shell do not compile.
 * strbuf, num_parse_*, proc_start and the loop's signals stand in for them.
 */
#ifndef VX_ALLOW_BANNED
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef strtok
#undef gets
#undef atoi
#undef atol
#undef signal
#undef system
#undef popen
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets atoi atol system popen
#endif

#endif
