/* SPDX-License-Identifier: MIT */
/*
 * The mount tree while it is built: view.c in general, dev.c the trees of the system, home.c the
 * home directory. Runs in init; a step that fails does not return.
 */
#ifndef SANDBOX_VIEW_H
#define SANDBOX_VIEW_H

#include "sandbox/setup.h"
#include "util/beside.h"
#include "util/strvec.h"

/* A subtree of the host that is to be seen at its own path on top of what covers it. */
struct bind {
	const char *path; /* absolute, borrowed */
	int mnt;          /* detached clone */
	bool is_dir;
	dev_t dev; /* where ino is not 0: only where that directory of the host is served */
	ino_t ino;
	bool covers; /* it hides: only where something is, and read-only once others have their mount
		      * points in it */
	bool pins;   /* what the path shows by then, on itself */
	size_t nth;  /* in the order of their taking: of one path the last one is on top */
};

/* One that was granted. */
struct shown_socket {
	int mnt;        /* in the workspace, to be attached; else -1 */
	struct stat st; /* zero: there is none */
};

struct view {
	struct setup *s;
	int root;        /* "/", O_PATH */
	int fuse_dev;    /* -1: no policy layer */
	int fuse;        /* its mount */
	int live_dev;    /* of the live view; -1: there is none */
	int live;        /* its mount: the workspace */
	int *live_binds; /* of the plan, in its order; -1: it is gone */
	int outside_dev; /* of what is served outside of the workspace; -1: nothing is */
	int outside;     /* its mount: from the root */
	struct strvec outside_paths, pinned;
	int wall;       /* the ramfs of the wall layer: w, h and the whiteouts' origin */
	int proc;       /* a fresh procfs, detached; -1: refused, and that is weaker-when-nested */
	int workspace;  /* O_PATH, in this mount namespace */
	bool attached;  /* layers stand at "s" in the scratch: kernels before detached layers */
	int devices[6]; /* clones, in the order of dev.c; -1: the host has none */
	int dev, run;   /* fresh trees: writable until the binds have their mount points */
	struct bind *binds;
	size_t nbinds, binds_cap;
	struct strvec keeps; /* paths below /run, /tmp or /dev that stay visible read-only */
	struct strvec
		links; /* there too, on the way to what is in PATH: each, and then its target */
	struct strvec stores;         /* paths of credential stores among the binds */
	int home;                     /* its overlay; -1: none of its own */
	struct shown_socket *sockets; /* of the spec, in its order */
	int *covers; /* of the hermetic view: writable until the binds have their mount points */
	size_t ncovers, covers_cap;
};

/* view.c */

/* Builds everything, then init_run. */
attr_noreturn void view_build(struct setup *s);

/*
 * The overlay of a directory's policy (where there is one) over wall/WALL_NAME over the directory, or its
 * mirror. upper, work: in the scratch.
 */
struct overlay {
	const char *wall_name;
	const char *policy_name;   /* in the policy layer; "": its root */
	const char *beside_mirror; /* the same, of an overlay that has the mirror */
	const char *mirror_name;
	const char *path; /* of the directory */
	int lower;        /* it, open */
	const char *upper, *work;
	const char *what; /* for the user */
};
/* With the mirror, which a note says, where the kernel refuses the directory (EINVAL), or must_mirror, the reason,
 * is not NULL. -1 with *ret_why an owned text: why it is not to be had. */
int view_overlay(struct view *v, const struct overlay *o, const char *must_mirror, char **ret_why);
/* Binds the path read-only over what will cover it; a missing one is left out. */
void view_keep(struct view *v, const char *path);
/* Whether a write rule for a place outside of the workspace takes in the path: what is there is the host's. */
bool view_is_granted_live(const struct view *v, const char *path);
/* Remembers to bind path over what will cover it. */
void view_add_bind(struct view *v, const char *path, int mnt, bool is_dir);
/* What is mounted at the path, in a directory that is granted outside, shall stay at it. */
void view_pin(struct view *v, const char *path);
/* Opens the mount point at an absolute canonical path, O_PATH; missing directories (and for !is_dir
 * the file) are made where that is possible: in the fresh trees that cover the host's. */
int view_mount_point(const struct view *v, const char *path, bool is_dir);
/* Covers the path, where it exists, by an empty directory or file. */
void view_cover(const struct view *v, const char *path);

/* dev.c */

/* Takes what must be taken from the host's tree before it becomes read-only and covered. */
void dev_prepare(struct view *v);
/* /dev, /dev/pts, /dev/shm, /proc, /run. */
void dev_attach(struct view *v);
/* Once the binds are attached. */
void dev_attach_links(const struct view *v);
/* Once every bind has its mount point. */
void dev_finish(struct view *v);
/* Is the path below a tree that the view replaces (/dev, /proc, /run, /tmp; all that a hermetic one hides)? */
bool dev_covers(const struct view *v, const char *path);

/* hermetic.c */

/* Is the path in what it covers? */
bool hermetic_covers(const struct view *v, const char *path);
/* Once the root is read-only, before anything else is attached. */
void hermetic_attach(struct view *v);
/* Once every bind has its mount point. */
void hermetic_close(const struct view *v);

/* net.c */

struct net {
	const struct setup *s;
	struct beside beside;
	int fd; /* the namespace */
};
/* Begins to make the network namespace, with its loopback interface up. */
void net_start(struct net *n, const struct setup *s);
/* Enters it. */
void net_enter(struct net *n);

/* sockets.c */

void sockets_prepare(struct view *v);
/* Once everything else is in its place. */
void sockets_attach(struct view *v);

/* home.c */

void home_prepare(struct view *v);
void home_attach(struct view *v);

#endif
