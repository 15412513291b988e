/* SPDX-License-Identifier: MIT */
#include "cache/db.h"
#include "cache/gc.h"
#include "cache/index.h"
#include "cache/store.h"
#include "cache/tree-node.h"
#include "tests/unit/ws.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/strbuf.h"
#include <sys/stat.h>
#include <time.h>

static const uint64_t HOUR_NS = 3600ull * 1000 * 1000 * 1000;

static struct index *ix;
static struct store *store;

static void
begin(void)
{
	struct err e = ERR_INIT;

	ws_begin();
	if (index_open(ws_path, ws_path, false, &ix, NULL, &e) || store_open(ws_fd, &store, &e))
		bug("%s", e.text);
}

static void
end(void)
{
	index_close(ix);
	store_close(store);
	ws_end();
}

static struct digest
put(const void *p, size_t n)
{
	struct err e = ERR_INIT;
	struct digest d;

	if (store_put_bytes(store, p, n, &d, &e))
		bug("%s", e.text);
	return d;
}

/* 5,000 bytes that differ by number: two blocks on most disks. */
static struct digest
content(unsigned number)
{
	char bytes[5000];

	memset(bytes, 'x', sizeof(bytes));
	snprintf(bytes, sizeof(bytes), "%u", number);
	return put(bytes, sizeof(bytes));
}

struct child {
	struct digest digest;
	bool node;
};

static struct digest
node(const struct child *v, size_t n, struct strbuf *bytes)
{
	tree_node_begin(bytes);
	for (size_t i = 0; i < n; i++) {
		char name[8];

		snprintf(name, sizeof(name), "n%03zu", i);
		tree_node_add(bytes, &(struct tree_line){
					     .type = v[i].node ? OUTPUT_DIR : OUTPUT_FILE,
					     .mode = 0755,
					     .size = 5000,
					     .digest = v[i].digest,
					     .name = name,
				     });
	}
	return put(bytes->buf, bytes->len);
}

static struct digest
dir_of(const struct child *v, size_t n)
{
	cleanup_strbuf struct strbuf bytes = STRBUF_INIT;

	return node(v, n, &bytes);
}

static struct digest
key(unsigned k)
{
	struct digest d = {{0}};

	memcpy(d.b, &k, sizeof(k));
	return d;
}

/* Used `hours` ago. */
static void
row(unsigned k, const struct digest *tree, const struct digest *output, uint64_t hours)
{
	struct entry en = {.key = key(k),
		.task = "app#build",
		.created_ns = (int64_t)(clock_wall_ns() - hours * HOUR_NS)};
	struct err e = ERR_INIT;

	en.has_tree = tree != NULL;
	en.has_output = output != NULL;
	if (tree)
		en.tree = *tree;
	if (output)
		en.output = *output;
	if (index_put(ix, &en, &e) < 0)
		bug("%s", e.text);
}

static bool
has_row(unsigned k)
{
	struct digest d = key(k);
	struct entry en = {0};
	struct err e = ERR_INIT;
	int r = index_get(ix, &d, &en, &e);

	if (r < 0)
		bug("%s", e.text);
	return r > 0;
}

static int
age(void *ctx, const struct store_blob *b)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	char hex[DIGEST_HEX], path[100];

	(void)ctx;
	digest_hex(&b->digest, hex);
	snprintf(path, sizeof(path), "blobs/%.2s/%s%s", hex, hex + 2, b->packed ? ".zst" : "");
	return utimensat(ws_fd, path, old, 0);
}

/* All blobs there are were written long ago. */
static void
age_all(void)
{
	struct err e = ERR_INIT;

	if (store_each(store, age, NULL, &e))
		bug("age: %s", e.text);
}

/* What is written from here on has a later time than what was. */
static void
wait_for_tick(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_REALTIME, &from);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec < from.tv_sec ||
		(now.tv_sec == from.tv_sec && now.tv_nsec <= from.tv_nsec));
}

