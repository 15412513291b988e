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

/*
 * The paths of their stores that are there and that the caller may read, without a link in them.
 *
 * Who owns a home can put a link in the place of a store, and so can a task that may write there. The
 * other end of one is a store only where it lies in the same home and belongs to the owner of that:
 * else anybody could have any file of the host hidden from everybody's tasks.
 */
void homes_find_stores(struct strvec *ret);
/* Those of one home, canonical. */
void homes_add_stores(const char *home, struct strvec *ret);

/* The path of a store, owned. */
char *homes_store_path(const char *home, const struct store *s);

/* The store of `home` (may be NULL) that the absolute path is, or lies in; NULL: none. */
const struct store *homes_store_at(const char *home, const char *path);

#endif
