/* SPDX-License-Identifier: MIT */
/*
 * Two files: index.db in the cache directory may be shared by many workspaces, state.db is this
 * workspace's own and holds the stamps. A stamp that is lost costs a restore, nothing else.
 */
#include "cache/index.h"
#include "cache/db.h"
#include "cache/stamp.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/beside.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/htab.h"
#include "util/log.h"
#include "util/path.h"
#include <unistd.h>

/* How exactly the last use of an entry is known: a warm run shall not write thousands of rows. */
static const int64_t ACCESS_NS = 24LL * 3600 * 1000 * 1000 * 1000;

enum {
	ENTRY_GET,
	ENTRY_PUT,
	ENTRY_DROP,
	ENTRY_TOUCH,
	ENTRY_ALL,
	ENTRY_DROP_UNUSED,
	UPKEEP_ADD,
	UPKEEP_GET,
	UPKEEP_SET,
	ENTRY_STATEMENTS
};

#define ENTRIES                                                                                    \
	"CREATE TABLE entries("                                                                    \
	"  key BLOB PRIMARY KEY,"                                                                  \
	"  task TEXT NOT NULL,"                                                                    \
	"  making INTEGER NOT NULL,"                                                               \
	"  tree BLOB,"                                                                             \
	"  bytes INTEGER NOT NULL,"                                                                \
	"  output BLOB,"                                                                           \
	"  duration_ns INTEGER NOT NULL,"                                                          \
	"  cpu_us INTEGER NOT NULL,"                                                               \
	"  peak_rss_kb INTEGER NOT NULL,"                                                          \
	"  created_ns INTEGER NOT NULL,"                                                           \
	"  accessed_ns INTEGER NOT NULL"                                                           \
	") WITHOUT ROWID"
#define UPKEEP                                                                                     \
	"CREATE TABLE upkeep("                                                                     \
	"  id INTEGER PRIMARY KEY CHECK(id = 1),"                                                  \
	"  bytes INTEGER NOT NULL,"                                                                \
	"  swept_ns INTEGER NOT NULL,"                                                             \
	"  told_ns INTEGER NOT NULL"                                                               \
	")"
/* A cache of before has no size yet: it is due for cleaning, which counts it. */
static const char entry_version_2[] =
	UPKEEP ";"
	       "INSERT INTO upkeep(id, bytes, swept_ns, told_ns) VALUES(1, 0,"
	       " CASE WHEN EXISTS(SELECT 1 FROM entries) THEN 0"
	       " ELSE strftime('%s', 'now') * 1000000000 END, 0);";
static const char *const entry_migrations[] = {ENTRIES, entry_version_2};
static const char *const entry_shape[] = {ENTRIES, UPKEEP};

static const char entry_get[] =
	"SELECT making, tree, bytes, output, accessed_ns, cpu_us, peak_rss_kb FROM entries"
	" WHERE key = ?1";

static const char *const entry_statements[ENTRY_STATEMENTS] = {
	[ENTRY_GET] = entry_get,
	[ENTRY_PUT] =
		"INSERT INTO entries(key, task, making, tree, bytes, output, duration_ns, cpu_us,"
		" peak_rss_kb, created_ns, accessed_ns)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)"
		" ON CONFLICT(key) DO UPDATE SET task = ?2, making = ?3, tree = ?4, bytes = ?5,"
		" output = ?6, duration_ns = ?7, cpu_us = ?8, peak_rss_kb = ?9,"
		" created_ns = ?10, accessed_ns = ?10 WHERE making <= ?3",
	[ENTRY_DROP] = "DELETE FROM entries WHERE key = ?1",
	[ENTRY_TOUCH] = "UPDATE entries SET accessed_ns = ?2 WHERE key = ?1",
	[ENTRY_ALL] = "SELECT key, tree, output, accessed_ns FROM entries"
		      " ORDER BY accessed_ns DESC, key",
	[ENTRY_DROP_UNUSED] = "DELETE FROM entries WHERE key = ?1 AND accessed_ns = ?2",
	[UPKEEP_ADD] = "UPDATE upkeep SET bytes = bytes + ?1",
	[UPKEEP_GET] = "SELECT bytes, swept_ns, told_ns FROM upkeep",
	[UPKEEP_SET] = "REPLACE INTO upkeep(id, bytes, swept_ns, told_ns) VALUES(1, ?1, ?2, ?3)",
};

