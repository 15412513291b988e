/* SPDX-License-Identifier: MIT */
#include "cache/db.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/log.h"
#include "util/strbuf.h"
#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>

enum {
	BUSY_MS = 5000
};

struct db {
	sqlite3 *h;
	char *path;
	const struct db_schema *schema;
	sqlite3_stmt **stmts; /* prepared at first use */
	sqlite3_stmt *cur;    /* in use, NULL: none */
	int bind_rc;          /* the first bind that failed */
	bool reading;         /* a transaction for look-ups alone is open */
};

/* Code first, words after: what a caller or a user can do differs by code. */
static int
fail_code(const char *path, sqlite3 *h, int rc, struct err *e)
{
	int num = h ? sqlite3_system_errno(h) : 0;

	switch (rc & 0xff) {
	case SQLITE_FULL:
		return err_set(e, ERR_IO, ENOSPC, "write %s", path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_IO, 0,
			"%s: another process has kept it locked for %d seconds", path,
			BUSY_MS / 1000);
	case SQLITE_READONLY:
		return err_set(e, ERR_IO, 0,
			"%s cannot be written: it or its directory is read-only", path);
	case SQLITE_CANTOPEN:
		if (num)
			return err_set(e, ERR_IO, num, "open %s", path);
		break;
	case SQLITE_IOERR:
		if (num)
			return err_set(e, ERR_IO, num, "%s", path);
		break;
	}
	return err_set(e, ERR_IO, 0, "%s: %s", path, h ? sqlite3_errmsg(h) : sqlite3_errstr(rc));
}

static bool
is_damage(int rc)
{
	return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

/* "PATH" to "PATH.broken", with its log, which holds pages of it. */
static int
move_aside(const char *path)
{
	static const char *const parts[] = {"", "-wal", "-shm"};
	int r = 0;

	for (size_t i = 0; i < array_len(parts); i++) {
		char *from = xasprintf("%s%s", path, parts[i]);
		char *to = xasprintf("%s.broken%s", path, parts[i]);

		if (rename(from, to) && errno != ENOENT)
			r = -1;
		free(from);
		free(to);
	}
	return r;
}

/* A damaged page that shows only in use. The file goes aside now, so that the next start makes a new
 * one; this process keeps its handle to the old. */
static int
fail(struct db *db, int rc, struct err *e)
{
	if (!is_damage(rc))
		return fail_code(db->path, db->h, rc, e);
	if (move_aside(db->path))
		return err_set(e, ERR_IO, 0, "%s is damaged (%s): remove it", db->path,
			sqlite3_errstr(rc));
	return err_set(e, ERR_IO, 0,
		"%s is damaged (%s): it is now %s.broken, and the next run makes a new one",
		db->path, sqlite3_errstr(rc), db->path);
}

static int
user_version(sqlite3 *h, int64_t *ret)
{
	sqlite3_stmt *s;
	int rc = sqlite3_prepare_v2(h, "PRAGMA user_version", -1, &s, NULL);

	if (rc)
		return rc;
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/*
 * In WAL mode `synchronous = NORMAL` syncs only when the log is folded into the file: a crash of the
 * machine may lose the last transactions, never the file's order. Such a log is not folded at close:
 * to sync then would wait for all the blobs that a run has just written. A file that is never synced
 * folds its log at close, so that the next open need not read it.
 */
static int
configure(sqlite3 *h, bool forgettable)
{
	int rc = sqlite3_extended_result_codes(h, 1);

	sqlite3_busy_timeout(h, BUSY_MS);
	if (!rc)
		rc = sqlite3_db_config(h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !forgettable, NULL);
	if (!rc)
		rc = sqlite3_exec(
			h, "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON", NULL, NULL, NULL);
	if (!rc)
		rc = sqlite3_exec(h,
			forgettable ? "PRAGMA synchronous = OFF" : "PRAGMA synchronous = NORMAL",
			NULL, NULL, NULL);
	return rc;
}

/* The version is read again inside the transaction: another process may have migrated meanwhile. */
static int
migrate(sqlite3 *h, const struct db_schema *schema, int64_t *ret_version)
{
	char pragma[64];
	int rc = sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (rc)
		return rc;
	rc = user_version(h, ret_version);
	if (!rc && (*ret_version < 0 || (uint64_t)*ret_version > schema->nmigrations)) {
		sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL);
		return SQLITE_OK;
	}
	for (size_t i = (size_t)*ret_version; !rc && i < schema->nmigrations; i++)
		rc = sqlite3_exec(h, schema->migrations[i], NULL, NULL, NULL);
	if (!rc) {
		snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %zu", schema->nmigrations);
		rc = sqlite3_exec(h, pragma, NULL, NULL, NULL);
	}
	if (!rc)
		rc = sqlite3_exec(h, "COMMIT", NULL, NULL, NULL);
	if (rc)
		sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL);
	else
		*ret_version = (int64_t)schema->nmigrations;
	return rc;
}

