/* SPDX-License-Identifier: MIT */
#include "cache/db.h"
#include "cache/history.h"
#include "tests/unit/ws.h"
#include "util/clock.h"
#include <endian.h>

static struct history *h;

static int64_t
now(void)
{
	return (int64_t)clock_wall_ns();
}

static int
record(const struct history_task *tasks, size_t n, int64_t started_ns)
{
	struct err e = ERR_INIT;
	struct history_run run = {.command = "vx run build",
		.started_ns = started_ns,
		.ended_ns = started_ns + 5,
		.concurrency = 2,
		.tasks = tasks,
		.ntasks = n};
	char id[37];
	int r;

	history_run_id(id);
	run.run_id = id;
	r = history_record(h, &run, &e);
	if (r)
		diag("%s", e.text);
	return r;
}

static int
record_one(const char *task, const char *status, const char *cache, uint64_t ms)
{
	struct history_task t = {.task = task,
		.status = status,
		.cache = cache,
		.has_key = true,
		.duration_ns = ms * 1000000u,
		.started_ns = now()};

	return record(&t, 1, now());
}

static long long
p50(const char *task)
{
	struct err e = ERR_INIT;
	uint64_t ms = 0;
	int r = history_p50(h, task, &ms, &e);

	return r == 1 ? (long long)ms : r - 1;
}

static void
test_p50(void)
{
	ok_int(p50("a#b"), -1, "a task that never ran");
	record_one("a#b", "success", "miss", 30);
	ok_int(p50("a#b"), 30, "once");
	record_one("a#b", "success", "no-cache", 10);
	record_one("a#b", "success", "miss", 20);
	ok_int(p50("a#b"), 20, "the median");
	record_one("a#b", "cache-hit", "restored", 1);
	record_one("a#b", "failed", "miss", 1);
	record_one("other", "success", "miss", 1);
	ok_int(p50("a#b"), 20, "hits, failures and other tasks do not count");
	for (int i = 0; i < 9; i++)
		record_one("a#b", "success", "miss", 100);
	ok_int(p50("a#b"), 100, "only the last nine count");
}

static void
test_ids(void)
{
	char a[37], b[37];

	history_run_id(a);
	history_run_id(b);
	ok(strlen(a) == 36 && a[8] == '-' && a[13] == '-' && a[14] == '7' && a[18] == '-' &&
			strchr("89ab", a[19]) && a[23] == '-',
		"a UUID of version 7: %s", a);
	ok(strcmp(a, b) != 0 && strncmp(a, b, 8) <= 0, "each is new, and later");
}

/* Counting needs statements of its own. */
static const char *const count_sql[] = {"SELECT count(*) FROM runs", "SELECT count(*) FROM tasks",
	"SELECT count(*) FROM denials", "SELECT count(*) FROM task_texts",
	"SELECT coalesce(sum(length(hits)), 0) FROM runs",
	"SELECT count(*) FROM runs, names a, names b WHERE a.name = 'a' AND b.name = 'z'"
	" AND a.id < b.id AND hex(substr(hits, 1, 12)) ="
	" printf('%02X000000', a.id) || '01000000' || '2A000000'"
	" AND hex(substr(hits, 57, 12)) = printf('%02X000000', b.id) || '00000000' || '2B000000'"};

static int64_t
count(size_t what)
{
	static const char *const migrations[4] = {"", "", "", ""};
	const struct db_schema schema = {.migrations = migrations,
		.nmigrations = 4,
		.statements = count_sql,
		.nstatements = array_len(count_sql),
		.forgettable = true};
	struct err e = ERR_INIT;
	struct db *db;
	char path[100];
	int64_t n = -1;

	/* one process has it at a time */
	history_close(h);
	snprintf(path, sizeof(path), "%s/history.db", ws_path);
	if (db_open(path, &schema, &db, NULL, &e) || db_use(db, what, &e) || db_step(db, &e) != 1)
		bug("%s", e.text);
	n = db_get_int(db, 0);
	db_reset(db);
	db_close(db);
	if (history_open(ws_path, false, &h, &e))
		bug("%s", e.text);
	return n;
}

