/* SPDX-License-Identifier: MIT */
/*
 * Rows of a run lie together (run first in their key), so a run of thousands of tasks appends to one
 * place and pays for no second index; only executed tasks are in one, for predicted times. Names are
 * numbers, each stored once. Hits, which are nearly all of a warm run, are no rows but one blob of it.
 */
#include "cache/history.h"
#include "cache/db.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/htab.h"
#include "util/log.h"
#include "util/path.h"
#include <sys/random.h>
#include <zstd.h>

enum {
	MEDIAN_OF = 9,
	PASSES_OF = 100,
	LAST_OF = 64,        /* runs: history_last */
	NAMES_MAX = 1 << 20, /* the same */
	TEXT_MAX = 16 << 20, /* a key's */
	PACK_FROM = 4096,    /* shorter ones are kept as they are */
	PACK_LEVEL = 1,
	/* Tasks, so that a watched workspace of any size stays small. */
	MOST_TASKS = 1000 * 1000,
	KEEP_TASKS = MOST_TASKS / 10 * 9,
};
static const int64_t DAY_NS = 24LL * 3600 * 1000 * 1000 * 1000;
static const int64_t KEEP_NS = 30 * DAY_NS;

enum {
	NAMES_ALL,
	NAME_ADD,
	RUN_ADD,
	TASK_ADD,
	DENIAL_ADD,
	TEXT_ADD,
	TEXTS_OLD,
	TEXT_GET,
	NAME_ID,
	NAMES_LAST,
	RUN_BEFORE,
	RUN_TASKS,
	PASSES,
	FAILURES,
	LAST_EXECUTED,
	IS_OVER,
	OLDEST_KEPT,
	RUNS_TRIM,
	TEXTS_TRIM,
	STATEMENTS,
};

#define NAMES                                                                                      \
	"CREATE TABLE names("                                                                      \
	"  id INTEGER PRIMARY KEY,"                                                                \
	"  name TEXT NOT NULL UNIQUE"                                                              \
	")"
#define RUNS_BEGIN                                                                                 \
	"CREATE TABLE runs("                                                                       \
	"  id INTEGER PRIMARY KEY,"                                                                \
	"  run_id TEXT NOT NULL UNIQUE,"                                                           \
	"  command TEXT NOT NULL,"                                                                 \
	"  started_ns INTEGER NOT NULL,"                                                           \
	"  ended_ns INTEGER NOT NULL,"                                                             \
	"  concurrency INTEGER NOT NULL,"                                                          \
	"  exit_code INTEGER NOT NULL,"                                                            \
	"  ntasks INTEGER NOT NULL"
#define TASKS_BEGIN                                                                                \
	"CREATE TABLE tasks("                                                                      \
	"  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"                            \
	"  task INTEGER NOT NULL,"                                                                 \
	"  status TEXT NOT NULL,"                                                                  \
	"  cache TEXT NOT NULL,"                                                                   \
	"  key BLOB,"                                                                              \
	"  exit_code INTEGER NOT NULL,"                                                            \
	"  duration_ns INTEGER NOT NULL,"                                                          \
	"  cpu_us INTEGER NOT NULL,"                                                               \
	"  peak_rss_kb INTEGER NOT NULL,"                                                          \
	"  started_ns INTEGER NOT NULL,"                                                           \
	"  timed_out INTEGER NOT NULL,"                                                            \
	"  blocked_by INTEGER,"                                                                    \
	"  findings INTEGER NOT NULL"
#define TASKS_END                                                                                  \
	",  PRIMARY KEY(run, task)"                                                                \
	") WITHOUT ROWID"
#define TASKS_EXECUTED                                                                             \
	"CREATE INDEX tasks_executed ON tasks(task, run)"                                          \
	"  WHERE status = 'success' AND cache IN ('miss', 'no-cache')"
