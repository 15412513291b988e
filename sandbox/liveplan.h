/* SPDX-License-Identifier: MIT */
/*
 * Which directories of the workspace a live view shows as they are, by a bind mount, and which it serves
 * name by name (livewall.h). A bind is what makes a server see that a file was edited: the kernel tells
 * watchers of nothing that happens behind a FUSE file system. But within a bind no name can be hidden or
 * refused. So it is made only where that never needs to be:
 *
 *	read-only	all in it may be read, whatever comes to be there, and no write rule selects in it
 *	read-write	all in it may be written, and there is nothing in it now that is never committed.
 *			Such a name that comes to be there stands until the command has ended (livescan.h)
 *
 * A wall inside, or a name in it that is never committed, means that the directories down to it are served, and
 * those beside it bound. Not a mount on top of it: when the host removes a mount point, or saves a
 * file over it, the mount is gone and what lay below would be seen. Every mount point of a live view is
 * a directory of the served tree, which judges by the same rules: what falls off shows nothing new.
 *
 * Made by the helper before there are two processes; init mounts it, and the helper scans by it.
 */
#ifndef SANDBOX_LIVEPLAN_H
#define SANDBOX_LIVEPLAN_H

#include "sandbox/liverules.h"
#include "util/htab.h"
#include "util/strvec.h"
#include <sys/stat.h>

enum {
	LIVE_BINDS_MAX = 1000,
	LIVE_WRITES_MAX = 400,       /* of these read-write: each is held open */
	LIVE_NAMES_MAX = 200 * 1000, /* looked at; beyond, directories are served */
};

struct livebind {
	char *path; /* from the workspace */
	bool write;
	dev_t dev; /* the directory that was looked at: no other is bound */
	ino_t ino;
	int fd; /* write: it, O_PATH. The scan looks where the command could write, whatever the host has
		 * made of the name meanwhile; what that has put there is not the command's */
};

/* A package.json that stood in a read-write bind. */
struct livemanifest {
	ino_t ino;
	struct timespec ctime;
};

/* A name that is never committed and was there at the start, where nothing can be served: it is covered by itself,
 * read-only, and known again by this. */
struct livekept {
	dev_t dev;
	ino_t ino;
	mode_t type;
	bool is_free; /* a .git, in which names are kept, and the HEAD of a repository: only known again */
};

/* A directory by what it is. */
struct liveplace {
	dev_t dev;
	ino_t ino;
};

struct liveplan {
	struct livebind *v; /* none lies in another */
	size_t n, cap, nwrites;
	struct liveplace *apart; /* not looked into */
	size_t napart, apart_cap;
	struct htab manifests; /* path from the workspace -> struct livemanifest */
	struct htab kept;      /* path -> struct livekept */
	bool cut;              /* a limit was met: some are served that could have been bound */
};

void liveplan_init(struct liveplan *p);
/* Something else is shown in this directory's place. Whoever moves it, or what it is in, changes no more than its
 * name: so not by that. */
void liveplan_leave_out(struct liveplan *p, const struct stat *dir);
bool liveplan_is_apart(const struct liveplan *p, const struct stat *st);
/* Of the directories `tops`, or, where that is NULL, of all: then the root of the rules is always served. */
void liveplan_make(struct liveplan *p, const struct liverules *lr, const struct strvec *tops);
/* The same where nothing can be served: each of the directories is bound, whatever is in it. -1: not in *ret_top, which
 * cannot be read, or has too many names or too many of those that are never committed. */
int liveplan_make_bare(struct liveplan *p, const struct liverules *lr, const struct strvec *tops,
	const char **ret_top);
/* NULL: the directory itself is not bound. */
const struct livebind *liveplan_binds(const struct liveplan *p, const char *path);
void liveplan_release(struct liveplan *p);

#endif
