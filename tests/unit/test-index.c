/* SPDX-License-Identifier: MIT */
#include "cache/db.h"
#include "cache/index.h"
#include "tests/unit/globs.h"
#include "tests/unit/ws.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <endian.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct index *ix;

static void
open_index(const char *want_note)
{
	struct err e = ERR_INIT;
	cleanup_free char *note = NULL;

	if (index_open(ws_path, ws_path, false, &ix, &note, &e))
		bug("%s", e.text);
	ok(want_note ? note && strstr(note, want_note) : !note, "note: %s", note ? note : "none");
}

static void
close_index(void)
{
	index_close(ix);
	ix = NULL;
}

static struct digest
key(unsigned char b)
{
	struct digest d;

	memset(&d, b, sizeof(d));
	return d;
}

static int
put(unsigned char k, enum entry_making making, uint64_t bytes)
{
	struct entry en = {.key = key(k),
		.task = "app#build",
		.making = making,
		.bytes = bytes,
		.has_tree = bytes > 0,
		.tree = key(9),
		.created_ns = 5,
		.duration_ns = 7};
	struct err e = ERR_INIT;
	int r = index_put(ix, &en, &e);

	if (r < 0)
		diag("%s", e.text);
	return r;
}

static int
count(const char *sql)
{
	cleanup_free char *path = path_join(ws_path, "index.db");
	sqlite3 *h = NULL;
	sqlite3_stmt *s = NULL;
	int n = -1;

	if (!sqlite3_open(path, &h) && !sqlite3_prepare_v2(h, sql, -1, &s, NULL) &&
		sqlite3_step(s) == SQLITE_ROW)
		n = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(h);
	return n;
}

static uint64_t
bytes_of(unsigned char k)
{
	struct digest d = key(k);
	struct entry en = {0};
	struct err e = ERR_INIT;
	uint64_t r = UINT64_MAX;

	if (index_get(ix, &d, &en, &e) == 1)
		r = en.bytes;
	return r;
}

static void
test_entries(void)
{
	struct digest k = key(1);
	struct entry en = {0};
	struct err e = ERR_INIT;

	ws_begin();
	open_index(NULL);
	ok_int(index_get(ix, &k, &en, &e), 0, "nothing there");
	ok_int(put(1, MADE_CONFINED, 10), 1, "written");
	close_index();
	open_index(NULL);
	ok_int(index_get(ix, &k, &en, &e), 1, "found by the next process");
	ok(en.making == MADE_CONFINED && en.bytes == 10 && en.has_tree && !en.has_output,
		"as it was put");
	ok_int(count("SELECT count(*) FROM entries WHERE task = 'app#build' AND created_ns = 5 AND "
		     "duration_ns = 7"),
		1, "with what nobody asks for yet");
	ok_int(put(1, MADE_UNCONFINED, 11), 0, "a lower making does not replace");
	ok_int((long long)bytes_of(1), 10, "the better entry stands");
	ok_int(put(1, MADE_CONFINED, 12), 1, "an equal one does");
	ok_int(put(1, MADE_PROVEN, 13), 1, "a higher one does");
	ok_int((long long)bytes_of(1), 13, "it is the last");
	ok_int(index_drop(ix, &k, &e), 0, "dropped");
	ok_int(index_get(ix, &k, &en, &e), 0, "gone");
	ok(!index_begin(ix, &e) && put(2, MADE_PROVEN, 1) == 1 && !index_commit(ix, &e),
		"many writes as one");
	ok(!index_begin(ix, &e) && put(3, MADE_PROVEN, 1) == 1, "without a commit");
	close_index();
	open_index(NULL);
	ok(bytes_of(2) == 1 && bytes_of(3) == UINT64_MAX, "nothing is kept");
	close_index();
	ws_end();
}

static void
write_file(const char *name, const char *bytes, size_t n)
{
	if (fs_replace_file(ws_fd, name, bytes, n, 0644))
		bug("write %s", name);
}

