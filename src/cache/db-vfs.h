/* SPDX-License-Identifier: MIT */
/*
 * What SQLite may touch: a vfs, and the calls below it, for files that somebody else may have made. It sees
 * and removes no journal, follows no link, opens nothing but plain files of one name, takes no more
 * memory at once than a value may need, and outlives that a shared file is cut short under it.
 */
#ifndef CACHE_DB_VFS_H
#define CACHE_DB_VFS_H

#include "util/base.h"

/* Before the first open of a process; again is nothing. A code of SQLite. */
int db_vfs_init(void);
/* For what follows: bytes of the longest value, 0: any. Forgets what was refused. */
void db_vfs_limit(int longest);
bool db_vfs_refused_memory(void);
bool db_vfs_refused_journal(void);
/* Whether the shared index of a log was cut short while it was mapped, since this was last asked: it holds
 * nothing any more. */
bool db_vfs_take_cut(void);

#endif
