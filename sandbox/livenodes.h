/* SPDX-License-Identifier: MIT */
/*
 * The names of a live view that the kernel knows: its number for each, and where it is. A node is a name
 * in a directory together with the object that stood there when it was looked up. Another object under the
 * name gets a node of its own, so that the kernel drops what it keeps of the old one: pages, and a mount
 * that stands on it.
 *
 * The command can make names without end, so nodes go when the kernel forgets them.
 */
#ifndef SANDBOX_LIVENODES_H
#define SANDBOX_LIVENODES_H

#include "util/base.h"
#include <sys/stat.h>

struct strbuf;

struct livenode {
	uint64_t id;
	struct livenode *parent; /* NULL: the workspace, or it has lost its name */
	char *name;
	dev_t dev;
	ino_t ino;
	mode_t type;      /* S_IFMT of it */
	uint32_t born_ns; /* of the mirror: when it was made, where the file system knows; 0 */
	int64_t born;
	uint64_t lookups; /* that the kernel has not taken back */
	unsigned refs;    /* nodes below, open files */
	struct livenode *next;
};

struct livenodes {
	struct livenode **v; /* by the low half of the number; NULL: free */
	uint32_t *generations;
	size_t n, cap;
	uint32_t *free_slots;
	size_t nfree, free_cap;
	struct livenode **buckets; /* by name; a power of two many */
	size_t nbuckets, nnamed;
	uint64_t key[2];
};

void livenodes_init(struct livenodes *t);
void livenodes_release(struct livenodes *t);
/* The workspace's number is 1. NULL: there is none of that number. */
struct livenode *livenodes_get(const struct livenodes *t, uint64_t id);
/* The node of that object at that name, made or found, looked up once more. */
struct livenode *livenodes_look_up(
	struct livenodes *t, struct livenode *parent, const char *name, const struct stat *st);
/* NULL: the kernel knows none there. */
struct livenode *livenodes_find(
	const struct livenodes *t, const struct livenode *parent, const char *name);
bool livenode_is(const struct livenode *n, const struct stat *st);
void livenodes_forget(struct livenodes *t, struct livenode *n, uint64_t lookups);
void livenodes_ref(struct livenode *n);
void livenodes_unref(struct livenodes *t, struct livenode *n);
/* It was removed. */
void livenodes_unname(struct livenodes *t, struct livenode *n);
/* It was renamed; what had the name has lost it. What is below goes with it. */
void livenodes_rename(
	struct livenodes *t, struct livenode *n, struct livenode *parent, const char *name);
/* Its path from the workspace, into the empty ret; false: it, or a directory above, has none. */
bool livenodes_path(const struct livenode *n, struct strbuf *ret);

#endif
