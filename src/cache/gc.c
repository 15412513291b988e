/* SPDX-License-Identifier: MIT */
#include "cache/gc.h"
#include "cache/index.h"
#include "cache/store.h"
#include "cache/tree-node.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/log.h"
#include "util/stop.h"

static const uint64_t SECOND_NS = 1000ull * 1000 * 1000;
static const uint64_t LARGE_BYTES = 10ull << 30;

/* Whose a blob is. Rows that stay are walked before those that go. */
enum owner {
	OWNER_NONE,
	OWNER_GONE,
	OWNER_KEPT
};

struct mark {
	struct store_blob blob;
	enum owner owner;
	bool walked; /* as a node, with all below it, for this owner */
};

struct fresh {
	size_t mark;
	enum owner before; /* and not walked */
};

struct sweep {
	struct index *ix;
	struct store *s;
	const struct gc_limits *limits;
	uint64_t deadline;  /* 0: none */
	int64_t unused_ns;  /* what was used since then may be of a save under way */
	struct mark *marks; /* sorted by digest */
	size_t nmarks, marks_cap;
	struct index_row *rows;
	size_t nrows;
	bool *goes; /* by row */
	/* The row that is walked. */
	enum owner owner;
	struct digest *todo; /* nodes */
	size_t ntodo, todo_cap;
	struct fresh *fresh; /* what it changed */
	size_t nfresh, fresh_cap;
	uint64_t fresh_bytes;
	bool missing; /* a blob of it */
	struct err *e;
};

static bool
is_over(const struct sweep *w)
{
	return stop_is_asked() || (w->deadline && clock_monotonic_ns() > w->deadline);
}

static int
add_mark(void *ctx, const struct store_blob *b)
{
	struct sweep *w = ctx;

	GROW(w->marks, w->nmarks + 1, w->marks_cap);
	w->marks[w->nmarks++] = (struct mark){.blob = *b};
	return w->nmarks % 1024 || !is_over(w) ? 0 : -1;
}

static int
compare_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	return memcmp(x->blob.digest.b, y->blob.digest.b, DIGEST_SIZE);
}

