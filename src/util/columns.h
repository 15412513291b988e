/* SPDX-License-Identifier: MIT */
/* How many columns of a terminal a text takes: UTF-8, whatever the locale. */
#ifndef UTIL_COLUMNS_H
#define UTIL_COLUMNS_H

#include "util/base.h"

/* Of a line without control characters; a byte that is no UTF-8 takes one. */
size_t columns_of(const char *s);
/* How many of its bytes fit into so many, whole characters only. */
size_t columns_fit(const char *s, size_t columns);

#endif