/* Alone: no save of anybody is under way. */
static struct gc_result
sweep(uint64_t hours, uint64_t bytes, bool alone, bool dry)
{
	const struct gc_limits limits = {hours * HOUR_NS, bytes};
	struct gc_result r = {0};
	struct err e = ERR_INIT;
	struct store *other;

	wait_for_tick();
	if (store_open(ws_fd, &other, &e))
		bug("%s", e.text);
	if (!alone)
		store_save_begin(other);
	if (gc_sweep(ix, store, &limits, 0, dry, &r, &e) != 1)
		bug("sweep: %s", e.text);
	store_close(other);
	return r;
}

static void
test_age(void)
{
	struct digest shared, mine, output, orphan, tree_old, tree_new, packed;
	cleanup_free char *zeros = xcalloc(1, 100000);
	struct gc_result r;

	begin();
	shared = content(1);
	mine = content(2);
	output = content(3);
	orphan = content(4);
	packed = put(zeros, 100000);
	tree_old = dir_of((struct child[]){{shared, false}, {mine, false}, {packed, false}}, 3);
	tree_new = dir_of((struct child[]){{shared, false}}, 1);
	row(1, &tree_old, &output, 100);
	row(2, &tree_new, NULL, 1);
	r = sweep(50, 0, false, true);
	ok_int((long long)r.entries, 1, "dry: one row would go");
	r = sweep(50, 0, false, false);
	ok(r.entries == 1 && !has_row(1) && has_row(2), "it was there, and goes");
	ok(!r.bytes && !r.orphans && store_has(store, &mine) && store_has(store, &orphan),
		"young blobs stay: a save may be about to need them");
	row(1, &tree_old, &output, 100);
	age_all();
	r = sweep(50, 0, false, true);
	ok(r.bytes >= 10000 && r.orphans == 1 && store_has(store, &mine), "dry: they would go");
	r = sweep(50, 0, false, false);
	ok(!store_has(store, &mine) && !store_has(store, &output) && !store_has(store, &packed) &&
			!store_has(store, &tree_old),
		"old ones of the row go, files, packed ones, nodes and output");
	ok(!store_has(store, &orphan), "orphans too");
	ok(r.orphans == 1 && r.orphan_bytes >= 4096 && r.bytes >= 10000, "and are counted apart");
	ok(store_has(store, &shared) && store_has(store, &tree_new),
		"what another row needs stays");
	r = sweep(50, 0, false, false);
	ok(!r.entries && !r.bytes && !r.orphans && r.left >= 5000, "nothing more to do");
	orphan = content(5);
	r = sweep(50, 0, true, false);
	ok(r.orphans == 1 && !store_has(store, &orphan), "alone: young orphans go");
	end();
}

static void
test_size(void)
{
	struct gc_result r;
	struct digest trees[10];
	uint64_t all;

	begin();
	for (unsigned i = 0; i < 10; i++) {
		struct digest d = content(i);

		trees[i] = dir_of(&(struct child){d, false}, 1);
		row(i, &trees[i], NULL, (i * 3) % 10); /* ages 0 3 6 9 2 5 8 1 4 7 */
	}
	all = sweep(0, 0, true, false).left;
	ok(all >= 10 * 5000, "all of it");
	r = sweep(0, all, true, false);
	ok(!r.entries && r.left == all, "as much as is allowed");
	r = sweep(0, all / 2, true, false);
	ok(r.entries == 5 && r.left <= all / 2, "half of it goes");
	ok(has_row(0) && has_row(7) && has_row(4) && has_row(1) && has_row(8) && !has_row(5) &&
			!has_row(2) && !has_row(9) && !has_row(6) && !has_row(3),
		"the half that was used last stays");
	r = sweep(0, 1, true, false);
	ok(r.entries == 5 && !r.left, "a limit that nothing fits");
	end();
}

static void
remove_blob(const struct digest *d)
{
	char hex[DIGEST_HEX], path[100];

	digest_hex(d, hex);
	snprintf(path, sizeof(path), "blobs/%.2s/%s", hex, hex + 2);
	if (unlinkat(ws_fd, path, 0))
		bug("unlink");
}