static void
test_content(void)
{
	static const struct history_denial denials[] = {
		{"read", "../x", "finding", "sh", "allow.read: [\"../x\"]", 7},
		{"write", "y", "finding", NULL, NULL, 0}};
	struct history_task t[] = {{.task = "a",
					   .status = "failed",
					   .cache = "miss",
					   .denials = denials,
					   .ndenials = 2,
					   .nfindings = 2,
					   .has_key = true,
					   .key_text = "k\0ey",
					   .key_text_len = 4},
		{.task = "b", .status = "skipped", .cache = "no-cache", .blocked_by = "a"}};
	struct history_task twice[] = {t[0], t[0]};

	ok_int(record(t, 2, now() - 40LL * 24 * 3600 * 1000000000), 0, "an old run");
	ok_int(count(0), 1, "the run just recorded always stays");
	ok_int(record(t, 2, now()), 0, "denials and a key's text");
	ok(count(0) == 1 && count(1) == 2 && count(2) == 2 && count(3) == 1,
		"the old run went with all that was its own");
	ok_int(record(t, 2, now()), 0, "the same text again");
	ok(count(1) == 4 && count(3) == 1, "is one row");
	ok_int(record(twice, 2, now()), -1, "a task twice in one run is an error");
	ok(count(0) == 2 && count(1) == 4, "and leaves nothing");
	ok_int(record(NULL, 0, now()), 0, "a run of no tasks");
}

/* Hits are one blob of the run. */
static void
test_hits(void)
{
	struct history_task t[] = {
		{.task = "z", .status = "cache-hit", .cache = "up-to-date", .has_key = true},
		{.task = "a", .status = "cache-hit", .cache = "restored", .has_key = true},
		{.task = "b", .status = "success", .cache = "miss", .has_key = true}};
	struct history_task twice[] = {t[0], t[0]};
	int64_t rows = count(1), bytes = count(4);

	t[1].key.b[0] = 0x2a;
	t[0].key.b[0] = 0x2b;
	ok_int(record(t, 3, now()), 0, "two hits and a miss");
	ok_int(count(1), rows + 1, "the miss is a row");
	ok_int(count(4), bytes + 2 * 56, "the hits are a blob");
	if (htole32(1) == 1)
		ok_int(count(5), 1, "sorted by task, each with its kind and key");
	else
		skip("the layout", "it is tested as little endian");
	ok_int(record(twice, 2, now()), -1, "a hit twice in one run is an error");
	ok_int(count(4), bytes + 2 * 56, "and leaves nothing");
}

static int
last(const char *task, struct history_last *ret, bool *never)
{
	struct err e = ERR_INIT;

	*ret = (struct history_last){0};
	return history_last(h, task, ret, never, &e);
}

/* What was asked once is known until the history is closed. */
static void
reopen(void)
{
	struct err e = ERR_INIT;

	history_close(h);
	if (history_open(ws_path, false, &h, &e))
		bug("%s", e.text);
}

static void
test_last(void)
{
	struct history_task t = {
		.task = "l#b", .status = "success", .cache = "miss", .has_key = true};
	struct history_last l;
	bool never;

	ok(last("l#b", &l, &never) == 0 && never, "never recorded");
	t.key.b[0] = 1;
	t.saved = true;
	record(&t, 1, now());
	reopen();
	ok(last("l#b", &l, &never) == 1 && l.key.b[0] == 1 && l.saved == 1 && !l.was_hit, "saved");
	t.key.b[0] = 2;
	t.saved = false;
	t.status = "failed";
	record(&t, 1, now());
	t.status = "skipped";
	t.key.b[0] = 3;
	record(&t, 1, now());
	reopen();
	ok(last("l#b", &l, &never) == 1 && l.key.b[0] == 2 && l.failed && !l.saved,
		"failed; what is skipped does not count");
	t.key.b[0] = 4;
	t.status = "cache-hit";
	t.cache = "restored";
	record(&t, 1, now());
	for (int i = 0; i < 20; i++)
		record_one("other", "success", "miss", 1);
	reopen();
	ok(last("l#b", &l, &never) == 1 && l.key.b[0] == 4 && l.was_hit && l.saved == -1,
		"a hit, some runs ago");
	for (int i = 0; i < 64; i++)
		record_one("other", "success", "miss", 1);
	reopen();
	ok(last("l#b", &l, &never) == 0 && !never, "too long ago");
}

