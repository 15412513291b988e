/* SPDX-License-Identifier: MIT */
/*
 * Write-granted directories, copied into the upper directory before the view is built. overlayfs
 * refuses to rename a directory of a lower layer (EXDEV, findings 5); one that lies in the upper it
 * renames. The top of a copy is opaque, so that the overlay looks no further; the directories above
 * are as if the overlay itself had copied them up.
 *
 * Copied is what a copy can stand for: everything in it is granted, nothing hidden, all of it files,
 * directories and links of the caller's own, without extended attributes, at most PRELOAD_TREE_MAX
 * names. Everything else stays a lower directory, and is none the worse for it but in rename.
 *
 * To the core none of this shows. What is still as it was copied is left out of the entries, a copied
 * directory is told as one over the workspace's, and a name that is gone from it as deleted.
 */
#ifndef SANDBOX_PRELOAD_H
#define SANDBOX_PRELOAD_H

#include "util/htab.h"
#include <sys/stat.h>

struct setup;

enum {
	PRELOAD_TREE_MAX = 1000,
	PRELOAD_ALL_MAX = 4000,       /* of all trees of a task */
	PRELOAD_BYTES_MAX = 64 << 20, /* of all trees, where the file system cannot share content */
	PRELOAD_SETTLE_MS = 500,      /* at most, for the clock */
};

struct preload_entry {
	char *path;   /* from the workspace */
	size_t first; /* the names of a copied directory: n entries from here on */
	size_t n;
	/* As it was copied. Of a directory only the mode counts. */
	mode_t mode;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

struct preload {
	struct preload_entry *v;
	size_t n, cap;
	struct htab by_path;
	struct htab ways;        /* directories above the copies -> struct stat of the host's */
	struct timespec last;    /* the latest ctime of a copy */
	struct timespec started; /* of the command: what it changes has this ctime or a later one */
};

/* Copies into "u" of the scratch, the working directory. Dies only when what it began cannot be taken
 * back. */
void preload(struct preload *p, const struct setup *s);
/* Before the command starts: until the clock that files are stamped with has moved on from the last
 * copy, so that a change is known by its time. Returns what it says then. */
struct timespec preload_settle(const struct preload *p);
/* NULL: that path was not copied. */
const struct preload_entry *preload_find(const struct preload *p, const char *path);
/* The workspace's directory that one above the copies lies over; NULL: none was made there. */
const struct stat *preload_way(const struct preload *p, const char *path);
/* Whether a file or link that is now at the path of the entry is the copy, and nobody touched it. */
bool preload_is_untouched(
	const struct preload *p, const struct preload_entry *en, const struct stat *st);

#endif