static const struct db_schema entry_schema = {
	.migrations = entry_migrations,
	.nmigrations = array_len(entry_migrations),
	.statements = entry_statements,
	.nstatements = ENTRY_STATEMENTS,
	.shape = entry_shape,
	.nshape = array_len(entry_shape),
	.longest = 1 << 20,
};

enum {
	STAMP_GET,
	STAMP_PUT,
	STAMP_DROP,
	STAMP_ALL,
	STAMP_STATEMENTS
};

#define STAMPS                                                                                     \
	"CREATE TABLE stamps("                                                                     \
	"  task TEXT PRIMARY KEY,"                                                                 \
	"  key BLOB NOT NULL,"                                                                     \
	"  seen BLOB NOT NULL"                                                                     \
	")"
static const char *const stamp_migrations[] = {STAMPS};
static const char *const stamp_shape[] = {STAMPS, NULL};

static const char *const stamp_statements[STAMP_STATEMENTS] = {
	[STAMP_GET] = "SELECT key, seen FROM stamps WHERE task = ?1",
	[STAMP_PUT] = "REPLACE INTO stamps(task, key, seen) VALUES(?1, ?2, ?3)",
	[STAMP_DROP] = "DELETE FROM stamps WHERE task = ?1",
	[STAMP_ALL] = "SELECT task, key, seen FROM stamps",
};

static const struct db_schema stamp_schema = {
	.migrations = stamp_migrations,
	.nmigrations = array_len(stamp_migrations),
	.statements = stamp_statements,
	.nstatements = STAMP_STATEMENTS,
	.forgettable = true,
	.shape = stamp_shape,
	.nshape = array_len(stamp_shape),
	.longest = 256 << 20,
};

/* Not more than this is looked at ahead, which is kept in memory; the rest is looked at one by one. */
static const size_t AHEAD_BYTES = 128 << 20;

/* A stamp that is looked at ahead. */
struct ahead {
	struct digest key;
	const void *seen;
	size_t n;
	bool is_true; /* the second thread's, until it is over */
};

struct ahead_list {
	struct ahead *v; /* in the order of by_task */
	size_t n, cap, bytes;
	struct htab by_task; /* its names */
	struct arena arena;
	struct beside looker;
	int rootfd;
};

struct index {
	struct db *entries;
	struct db *stamps;
	struct ahead_list ahead;
	struct digest *used; /* entries whose access time is to be written */
	size_t nused, used_cap;
};

/* Both notes, on a line each. */
static char *
join_notes(char *a_take, char *b_take)
{
	char *r;

	if (!a_take || !b_take)
		return a_take ? a_take : b_take;
	r = xasprintf("%s\n%s", a_take, b_take);
	free(a_take);
	free(b_take);
	return r;
}

static int
open_entries(const char *cache_dir, bool alone, struct db **ret, char **ret_note, struct err *e)
{
	cleanup_free char *path = path_join(cache_dir, "index.db");

	if (access(cache_dir, W_OK))
		return db_open_reading(path, &entry_schema, ret, e);
	if (!db_open(path, &entry_schema, ret, ret_note, e))
		return 0;
	if (!alone || !err_is_no_room(e->num))
		return -1;
	err_clear(e);
	return db_open_alone(path, &entry_schema, ret, e);
}

int
index_open(const char *cache_dir, const char *state_dir, bool is_dry, struct index **ret,
	char **ret_note, struct err *e)
{
	cleanup_free char *stamps = state_dir ? path_join(state_dir, "state.db") : NULL;
	cleanup_free char *note_a = NULL, *note_b = NULL;
	struct index *ix = xcalloc(1, sizeof(*ix));

	if ((cache_dir && open_entries(cache_dir, !stamps, &ix->entries, &note_a, e)) ||
		(stamps && (is_dry ? db_open_beside(stamps, &stamp_schema, &ix->stamps, e)
				   : db_open(stamps, &stamp_schema, &ix->stamps, &note_b, e)))) {
		db_close(ix->entries);
		free(ix);
		return -1;
	}
	if (ret_note)
		*ret_note = join_notes(take_ptr(&note_a), take_ptr(&note_b));
	*ret = ix;
	return 0;
}

static int
write_used(struct index *ix, struct err *e)
{
	int64_t now = (int64_t)clock_wall_ns();

	if (db_begin(ix->entries, e))
		return -1;
	for (size_t i = 0; i < ix->nused; i++) {
		if (db_use(ix->entries, ENTRY_TOUCH, e))
			goto fail;
		db_bind_blob(ix->entries, 1, ix->used[i].b, DIGEST_SIZE);
		db_bind_int(ix->entries, 2, now);
		if (db_run(ix->entries, e))
			goto fail;
	}
	return db_commit(ix->entries, e);
fail:
	db_rollback(ix->entries);
	return -1;
}