/* vx has one thread: no lock around every allocation. Only the first open of a process can say so. */
static void
configure_library(void)
{
	static bool done;

	if (done)
		return;
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	done = true;
}

/* An sqlite code, with *ret_version what the file has. */
static int
open_once(const char *path, const struct db_schema *schema, bool alone, sqlite3 **ret,
	int64_t *ret_version)
{
	int rc = sqlite3_open_v2(path, ret,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
			SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW,
		NULL);

	/* Said before its first use, it keeps the index of the log in memory instead of in a file. */
	if (!rc && alone)
		rc = sqlite3_exec(*ret, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
	if (!rc)
		rc = configure(*ret, schema->forgettable);
	if (!rc)
		rc = user_version(*ret, ret_version);
	if (!rc && *ret_version >= 0 && (uint64_t)*ret_version < schema->nmigrations)
		rc = migrate(*ret, schema, ret_version);
	return rc;
}

static int
check_version(const char *path, int64_t version, const struct db_schema *schema, struct err *e)
{
	if (version < 0 || (uint64_t)version > schema->nmigrations)
		return err_set(e, ERR_IO, 0,
			"%s was written by a newer vx (version %lld, this one reads up to %zu): "
			"use that "
			"one, or another cache directory",
			path, (long long)version, schema->nmigrations);
	return 0;
}

static struct db *
new_db(sqlite3 *h, const char *path, const struct db_schema *schema)
{
	struct db *db = xcalloc(1, sizeof(*db));

	db->h = h;
	db->path = xstrdup(path);
	db->schema = schema;
	db->stmts = xcalloc(schema->nstatements, sizeof(*db->stmts));
	return db;
}

int
db_open_alone(const char *path, const struct db_schema *schema, struct db **ret, struct err *e)
{
	sqlite3 *h = NULL;
	int64_t version = 0;
	int rc = open_once(path, schema, true, &h, &version);
	int r = rc ? fail_code(path, h, rc, e) : check_version(path, version, schema, e);

	if (r) {
		sqlite3_close(h);
		return r;
	}
	*ret = new_db(h, path, schema);
	return 0;
}

int
db_open(const char *path, const struct db_schema *schema, struct db **ret, char **ret_note,
	struct err *e)
{
	sqlite3 *h = NULL;
	int64_t version = 0;
	char *note = NULL;
	int rc, r = 0;

	configure_library();
	rc = open_once(path, schema, false, &h, &version);
	if (is_damage(rc)) {
		sqlite3_close(h);
		h = NULL;
		if (move_aside(path))
			return err_set(e, ERR_IO, 0, "%s is damaged (%s): remove it", path,
				sqlite3_errstr(rc));
		note = xasprintf("%s was damaged (%s): it is now %s.broken, and a new one was made",
			path, sqlite3_errstr(rc), path);
		rc = open_once(path, schema, false, &h, &version);
	}
	r = rc ? fail_code(path, h, rc, e) : check_version(path, version, schema, e);
	if (r) {
		sqlite3_close(h);
		free(note);
		if (!schema->forgettable || !err_is_no_room(e->num))
			return r;
		/* It is the workspace's own, and whoever has the run lock is its only writer. */
		err_clear(e);
		return db_open_alone(path, schema, ret, e);
	}
	*ret = new_db(h, path, schema);
	if (ret_note)
		*ret_note = note;
	else
		free(note);
	return 0;
}

/* SQLite's name for a file that nobody changes: "file:", the path with what is special escaped. */
static char *
immutable_uri(const char *path)
{
	struct strbuf uri = STRBUF_INIT;

	strbuf_adds(&uri, "file:");
	for (const char *s = path; *s; s++)
		if (strchr("%?#", *s))
			strbuf_addf(&uri, "%%%02X", (unsigned char)*s);
		else
			strbuf_addch(&uri, *s);
	strbuf_adds(&uri, "?immutable=1");
	return strbuf_take(&uri);
}

int
db_open_reading(const char *path, const struct db_schema *schema, struct db **ret, struct err *e)
{
	enum {
		FLAGS = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
			SQLITE_OPEN_NOFOLLOW
	};
	cleanup_free char *uri = immutable_uri(path);
	sqlite3 *h = NULL;
	int64_t version = 0;
	int rc, r;

	configure_library();
	rc = sqlite3_open_v2(path, &h, FLAGS, NULL);
	if (!rc)
		rc = sqlite3_busy_timeout(h, BUSY_MS);
	if (!rc)
		rc = user_version(h, &version);
	/* The log has an index, which is beside it or has to be made. Where that cannot be, nobody has
	 * the file open who writes, or it is on a disk that others write: what a look-up finds then is
	 * proven by digests like all that a cache says. */
	if ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) {
		sqlite3_close(h);
		h = NULL;
		rc = sqlite3_open_v2(uri, &h, FLAGS | SQLITE_OPEN_URI, NULL);
		if (!rc)
			rc = user_version(h, &version);
	}
	if (is_damage(rc))
		r = err_set(e, ERR_IO, 0, "%s is damaged (%s)", path, sqlite3_errstr(rc));
	else
		r = rc ? fail_code(path, h, rc, e) : check_version(path, version, schema, e);
	if (!r && (uint64_t)version < schema->nmigrations)
		r = err_set(e, ERR_IO, 0,
			"%s was written by an older vx (version %lld, this one reads %zu), and "
			"cannot be written to bring it up to date",
			path, (long long)version, schema->nmigrations);
	if (r) {
		sqlite3_close(h);
		return r;
	}
	*ret = new_db(h, path, schema);
	return 0;
}

