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

enum {
	MEDIAN_OF = 9,
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
static const char *const migrations[] = {version_1, version_2, version_3};
static const char *const shape[] = {
	NAMES,
	NULL,
	RUNS_BEGIN ", hits BLOB)",
	NULL,
	TASKS_BEGIN ", attempts INTEGER NOT NULL DEFAULT 1" TASKS_END,
	TASKS_EXECUTED,
	DENIALS,
	KEY_TEXTS,
	NULL,
	KEY_TEXTS_ADDED,
};

static const char *const statements[STATEMENTS] = {
	[NAMES_ALL] = "SELECT id, name FROM names",
	[NAME_ADD] = "INSERT INTO names(name) VALUES(?1) RETURNING id",
	[RUN_ADD] =
		"INSERT INTO runs(run_id, command, started_ns, ended_ns, concurrency, exit_code,"
		" ntasks, hits) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
	[TASK_ADD] =
		"INSERT INTO tasks(run, task, status, cache, key, exit_code, duration_ns, cpu_us,"
		" peak_rss_kb, started_ns, timed_out, blocked_by, findings, attempts)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
	[DENIAL_ADD] =
		"INSERT INTO denials(run, task, n, op, path, class, program, pid, grant_text)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	[TEXT_ADD] = "INSERT OR IGNORE INTO key_texts(key, text, added_ns) VALUES(?1, ?2, ?3)",
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
	[TEXTS_TRIM] = "DELETE FROM key_texts WHERE added_ns < ?1",
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

struct history {
	struct db *db;
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
	struct htab names; /* of this run, to id, as a pointer */
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
add_key_text(struct recording *rc, const struct history_task *t)
{
	if (db_use(rc->db, TEXT_ADD, rc->e))
		return -1;
	db_bind_blob(rc->db, 1, t->key.b, DIGEST_SIZE);
	db_bind_blob(rc->db, 2, t->key_text, t->key_text_len);
	db_bind_int(rc->db, 3, (int64_t)clock_wall_ns());
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
	if (db_run(rc->db, rc->e) || add_denials(rc, t, task))
		return -1;
	return t->has_key && t->key_text ? add_key_text(rc, t) : 0;
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