void
index_close(struct index *ix)
{
	struct err e = ERR_INIT;

	if (!ix)
		return;
	index_forget_looks(ix);
	/* Only the order of pruning is lost with them. */
	if (ix->nused && write_used(ix, &e))
		log_debug("cache", "access times not written: %s", e.text);
	db_close(ix->entries);
	db_close(ix->stamps);
	free(ix->used);
	free(ix);
}

/* NULL leaves the digest alone; a blob of another size is damage. */
static bool
get_digest(struct db *db, int col, bool *ret_has, struct digest *ret)
{
	size_t n;
	const void *p = db_get_blob(db, col, &n);

	*ret_has = p != NULL;
	if (!p)
		return true;
	if (n != DIGEST_SIZE)
		return false;
	memcpy(ret->b, p, n);
	return true;
}

/* False: the row is none that index_put wrote. */
static bool
read_entry(struct db *db, struct entry *ret)
{
	int64_t making = db_get_int(db, 0);

	if (making < MADE_UNCONFINED || making > MADE_PROVEN ||
		!get_digest(db, 1, &ret->has_tree, &ret->tree) ||
		!get_digest(db, 3, &ret->has_output, &ret->output))
		return false;
	ret->making = (enum entry_making)making;
	ret->bytes = (uint64_t)db_get_int(db, 2);
	ret->cpu_us = (uint64_t)db_get_int(db, 5);
	ret->peak_rss_kb = (uint64_t)db_get_int(db, 6);
	return true;
}

static void
mark_used(struct index *ix, const struct digest *key)
{
	GROW(ix->used, ix->nused + 1, ix->used_cap);
	ix->used[ix->nused++] = *key;
}

int
index_get(struct index *ix, const struct digest *key, struct entry *ret, struct err *e)
{
	struct entry en = {.key = *key};
	int64_t accessed = 0;
	int r;

	if (db_begin_reading(ix->entries, e) || db_use(ix->entries, ENTRY_GET, e))
		return -1;
	db_bind_blob(ix->entries, 1, key->b, DIGEST_SIZE);
	r = db_step(ix->entries, e);
	if (r > 0) {
		r = read_entry(ix->entries, &en);
		accessed = db_get_int(ix->entries, 4);
	}
	db_reset(ix->entries);
	if (r <= 0)
		return r;
	if (accessed < (int64_t)clock_wall_ns() - ACCESS_NS)
		mark_used(ix, key);
	*ret = en;
	return 1;
}

int
index_put(struct index *ix, const struct entry *en, struct err *e)
{
	struct db *db = ix->entries;

	if (db_use(db, ENTRY_PUT, e))
		return -1;
	db_bind_blob(db, 1, en->key.b, DIGEST_SIZE);
	db_bind_text(db, 2, en->task);
	db_bind_int(db, 3, en->making);
	db_bind_blob(db, 4, en->has_tree ? en->tree.b : NULL, DIGEST_SIZE);
	db_bind_int(db, 5, (int64_t)en->bytes);
	db_bind_blob(db, 6, en->has_output ? en->output.b : NULL, DIGEST_SIZE);
	db_bind_int(db, 7, (int64_t)en->duration_ns);
	db_bind_int(db, 8, (int64_t)en->cpu_us);
	db_bind_int(db, 9, (int64_t)en->peak_rss_kb);
	db_bind_int(db, 10, en->created_ns);
	if (db_run(db, e))
		return -1;
	return db_changes(db) > 0;
}

int
index_drop(struct index *ix, const struct digest *key, struct err *e)
{
	if (db_use(ix->entries, ENTRY_DROP, e))
		return -1;
	db_bind_blob(ix->entries, 1, key->b, DIGEST_SIZE);
	return db_run(ix->entries, e);
}

static bool
read_row(struct db *db, struct index_row *ret)
{
	bool has_key;

	if (!get_digest(db, 0, &has_key, &ret->key) || !has_key ||
		!get_digest(db, 1, &ret->has_tree, &ret->tree) ||
		!get_digest(db, 2, &ret->has_output, &ret->output))
		return false;
	ret->accessed_ns = db_get_int(db, 3);
	return true;
}

