/* SPDX-License-Identifier: MIT */
/*
 * The one module that knows SQLite. An enum names each statement, an array has its text; statements
 * are prepared at first use and reset after. Errors become struct err (kind IO) with the file's
 * name.
 */
#ifndef CACHE_DB_H
#define CACHE_DB_H

#include "util/base.h"

struct db;
struct digest;
struct err;

struct db_schema {
	const char *const *migrations; /* SQL text that leads from version i to i + 1 */
	size_t nmigrations;            /* = the current version */
	const char *const *statements; /* by the module's own enum */
	size_t nstatements;
	/* Nothing of worth is lost when the machine crashes and the file with it: never synced. It is one
	 * vx's at a time, and locked while open: no memory is shared. Where another program has it open, it is shared
	 * with that all the same; where that keeps it locked, it is empty and cannot be written. */
	bool forgettable;
	/* What sqlite_schema then holds, text by text, NULL where SQLite made an index by itself; a file that
	 * holds anything else is a damaged one. NULL: not looked at. */
	const char *const *shape;
	size_t nshape;
	int longest;         /* bytes of a value or a row; 0: what SQLite allows */
	uint64_t most_steps; /* of a statement; 0: a thousand million */
};

/* WAL, busy timeout 5 s (1 s for what may be forgotten), foreign keys on. An older schema is migrated, a newer one refused naming
 * the file and both versions. Nothing that lies there is obeyed, for somebody else may have made it: a
 * journal is removed unread, links, fifos and files that have a second name are not opened, views and triggers
 * are off. What is corrupt, is none of those files, or has other tables is damaged: it is moved aside
 * ("….broken"), said in *ret_note (malloc'd, or NULL) and made anew: a cache may forget, it may not stop the
 * work. Damage that shows only later is an error of the statement that met it and of all that follow,
 * and the file is moved aside for the next start. A statement that takes too long is damage, too; one
 * during which a stop is asked (util/stop.h) is ECANCELED. Errors of damage that could not be moved aside
 * have the number EBADMSG, those of what another process keeps locked EBUSY. A write that has waited for such a
 * lock in vain is the last that is tried, and a look-up that has is the end of all use of the file. */
int db_open(const char *path, const struct db_schema *schema, struct db **ret, char **ret_note,
	struct err *e);
/* Where db_open finds no room: nobody else can use the file meanwhile, so that nothing need be written to
 * share it. */
int db_open_alone(const char *path, const struct db_schema *schema, struct db **ret, struct err *e);
/* One that must be there, of this version, in a directory that cannot be written. Damage, or an older
 * one, is EBADMSG. */
int db_open_reading(
	const char *path, const struct db_schema *schema, struct db **ret, struct err *e);
/* A forgettable one, for look-ups alone, while another process may have it open: what was folded into the
 * file, without its log and without a lock, so what it says may be old. One that is missing, of another
 * version or damaged is empty. */
int db_open_beside(
	const char *path, const struct db_schema *schema, struct db **ret, struct err *e);
void db_close(struct db *db);

/* One statement at a time: bind (columns from 1), step, get (columns from 0), reset. What was bound
 * must live until the reset. */
int db_use(struct db *db, size_t statement, struct err *e);
void db_bind_int(struct db *db, int col, int64_t v);
void db_bind_text(struct db *db, int col, const char *s);           /* NULL: SQL NULL */
void db_bind_blob(struct db *db, int col, const void *p, size_t n); /* NULL: SQL NULL */
int db_step(struct db *db, struct err *e);                          /* 1 a row, 0 done, -1 */
int64_t db_get_int(struct db *db, int col);
bool db_is_set(struct db *db, int col);          /* no SQL NULL */
const char *db_get_text(struct db *db, int col); /* NULL for SQL NULL; until the next step */
const void *db_get_blob(struct db *db, int col, size_t *ret_n);
void db_reset(struct db *db);
/* bind done; step until done; reset. */
int db_run(struct db *db, struct err *e);
int64_t db_changes(struct db *db); /* rows that the last statement inserted, changed or deleted */

/* Until the next write, begin or db_end_reading, look-ups see one state of the file and take no lock
 * each: for thousands of them. Holding it long keeps the log from being folded in. */
int db_begin_reading(struct db *db, struct err *e);
void db_end_reading(struct db *db);

int db_begin(struct db *db, struct err *e); /* IMMEDIATE */
int db_commit(struct db *db, struct err *e);
void db_rollback(struct db *db);

#endif
