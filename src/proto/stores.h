/* SPDX-License-Identifier: MIT */
/*
 * Where programs keep credentials below a home directory. The core and the helper hide these from every
 * task unless a grant names one, or something in it.
 */
#ifndef PROTO_STORES_H
#define PROTO_STORES_H

#include "util/base.h"

struct store {
	const char *name; /* from the home directory */
	/* What common tools read at each start, as it also holds settings. That they miss it is normal: told,
	 * but no violation. */
	bool is_routine;
};

enum {
	STORES = 23
};
extern const struct store stores[STORES];

#endif