static void
test_texts(void)
{
	struct history_task t = {
		.task = "x#b", .status = "success", .cache = "miss", .has_key = true};
	cleanup_strbuf struct strbuf text = STRBUF_INIT, packed = STRBUF_INIT, got = STRBUF_INIT;
	struct err e = ERR_INIT;
	int64_t before = count(3);

	strbuf_adds(&text, "vx-key 1\n");
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&text, "a-file-%d\n", i);
	ok(history_pack(text.buf, text.len, &packed) && packed.len < text.len / 2, "packed");
	t.key_text = packed.buf;
	t.key_text_len = packed.len;
	for (unsigned char i = 1; i <= 6; i++) {
		t.key.b[0] = i;
		record(&t, 1, now());
	}
	ok_int(count(3) - before, 4, "four of a task are kept");
	ok_int(history_key_text(h, "x#b", &t.key, &got, &e), 1, "the newest");
	ok_str(got.buf, text.buf, "as it was");
	t.key.b[0] = 2;
	ok_int(history_key_text(h, "x#b", &t.key, &got, &e), 0, "the oldest went");
	ok_int(history_key_text(h, "nobody", &t.key, &got, &e), 0, "none of nobody");
}

static void
test_outcomes(void)
{
	struct history_task t = {
		.task = "o#b", .status = "success", .cache = "miss", .has_key = true};
	struct err e = ERR_INIT;
	uint64_t passes, failures;

	t.key.b[0] = 1;
	record(&t, 1, now());
	record(&t, 1, now());
	t.status = "failed";
	record(&t, 1, now());
	t.nfindings = 1;
	record(&t, 1, now());
	t.nfindings = 0;
	t.key.b[0] = 2;
	record(&t, 1, now());
	t.key.b[0] = 1;
	ok(!history_outcomes(h, "o#b", &t.key, &passes, &failures, &e) && passes == 2 &&
			failures == 1,
		"of one key, without what a sandbox failed");
	ok(!history_outcomes(h, "nobody", &t.key, &passes, &failures, &e) && !passes && !failures,
		"of nobody");
}

/* Not a measurement, but what would show a design gone quadratic. */
static void
test_many(void)
{
	enum {
		N = 3270
	};
	static char names[N][32];
	static struct history_task t[N];
	uint64_t start, first, second;

	for (int i = 0; i < N; i++) {
		snprintf(
			names[i], sizeof(names[i]), "pkg-%04d#%s", i / 3, i % 3 ? "test" : "build");
		snprintf(names[i] + strlen(names[i]), 4, "%d", i % 3);
		t[i] = (struct history_task){.task = names[i],
			.status = "cache-hit",
			.cache = "up-to-date",
			.has_key = true,
			.duration_ns = 1000,
			.started_ns = now()};
		memcpy(t[i].key.b, &i, sizeof(i));
	}
	start = clock_monotonic_ns();
	ok_int(record(t, N, now()), 0, "3270 tasks");
	first = clock_monotonic_ns();
	ok_int(record(t, N, now()), 0, "and again");
	second = clock_monotonic_ns();
	diag("%llu us, then %llu us", (unsigned long long)(first - start) / 1000,
		(unsigned long long)(second - first) / 1000);
	ok(second - first < 2000000000u, "in less than two seconds");
}

int
main(void)
{
	struct err e = ERR_INIT;

	ws_begin();
	if (history_open(ws_path, false, &h, &e))
		bug("%s", e.text);
	test_content();
	test_hits();
	test_last();
	test_texts();
	test_outcomes();
	test_p50();
	test_ids();
	test_many();
	history_close(h);
	ws_end();
	return tap_done();
}