/* The first with this digest, or w->nmarks. There are two where it is here plain and packed. */
static size_t
find_mark(const struct sweep *w, const struct digest *d)
{
	size_t low = 0, high = w->nmarks;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (memcmp(w->marks[mid].blob.digest.b, d->b, DIGEST_SIZE) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The row that is walked needs this blob. True: a node that has yet to be walked. */
static bool
need(struct sweep *w, const struct digest *d, bool node)
{
	bool walk = false, found = false;

	for (size_t i = find_mark(w, d); i < w->nmarks && digest_equal(&w->marks[i].blob.digest, d);
		i++) {
		struct mark *m = &w->marks[i];
		bool takes = m->owner < w->owner, walks = node && (takes || !m->walked);

		found = true;
		walk = walk || walks;
		if (!takes && !walks)
			continue;
		GROW(w->fresh, w->nfresh + 1, w->fresh_cap);
		w->fresh[w->nfresh++] = (struct fresh){i, m->owner};
		w->fresh_bytes += takes ? m->blob.disk : 0;
		m->owner = takes ? w->owner : m->owner;
		m->walked = walks;
	}
	/* One that was written since the store was listed. */
	if (!found && !store_has(w->s, d))
		w->missing = true;
	return walk || (node && !found);
}

static bool
see_line(void *ctx, const struct tree_line *line)
{
	struct sweep *w = ctx;

	if (line->type == OUTPUT_LINK || !need(w, &line->digest, line->type == OUTPUT_DIR))
		return true;
	GROW(w->todo, w->ntodo + 1, w->todo_cap);
	w->todo[w->ntodo++] = line->digest;
	return true;
}

/* All blobs of a row are its owner's. 1 they are here, 0 one is not or is damaged, -1. */
static int
walk_row(struct sweep *w, const struct index_row *row, enum owner owner)
{
	cleanup_strbuf struct strbuf node = STRBUF_INIT;

	w->owner = owner;
	w->ntodo = w->nfresh = 0;
	w->fresh_bytes = 0;
	w->missing = false;
	if (row->has_output)
		need(w, &row->output, false);
	if (row->has_tree && need(w, &row->tree, true)) {
		GROW(w->todo, 1, w->todo_cap);
		w->todo[w->ntodo++] = row->tree;
	}
	while (w->ntodo && !w->missing && !is_over(w)) {
		struct digest d = w->todo[--w->ntodo];
		int r;

		strbuf_reset(&node);
		r = store_get_bytes(w->s, &d, TREE_NODE_MAX, &node, w->e);
		if (r < 0)
			return -1;
		if (!r || !tree_node_parse(node.buf, node.len, see_line, w))
			w->missing = true;
	}
	return !w->missing;
}

/* Gives back what the row took. */
static void
undo_row(struct sweep *w)
{
	for (size_t i = w->nfresh; i-- > 0;) {
		struct mark *m = &w->marks[w->fresh[i].mark];

		m->walked = false;
		m->owner = w->fresh[i].before;
	}
}

/* Which rows go, and whose the blobs are. 1, 0 given up, -1. */
static int
choose(struct sweep *w)
{
	int64_t oldest = w->limits->older_than_ns
				 ? (int64_t)(clock_wall_ns() - w->limits->older_than_ns)
				 : INT64_MIN;
	uint64_t total = 0, limit = w->limits->max_bytes, kept = 0;
	bool full = false;
	int r;

	for (size_t i = 0; i < w->nmarks; i++)
		total += w->marks[i].blob.disk;
	limit = limit && total > limit ? limit : UINT64_MAX;
	for (size_t i = 0; i < w->nrows; i++) {
		const struct index_row *row = &w->rows[i];

		if (is_over(w))
			return 0;
		if (row->accessed_ns < oldest || full) {
			w->goes[i] = true;
			continue;
		}
		r = walk_row(w, row, OWNER_KEPT);
		if (r < 0)
			return -1;
		full = r && w->fresh_bytes > limit - kept;
		w->goes[i] = !r || full;
		if (w->goes[i])
			undo_row(w);
		else
			kept += w->fresh_bytes;
	}
	/* Only to tell what they leave from what nobody had. */
	for (size_t i = 0; i < w->nrows; i++) {
		if (is_over(w))
			return 0;
		if (w->goes[i] && walk_row(w, &w->rows[i], OWNER_GONE) < 0)
			return -1;
	}
	return !is_over(w);
}

static int
drop_rows(struct sweep *w, bool dry, struct gc_result *res)
{
	res->entries = 0;
	if (!dry && index_begin(w->ix, w->e))
		return -1;
	for (size_t i = 0; i < w->nrows; i++) {
		int r;

		if (!w->goes[i])
			continue;
		r = dry ? 1 : index_drop_unused(w->ix, &w->rows[i], w->e);
		if (r < 0) {
			index_rollback(w->ix);
			return -1;
		}
		res->entries += (uint64_t)r;
		log_debug("phase", "row removed");
	}
	return dry ? 0 : index_commit(w->ix, w->e);
}

/* What was used at `before` or later stays. */
static void
drop_blobs(struct sweep *w, enum owner owner, int64_t before, bool dry, struct gc_result *res)
{
	uint64_t *n = owner == OWNER_GONE ? &res->bytes : &res->orphan_bytes;

	for (size_t i = 0; i < w->nmarks; i++) {
		const struct mark *m = &w->marks[i];

		if (m->owner != owner)
			continue;
		if (m->blob.used_ns >= before) {
			res->young += m->blob.disk;
			continue;
		}
		if (!dry && !store_remove(w->s, &m->blob))
			continue;
		log_debug("phase", "blob removed");
		res->left -= m->blob.disk;
		*n += m->blob.disk;
		res->orphans += owner == OWNER_NONE;
	}
}

/* There is no room to write that the rows go. */
static int
drop_on_full_disk(struct sweep *w, struct gc_result *res)
{
	uint64_t going = 0;

	err_clear(w->e);
	drop_blobs(w, OWNER_GONE, INT64_MAX, false, res);
	if (!drop_rows(w, false, res))
		return 0;
	if (!err_is_no_room(w->e->num))
		return -1;
	/* Somebody else has taken it. The next sweep drops them, as rows whose blobs are gone. */
	err_clear(w->e);
	for (size_t i = 0; i < w->nrows; i++)
		going += w->goes[i];
	res->entries = going;
	return 0;
}

static int
drop(struct sweep *w, bool dry, struct gc_result *res)
{
	for (size_t i = 0; i < w->nmarks; i++)
		res->left += w->marks[i].blob.disk;
	/* No row waits for what none needs, and on a full disk there is room for the rest then. */
	drop_blobs(w, OWNER_NONE, w->unused_ns, dry, res);
	/* Rows before their blobs: none shall point to what is gone. Killed between, the blobs are orphans. */
	if (drop_rows(w, dry, res))
		return err_is_no_room(w->e->num) ? drop_on_full_disk(w, res) : -1;
	log_debug("phase", "rows committed");
	drop_blobs(w, OWNER_GONE, w->unused_ns, dry, res);
	return 0;
}

static int
sweep(struct sweep *w, bool dry, struct gc_result *res)
{
	int r;

	if (store_each(w->s, add_mark, w, w->e))
		return err_is_set(w->e) ? -1 : 0;
	if (w->nmarks)
		qsort(w->marks, w->nmarks, sizeof(*w->marks), compare_marks);
	/* After the blobs: a row that is here had its blobs before it. */
	if (index_rows(w->ix, &w->rows, &w->nrows, w->e))
		return -1;
	log_debug("phase", "cache listed");
	w->goes = xcalloc(w->nrows, sizeof(*w->goes));
	r = choose(w);
	if (r <= 0)
		return r;
	log_debug("phase", "rows chosen");
	return drop(w, dry, res) ? -1 : 1;
}

/* For the next run to know: not worth an error. */
static void
note_swept(struct index *ix, uint64_t left)
{
	struct err e = ERR_INIT;
	struct upkeep u;

	if (index_upkeep(ix, 0, &u, &e))
		return;
	u.bytes = left;
	u.swept_ns = (int64_t)clock_wall_ns();
	index_set_upkeep(ix, &u, &e);
}

int
gc_sweep(struct index *ix, struct store *s, const struct gc_limits *limits, uint64_t budget_ns,
	bool dry, struct gc_result *ret, struct err *e)
{
	struct sweep w = {.ix = ix, .s = s, .limits = limits, .e = e};
	struct gc_result res = {0};
	int r;

	if (budget_ns)
		w.deadline = clock_monotonic_ns() + budget_ns;
	w.unused_ns = store_sweep_begin(s);
	r = sweep(&w, dry, &res);
	store_sweep_end(s);
	free(w.marks);
	free(w.rows);
	free(w.goes);
	free(w.todo);
	free(w.fresh);
	if (r > 0 && !dry) {
		note_swept(ix, res.left);
		log_debug("phase", "cache cleaned");
	}
	if (r > 0)
		*ret = res;
	return r;
}

void
gc_size_text(uint64_t bytes, char *ret, size_t size)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(ret, size, "%llu B", (unsigned long long)bytes);
		return;
	}
	for (; v >= 1024 && i + 1 < array_len(units); i++)
		v /= 1024;
	snprintf(ret, size, "%.1f %s", v, units[i]);
}