#define DENIALS                                                                                    \
	"CREATE TABLE denials("                                                                    \
	"  run INTEGER NOT NULL,"                                                                  \
	"  task INTEGER NOT NULL,"                                                                 \
	"  n INTEGER NOT NULL,"                                                                    \
	"  op TEXT NOT NULL,"                                                                      \
	"  path TEXT NOT NULL,"                                                                    \
	"  class TEXT NOT NULL,"                                                                   \
	"  program TEXT,"                                                                          \
	"  pid INTEGER NOT NULL,"                                                                  \
	"  grant_text TEXT,"                                                                       \
	"  PRIMARY KEY(run, task, n),"                                                             \
	"  FOREIGN KEY(run, task) REFERENCES tasks(run, task) ON DELETE CASCADE"                   \
	") WITHOUT ROWID"
#define KEY_TEXTS                                                                                  \
	"CREATE TABLE key_texts("                                                                  \
	"  key BLOB PRIMARY KEY,"                                                                  \
	"  text BLOB NOT NULL,"                                                                    \
	"  added_ns INTEGER NOT NULL"                                                              \
	")"
#define KEY_TEXTS_ADDED "CREATE INDEX key_texts_added ON key_texts(added_ns)"
static const char version_1[] = NAMES ";" RUNS_BEGIN ");" TASKS_BEGIN TASKS_END ";" TASKS_EXECUTED
				      ";" DENIALS ";" KEY_TEXTS ";" KEY_TEXTS_ADDED ";";
static const char version_2[] = "ALTER TABLE runs ADD COLUMN hits BLOB;";
static const char version_3[] = "ALTER TABLE tasks ADD COLUMN attempts INTEGER NOT NULL DEFAULT 1;";
/* The key_texts of before were never written. */
#define TASKS_FAILED "CREATE INDEX tasks_failed ON tasks(task, run) WHERE status = 'failed'"
#define TASK_TEXTS                                                                                 \
	"CREATE TABLE task_texts("                                                                 \
	"  task INTEGER NOT NULL,"                                                                 \
	"  run INTEGER NOT NULL,"                                                                  \
	"  key BLOB NOT NULL,"                                                                     \
	"  added_ns INTEGER NOT NULL,"                                                             \
	"  text BLOB NOT NULL,"                                                                    \
	"  PRIMARY KEY(task, run)"                                                                 \
	") WITHOUT ROWID"
static const char version_4[] = "ALTER TABLE runs ADD COLUMN tags TEXT;"
				"ALTER TABLE tasks ADD COLUMN saved INTEGER;" TASKS_FAILED
				"; DROP TABLE key_texts;" TASK_TEXTS ";";
static const char *const migrations[] = {version_1, version_2, version_3, version_4};
static const char *const shape[] = {
	NAMES,
	NULL,
	RUNS_BEGIN ", hits BLOB, tags TEXT)",
	NULL,
	TASKS_BEGIN ", attempts INTEGER NOT NULL DEFAULT 1, saved INTEGER" TASKS_END,
	TASKS_EXECUTED,
	DENIALS,
	TASKS_FAILED,
	TASK_TEXTS,
};

