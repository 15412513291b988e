/* SPDX-License-Identifier: MIT */
#include "cache/db.h"
#include "cache/db-vfs.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/log.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUSY_MS = 5000,
	/* What may be forgotten is not waited for that long, and less where it is only to be had alone. */
	FORGETTABLE_BUSY_MS = 1000,
	ALONE_BUSY_MS = 100,
	/* Of SQLite's machine: some milliseconds between two looks, and ten seconds or more in all. */
	STEPS = 50 * 1000,
	MOST_STEPS = 1000 * 1000 * 1000,
	MOST_BROKEN = 10,
};

struct db {
	sqlite3 *h;
	char *path;
	const struct db_schema *schema;
	sqlite3_stmt **stmts; /* prepared at first use */
	sqlite3_stmt *cur;    /* in use, NULL: none */
	int bind_rc;          /* the first bind that failed */
	bool reading;         /* a transaction for look-ups alone is open */
	bool alone;           /* locked while open: no memory is shared */
	bool locked;          /* a write was waited for in vain: none is tried again */
	bool looks;           /* opened by db_open_reading */
	uint64_t steps;       /* of this statement, in STEPS */
	bool endless;         /* it took too many */
	char *damage;         /* what makes it of no use, NULL: nothing known */
	char *said;           /* what was met in use: nothing more is asked */
};

static bool
is_busy(int rc)
{
	return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED ||
	       (rc & 0xff) == SQLITE_PROTOCOL;
}

/* The text without that of the number, which is for the caller. */
static int
fail_locked(const char *path, struct err *e)
{
	err_set(e, ERR_IO, 0, "%s: another process keeps it locked", path);
	e->num = EBUSY;
	return -1;
}

static const char *const parts[] = {"", "-wal", "-shm"};

/* Code first, words after: what a caller or a user can do differs by code. */
static int
fail_code(const char *path, sqlite3 *h, int rc, struct err *e)
{
	int num = h ? sqlite3_system_errno(h) : 0;

	if (is_busy(rc))
		return fail_locked(path, e);
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return err_set(e, ERR_IO, ENOSPC, "write %s", path);
	case SQLITE_INTERRUPT:
		return err_set(e, ERR_IO, ECANCELED, "%s", path);
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
is_plain(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink <= 1;
}

/* What db-vfs.c does not open: the name of the first, NULL: none. */
static const char *
find_odd_part(const char *path)
{
	static const char *const names[] = {"it", "its -wal", "its -shm"};

	for (size_t i = 0; i < array_len(parts); i++) {
		cleanup_free char *part = xasprintf("%s%s", path, parts[i]);
		struct stat st;

		if (!lstat(part, &st) && !is_plain(&st))
			return names[i];
	}
	return NULL;
}

/* What makes the file of no use, in words (malloc'd), or NULL: this code is nothing of that kind. */
static char *
damage_of(const struct db *db, int rc)
{
	const char *odd;

	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return xstrdup(sqlite3_errstr(rc));
	case SQLITE_ERROR: /* none of our statements is wrong by itself */
		return xstrdup("its tables are not those of vx");
	case SQLITE_NOMEM:
		return db_vfs_refused_memory() ? xstrdup("a value in it is too large") : NULL;
	case SQLITE_TOOBIG:
		return xstrdup("a value in it is too large");
	case SQLITE_INTERRUPT:
		return db->endless ? xstrdup("a look-up in it has no end") : NULL;
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
	case SQLITE_READONLY:
		if (db_vfs_refused_journal())
			return xstrdup("it is in no WAL mode");
		odd = find_odd_part(db->path);
		return odd ? xasprintf("%s is no plain file", odd) : NULL;
	}
	return NULL;
}

/* Where the file and its log can go: no directory is in the way, nor a file in that of a directory. */
static bool
is_free(const char *path, const char *aside)
{
	for (size_t i = 0; i < array_len(parts); i++) {
		cleanup_free char *from = xasprintf("%s%s", path, parts[i]);
		cleanup_free char *to = xasprintf("%s%s", aside, parts[i]);
		struct stat a, b;

		if (!lstat(to, &b) &&
			(S_ISDIR(b.st_mode) || (!lstat(from, &a) && S_ISDIR(a.st_mode))))
			return false;
	}
	return true;
}