static void
test_damaged(void)
{
	static const char rubbish[8192] = "not a database";
	struct err e = ERR_INIT;
	struct stat st;

	ws_begin();
	open_index(NULL);
	put(1, MADE_PROVEN, 1);
	close_index();
	unlinkat(ws_fd, "index.db-wal", 0);
	unlinkat(ws_fd, "index.db-shm", 0);
	write_file("index.db", rubbish, sizeof(rubbish));
	open_index("index.db.broken");
	ok_int((long long)bytes_of(1), -1, "a damaged index is forgotten");
	ok_int(put(1, MADE_PROVEN, 1), 1, "and works");
	close_index();
	ok(!fstatat(ws_fd, "index.db.broken", &st, 0), "the old one is kept aside");
	write_file("state.db", rubbish, sizeof(rubbish));
	unlinkat(ws_fd, "state.db-wal", 0);
	unlinkat(ws_fd, "state.db-shm", 0);
	open_index("state.db.broken");
	close_index();
	ws_end();

	ws_begin();
	write_file("index.db", rubbish, 0);
	open_index(NULL);
	ok_int(put(1, MADE_PROVEN, 1), 1, "an empty file is a new database");
	close_index();
	ws_end();

	ws_begin();
	if (geteuid()) {
		fchmod(ws_fd, 0555);
		ok(index_open(ws_path, ws_path, false, &ix, NULL, &e),
			"a directory that is read-only");
		ok_err(&e, "index.db", "is named");
		fchmod(ws_fd, 0755);
	} else {
		skip("a directory that is read-only", "root may write it");
	}
	ws_end();
}

static void
test_versions(void)
{
	static const char *const one[] = {"CREATE TABLE t(a)"};
	static const char *const three[] = {
		"CREATE TABLE t(a)", "ALTER TABLE t ADD b", "INSERT INTO t VALUES(1, 2)"};
	static const char *const sql[] = {"SELECT count(*) FROM t"};
	static const char *const bad[] = {"CREATE TABLE t(a)", "SELECT nonsense"};
	const struct db_schema old = {.migrations = one,
				       .nmigrations = 1,
				       .statements = sql,
				       .nstatements = 1},
			       new = {.migrations = three,
				       .nmigrations = 3,
				       .statements = sql,
				       .nstatements = 1,
				       .forgettable = true},
			       broken = {.migrations = bad,
				       .nmigrations = 2,
				       .statements = sql,
				       .nstatements = 1,
				       .forgettable = true};
	struct err e = ERR_INIT;
	char path[100];
	struct db *db;

	ws_begin();
	snprintf(path, sizeof(path), "%s/test.db", ws_path);
	ok(!db_open(path, &old, &db, NULL, &e), "an old one");
	db_close(db);
	ok(db_open(path, &broken, &db, NULL, &e) < 0, "a migration that fails");
	err_clear(&e);
	ok(!db_open(path, &new, &db, NULL, &e), "is no hindrance to a good one");
	ok(!db_use(db, 0, &e) && db_step(db, &e) == 1 && db_get_int(db, 0) == 1,
		"all steps ran once");
	db_reset(db);
	db_close(db);
	ok(!db_open(path, &new, &db, NULL, &e), "nor does it run again");
	ok(!db_use(db, 0, &e) && db_step(db, &e) == 1 && db_get_int(db, 0) == 1, "still one row");
	db_reset(db);
	db_close(db);
	ok(db_open(path, &old, &db, NULL, &e) < 0, "a newer file is refused");
	ok_err(&e, "test.db was written by a newer vx (version 3, this one reads up to 1)",
		"naming the file and both versions");
	ws_end();
}

/* What somebody else may have written. */

static void
execute(const char *name, const char *sql)
{
	cleanup_free char *path = path_join(ws_path, name);
	sqlite3 *h = NULL;

	/* as another program does it */
	if (sqlite3_open_v2(path, &h, SQLITE_OPEN_READWRITE, "unix") ||
		sqlite3_exec(h, sql, NULL, NULL, NULL))
		bug("%s: %s", sql, sqlite3_errmsg(h));
	sqlite3_close(h);
}