static const char *const statements[STATEMENTS] = {
	[NAMES_ALL] = "SELECT id, name FROM names",
	[NAME_ADD] = "INSERT INTO names(name) VALUES(?1) RETURNING id",
	[RUN_ADD] =
		"INSERT INTO runs(run_id, command, started_ns, ended_ns, concurrency, exit_code,"
		" ntasks, hits, tags) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id",
	[TASK_ADD] =
		"INSERT INTO tasks(run, task, status, cache, key, exit_code, duration_ns, cpu_us,"
		" peak_rss_kb, started_ns, timed_out, blocked_by, findings, attempts, saved)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
	[DENIAL_ADD] =
		"INSERT INTO denials(run, task, n, op, path, class, program, pid, grant_text)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[TEXT_ADD] = "INSERT INTO task_texts(task, run, key, added_ns, text)"
		     " VALUES(?1, ?2, ?3, ?4, ?5)",
	/* What has this key, and all but three of the others. */
	[TEXTS_OLD] = "DELETE FROM task_texts WHERE task = ?1 AND (key = ?2 OR run <="
		      " (SELECT run FROM task_texts WHERE task = ?1"
		      " ORDER BY run DESC LIMIT 1 OFFSET 3))",
	[TEXT_GET] = "SELECT text FROM task_texts"
		     " WHERE task = (SELECT id FROM names WHERE name = ?1) AND key = ?2",
	[NAME_ID] = "SELECT id FROM names WHERE name = ?1",
	[NAMES_LAST] = "SELECT max(id) FROM names",
	[RUN_BEFORE] = "SELECT id, hits FROM runs WHERE id < ?1 ORDER BY id DESC LIMIT 1",
	[RUN_TASKS] = "SELECT task, status, key, saved FROM tasks"
		      " WHERE run = ?1 AND status IN ('success', 'failed', 'cache-hit')",
	[PASSES] = "SELECT count(*) FROM (SELECT key FROM tasks"
		   " WHERE task = (SELECT id FROM names WHERE name = ?1)"
		   " AND status = 'success' AND cache IN ('miss', 'no-cache')"
		   " ORDER BY run DESC LIMIT ?3) WHERE key = ?2",
	[FAILURES] = "SELECT count(*) FROM tasks"
		     " WHERE task = (SELECT id FROM names WHERE name = ?1)"
		     " AND status = 'failed' AND key = ?2 AND NOT findings",
	[LAST_EXECUTED] = "SELECT duration_ns FROM tasks"
			  " WHERE task = (SELECT id FROM names WHERE name = ?1)"
			  " AND status = 'success' AND cache IN ('miss', 'no-cache')"
			  " ORDER BY run DESC LIMIT ?2",
	/* Cheap to ask in every run, and so that not every run has something to trim. */
	[IS_OVER] = "SELECT sum(ntasks) > ?1 OR min(started_ns) < ?2 FROM runs",
	/* The newest runs that together have no more rows than may be kept. */
	[OLDEST_KEPT] = "SELECT min(id) FROM (SELECT id, started_ns,"
			" sum(ntasks) OVER (ORDER BY id DESC) AS total FROM runs)"
			" WHERE total <= ?1 AND started_ns >= ?2",
	[RUNS_TRIM] = "DELETE FROM runs WHERE id < ?1",
	[TEXTS_TRIM] = "DELETE FROM task_texts WHERE added_ns < ?1",
};

static const struct db_schema schema = {
	.migrations = migrations,
	.nmigrations = array_len(migrations),
	.statements = statements,
	.nstatements = STATEMENTS,
	.forgettable = true,
	.shape = shape,
	.nshape = array_len(shape),
	.longest = 256 << 20,
};

/* Of a task in lasts. */
struct last {
	bool known;
	struct history_last was;
};

struct history {
	struct db *db;
	/* By names.id, made at the first question, filled run by run as far as they go back. */
	struct last *lasts;
	size_t nlasts;
	int64_t before; /* the run that was read last */
	unsigned nread;
};

int
history_open(const char *state_dir, bool is_dry, struct history **ret, struct err *e)
{
	cleanup_free char *path = path_join(state_dir, "history.db");
	cleanup_free char *note = NULL;
	struct db *db;

	if (is_dry ? db_open_beside(path, &schema, &db, e) : db_open(path, &schema, &db, &note, e))
		return -1;
	if (note)
		log_debug("cache", "%s", note);
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->db = db;
	return 0;
}

void
history_close(struct history *h)
{
	if (!h)
		return;
	db_close(h->db);
	free(h->lasts);
	free(h);
}

/* Recording: one transaction, all names found by one query. */

/* A hit in runs.hits, in the machine's byte order. */
struct hit {
	uint32_t task;
	uint32_t restored; /* 0: it was up to date */
	struct digest key;
	int64_t started_ns;
	uint64_t duration_ns;
};
_Static_assert(sizeof(struct hit) == 56, "a hit has no padding");

struct recording {
	struct db *db;
	int64_t run;
	int64_t last_known; /* the greatest of names.id before it: what is beyond has no past */
	struct htab names;  /* of this run, to id, as a pointer */
	struct hit *hits;
	size_t nhits;
	struct err *e;
};

/* The one row of a RETURNING. */
static int
run_returning(struct db *db, int64_t *ret, struct err *e)
{
	int r = db_step(db, e);

	if (r > 0)
		*ret = db_get_int(db, 0);
	if (r > 0)
		r = db_step(db, e);
	db_reset(db);
	return r;
}