/* "PATH" to "PATH.broken", with its log, which holds pages of it. NULL: it cannot be. */
static char *
move_aside(const char *path)
{
	cleanup_free char *aside = xasprintf("%s.broken", path);

	for (int i = 2; i <= MOST_BROKEN && !is_free(path, aside); i++) {
		free(aside);
		aside = xasprintf("%s.broken-%d", path, i);
	}
	for (size_t i = 0; i < array_len(parts); i++) {
		cleanup_free char *from = xasprintf("%s%s", path, parts[i]);
		cleanup_free char *to = xasprintf("%s%s", aside, parts[i]);

		if (rename(from, to) && errno != ENOENT)
			return NULL;
	}
	return take_ptr(&aside);
}

static int
fail_damaged(const struct db *db, struct err *e)
{
	err_set(e, ERR_IO, 0, "%s is damaged (%s)", db->path, db->damage);
	e->num = EBADMSG;
	return -1;
}

/* Damage that shows only in use. The file goes aside now, so that the next start makes a new one; this
 * process keeps its handle to the old. */
static char *
meet_damage(const struct db *db)
{
	cleanup_free char *aside = db->looks ? NULL : move_aside(db->path);

	if (aside)
		return xasprintf(
			"%s is damaged (%s): it is now %s, and the next run makes a new one",
			db->path, db->damage, aside);
	return xasprintf(
		"%s is damaged (%s)%s", db->path, db->damage, db->looks ? "" : ": remove it");
}

static int
repeat(const struct db *db, struct err *e)
{
	return err_set(e, ERR_IO, 0, "%s", db->said);
}

/* Whatever SQLite says: the others have another index by now. The file is theirs, and stays. Asked after
 * every call that can touch the index, for that of another file may be the next. */
static bool
is_cut(struct db *db)
{
	if (!db_vfs_take_cut())
		return false;
	if (!db->said)
		db->said = xasprintf("%s: somebody has cut its -shm short", db->path);
	return true;
}

/* A look-up waits for nobody but who locks the whole file or its index: no use to wait again. */
static int
fail_busy(struct db *db, bool writing, struct err *e)
{
	if (writing)
		db->locked = true;
	else if (!db->said)
		db->said = xasprintf("%s: another process keeps it locked", db->path);
	return fail_locked(db->path, e);
}

static int
fail(struct db *db, int rc, struct err *e)
{
	if (is_cut(db))
		return repeat(db, e);
	db->damage = damage_of(db, rc);
	if (!db->damage)
		return fail_code(db->path, db->h, rc, e);
	db->said = meet_damage(db);
	return repeat(db, e);
}

static void
begin_steps(struct db *db)
{
	db->steps = 0;
	db_vfs_limit(db->schema->longest);
}

/* Between steps: hears the signals that end a run, and ends what would never end. */
static int
watch(void *ctx)
{
	struct db *db = ctx;
	uint64_t most = db->schema->most_steps ? db->schema->most_steps : MOST_STEPS;

	db->endless = ++db->steps * STEPS > most;
	return db->endless || stop_is_asked();
}

