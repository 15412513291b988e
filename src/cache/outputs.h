/* SPDX-License-Identifier: MIT */
/*
 * A task's declared outputs on disk: which exist, what they look like, and removing them
 * (spec/cache.md §5). Links are entries, never followed; the exception is a link to a directory on
 * the way to the outputs, or in the place of the directory that a glob names, which stays in the
 * project (for workspaceFiles, in the workspace): it is kept and followed.
 */
#ifndef CACHE_OUTPUTS_H
#define CACHE_OUTPUTS_H

#include "util/base.h"
#include "util/digest.h"
#include <sys/stat.h>

struct err;
struct globset;
struct project;
struct strbuf;
struct strvec;

enum output_type {
	OUTPUT_FILE,
	OUTPUT_DIR,
	OUTPUT_LINK,
	OUTPUT_SPECIAL /* a fifo, socket or device: to be removed like any other, but never saved */
};

struct output {
	char *path; /* from the workspace root; owned */
	enum output_type type;
	uint32_t mode; /* 0777: set-id and sticky bits are never kept */
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t ino;
	char *target; /* OUTPUT_LINK; owned */
};
/* A directory that is no output itself but in which outputs could appear. */
struct output_watch {
	char *path;
	int64_t mtime_ns; /* OUTPUT_ABSENT: there is nothing at path */
};
/* A link to a directory that was followed: outputs below `path` lie below `real`. */
struct output_root {
	char *path;
	char *real;
};
#define OUTPUT_ABSENT INT64_MIN
/* As the mtime of a directory in which others may put something: any. */
#define OUTPUT_ANY_TIME INT64_MIN

/* Where tasks add to each other's outputs (spec/cache.md §6), what is this one's of all that its globs
 * select. Names, sorted by bytes. */
struct outputs_part {
	const struct strvec *names;
	bool others; /* the names are others', with the directories that lead to them, and the rest is the task's;
		      * else they are all that is the task's */
};

enum {
	OUTPUTS_MAX = 1 << 20 /* names of one task */
};

struct outputs {
	struct output *v; /* in the order of outputs_sort */
	size_t n, cap;
	struct output_watch *watch; /* what outputs_scan saw, for a stamp */
	size_t nwatch, watch_cap;
	struct output_root *roots; /* mostly none */
	size_t nroots, roots_cap;
	int64_t looked_ns; /* the files' clock before that; for a stamp, before their content was read */
};
void outputs_release(struct outputs *o);
/* The error that nobody can name a path of PATH_MAX bytes or more. */
int outputs_too_long(const char *path, struct err *e);
struct output *outputs_add(struct outputs *o); /* zeroed */
/* By path, '/' before every other byte: a directory stands right before what is in it. */
void outputs_sort(struct outputs *o);
int outputs_cmp(const char *a, const char *b);
/* NULL where there is none. */
const struct output *outputs_find(const struct outputs *o, const char *path);
/* Type, mode, size, times and inode of `st`. False: it is special. */
bool output_fill(struct output *out, const struct stat *st);

/* Where `path` really is: itself, or what it is below a followed link (put into buf). */
const char *outputs_real(const struct outputs *o, const char *path, struct strbuf *buf);

/* Whether the path can be an output of the set: selected, not in .git, .vx, nor in a nested project
 * unless by an entry of workspaceFiles, and in a node_modules only if a glob names that. */
bool outputs_select(
	const struct globset *set, const char *const *nested, size_t nnested, const char *path);

/* What is on disk below rootfd that the set selects, directories and special files included, as outputs_select says. A link on the
 * way that leaves the project (for workspaceFiles, the workspace) is an error naming it. `nested`: directories of nested projects. */
int outputs_scan(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	struct outputs *ret, struct err *e);

/* Error naming the first special file, if there is one. */
int outputs_check_types(const struct outputs *o, struct err *e);
/* Leaves the special files out. */
void outputs_drop_special(struct outputs *o);

/* Finds only the links on the way: fills ret->roots, refuses as outputs_scan does. */
int outputs_find_roots(int rootfd, const struct globset *set, const char *const *nested,
	size_t nnested, struct outputs *ret, struct err *e);

/* Removes what outputs_scan finds, then directories left empty; the wildcard's own directory stays.
 * An output that cannot be removed is an error naming it. `part`: NULL, or only what is in it. */
int outputs_clean(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	const struct outputs_part *part, struct err *e);

/* `part` may be NULL: everything is. */
bool outputs_is_mine(const struct outputs_part *part, const char *path);
/* Whether a name of the sorted ones lies strictly below dir. */
bool outputs_has_below(const struct strvec *names, const char *dir);

/* What a task adds. */

/* Before a stamp: others may add to it, so no directory's time says anything. */
void outputs_share(struct outputs *o);

/* What was there. Before Linux 6.13 times are as coarse as the kernel's tick, so of a file that has just been
 * written nothing but its content tells whether it is written again. */
struct outputs_before {
	struct outputs o;
	struct digest *fresh; /* of o.v, by index; all zeros: times will tell */
};
void outputs_before_release(struct outputs_before *b);
/* As outputs_scan. */
int outputs_look_before(int rootfd, const struct globset *set, const char *const *nested,
	size_t nnested, struct outputs_before *ret, struct err *e);
/* Leaves in `now` only what was not so before: new, written, or of another kind or mode. *ret_gone: the first
 * that is not there any more; NULL: none. */
void outputs_since(int rootfd, struct outputs *now, const struct outputs_before *before,
	const char **ret_gone);
/* Leaves in `now` only what `made` names. */
void outputs_only(struct outputs *now, const struct outputs *made);

#endif