static int
add_name(struct recording *rc, struct htab_entry *en)
{
	int64_t id = 0;

	if (db_use(rc->db, NAME_ADD, rc->e))
		return -1;
	db_bind_text(rc->db, 1, en->key);
	if (run_returning(rc->db, &id, rc->e))
		return -1;
	en->value = (void *)(intptr_t)id;
	return 0;
}

static int
find_names(struct recording *rc, const struct history_run *run)
{
	int r;

	for (size_t i = 0; i < run->ntasks; i++) {
		htab_put(&rc->names, run->tasks[i].task, NULL);
		if (run->tasks[i].blocked_by)
			htab_put(&rc->names, run->tasks[i].blocked_by, NULL);
	}
	if (db_use(rc->db, NAMES_ALL, rc->e))
		return -1;
	while ((r = db_step(rc->db, rc->e)) > 0) {
		const char *name = db_get_text(rc->db, 1);

		if (db_get_int(rc->db, 0) > rc->last_known)
			rc->last_known = db_get_int(rc->db, 0);
		struct htab_entry *en = name ? htab_findn(&rc->names, name, strlen(name)) : NULL;

		if (en)
			en->value = (void *)(intptr_t)db_get_int(rc->db, 0);
	}
	db_reset(rc->db);
	for (size_t i = 0; i < rc->names.n && !r; i++)
		if (!rc->names.entries[i].value)
			r = add_name(rc, &rc->names.entries[i]);
	return r;
}

static int64_t
name_id(const struct recording *rc, const char *name)
{
	return (intptr_t)htab_get(&rc->names, name);
}

static bool
is_hit(const struct history_task *t)
{
	return !strcmp(t->status, "cache-hit") && t->has_key && !t->ndenials && !t->nfindings &&
	       !t->key_text;
}

static int
hit_cmp(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	return (x->task > y->task) - (x->task < y->task);
}

static int
collect_hits(struct recording *rc, const struct history_run *run)
{
	rc->hits = xcalloc(run->ntasks, sizeof(*rc->hits));
	for (size_t i = 0; i < run->ntasks; i++) {
		const struct history_task *t = &run->tasks[i];

		if (is_hit(t))
			rc->hits[rc->nhits++] = (struct hit){
				.task = (uint32_t)name_id(rc, t->task),
				.restored = !strcmp(t->cache, "restored"),
				.key = t->key,
				.started_ns = t->started_ns,
				.duration_ns = t->duration_ns,
			};
	}
	if (rc->nhits)
		qsort(rc->hits, rc->nhits, sizeof(*rc->hits), hit_cmp);
	for (size_t i = 1; i < rc->nhits; i++)
		if (!hit_cmp(&rc->hits[i - 1], &rc->hits[i]))
			return err_set(rc->e, ERR_BUG, 0, "a task is twice in one run");
	return 0;
}

static int
add_run(struct recording *rc, const struct history_run *run)
{
	if (db_use(rc->db, RUN_ADD, rc->e))
		return -1;
	db_bind_text(rc->db, 1, run->run_id);
	db_bind_text(rc->db, 2, run->command);
	db_bind_int(rc->db, 3, run->started_ns);
	db_bind_int(rc->db, 4, run->ended_ns);
	db_bind_int(rc->db, 5, run->concurrency);
	db_bind_int(rc->db, 6, run->exit_code);
	db_bind_int(rc->db, 7, (int64_t)run->ntasks);
	db_bind_blob(rc->db, 8, rc->nhits ? rc->hits : NULL, rc->nhits * sizeof(*rc->hits));
	db_bind_text(rc->db, 9, run->tags);
	return run_returning(rc->db, &rc->run, rc->e);
}