/* A pragma that answers with one row, which *ret (to be finalized, even after an error) stands at. */
static int
ask(sqlite3 *h, const char *pragma, sqlite3_stmt **ret)
{
	int rc = sqlite3_prepare_v2(h, pragma, -1, ret, NULL);

	if (!rc)
		rc = sqlite3_step(*ret);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int
user_version(sqlite3 *h, int64_t *ret)
{
	sqlite3_stmt *s;
	int rc = ask(h, "PRAGMA user_version", &s);

	if (!rc)
		*ret = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return rc;
}

/* Nothing here reads the file. What a schema could make SQLite do is off, whoever wrote it and when. */
static int
restrain(struct db *db)
{
	static const struct {
		int id, value;
	} limits[] = {
		{SQLITE_LIMIT_SQL_LENGTH, 64 * 1024},
		{SQLITE_LIMIT_COLUMN, 64},
		{SQLITE_LIMIT_EXPR_DEPTH, 100},
		{SQLITE_LIMIT_ATTACHED, 0},
	};
	static const struct {
		int id, value;
	} options[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
		{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
		{SQLITE_DBCONFIG_ENABLE_FKEY, 1},
	};
	int rc = sqlite3_extended_result_codes(db->h, 1);

	if (db->schema->longest)
		sqlite3_limit(db->h, SQLITE_LIMIT_LENGTH, db->schema->longest);
	for (size_t i = 0; i < array_len(limits); i++)
		sqlite3_limit(db->h, limits[i].id, limits[i].value);
	for (size_t i = 0; !rc && i < array_len(options); i++)
		rc = sqlite3_db_config(db->h, options[i].id, options[i].value, NULL);
	sqlite3_progress_handler(db->h, STEPS, watch, db);
	sqlite3_busy_timeout(db->h, !db->schema->forgettable ? BUSY_MS
				    : db->alone              ? ALONE_BUSY_MS
							     : FORGETTABLE_BUSY_MS);
	return rc;
}

static int
is_logged(sqlite3 *h, bool *ret)
{
	sqlite3_stmt *s;
	int rc = ask(h, "PRAGMA journal_mode", &s);

	if (!rc)
		*ret = !strcmp((const char *)sqlite3_column_text(s, 0), "wal");
	sqlite3_finalize(s);
	return rc;
}

/*
 * In WAL mode `synchronous = NORMAL` syncs only when the log is folded into the file: a crash of the
 * machine may lose the last transactions, never the file's order. Such a log is not folded at close:
 * to sync then would wait for all the blobs that a run has just written. A file that is never synced
 * folds its log at close, so that the next open need not read it.
 *
 * The index of a log is shared memory in a file: whoever cuts that short ends us by SIGBUS. Where nobody
 * else has the file open it is our own memory, because the lock is exclusive before the first look.
 */
static int
configure(sqlite3 *h, bool forgettable)
{
	int rc = sqlite3_db_config(h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !forgettable, NULL);

	if (!rc)
		rc = sqlite3_exec(h,
			forgettable ? "PRAGMA synchronous = OFF" : "PRAGMA synchronous = NORMAL",
			NULL, NULL, NULL);
	return rc;
}

/* The step to WAL mode writes the first page, and would keep a journal of that in a file. vx has
 * taken it for every file of its version: one that lacks it fails where it is written. */
static int
begin_log(sqlite3 *h)
{
	bool logged = false;
	int rc = is_logged(h, &logged);

	if (!rc && !logged)
		rc = sqlite3_exec(h, "PRAGMA journal_mode = MEMORY; PRAGMA journal_mode = WAL",
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

/* SQLITE_ERROR: the tables are others than the migrations make. */
static int
check_shape(sqlite3 *h, const struct db_schema *schema)
{
	size_t n = 0;
	bool same = true;
	sqlite3_stmt *s;
	int rc = sqlite3_prepare_v2(h, "SELECT sql FROM sqlite_schema", -1, &s, NULL);

	if (rc)
		return rc;
	while (same && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		const char *sql = (const char *)sqlite3_column_text(s, 0);
		const char *want = n < schema->nshape ? schema->shape[n] : NULL;

		same = n++ < schema->nshape && !want == !sql && (!sql || !strcmp(sql, want));
	}
	sqlite3_finalize(s);
	if (same && rc != SQLITE_DONE)
		return rc;
	return same && n == schema->nshape ? SQLITE_OK : SQLITE_ERROR;
}

static bool
is_newer(const struct db *db, int64_t version)
{
	return version > 0 && (uint64_t)version > db->schema->nmigrations;
}

/* An sqlite code, with *ret_version what the file has. */
static int
open_once(struct db *db, int64_t *ret_version)
{
	const struct db_schema *schema = db->schema;
	int rc = sqlite3_open_v2(db->path, &db->h,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
			SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW,
		NULL);

	/* Said before its first use, it keeps the index of the log in memory instead of in a file. */
	if (!rc && db->alone)
		rc = sqlite3_exec(db->h, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
	begin_steps(db);
	if (!rc)
		rc = restrain(db);
	if (!rc)
		rc = configure(db->h, schema->forgettable);
	if (!rc)
		rc = user_version(db->h, ret_version);
	if (!rc && *ret_version >= 0 && (uint64_t)*ret_version < schema->nmigrations) {
		rc = begin_log(db->h);
		if (!rc)
			rc = migrate(db->h, schema, ret_version);
	}
	if (!rc && schema->shape && !is_newer(db, *ret_version))
		rc = check_shape(db->h, schema);
	return rc;
}

static int
fail_newer(const struct db *db, int64_t version, struct err *e)
{
	return err_set(e, ERR_IO, 0,
		"%s was written by a newer vx (version %lld, this one reads up to %zu): use that "
		"one, or another cache directory",
		db->path, (long long)version, db->schema->nmigrations);
}

static void
close_handle(struct db *db)
{
	if (sqlite3_close(db->h))
		log_debug("cache", "%s: close: %s", db->path, sqlite3_errmsg(db->h));
	db->h = NULL;
	db_vfs_take_cut(); /* met by the close: nobody's any more */
}

/* Of the same tables, without a file. */
static int
make_empty(struct db *db)
{
	int rc = sqlite3_open_v2(":memory:", &db->h,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

	if (!rc)
		rc = restrain(db);
	for (size_t i = 0; !rc && i < db->schema->nmigrations; i++)
		rc = sqlite3_exec(db->h, db->schema->migrations[i], NULL, NULL, NULL);
	return rc;
}

/* A shell or a backup may have a file open that is to be had alone: shared then, as the log allows. Of one
 * that is locked altogether nothing is known, and nothing can be written to it. */
static int
open_forgettable(struct db *db, int64_t *ret_version)
{
	int rc;

	db->alone = true;
	rc = open_once(db, ret_version);
	if (!is_busy(rc))
		return rc;
	close_handle(db);
	db->alone = false;
	rc = open_once(db, ret_version);
	if (!is_busy(rc))
		return rc;
	log_debug("cache", "%s: not read, another process keeps it locked", db->path);
	close_handle(db);
	*ret_version = (int64_t)db->schema->nmigrations;
	db->locked = true;
	return make_empty(db);
}

static int
open_file(struct db *db, int64_t *ret_version)
{
	return db->schema->forgettable ? open_forgettable(db, ret_version)
				       : open_once(db, ret_version);
}

static struct db *
new_db(const char *path, const struct db_schema *schema)
{
	struct db *db = xcalloc(1, sizeof(*db));

	db->path = xstrdup(path);
	db->schema = schema;
	db->stmts = xcalloc(schema->nstatements, sizeof(*db->stmts));
	return db;
}

/* It is never obeyed here, but whoever opens the file with another program would. */
static void
remove_journal(const char *path)
{
	cleanup_free char *journal = xasprintf("%s-journal", path);

	unlink(journal);
}

/* 0, or -1 with *ret_note possibly set all the same. */
static int
open_or_renew(struct db *db, char **ret_note, struct err *e)
{
	cleanup_free char *aside = NULL;
	int64_t version = 0;
	int rc;

	remove_journal(db->path);
	rc = open_file(db, &version);
	db->damage = rc ? damage_of(db, rc) : NULL;
	if (!rc && version < 0)
		db->damage = xstrdup("its version is below 0");
	if (db->damage) {
		close_handle(db);
		aside = move_aside(db->path);
		if (!aside) {
			fail_damaged(db, e);
			return err_wrap(e, "cannot be set aside");
		}
		*ret_note = xasprintf("%s was damaged (%s): it is now %s, and a new one was made",
			db->path, db->damage, aside);
		free(take_ptr(&db->damage));
		rc = open_file(db, &version);
	}
	if (rc)
		return fail_code(db->path, db->h, rc, e);
	return is_newer(db, version) ? fail_newer(db, version, e) : 0;
}

static int
open_with(const char *path, const struct db_schema *schema, bool alone, struct db **ret,
	char **ret_note, struct err *e)
{
	cleanup_free char *note = NULL;
	int rc = db_vfs_init();
	struct db *db;

	if (rc)
		return fail_code(path, NULL, rc, e);
	db = new_db(path, schema);
	db->alone = alone;
	if (open_or_renew(db, &note, e)) {
		db_close(db);
		return -1;
	}
	is_cut(db);
	*ret = db;
	if (ret_note)
		*ret_note = take_ptr(&note);
	return 0;
}

int
db_open(const char *path, const struct db_schema *schema, struct db **ret, char **ret_note,
	struct err *e)
{
	return open_with(path, schema, false, ret, ret_note, e);
}

int
db_open_alone(const char *path, const struct db_schema *schema, struct db **ret, struct err *e)
{
	return open_with(path, schema, true, ret, NULL, e);
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

static int
open_look(struct db *db, const char *name, int flags, int64_t *ret_version)
{
	int rc = sqlite3_open_v2(name, &db->h,
		flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
			SQLITE_OPEN_NOFOLLOW,
		NULL);

	begin_steps(db);
	if (!rc)
		rc = restrain(db);
	if (!rc)
		rc = user_version(db->h, ret_version);
	if (!rc && db->schema->shape && *ret_version == (int64_t)db->schema->nmigrations)
		rc = check_shape(db->h, db->schema);
	return rc;
}

static int
look(struct db *db, struct err *e)
{
	cleanup_free char *uri = immutable_uri(db->path);
	int64_t version = 0;
	int rc = open_look(db, db->path, 0, &version);

	/* The log has an index, which is beside it or has to be made. Where that cannot be, nobody has
	 * the file open who writes, or it is on a disk that others write: what a look-up finds then is
	 * proven by digests like all that a cache says. */
	if ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY) {
		close_handle(db);
		rc = open_look(db, uri, SQLITE_OPEN_URI, &version);
	}
	db->damage = rc ? damage_of(db, rc) : NULL;
	if (!rc && version < 0)
		db->damage = xstrdup("its version is below 0");
	if (db->damage)
		return fail_damaged(db, e);
	if (rc)
		return fail_code(db->path, db->h, rc, e);
	if (is_newer(db, version))
		return fail_newer(db, version, e);
	if ((uint64_t)version < db->schema->nmigrations) {
		err_set(e, ERR_IO, 0,
			"%s was written by an older vx (version %lld, this one reads %zu), and "
			"cannot be written to bring it up to date",
			db->path, (long long)version, db->schema->nmigrations);
		e->num = EBADMSG;
		return -1;
	}
	return 0;
}

int
db_open_reading(const char *path, const struct db_schema *schema, struct db **ret, struct err *e)
{
	int rc = db_vfs_init();
	struct db *db;

	if (rc)
		return fail_code(path, NULL, rc, e);
	db = new_db(path, schema);
	db->looks = true;
	if (look(db, e)) {
		db_close(db);
		return -1;
	}
	*ret = db;
	return 0;
}

static int
look_unlocked(struct db *db, struct err *e)
{
	cleanup_free char *uri = immutable_uri(db->path);
	int64_t version = 0;
	int rc = open_look(db, uri, SQLITE_OPEN_URI, &version);

	return rc || version != (int64_t)db->schema->nmigrations ? fail_code(db->path, db->h, rc, e)
								 : 0;
}

int
db_open_beside(const char *path, const struct db_schema *schema, struct db **ret, struct err *e)
{
	int rc = db_vfs_init();
	struct err why = ERR_INIT;
	struct db *db;

	if (rc)
		return fail_code(path, NULL, rc, e);
	db = new_db(path, schema);
	db->looks = true;
	if (look_unlocked(db, &why)) {
		log_debug("cache", "not read: %s", why.text);
		close_handle(db);
		rc = make_empty(db);
	}
	if (rc) {
		fail_code(path, db->h, rc, e);
		db_close(db);
		return -1;
	}
	*ret = db;
	return 0;
}

void
db_close(struct db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->schema->nstatements; i++)
		sqlite3_finalize(db->stmts[i]);
	close_handle(db);
	free(db->stmts);
	free(db->damage);
	free(db->said);
	free(db->path);
	free(db);
}

int
db_use(struct db *db, size_t statement, struct err *e)
{
	sqlite3_stmt **s = &db->stmts[statement];

	if (db->cur)
		bug("%s: statement %zu while another is in use", db->path, statement);
	if (db->said)
		return repeat(db, e);
	begin_steps(db);
	if (!*s) {
		int rc = sqlite3_prepare_v3(db->h, db->schema->statements[statement], -1,
			SQLITE_PREPARE_PERSISTENT, s, NULL);

		if (rc)
			return fail(db, rc, e);
	}
	if (!sqlite3_stmt_readonly(*s)) {
		if (db->locked)
			return fail_locked(db->path, e);
		/* A look-up's transaction cannot become a writing one when somebody else wrote meanwhile. */
		db_end_reading(db);
	}
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
	int rc = db->bind_rc;

	if (rc)
		return fail_code(db->path, db->h, rc, e);
	rc = sqlite3_step(db->cur);
	/* One that is written is ours. */
	if ((rc & 0xff) == SQLITE_TOOBIG && !sqlite3_stmt_readonly(db->cur))
		return fail_code(db->path, db->h, rc, e);
	if (is_cut(db))
		return repeat(db, e);
	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	if (is_busy(rc))
		return fail_busy(db, !sqlite3_stmt_readonly(db->cur), e);
	return fail(db, rc, e);
}

int64_t
db_get_int(struct db *db, int col)
{
	return sqlite3_column_int64(db->cur, col);
}

bool
db_is_set(struct db *db, int col)
{
	return sqlite3_column_type(db->cur, col) != SQLITE_NULL;
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
	int rc;

	if (db->said)
		return repeat(db, e);
	begin_steps(db);
	rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);
	/* A transaction that a full disk has ended cannot be committed: nothing is wrong with the file. */
	if ((rc & 0xff) == SQLITE_ERROR)
		return fail_code(db->path, db->h, rc, e);
	if (is_cut(db))
		return repeat(db, e);
	/* What is only looked up takes no lock here. */
	if (is_busy(rc))
		return fail_busy(db, true, e);
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
	is_cut(db);
}

int
db_begin(struct db *db, struct err *e)
{
	if (db->locked)
		return fail_locked(db->path, e);
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
	is_cut(db);
}

int64_t
db_changes(struct db *db)
{
	return sqlite3_changes64(db->h);
}
