/* SPDX-License-Identifier: MIT */
/*
 * Key to stored result (CACHE/index.db), and per workspace what its outputs looked like after their
 * last save or restore (stamps, WORKSPACE/.vx/state.db).
 */
#ifndef CACHE_INDEX_H
#define CACHE_INDEX_H

#include "cache/outputs.h"
#include "util/digest.h"
#include "util/strbuf.h"

struct err;
struct index;
struct strvec;

/* What an entry knows of its making (design §4). A higher one is never replaced by a lower. */
enum entry_making {
	MADE_UNCONFINED,
	MADE_CONFINED,
	MADE_PROVEN
};

struct entry {
	struct digest key;
	const char *task; /* borrowed */
	enum entry_making making;
	bool has_tree; /* false: no declared outputs, or none was made */
	struct digest tree;
	uint64_t bytes;
	bool has_output;
	struct digest
		output; /* blob: what the task printed, both streams in order (exec/output.h) */
	uint64_t duration_ns;
	uint64_t cpu_us;
	uint64_t peak_rss_kb;
	int64_t created_ns;
};

/* *ret_note as db_open. cache_dir NULL: only what is said of stamps below may be called; state_dir NULL: only
 * the rest, and on a full disk it may be open for nobody else. In a cache directory that cannot be written
 * there must be an index, which is only read. A --dry has no run lock: it is beside whoever has, reads the
 * stamps as of the last run (db_open_beside) and may write none. */
int index_open(const char *cache_dir, const char *state_dir, bool is_dry, struct index **ret,
	char **ret_note, struct err *e);
/* Writes what is pending (access times), closes. */
void index_close(struct index *ix);

/* 1 found, 0 none. Of the entry, what serves a hit: all but the task and the times. */
int index_get(struct index *ix, const struct digest *key, struct entry *ret, struct err *e);
/* The row, last of all: its blobs are in the store by now. 1 written, 0 a better entry stands. */
int index_put(struct index *ix, const struct entry *en, struct err *e);
int index_drop(struct index *ix, const struct digest *key, struct err *e);

/* What cleaning up needs of a row (cache/gc.h). */
struct index_row {
	struct digest key, tree, output;
	bool has_tree, has_output;
	int64_t accessed_ns; /* exactly as it stands there */
};
/* All rows, the last used first; *ret is the caller's. */
int index_rows(struct index *ix, struct index_row **ret, size_t *ret_n, struct err *e);
/* Drops the row unless it has been written or used since index_rows: 1 dropped, 0 not. */
int index_drop_unused(struct index *ix, const struct index_row *row, struct err *e);

/* The state of the upkeep, shared by all who share the cache. */
struct upkeep {
	uint64_t bytes; /* on the disk: as of the last cleaning, and what runs have written since */
	int64_t swept_ns; /* the last cleaning; 0: never */
	int64_t told_ns;  /* that it has grown large */
};
/* Adds what this run has written, and returns what stands there then. */
int index_upkeep(struct index *ix, uint64_t written, struct upkeep *ret, struct err *e);
int index_set_upkeep(struct index *ix, const struct upkeep *u, struct err *e);

/* Stamps: the outputs of `task` in this workspace are those of `key`, and looked like this: `o` as
 * outputs_scan or tree_restore gave it (with what it watches), after the last move. */
int index_stamp(struct index *ix, const char *task, const struct digest *key,
	const struct outputs *o, struct err *e);
int index_unstamp(struct index *ix, const char *task, struct err *e);
/* Which of the names, sorted by bytes, were outputs in the task's last stamp, of whatever key: sets
 * ret[i] to true, leaves the others alone. */
int index_stamped(struct index *ix, const char *task, const char *const *paths, size_t n, bool *ret,
	struct err *e);
/* The same by name and inode: which of what is there now is the very file. */
int index_stamped_files(
	struct index *ix, const char *task, const struct outputs *now, bool *ret, struct err *e);
/* Pushes them all. */
int index_stamped_names(struct index *ix, const char *task, struct strvec *ret, struct err *e);
/* 1: the workspace holds exactly the outputs of `key`: same key at the last save or restore, every
 * output there with the same size, mode, mtime, inode and ctime, and nothing more (by the mtimes of
 * the output directories). 0: not so, or not known. */
int index_is_current(
	struct index *ix, int rootfd, const char *task, const struct digest *key, struct err *e);
/* 1: it would, if times told: they are of a file system that counts whole seconds, and too young. */
int index_is_unsure(
	struct index *ix, int rootfd, const char *task, const struct digest *key, struct err *e);
/* The same where others may add to them: `now` is all that is there, and *ret_strays gets what the stamp does
 * not have. */
int index_is_among(struct index *ix, const char *task, const struct digest *key,
	const struct outputs *now, struct strvec *ret_strays, struct err *e);

/* Begins to look whether the outputs of all stamped tasks are as their stamps say, beside what the caller
 * does meanwhile. Until index_forget_looks those answers, which are from here on, are index_is_current's:
 * for the time in which keys are made and no task runs yet. rootfd stays open until then. */
int index_look_ahead(struct index *ix, int rootfd, struct err *e);
void index_forget_looks(struct index *ix);

/* Groups many writes of entries into one transaction. Without the commit, index_close undoes them. */
int index_begin(struct index *ix, struct err *e);
/* On failure nothing of them is done, as after index_rollback. */
int index_commit(struct index *ix, struct err *e);
void index_rollback(struct index *ix);

#endif