static char *
note_size(const struct upkeep *u, const char *cache_dir)
{
	char size[32];

	gc_size_text(u->bytes, size, sizeof(size));
	return xasprintf("the cache in %s has grown to %s: to limit it, write "
			 "\"cacheRetention\": { \"maxSize\": \"10G\" } in vx.workspace.json",
		cache_dir, size);
}

/* There may be no room for that number. */
static int
add_written(struct index *ix, uint64_t written, bool *full, struct upkeep *ret, struct err *e)
{
	if (!index_upkeep(ix, written, ret, e))
		return 0;
	if (!err_is_no_room(e->num))
		return -1;
	err_clear(e);
	*full = true;
	if (index_upkeep(ix, 0, ret, e))
		return -1;
	ret->bytes += written;
	return 0;
}

int
gc_after_run(struct index *ix, struct store *s, const struct gc_limits *limits,
	const char *cache_dir, char **ret_note, struct err *e)
{
	const int64_t hour = 3600 * (int64_t)SECOND_NS, day = 24 * hour;
	int64_t now = (int64_t)clock_wall_ns();
	uint64_t written = store_written(s);
	bool full = store_is_full(s);
	struct gc_limits low = *limits;
	struct gc_result res;
	struct upkeep u;
	char *note = NULL;
	int r = 1;

	*ret_note = NULL;
	if (!written && !full)
		return 0;
	if (add_written(ix, written, &full, &u, e))
		return -1;
	/* Given up once, it is not tried again for an hour. But a clock that was ahead shall not put it
	 * off for ever. */
	if (now - u.swept_ns >= hour || u.swept_ns > now + 2 * hour ||
		((full || (limits->max_bytes && u.bytes > limits->max_bytes)) &&
			u.swept_ns <= now)) {
		/* Somewhat below the limit, so that not every run is over it again. */
		if (u.bytes > low.max_bytes)
			low.max_bytes -= low.max_bytes / 10;
		r = gc_sweep(ix, s, &low, SECOND_NS, false, &res, e);
		if (r < 0 || index_upkeep(ix, 0, &u, e))
			return -1;
		if (!r && !stop_is_asked()) {
			u.swept_ns = now + hour;
			if (index_set_upkeep(ix, &u, e))
				return -1;
		}
	}
	if (now - u.told_ns < day && u.told_ns <= now)
		return 0;
	if (!r && !stop_is_asked())
		note = xasprintf("the cache in %s is too large to be cleaned at the end of a run: "
				 "run `vx cache prune --older-than 30d`",
			cache_dir);
	else if (u.bytes > LARGE_BYTES && !limits->max_bytes)
		note = note_size(&u, cache_dir);
	if (!note)
		return 0;
	u.told_ns = now;
	if (index_set_upkeep(ix, &u, e)) {
		free(note);
		return -1;
	}
	*ret_note = note;
	return 0;
}