static int
add_denials(struct recording *rc, const struct history_task *t, int64_t task)
{
	for (size_t i = 0; i < t->ndenials; i++) {
		const struct history_denial *d = &t->denials[i];

		if (db_use(rc->db, DENIAL_ADD, rc->e))
			return -1;
		db_bind_int(rc->db, 1, rc->run);
		db_bind_int(rc->db, 2, task);
		db_bind_int(rc->db, 3, (int64_t)i);
		db_bind_text(rc->db, 4, d->op);
		db_bind_text(rc->db, 5, d->path);
		db_bind_text(rc->db, 6, d->class);
		db_bind_text(rc->db, 7, d->program);
		db_bind_int(rc->db, 8, d->pid);
		db_bind_text(rc->db, 9, d->grant);
		if (db_run(rc->db, rc->e))
			return -1;
	}
	return 0;
}

static int
add_key_text(struct recording *rc, const struct history_task *t, int64_t task)
{
	if (task <= rc->last_known) {
		if (db_use(rc->db, TEXTS_OLD, rc->e))
			return -1;
		db_bind_int(rc->db, 1, task);
		db_bind_blob(rc->db, 2, t->key.b, DIGEST_SIZE);
		if (db_run(rc->db, rc->e))
			return -1;
	}
	if (db_use(rc->db, TEXT_ADD, rc->e))
		return -1;
	db_bind_int(rc->db, 1, task);
	db_bind_int(rc->db, 2, rc->run);
	db_bind_blob(rc->db, 3, t->key.b, DIGEST_SIZE);
	db_bind_int(rc->db, 4, (int64_t)clock_wall_ns());
	db_bind_blob(rc->db, 5, t->key_text, t->key_text_len);
	return db_run(rc->db, rc->e);
}

static int
add_task(struct recording *rc, const struct history_task *t)
{
	int64_t task = name_id(rc, t->task);

	if (db_use(rc->db, TASK_ADD, rc->e))
		return -1;
	db_bind_int(rc->db, 1, rc->run);
	db_bind_int(rc->db, 2, task);
	db_bind_text(rc->db, 3, t->status);
	db_bind_text(rc->db, 4, t->cache);
	db_bind_blob(rc->db, 5, t->has_key ? t->key.b : NULL, DIGEST_SIZE);
	db_bind_int(rc->db, 6, t->exit_code);
	db_bind_int(rc->db, 7, (int64_t)t->duration_ns);
	db_bind_int(rc->db, 8, (int64_t)t->cpu_us);
	db_bind_int(rc->db, 9, (int64_t)t->peak_rss_kb);
	db_bind_int(rc->db, 10, t->started_ns);
	db_bind_int(rc->db, 11, t->timed_out);
	if (t->blocked_by)
		db_bind_int(rc->db, 12, name_id(rc, t->blocked_by));
	db_bind_int(rc->db, 13, (int64_t)t->nfindings);
	db_bind_int(rc->db, 14, t->attempts);
	db_bind_int(rc->db, 15, t->saved);
	if (db_run(rc->db, rc->e) || add_denials(rc, t, task))
		return -1;
	return t->has_key && t->key_text ? add_key_text(rc, t, task) : 0;
}

/* By age and by number; the run just added always stays. */
static int
trim(struct recording *rc)
{
	int64_t since = (int64_t)clock_wall_ns() - KEEP_NS, oldest = 0, over = 0;

	if (db_use(rc->db, IS_OVER, rc->e))
		return -1;
	db_bind_int(rc->db, 1, MOST_TASKS);
	db_bind_int(rc->db, 2, since - DAY_NS);
	if (run_returning(rc->db, &over, rc->e))
		return -1;
	if (!over)
		return 0;
	if (db_use(rc->db, OLDEST_KEPT, rc->e))
		return -1;
	db_bind_int(rc->db, 1, KEEP_TASKS);
	db_bind_int(rc->db, 2, since);
	if (run_returning(rc->db, &oldest, rc->e) || db_use(rc->db, RUNS_TRIM, rc->e))
		return -1;
	db_bind_int(rc->db, 1, oldest && oldest < rc->run ? oldest : rc->run);
	if (db_run(rc->db, rc->e) || db_use(rc->db, TEXTS_TRIM, rc->e))
		return -1;
	db_bind_int(rc->db, 1, since);
	return db_run(rc->db, rc->e);
}

static int
record_all(struct recording *rc, const struct history_run *run)
{
	if (find_names(rc, run) || collect_hits(rc, run) || add_run(rc, run))
		return -1;
	for (size_t i = 0; i < run->ntasks; i++)
		if (!is_hit(&run->tasks[i]) && add_task(rc, &run->tasks[i]))
			return -1;
	return trim(rc);
}