/* A row whose blobs are not all there is no row; what it alone had goes. */
static void
test_gone(void)
{
	struct digest a, b, inner, tree, other;
	struct gc_result r;
	char hex[DIGEST_HEX], path[100];

	begin();
	a = content(1);
	b = content(2);
	inner = dir_of((struct child[]){{a, false}, {b, false}}, 2);
	tree = dir_of(&(struct child){inner, true}, 1);
	other = dir_of(&(struct child){a, false}, 1);
	row(1, &tree, NULL, 0);
	row(2, &other, NULL, 9);
	remove_blob(&b);
	r = sweep(0, 0, true, false);
	ok(r.entries == 1 && !has_row(1) && has_row(2), "a row without one of its files");
	ok(store_has(store, &a) && !store_has(store, &inner) && !store_has(store, &tree),
		"goes, and what it shares stays");
	inner = dir_of((struct child[]){{a, false}}, 1);
	tree = dir_of((struct child[]){{inner, true}, {a, false}}, 2);
	row(3, &tree, NULL, 0);
	digest_hex(&tree, hex);
	snprintf(path, sizeof(path), "blobs/%.2s/%s", hex, hex + 2);
	unlinkat(ws_fd, path, 0);
	ws_write(path, "vx-tree 1\nevil\n");
	r = sweep(0, 0, true, false);
	ok(r.entries == 1 && !has_row(3) && has_row(2) && store_has(store, &a),
		"a row with a damaged node");

	end();
}

/* A file that holds the bytes of a node is needed as that alone. */
static void
test_file_as_node(void)
{
	struct digest a, inner, as_file, as_dir, missing, broken;

	begin();
	a = content(1);
	inner = dir_of(&(struct child){a, false}, 1);
	as_file = dir_of(&(struct child){inner, false}, 1);
	as_dir = dir_of(&(struct child){inner, true}, 1);
	row(1, &as_file, NULL, 0);
	row(2, &as_dir, NULL, 1);
	sweep(0, 0, true, false);
	ok(has_row(1) && has_row(2) && store_has(store, &a), "first as a file, then as a node");
	/* what a row that goes for a missing blob had is given back as it was */
	missing = content(2);
	broken = dir_of((struct child[]){{inner, true}, {missing, false}}, 2);
	remove_blob(&missing);
	row(2, NULL, NULL, 1);
	row(3, &broken, NULL, 1);
	sweep(0, 0, true, false);
	ok(has_row(1) && !has_row(3) && store_has(store, &inner) && !store_has(store, &a),
		"first as a file, then as a node of a row that goes");
	a = content(1);
	as_dir = dir_of(&(struct child){inner, true}, 1);
	row(2, &as_dir, NULL, 1);
	row(1, &as_file, NULL, 2);
	sweep(0, 0, true, false);
	ok(has_row(1) && has_row(2) && store_has(store, &a), "first as a node, then as a file");
	row(2, &as_dir, NULL, 99);
	sweep(50, 0, true, false);
	ok(has_row(1) && store_has(store, &inner) && !store_has(store, &a), "as a file alone");
	end();
}

/* Another run used the row after it was read here. */
static void
test_used_meanwhile(void)
{
	struct index_row *rows = NULL;
	struct err e = ERR_INIT;
	size_t n = 0;

	begin();
	row(1, NULL, NULL, 100);
	row(2, NULL, NULL, 50);
	ok(!index_rows(ix, &rows, &n, &e) && n == 2 && rows[0].key.b[0] == 2, "last used first");
	row(1, NULL, NULL, 0);
	ok_int(index_drop_unused(ix, &rows[1], &e), 0, "a row that was used meanwhile stays");
	ok_int(index_drop_unused(ix, &rows[0], &e), 1, "the other goes");
	ok(has_row(1) && !has_row(2), "so it is");
	free(rows);
	end();
}

/* Random trees over few contents, against a model. */