int
index_rows(struct index *ix, struct index_row **ret, size_t *ret_n, struct err *e)
{
	struct index_row *rows = NULL;
	size_t n = 0, cap = 0;
	int r;

	/* What this run has used is used now. Where there is no room to say so, room is what this is about. */
	if (ix->nused && write_used(ix, e)) {
		if (!err_is_no_room(e->num))
			return -1;
		err_clear(e);
	}
	ix->nused = 0;
	if (db_use(ix->entries, ENTRY_ALL, e))
		return -1;
	while ((r = db_step(ix->entries, e)) > 0) {
		GROW(rows, n + 1, cap);
		rows[n] = (struct index_row){0};
		n += read_row(ix->entries, &rows[n]);
	}
	db_reset(ix->entries);
	if (r < 0) {
		free(rows);
		return -1;
	}
	*ret = rows;
	*ret_n = n;
	return 0;
}

int
index_drop_unused(struct index *ix, const struct index_row *row, struct err *e)
{
	struct db *db = ix->entries;

	if (db_use(db, ENTRY_DROP_UNUSED, e))
		return -1;
	db_bind_blob(db, 1, row->key.b, DIGEST_SIZE);
	db_bind_int(db, 2, row->accessed_ns);
	if (db_run(db, e))
		return -1;
	return db_changes(db) > 0;
}

int
index_upkeep(struct index *ix, uint64_t written, struct upkeep *ret, struct err *e)
{
	struct db *db = ix->entries;
	int r;

	if (written) {
		if (db_use(db, UPKEEP_ADD, e))
			return -1;
		db_bind_int(db, 1, (int64_t)written);
		if (db_run(db, e))
			return -1;
	}
	if (db_use(db, UPKEEP_GET, e))
		return -1;
	r = db_step(db, e);
	*ret = (struct upkeep){0};
	if (r > 0)
		*ret = (struct upkeep){
			(uint64_t)db_get_int(db, 0), db_get_int(db, 1), db_get_int(db, 2)};
	db_reset(db);
	return r < 0 ? -1 : 0;
}

int
index_set_upkeep(struct index *ix, const struct upkeep *u, struct err *e)
{
	struct db *db = ix->entries;

	if (db_use(db, UPKEEP_SET, e))
		return -1;
	db_bind_int(db, 1, (int64_t)u->bytes);
	db_bind_int(db, 2, u->swept_ns);
	db_bind_int(db, 3, u->told_ns);
	return db_run(db, e);
}

int
index_stamp(struct index *ix, const char *task, const struct digest *key, const struct outputs *o,
	struct err *e)
{
	cleanup_strbuf struct strbuf seen = STRBUF_INIT;

	stamp_encode(o, &seen);
	if (db_use(ix->stamps, STAMP_PUT, e))
		return -1;
	db_bind_text(ix->stamps, 1, task);
	db_bind_blob(ix->stamps, 2, key->b, DIGEST_SIZE);
	db_bind_blob(ix->stamps, 3, seen.buf, seen.len);
	return db_run(ix->stamps, e);
}

int
index_unstamp(struct index *ix, const char *task, struct err *e)
{
	if (db_use(ix->stamps, STAMP_DROP, e))
		return -1;
	db_bind_text(ix->stamps, 1, task);
	return db_run(ix->stamps, e);
}

/* 1: the task has a stamp, with this key unless that is NULL; *ret_seen lasts until db_reset. 0, -1. */
static int
get_stamp(struct db *db, const char *task, const struct digest *key, const void **ret_seen,
	size_t *ret_n, struct err *e)
{
	const void *stamped;
	size_t n;
	int r;

	if (db_begin_reading(db, e) || db_use(db, STAMP_GET, e))
		return -1;
	db_bind_text(db, 1, task);
	r = db_step(db, e);
	if (r <= 0)
		return r;
	stamped = db_get_blob(db, 0, &n);
	*ret_seen = db_get_blob(db, 1, ret_n);
	return !key || (n == DIGEST_SIZE && !memcmp(stamped, key->b, n));
}

int
index_stamped(struct index *ix, const char *task, const char *const *paths, size_t n, bool *ret,
	struct err *e)
{
	const void *seen;
	size_t size;
	int r = get_stamp(ix->stamps, task, NULL, &seen, &size, e);

	if (r > 0)
		stamp_find_names(seen, size, paths, n, ret);
	db_reset(ix->stamps);
	return r < 0 ? -1 : 0;
}

int
index_stamped_files(
	struct index *ix, const char *task, const struct outputs *now, bool *ret, struct err *e)
{
	const void *seen;
	size_t size;
	int r = get_stamp(ix->stamps, task, NULL, &seen, &size, e);