static bool
is_there(const char *name)
{
	struct stat st;

	return !fstatat(ws_fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

static void
add_be32(struct strbuf *out, uint32_t v)
{
	v = htobe32(v);
	strbuf_add(out, &v, sizeof(v));
}

/* A journal that is to be rolled back, and then what it is a part of, `victim`, removed. */
static void
plant_journal(const char *name, const char *victim)
{
	static const char magic[] = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", zeros[512];
	cleanup_free char *path = path_join(ws_path, victim);
	cleanup_free char *journal = xasprintf("%s-journal", name);
	cleanup_free char *wal = xasprintf("%s-wal", name), *shm = xasprintf("%s-shm", name);
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	uint32_t sum = 0;
	struct stat st;

	execute(name, "PRAGMA wal_checkpoint(TRUNCATE)");
	unlinkat(ws_fd, wal, 0);
	unlinkat(ws_fd, shm, 0);
	if (fstatat(ws_fd, name, &st, 0))
		bug("%s", name);
	for (const char *s = path; *s; s++)
		sum += (unsigned char)*s;
	strbuf_add(&b, magic, 8);
	add_be32(&b, 0);
	add_be32(&b, 1);
	add_be32(&b, (uint32_t)(st.st_size / 4096));
	add_be32(&b, 512);
	add_be32(&b, 4096);
	strbuf_add(&b, zeros, 512 - b.len);
	add_be32(&b, 0x40000000 / 4096 + 1);
	strbuf_adds(&b, path);
	add_be32(&b, (uint32_t)strlen(path));
	add_be32(&b, sum);
	strbuf_add(&b, magic, 8);
	write_file(journal, b.buf, b.len);
}

static void
test_journals(void)
{
	static const char *const names[] = {"index.db", "state.db"};

	ws_begin();
	open_index(NULL);
	put(1, MADE_PROVEN, 1);
	close_index();
	for (size_t i = 0; i < array_len(names); i++) {
		cleanup_free char *journal = xasprintf("%s-journal", names[i]);

		write_file("victim", "mine", 4);
		plant_journal(names[i], "victim");
		open_index(NULL);
		ok(is_there("victim"), "what the journal of %s names stays", names[i]);
		ok(!is_there(journal), "the journal does not");
		ok_int((long long)bytes_of(1), 1, "nothing else is lost");
		close_index();
	}
	ws_end();
}

/* A file that is not SQLite's is set aside, with its log, and a new one works. */
static void
check_renewed(const char *note, const char *what)
{
	open_index(note);
	ok(put(1, MADE_PROVEN, 1) == 1, "%s: a new one works", what);
	close_index();
	open_index(NULL);
	ok(bytes_of(1) == 1, "%s: and lasts", what);
	close_index();
}

static void
test_schemas(void)
{
	static const char endless[] =
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
		" SELECT count(*) FROM c";
	cleanup_free char *view = xasprintf(
		"ALTER TABLE entries RENAME TO e; CREATE VIEW entries AS SELECT e.* FROM e"
		" WHERE (%s) > 0",
		endless);
	cleanup_free char *trigger = xasprintf("CREATE TRIGGER t AFTER INSERT ON entries BEGIN"
					       " DELETE FROM entries WHERE (%s) < 0; END",
		endless);
	const char *const sql[] = {view, trigger, "PRAGMA user_version = 0",
		"PRAGMA user_version = 1", "PRAGMA user_version = -5", "DROP TABLE entries",
		"CREATE TABLE more(a)", "CREATE INDEX more ON entries(bytes)",
		"DROP TABLE upkeep; CREATE TABLE upkeep(id, bytes, swept_ns, told_ns)",
		"DROP TABLE upkeep; CREATE TABLE upkeep(id, swept_ns, told_ns,"
		" bytes AS (length(zeroblob(900000000))))"};

	for (size_t i = 0; i < array_len(sql); i++) {
		ws_begin();
		open_index(NULL);
		put(1, MADE_PROVEN, 1);
		close_index();
		execute("index.db", sql[i]);
		check_renewed("index.db.broken, and a new one was made", sql[i]);
		ws_end();
	}
	ws_begin();
	open_index(NULL);
	close_index();
	execute("state.db",
		"DROP TABLE stamps; CREATE VIEW stamps AS SELECT 1 task, 2 key, 3 seen");
	check_renewed("state.db.broken", "a view of stamps");
	ws_end();
}

/* As another program may leave it. */
static void
test_mode(void)
{
	struct entry en = {.key = key(1), .task = "a#b", .making = MADE_PROVEN};
	struct err e = ERR_INIT;

	ws_begin();
	open_index(NULL);
	close_index();
	execute("index.db", "PRAGMA journal_mode = DELETE");
	open_index(NULL);
	ok(index_put(ix, &en, &e) < 0 && !is_there("index.db-journal"), "no journal is made");
	ok_err(&e, "index.db is damaged (it is in no WAL mode): it is now",
		"a file without a log is damaged");
	close_index();
	check_renewed(NULL, "after that");
	ws_end();
}

/* Somebody who may write the cache cuts the index of the log short while it is in use. */
static void
test_cut(void)
{
	struct digest d = key(1);
	struct entry en = {.key = d, .task = "a#b", .making = MADE_PROVEN};
	cleanup_free char *shm = NULL;
	struct err e = ERR_INIT;

	ws_begin();
	shm = path_join(ws_path, "index.db-shm");
	open_index(NULL);
	put(1, MADE_PROVEN, 1);
	if (truncate(shm, 0))
		bug("truncate %s", shm);
	ok(index_get(ix, &d, &en, &e) < 0, "no signal ends the process");
	ok_err(&e, "index.db: somebody has cut its -shm short", "it is said");
	err_clear(&e);
	ok(index_put(ix, &en, &e) < 0, "and no more is written");
	close_index();
	ok(is_there("index.db") && !is_there("index.db.broken"), "the file stays where it is");
	open_index(NULL);
	ok(bytes_of(1) == 1, "the next run finds what was there");
	if (index_begin(ix, &e) || put(2, MADE_PROVEN, 1) != 1 || truncate(shm, 0))
		bug("%s", e.text);
	ok(index_commit(ix, &e) < 0, "the same while it is written");
	close_index();
	ws_end();
}

static void
plant(const char *kind, const char *name)
{
	unlinkat(ws_fd, name, 0);
	if (!strcmp(kind, "fifo")            ? mkfifoat(ws_fd, name, 0666)
		: !strcmp(kind, "directory") ? mkdirat(ws_fd, name, 0777)
		: !strcmp(kind, "link")      ? symlinkat("victim", ws_fd, name)
					     : linkat(ws_fd, "victim", ws_fd, name, 0))
		bug("%s %s: %s", kind, name, strerror(errno));
}

static void
test_odd_parts(void)
{
	static const char *const kinds[] = {"fifo", "directory", "link", "second name"};
	static const char *const names[] = {"index.db", "index.db-wal", "index.db-shm",
		"index.db-journal", "state.db", "state.db-wal", "state.db-shm"};

	for (size_t i = 0; i < array_len(kinds) * array_len(names); i++) {
		const char *kind = kinds[i % array_len(kinds)], *name = names[i / array_len(kinds)];
		cleanup_free char *note = NULL;
		cleanup_close int fd = -1;
		struct err e = ERR_INIT;
		char text[8];

		ws_begin();
		write_file("victim", "mine", 4);
		open_index(NULL);
		close_index();
		plant(kind, name);
		ok(!index_open(ws_path, ws_path, false, &ix, &note, &e) &&
				put(1, MADE_PROVEN, 1) == 1,
			"%s is a %s: all works (%s)", name, kind, note ? note : e.text);
		close_index();
		fd = openat(ws_fd, "victim", O_RDONLY | O_CLOEXEC);
		ok(read(fd, text, sizeof(text)) == 4 && !memcmp(text, "mine", 4),
			"nobody's file is touched");
		ws_end();
	}

	ws_begin();
	open_index(NULL);
	close_index();
	mkdirat(ws_fd, "index.db.broken", 0777);
	plant("fifo", "index.db");
	check_renewed("index.db.broken-2", "the name for what is broken is taken");
	ws_end();
}

static void
test_endless(void)
{
	static const char *const one[] = {"CREATE TABLE t(a)"};
	static const char *const sql[] = {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
					  "FROM c) SELECT count(*) FROM c",
		"SELECT count(*) FROM t"};
	const struct db_schema schema = {.migrations = one,
				       .nmigrations = 1,
				       .statements = sql,
				       .nstatements = 2,
				       .most_steps = 1000 * 1000},
			       patient = {.migrations = one,
				       .nmigrations = 1,
				       .statements = sql,
				       .nstatements = 2};
	const struct timespec no_time = {0};
	cleanup_free char *path = NULL;
	struct err e = ERR_INIT;
	struct db *db;
	sigset_t term;

	ws_begin();
	path = path_join(ws_path, "test.db");
	if (db_open(path, &schema, &db, NULL, &e))
		bug("%s", e.text);
	ok(!db_use(db, 0, &e) && db_step(db, &e) < 0, "a look-up that has no end ends");
	ok_err(&e, "has no end): it is now", "as damage");
	db_reset(db);
	err_clear(&e);
	ok(db_use(db, 1, &e) < 0 && !is_there("test.db"), "nothing more is asked");
	ok_err(&e, "has no end): it is now", "for the same reason");
	err_clear(&e);
	db_close(db);

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	if (db_open(path, &patient, &db, NULL, &e))
		bug("%s", e.text);
	raise(SIGTERM);
	ok(!db_use(db, 0, &e) && db_step(db, &e) < 0 && e.num == ECANCELED,
		"a signal that ends the run is heard: %s", e.text);
	db_reset(db);
	err_clear(&e);
	sigtimedwait(&term, NULL, &no_time);
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	ok(!db_use(db, 1, &e) && db_step(db, &e) == 1 && is_there("test.db"),
		"the file is none the worse");
	db_reset(db);
	db_close(db);
	ws_end();
}

/* In another process: what this one needs in memory is looked at. */
static void
put_huge_output(void)
{
	static const char *const none[] = {"", ""};
	static const char *const sql[] = {"UPDATE entries SET output = zeroblob(200000000)"};
	const struct db_schema schema = {
		.migrations = none, .nmigrations = 2, .statements = sql, .nstatements = 1};
	cleanup_free char *path = path_join(ws_path, "index.db");
	struct err e = ERR_INIT;
	struct db *db;
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (db_open(path, &schema, &db, NULL, &e) || db_use(db, 0, &e) || db_run(db, &e))
			bug("%s", e.text);
		db_close(db);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		bug("no large value was written");
}

static void
test_large(void)
{
	struct digest d = key(1);
	struct entry en;
	struct err e = ERR_INIT;
	struct rusage usage;

	ws_begin();
	open_index(NULL);
	put(1, MADE_PROVEN, 1);
	close_index();
	execute("index.db", "UPDATE entries SET output = zeroblob(5000000)");
	open_index(NULL);
	ok(index_get(ix, &d, &en, &e) < 0, "a value larger than any of vx's is not read");
	ok_err(&e, "index.db is damaged (a value in it is too large)", "but damage");
	err_clear(&e);
	close_index();

	open_index(NULL);
	put(1, MADE_PROVEN, 1);
	close_index();
	put_huge_output();
	open_index(NULL);
	ok(index_get(ix, &d, &en, &e) < 0, "nor one of 200 MB");
	ok_err(&e, "index.db is damaged (a value in it is too large)", "damage as well");
	getrusage(RUSAGE_SELF, &usage);
	ok(usage.ru_maxrss < 150 * 1000, "%ld kB were enough for that", usage.ru_maxrss);
	close_index();
	ws_end();
}

/* Stamps. */

static struct arena arena;
static struct globset set;

static void
stamp(unsigned char k)
{
	struct digest d = key(k);
	struct outputs o = {0};
	struct err e = ERR_INIT;

	if (outputs_scan(ws_fd, &set, NULL, 0, &o, &e) || index_stamp(ix, "p#build", &d, &o, &e))
		bug("%s", e.text);
	outputs_release(&o);
}

static int
current(unsigned char k)
{
	struct digest d = key(k);
	struct err e = ERR_INIT;

	return index_is_current(ix, ws_fd, "p#build", &d, &e);
}

/* The file system's clock stands still for some milliseconds; a test cannot wait for it, so it sets
 * times of its own before it stamps. */
static void
set_back(const char *path)
{
	struct timespec t[2] = {{1000, 0}, {1000, 0}};

	if (utimensat(ws_fd, path, t, AT_SYMLINK_NOFOLLOW))
		bug("utimensat %s", path);
}

static void
fresh(void)
{
	ws_write("p/dist/a", "1");
	ws_write("p/dist/deep/b", "1");
	set_back("p/dist/deep");
	set_back("p/dist");
	set_back("p");
	stamp(1);
}

static int
unsure(unsigned char k)
{
	struct digest d = key(k);
	struct err e = ERR_INIT;

	return index_is_unsure(ix, ws_fd, "p#build", &d, &e);
}

/* As on a file system that counts whole seconds. */
static void
test_coarse_times(void)
{
	static const char *const dirs[] = {
		"p/dist/deep", "p/dist"}; /* an output; one that is watched */
	struct timespec t[2] = {{0}, {0}};

	for (size_t i = 0; i < array_len(dirs); i++) {
		ws_begin();
		open_index(NULL);
		fresh();
		ok(current(1) == 1 && unsure(1) == 0, "%s: long untouched", dirs[i]);
		t[1].tv_sec = (time_t)(clock_files_ns() / 1000000000);
		if (utimensat(ws_fd, dirs[i], t, 0))
			bug("utimensat");
		stamp(1);
		ok(current(1) == 0 && unsure(1) == 1, "touched in this second: times do not tell");
		ok(unsure(2) == 0, "not for another key");
		t[1].tv_sec -= 1;
		if (utimensat(ws_fd, dirs[i], t, 0))
			bug("utimensat");
		ok(current(1) == 0 && unsure(1) == 0, "but that there are others they tell");
		t[1].tv_sec -= 3;
		if (utimensat(ws_fd, dirs[i], t, 0))
			bug("utimensat");
		stamp(1);
		ok(current(1) == 1 && unsure(1) == 0, "seconds before the look they do");
		close_index();
		ws_end();
	}
}

static void
test_stamps(void)
{
	struct err e = ERR_INIT;

	ws_begin();
	open_index(NULL);
	ok_int(current(1), 0, "no stamp, not current");
	fresh();
	ok_int(current(1), 1, "stamped, current");
	ok_int(current(2), 0, "not for another key");
	ws_write("p/dist/a", "22");
	ok_int(current(1), 0, "a changed file");
	fresh();
	ws_write("p/dist/deep/c", "stray");
	ok_int(current(1), 0, "a file too many");
	ws_remove("p/dist/deep/c");
	fresh();
	ws_remove("p/dist/deep/b");
	ok_int(current(1), 0, "a file too few");
	fresh();
	fchmodat(ws_fd, "p/dist/a", 0755, 0) ? bug("chmod") : (void)0;
	ok_int(current(1), 0, "a changed mode");
	fresh();
	ws_write("p/other", "");
	ok_int(current(1), 1, "what lies beside is nobody's business");
	ok(!index_unstamp(ix, "p#build", &e) && !current(1), "unstamped");
	close_index();
	ws_end();

	ws_begin();
	open_index(NULL);
	ok(!index_look_ahead(ix, ws_fd, &e) && !current(1), "nothing to look at ahead");
	fresh();
	ok(!index_look_ahead(ix, ws_fd, &e) && current(1) == 1, "looked at ahead, current");
	ok_int(current(2), 0, "not for another key");
	ws_write("p/dist/a", "22");
	ok_int(current(1), 1, "which it stays");
	index_forget_looks(ix);
	ok_int(current(1), 0, "until what was seen is forgotten");
	ok(!index_look_ahead(ix, ws_fd, &e) && !current(1), "what is not so ahead");
	fresh();
	ok_int(current(1), 1, "is looked at again");
	ok(!index_look_ahead(ix, ws_fd, &e), "a look that nobody waits for");
	close_index();
	ws_end();

	ws_begin();
	open_index(NULL);
	fs_mkdirs(ws_fd, "p");
	stamp(3);
	ok_int(current(3), 1, "no outputs at all can be current");
	ws_write("p/dist/x", "");
	ok_int(current(3), 0, "until one appears");
	close_index();
	ws_end();

	/* Without a directory of its own, a wildcard watches the one it starts from. */
	set = GLOBS(&arena, "p", "*.log", "gen/**/*.js");
	ws_begin();
	open_index(NULL);
	ws_write("p/a.log", "");
	ws_write("p/gen/x/y.js", "");
	set_back("p/gen/x");
	set_back("p/gen");
	set_back("p");
	stamp(4);
	ok_int(current(4), 1, "wildcards in a shared directory");
	ws_write("p/b.log", "");
	ok_int(current(4), 0, "a new match there");
	set_back("p");
	stamp(4);
	ws_write("p/gen/x/z.js", "");
	ok_int(current(4), 0, "or in a directory that is no output");
	close_index();
	ws_end();

	set = GLOBS(&arena, "p", "dist/**");
	ws_begin();
	open_index(NULL);
	ws_write("p/store/x", "");
	ws_link("p/dist", "store");
	set_back("p/store");
	stamp(5);
	ok_int(current(5), 1, "behind a link on the way");
	ws_write("p/store/y", "");
	ok_int(current(5), 0, "strays show there too");
	close_index();
	ws_end();
}

/* Which names of the last stamp are known, whatever its key and whatever they hold by now. */
static void
test_stamped_names(void)
{
	static const char *const names[] = {
		"p/dist", "p/dist/a", "p/dist/deep/b", "p/dist/new", "p/src/s"};
	static const bool want[] = {true, true, true, false, false};
	bool got[array_len(names)] = {false};
	struct err e = ERR_INIT;

	ws_begin();
	open_index(NULL);
	ok(!index_stamped(ix, "p#build", names, array_len(names), got, &e) && !got[0] && !got[1],
		"no stamp, no names");
	fresh();
	ws_write("p/dist/a", "another content");
	ws_write("p/dist/new", "");
	ok(!index_stamped(ix, "p#build", names, array_len(names), got, &e), "the names of a stamp");
	ok_mem(got, want, sizeof(want), "are its outputs");
	memset(got, 0, sizeof(got));
	ok(!index_stamped(ix, "p#other", names, array_len(names), got, &e) && !got[1],
		"another task's are its own");
	close_index();
	if (index_open(NULL, ws_path, false, &ix, NULL, &e))
		bug("%s", e.text);
	ok(!index_stamped(ix, "p#build", names, array_len(names), got, &e) && got[1],
		"they are there without the rest of the cache");
	close_index();
	ws_end();

	/* Watched directories are no outputs. */
	set = GLOBS(&arena, "p", "gen/**/*.js");
	ws_begin();
	open_index(NULL);
	ws_write("p/gen/x/y.js", "");
	stamp(8);
	{
		static const char *const watched[] = {"p/gen", "p/gen/x", "p/gen/x/y.js"};
		bool is[array_len(watched)] = {false};

		ok(!index_stamped(ix, "p#build", watched, array_len(watched), is, &e) && !is[0] &&
				!is[1] && is[2],
			"what was only watched was no output");
	}
	close_index();
	ws_end();
	set = GLOBS(&arena, "p", "dist/**");
}

/* What others may add to. */
static void
test_among(void)
{
	struct globset all = GLOBS(&arena, "p", "shared/**");
	struct outputs_before before = {0};
	struct outputs now = {0};
	struct strvec strays = STRVEC_INIT, names = STRVEC_INIT;
	struct err e = ERR_INIT;
	struct digest d = key(7), other = key(8);
	const char *gone;

	ws_begin();
	open_index(NULL);
	ws_write("p/shared/d/a", "a");
	ws_write("p/shared/b", "b");
	if (outputs_look_before(ws_fd, &all, NULL, 0, &before, &e) ||
		index_stamp(ix, "p#own", &d, &before.o, &e))
		bug("%s", e.text);
	ws_write("p/shared/d/new", "n");
	ok(index_is_current(ix, ws_fd, "p#own", &d, &e) == 0, "a name more is not current");
	if (outputs_scan(ws_fd, &all, NULL, 0, &now, &e))
		bug("%s", e.text);
	ok(index_is_among(ix, "p#own", &d, &now, &strays, &e) == 1 && strays.n == 1 &&
			!strcmp(strays.v[0], "p/shared/d/new"),
		"but all of it is there, and the rest is told");
	ok(index_is_among(ix, "p#own", &other, &now, &strays, &e) == 0, "not of another key");
	ok(index_is_among(ix, "p#none", &d, &now, &strays, &e) == 0, "nor of another task");
	ok(!index_stamped_names(ix, "p#own", &names, &e) && names.n == before.o.n, "the names");

	outputs_since(ws_fd, &now, &before, &gone);
	ok(now.n == 1 && !strcmp(now.v[0].path, "p/shared/d/new") && !gone,
		"what was added: a directory in which something appears is as it was");
	ok(!index_stamp(ix, "p#adds", &d, &now, &e) &&
			index_is_current(ix, ws_fd, "p#adds", &d, &e) == 1,
		"that alone is a stamp");
	ws_write("p/shared/d/more", "m");
	ok(index_is_current(ix, ws_fd, "p#adds", &d, &e) == 1, "whatever else appears");
	outputs_release(&now);

	/* Written again in the tick in which it had been written. */
	ws_write("p/shared/b", "c");
	if (outputs_scan(ws_fd, &all, NULL, 0, &now, &e))
		bug("%s", e.text);
	for (size_t i = 0; i < before.o.n; i++) {
		const struct output *out = outputs_find(&now, before.o.v[i].path);

		before.o.v[i].mtime_ns = out->mtime_ns;
		before.o.v[i].ctime_ns = out->ctime_ns;
	}
	outputs_since(ws_fd, &now, &before, &gone);
	ok(outputs_find(&now, "p/shared/b") && !outputs_find(&now, "p/shared/d/a"),
		"content tells where times cannot");
	outputs_release(&now);

	ws_write("p/shared/b", "bb");
	if (outputs_scan(ws_fd, &all, NULL, 0, &now, &e))
		bug("%s", e.text);
	ok(index_is_among(ix, "p#own", &d, &now, &strays, &e) == 0, "a changed one");
	outputs_release(&now);
	unlinkat(ws_fd, "p/shared/b", 0);
	if (outputs_scan(ws_fd, &all, NULL, 0, &now, &e))
		bug("%s", e.text);
	ok(index_is_among(ix, "p#own", &d, &now, &strays, &e) == 0, "or a missing one is told");
	outputs_since(ws_fd, &now, &before, &gone);
	ok(gone && !strcmp(gone, "p/shared/b") && now.n == 2, "as what somebody removed is");
	outputs_release(&now);
	outputs_before_release(&before);
	strvec_release(&strays);
	strvec_release(&names);
	close_index();
	ws_end();
}

/* A --dry, while a run has the stamps. */
static void
test_beside(void)
{
	struct index *run;
	struct err e = ERR_INIT;

	ws_begin();
	if (index_open(NULL, ws_path, true, &ix, NULL, &e))
		bug("%s", e.text);
	ok_int(current(7), 0, "nothing is there yet");
	close_index();
	ok(!is_there("state.db"), "and nothing is made");
	ws_write("p/dist/a", "x");
	set_back("p/dist/a");
	set_back("p/dist");
	open_index(NULL);
	stamp(7);
	ok(is_there("state.db-wal") && !is_there("state.db-shm"), "no memory is shared");
	run = ix;
	if (index_open(NULL, ws_path, true, &ix, NULL, &e))
		bug("%s", e.text);
	ok_int(current(7), 0, "what this run has stamped is not seen");
	close_index();
	index_close(run);
	open_index(NULL);
	stamp(8);
	run = ix;
	if (index_open(NULL, ws_path, true, &ix, NULL, &e))
		bug("%s", e.text);
	ok_int(current(7), 1, "what the last one has is");
	close_index();
	ok_int(index_stamp(run, "p#other", &(struct digest){{1}}, &(struct outputs){0}, &e), 0,
		"the run is not in its way");
	index_close(run);
	write_file("state.db", "junk", 4);
	if (index_open(NULL, ws_path, true, &ix, NULL, &e))
		bug("%s", e.text);
	ok_int(current(7), 0, "a damaged one is empty");
	close_index();
	ok(!is_there("state.db.broken"), "and stays where it is");
	ws_end();
}

int
main(void)
{
	arena_init(&arena);
	set = GLOBS(&arena, "p", "dist/**");
	test_entries();
	test_damaged();
	test_versions();
	test_journals();
	test_schemas();
	test_mode();
	test_cut();
	test_odd_parts();
	test_endless();
	test_large();
	test_stamps();
	test_coarse_times();
	test_stamped_names();
	test_among();
	test_beside();
	arena_release(&arena);
	return tap_done();
}