enum {
	NCONTENT = 12,
	NNODES = 10,
	NROWS = 12
};

struct model {
	struct digest content[NCONTENT], node[NNODES];
	uint64_t files[NNODES]; /* contents below a node, a bit each */
	uint64_t nodes[NNODES]; /* nodes below it, and itself */
};

static void
make_nodes(struct model *m)
{
	for (unsigned i = 0; i < NNODES; i++) {
		struct child v[6];
		size_t n = 1 + (size_t)rand() % array_len(v);

		m->files[i] = 0;
		m->nodes[i] = 1ull << i;
		for (size_t k = 0; k < n; k++) {
			unsigned f = (unsigned)rand() % NCONTENT;
			unsigned below = i ? (unsigned)rand() % i : 0;

			v[k].node = i && rand() % 2;
			v[k].digest = v[k].node ? m->node[below] : m->content[f];
			m->files[i] |= v[k].node ? m->files[below] : 1ull << f;
			m->nodes[i] |= v[k].node ? m->nodes[below] : 0;
		}
		m->node[i] = dir_of(v, n);
	}
	/* equal nodes are one */
	for (unsigned i = 0; i < NNODES; i++)
		for (unsigned k = 0; k < NNODES; k++)
			if (digest_equal(&m->node[i], &m->node[k]))
				m->nodes[i] |= 1ull << k;
}

static bool
round_is_right(void)
{
	struct model m;
	unsigned tree[NROWS], out[NROWS];
	uint64_t files = 0, nodes = 0, limit = (uint64_t)(rand() % 2) * (unsigned)(rand() % 150000);
	uint64_t hours = (uint64_t)(rand() % 2) * (1 + (unsigned)rand() % NROWS);
	struct gc_result r;
	bool right = true, stays = true;

	for (unsigned i = 0; i < NCONTENT; i++)
		m.content[i] = content(i);
	make_nodes(&m);
	for (unsigned i = 0; i < NROWS; i++) {
		tree[i] = (unsigned)rand() % NNODES;
		out[i] = (unsigned)rand() % NCONTENT;
		row(i, &m.node[tree[i]], &m.content[out[i]], i);
	}
	r = sweep(hours, limit, true, false);
	for (unsigned i = 0; i < NROWS; i++) {
		bool has = has_row(i);

		right = right && (!has || (stays && (!hours || i < hours + 1)));
		stays = has;
		files |= has ? m.files[tree[i]] | 1ull << out[i] : 0;
		nodes |= has ? m.nodes[tree[i]] : 0;
	}
	for (unsigned i = 0; i < NNODES; i++) /* what equals a node that stays */
		for (unsigned k = 0; k < NNODES; k++)
			if (nodes >> k & 1 && digest_equal(&m.node[i], &m.node[k]))
				nodes |= 1ull << i;
	for (unsigned i = 0; i < NCONTENT; i++)
		right = right && store_has(store, &m.content[i]) == (files >> i & 1);
	for (unsigned i = 0; i < NNODES; i++)
		right = right && store_has(store, &m.node[i]) == (nodes >> i & 1);
	return right && (!limit || r.left <= limit);
}

static void
test_random(void)
{
	int good = 0;

	srand(20);
	for (int i = 0; i < 100; i++) {
		begin();
		good += round_is_right();
		end();
	}
	ok_int(good, 100, "100 random caches: exactly what the rows that stay need is there");
}

static char *
after_run(uint64_t max_bytes, bool write)
{
	const struct gc_limits limits = {0, max_bytes};
	static unsigned number = 1000;
	struct err e = ERR_INIT;
	char *note = NULL;

	store_close(store); /* a run of its own */
	if (store_open(ws_fd, &store, &e))
		bug("%s", e.text);
	if (write)
		content(number++);
	wait_for_tick();
	if (gc_after_run(ix, store, &limits, "CACHE", &note, &e))
		bug("%s", e.text);
	return note;
}

