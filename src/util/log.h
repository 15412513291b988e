/* SPDX-License-Identifier: MIT */
/*
 * For people debugging vx, on stderr, off by default: VX_DEBUG=cache,exec or VX_DEBUG=all.
 * What a user should read goes through run/report.c instead.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include "util/base.h"

/* Reads VX_DEBUG. Called once by main. */
void log_init(void);
bool log_is_on(const char *module);
void log_write(const char *module, const char *fmt, ...) attr_printf(2, 3);

#define log_debug(module, ...)                                                                     \
	do {                                                                                       \
		if (log_is_on(module))                                                             \
			log_write(module, __VA_ARGS__);                                            \
	} while (0)

#endif