int
history_record(struct history *h, const struct history_run *run, struct err *e)
{
	struct recording rc = {.db = h->db, .e = e};
	int r = db_begin(h->db, e);

	if (r)
		return -1;
	htab_init(&rc.names);
	r = record_all(&rc, run);
	if (!r)
		r = db_commit(h->db, e);
	else
		db_rollback(h->db);
	htab_release(&rc.names);
	free(rc.hits);
	return r;
}

static int
int64_cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int
history_p50(struct history *h, const char *task, uint64_t *ret_ms, struct err *e)
{
	int64_t v[MEDIAN_OF];
	size_t n = 0;
	int r;

	if (db_use(h->db, LAST_EXECUTED, e))
		return -1;
	db_bind_text(h->db, 1, task);
	db_bind_int(h->db, 2, MEDIAN_OF);
	while ((r = db_step(h->db, e)) > 0)
		v[n++] = db_get_int(h->db, 0);
	db_reset(h->db);
	if (r < 0)
		return -1;
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), int64_cmp);
	*ret_ms = (uint64_t)v[n / 2] / 1000000u;
	return 1;
}

bool
history_pack(const char *text, size_t n, struct strbuf *ret)
{
	size_t bound = ZSTD_compressBound(n), k;

	if (n > TEXT_MAX)
		return false;
	if (n < PACK_FROM) {
		strbuf_add(ret, text, n);
		return true;
	}
	strbuf_grow(ret, bound);
	k = ZSTD_compress(ret->buf + ret->len, bound, text, n, PACK_LEVEL);
	if (ZSTD_isError(k))
		return false;
	ret->len += k;
	ret->buf[ret->len] = '\0';
	return true;
}

/* Anybody may have written it. */
static bool
unpack(const char *p, size_t n, struct strbuf *ret)
{
	static const char plain[] = "vx-key ";
	unsigned long long full;
	size_t k;

	if (n >= sizeof(plain) - 1 && !memcmp(p, plain, sizeof(plain) - 1)) {
		strbuf_add(ret, p, n);
		return true;
	}
	full = ZSTD_getFrameContentSize(p, n);
	if (full > TEXT_MAX) /* the errors are numbers beyond all */
		return false;
	strbuf_grow(ret, full);
	k = ZSTD_decompress(ret->buf + ret->len, full, p, n);
	if (ZSTD_isError(k))
		return false;
	ret->len += k;
	ret->buf[ret->len] = '\0';
	return true;
}

int
history_key_text(struct history *h, const char *task, const struct digest *key, struct strbuf *ret,
	struct err *e)
{
	const void *p;
	size_t n;
	int r;

	if (db_use(h->db, TEXT_GET, e))
		return -1;
	db_bind_text(h->db, 1, task);
	db_bind_blob(h->db, 2, key->b, DIGEST_SIZE);
	r = db_step(h->db, e);
	p = r > 0 ? db_get_blob(h->db, 0, &n) : NULL;
	if (r > 0)
		r = p && unpack(p, n, ret);
	db_reset(h->db);
	return r;
}

/* ------------------------------------------------------------------ the last run of a task */

static void
note_last(struct history *h, int64_t task, const struct history_last *was)
{
	if (task < 0 || (uint64_t)task >= h->nlasts || h->lasts[task].known)
		return;
	h->lasts[task] = (struct last){true, *was};
}

static void
note_hits(struct history *h, const void *p, size_t n)
{
	for (size_t at = 0; p && at + sizeof(struct hit) <= n; at += sizeof(struct hit)) {
		struct hit hit;

		memcpy(&hit, (const char *)p + at, sizeof(hit));
		note_last(h, hit.task,
			&(struct history_last){
				.has_key = true, .key = hit.key, .was_hit = true, .saved = -1});
	}
}