static void
set_upkeep(uint64_t bytes, int64_t swept_hours, int64_t told_hours)
{
	int64_t now = (int64_t)clock_wall_ns(), hour = (int64_t)HOUR_NS;
	const struct upkeep u = {bytes, now - swept_hours * hour, now - told_hours * hour};
	struct err e = ERR_INIT;

	if (index_set_upkeep(ix, &u, &e))
		bug("%s", e.text);
}

static struct upkeep
get_upkeep(void)
{
	struct upkeep u;
	struct err e = ERR_INIT;

	if (index_upkeep(ix, 0, &u, &e))
		bug("%s", e.text);
	return u;
}

static void
test_after_run(void)
{
	struct digest orphan;
	struct upkeep u;
	cleanup_free char *note = NULL;

	begin();
	u = get_upkeep();
	ok(!u.bytes && (uint64_t)u.swept_ns > clock_wall_ns() - HOUR_NS, "a new cache is clean");
	orphan = content(1);
	ok(!after_run(0, true) && store_has(store, &orphan), "so nothing is done");
	ok(get_upkeep().bytes >= 5000, "but what was written counts");
	set_upkeep(0, 2, 0);
	ok(!after_run(0, false) && store_has(store, &orphan), "nor after a run that wrote nothing");
	ok(!after_run(0, true) && !store_has(store, &orphan), "after an hour it is");
	ok(get_upkeep().bytes < 4096, "and counted anew");
	orphan = content(1);
	set_upkeep(0, -99, 0);
	ok(!after_run(0, true) && !store_has(store, &orphan), "or when the clock had been ahead");
	orphan = content(1);
	set_upkeep(900, 0, 0);
	ok(!after_run(1000, true) && !store_has(store, &orphan), "or beyond the limit at once");
	set_upkeep(20ull << 30, 0, 25);
	note = after_run(0, true);
	ok(note && strstr(note, "20.0 GiB") && strstr(note, "cacheRetention"), "%s",
		note ? note : "(no note)");
	free(note);
	ok(!(note = after_run(0, true)), "is said once a day");
	set_upkeep(20ull << 30, 0, 25);
	ok(!(note = after_run(50ull << 30, true)), "and not to one who has set a limit");
	end();
}

/* The first version of the index had no upkeep. */
static void
test_migration(void)
{
	static const char *const one[] = {
		"CREATE TABLE entries("
		"  key BLOB PRIMARY KEY,"
		"  task TEXT NOT NULL,"
		"  making INTEGER NOT NULL,"
		"  tree BLOB,"
		"  bytes INTEGER NOT NULL,"
		"  output BLOB,"
		"  duration_ns INTEGER NOT NULL,"
		"  cpu_us INTEGER NOT NULL,"
		"  peak_rss_kb INTEGER NOT NULL,"
		"  created_ns INTEGER NOT NULL,"
		"  accessed_ns INTEGER NOT NULL"
		") WITHOUT ROWID;"
		"INSERT INTO entries VALUES(zeroblob(32), 'a#b', 0, NULL, 0, NULL, 1, 1, 1, 1, 1)"};
	static const char *const sql[] = {"SELECT 1"};
	const struct db_schema old = {
		.migrations = one, .nmigrations = 1, .statements = sql, .nstatements = 1};
	struct err e = ERR_INIT;
	char path[100];
	struct db *db;

	ws_begin();
	snprintf(path, sizeof(path), "%s/index.db", ws_path);
	if (db_open(path, &old, &db, NULL, &e))
		bug("%s", e.text);
	db_close(db);
	if (index_open(ws_path, ws_path, false, &ix, NULL, &e) || store_open(ws_fd, &store, &e))
		bug("%s", e.text);
	ok(has_row(0), "a row of an older vx is there");
	ok_int(get_upkeep().swept_ns, 0, "and the cache is due for its first cleaning");
	end();
}

int
main(void)
{
	test_migration();
	test_age();
	test_size();
	test_gone();
	test_file_as_node();
	test_used_meanwhile();
	test_random();
	test_after_run();
	return tap_done();
}