void
db_close(struct db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->schema->nstatements; i++)
		sqlite3_finalize(db->stmts[i]);
	if (sqlite3_close(db->h))
		log_debug("cache", "%s: close: %s", db->path, sqlite3_errmsg(db->h));
	free(db->stmts);
	free(db->path);
	free(db);
}

int
db_use(struct db *db, size_t statement, struct err *e)
{
	sqlite3_stmt **s = &db->stmts[statement];

	if (db->cur)
		bug("%s: statement %zu while another is in use", db->path, statement);
	if (!*s) {
		int rc = sqlite3_prepare_v3(db->h, db->schema->statements[statement], -1,
			SQLITE_PREPARE_PERSISTENT, s, NULL);

		if (rc)
			return fail(db, rc, e);
	}
	/* A look-up's transaction cannot become a writing one when somebody else wrote meanwhile. */
	if (!sqlite3_stmt_readonly(*s))
		db_end_reading(db);
	db->cur = *s;
	db->bind_rc = SQLITE_OK;
	return 0;
}

static void
bound(struct db *db, int rc)
{
	if (rc && !db->bind_rc)
		db->bind_rc = rc;
}

void
db_bind_int(struct db *db, int col, int64_t v)
{
	bound(db, sqlite3_bind_int64(db->cur, col, v));
}

void
db_bind_text(struct db *db, int col, const char *s)
{
	bound(db, sqlite3_bind_text(db->cur, col, s, -1, SQLITE_STATIC));
}

void
db_bind_blob(struct db *db, int col, const void *p, size_t n)
{
	if (p)
		bound(db, sqlite3_bind_blob64(db->cur, col, p, n, SQLITE_STATIC));
	else
		bound(db, sqlite3_bind_null(db->cur, col));
}

int
db_step(struct db *db, struct err *e)
{
	int rc = db->bind_rc ? db->bind_rc : sqlite3_step(db->cur);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	return fail(db, rc, e);
}

int64_t
db_get_int(struct db *db, int col)
{
	return sqlite3_column_int64(db->cur, col);
}

const char *
db_get_text(struct db *db, int col)
{
	return (const char *)sqlite3_column_text(db->cur, col);
}

const void *
db_get_blob(struct db *db, int col, size_t *ret_n)
{
	const void *p = sqlite3_column_blob(db->cur, col);

	*ret_n = (size_t)sqlite3_column_bytes(db->cur, col);
	return p;
}

void
db_reset(struct db *db)
{
	if (!db->cur)
		return;
	sqlite3_reset(db->cur);
	sqlite3_clear_bindings(db->cur);
	db->cur = NULL;
}

int
db_run(struct db *db, struct err *e)
{
	int r;

	do
		r = db_step(db, e);
	while (r > 0);
	db_reset(db);
	return r;
}

static int
plain(struct db *db, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);

	return rc ? fail(db, rc, e) : 0;
}

int
db_begin_reading(struct db *db, struct err *e)
{
	/* inside a transaction for writing there is nothing to gain */
	if (db->reading || !sqlite3_get_autocommit(db->h))
		return 0;
	if (plain(db, "BEGIN", e))
		return -1;
	db->reading = true;
	return 0;
}

void
db_end_reading(struct db *db)
{
	if (!db->reading)
		return;
	db->reading = false;
	sqlite3_exec(db->h, "COMMIT", NULL, NULL, NULL);
}

int
db_begin(struct db *db, struct err *e)
{
	db_end_reading(db);
	return plain(db, "BEGIN IMMEDIATE", e);
}

int
db_commit(struct db *db, struct err *e)
{
	if (!plain(db, "COMMIT", e))
		return 0;
	db_rollback(db);
	return -1;
}

void
db_rollback(struct db *db)
{
	db_reset(db);
	/* A full disk may have ended the transaction already. */
	if (!sqlite3_get_autocommit(db->h))
		sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL);
}

int64_t
db_changes(struct db *db)
{
	return sqlite3_changes64(db->h);
}