/* The run before those that were read. 1, 0: there is none. */
static int
read_run(struct history *h, struct err *e)
{
	int64_t run;
	size_t n;
	const void *p;
	int r;

	if (h->nread >= LAST_OF)
		return 0;
	if (db_use(h->db, RUN_BEFORE, e))
		return -1;
	db_bind_int(h->db, 1, h->before);
	r = db_step(h->db, e);
	if (r > 0) {
		run = h->before = db_get_int(h->db, 0);
		p = db_get_blob(h->db, 1, &n);
		note_hits(h, p, n);
	}
	db_reset(h->db);
	if (r <= 0)
		return r;
	h->nread++;
	if (db_use(h->db, RUN_TASKS, e))
		return -1;
	db_bind_int(h->db, 1, run);
	while ((r = db_step(h->db, e)) > 0) {
		const char *status = db_get_text(h->db, 1);
		struct history_last was = {.saved = -1};

		p = db_get_blob(h->db, 2, &n);
		was.has_key = p && n == DIGEST_SIZE;
		if (was.has_key)
			memcpy(was.key.b, p, DIGEST_SIZE);
		was.failed = status && !strcmp(status, "failed");
		was.was_hit = status && !strcmp(status, "cache-hit");
		if (db_is_set(h->db, 3) && !was.was_hit)
			was.saved = db_get_int(h->db, 3) != 0;
		note_last(h, db_get_int(h->db, 0), &was);
	}
	db_reset(h->db);
	return r < 0 ? -1 : 1;
}

/* 1 with the number, 0: there is none. */
static int
ask_number(struct history *h, int64_t *ret, struct err *e)
{
	int r = db_step(h->db, e);

	if (r > 0)
		*ret = db_get_int(h->db, 0);
	db_reset(h->db);
	return r;
}

static int
begin_lasts(struct history *h, struct err *e)
{
	int64_t last = 0;

	if (db_use(h->db, NAMES_LAST, e) || ask_number(h, &last, e) < 0)
		return -1;
	h->nlasts = last > 0 && last < NAMES_MAX ? (size_t)last + 1 : 1;
	h->lasts = xcalloc(h->nlasts, sizeof(*h->lasts));
	h->before = INT64_MAX;
	return 0;
}

int
history_last(struct history *h, const char *task, struct history_last *ret, bool *ret_never,
	struct err *e)
{
	int64_t id;
	int r;

	*ret_never = false;
	if (!h->lasts && begin_lasts(h, e))
		return -1;
	if (db_use(h->db, NAME_ID, e))
		return -1;
	db_bind_text(h->db, 1, task);
	r = ask_number(h, &id, e);
	if (r <= 0) {
		*ret_never = !r;
		return r;
	}
	if (id < 0 || (uint64_t)id >= h->nlasts)
		return 0;
	while (!h->lasts[id].known && (r = read_run(h, e)) > 0)
		;
	if (r < 0)
		return -1;
	*ret = h->lasts[id].was;
	return h->lasts[id].known;
}

int
history_outcomes(struct history *h, const char *task, const struct digest *key,
	uint64_t *ret_passes, uint64_t *ret_failures, struct err *e)
{
	int64_t n[2] = {0, 0};

	for (size_t i = 0; i < 2; i++) {
		if (db_use(h->db, i ? FAILURES : PASSES, e))
			return -1;
		db_bind_text(h->db, 1, task);
		db_bind_blob(h->db, 2, key->b, DIGEST_SIZE);
		if (!i)
			db_bind_int(h->db, 3, PASSES_OF);
		if (ask_number(h, &n[i], e) < 0)
			return -1;
	}
	*ret_passes = (uint64_t)n[0];
	*ret_failures = (uint64_t)n[1];
	return 0;
}

/* RFC 9562: 48 bits of Unix milliseconds, version 7, the rest random. */
void
history_run_id(char ret[37])
{
	uint64_t ms = clock_wall_ns() / 1000000u, r[2];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		bug("getrandom");
	snprintf(ret, 37, "%08x-%04x-7%03x-%04x-%012llx", (unsigned)(ms >> 16 & 0xffffffffu),
		(unsigned)(ms & 0xffff), (unsigned)(r[0] & 0xfff),
		0x8000u | (unsigned)(r[0] >> 12 & 0x3fff), (unsigned long long)(r[1] >> 16));
}