	if (r > 0)
		stamp_find_files(seen, size, now, ret);
	db_reset(ix->stamps);
	return r < 0 ? -1 : 0;
}

int
index_stamped_names(struct index *ix, const char *task, struct strvec *ret, struct err *e)
{
	const void *seen;
	size_t size;
	int r = get_stamp(ix->stamps, task, NULL, &seen, &size, e);

	if (r > 0)
		stamp_list_names(seen, size, ret);
	db_reset(ix->stamps);
	return r < 0 ? -1 : 0;
}

/* The second thread. */
static void *
look_ahead(void *arg)
{
	struct ahead_list *l = arg;

	for (size_t i = 0; i < l->n && !l->looker.hurry; i++)
		l->v[i].is_true = stamp_is_true(l->rootfd, l->v[i].seen, l->v[i].n);
	return NULL;
}

static void
add_ahead(struct ahead_list *l, struct db *db)
{
	const char *task = db_get_text(db, 0);
	struct ahead a = {0};
	size_t n, len = task ? strlen(task) : 0;
	const void *key = db_get_blob(db, 1, &n), *seen;

	if (!task || n != DIGEST_SIZE)
		return;
	memcpy(a.key.b, key, n);
	seen = db_get_blob(db, 2, &a.n);
	if (l->bytes + len + a.n > AHEAD_BYTES)
		return;
	l->bytes += len + a.n;
	a.seen = arena_memdupz(&l->arena, seen, a.n);
	htab_putn(&l->by_task, arena_memdupz(&l->arena, task, len), len, NULL);
	GROW(l->v, l->n + 1, l->cap);
	l->v[l->n++] = a;
}

int
index_look_ahead(struct index *ix, int rootfd, struct err *e)
{
	struct ahead_list *l = &ix->ahead;
	struct db *db = ix->stamps;
	int r;

	index_forget_looks(ix);
	if (db_begin_reading(db, e) || db_use(db, STAMP_ALL, e))
		return -1;
	while ((r = db_step(db, e)) > 0)
		add_ahead(l, db);
	db_reset(db);
	if (r < 0) {
		index_forget_looks(ix);
		return -1;
	}
	l->rootfd = rootfd;
	beside_start(&l->looker, look_ahead, l);
	return 0;
}

void
index_forget_looks(struct index *ix)
{
	struct ahead_list *l = &ix->ahead;

	beside_end(&l->looker, true);
	free(l->v);
	htab_release(&l->by_task);
	arena_release(&l->arena);
	*l = (struct ahead_list){0};
}

static bool
was_true(struct ahead_list *l, const char *task, const struct digest *key)
{
	const struct htab_entry *en = htab_findn(&l->by_task, task, strlen(task));
	const struct ahead *a = en ? &l->v[en - l->by_task.entries] : NULL;

	if (!a || !digest_equal(&a->key, key))
		return false;
	beside_end(&l->looker, false);
	return a->is_true;
}

int
index_is_current(
	struct index *ix, int rootfd, const char *task, const struct digest *key, struct err *e)
{
	const void *seen;
	size_t n;
	int r;

	if (was_true(&ix->ahead, task, key))
		return 1;
	r = get_stamp(ix->stamps, task, key, &seen, &n, e);

	if (r > 0)
		r = stamp_is_true(rootfd, seen, n);
	db_reset(ix->stamps);
	return r;
}

int
index_is_unsure(
	struct index *ix, int rootfd, const char *task, const struct digest *key, struct err *e)
{
	const void *seen;
	size_t n;
	int r = get_stamp(ix->stamps, task, key, &seen, &n, e);

	if (r > 0)
		r = stamp_is_unsure(rootfd, seen, n);
	db_reset(ix->stamps);
	return r;
}

int
index_is_among(struct index *ix, const char *task, const struct digest *key,
	const struct outputs *now, struct strvec *ret_strays, struct err *e)
{
	const void *seen;
	size_t n;
	int r = get_stamp(ix->stamps, task, key, &seen, &n, e);

	if (r > 0)
		r = stamp_is_among(seen, n, now, ret_strays);
	db_reset(ix->stamps);
	return r;
}

int
index_begin(struct index *ix, struct err *e)
{
	return db_begin(ix->entries, e);
}

int
index_commit(struct index *ix, struct err *e)
{
	return db_commit(ix->entries, e);
}

void
index_rollback(struct index *ix)
{
	db_rollback(ix->entries);
}
