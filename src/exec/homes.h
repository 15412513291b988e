/* SPDX-License-Identifier: MIT */
/*
 * The home directories of this machine and the credential stores in them (proto/stores.h). A task sees
 * the home that its HOME names, but that is only a variable: ssh and gpg ask the password database, root
 * may read everyone's, and a path needs no variable at all.
 */
#ifndef EXEC_HOMES_H
#define EXEC_HOMES_H

#include "util/strvec.h"

struct store;

/* HOME of vx, the caller's by the password database, all of /etc/passwd, what stands in /home: canonical,
 * each once, only directories that are there. Looked up once; they are not expected to change. */
const struct strvec *homes_known(void);

/* The paths of their stores that are there and that the caller may read. */
void homes_find_stores(struct strvec *ret);

/* The path of a store, owned. */
char *homes_store_path(const char *home, const struct store *s);

/* The store of `home` (may be NULL) that the absolute path is, or lies in; NULL: none. */
const struct store *homes_store_at(const char *home, const char *path);

#endif
