/* SPDX-License-Identifier: MIT */
/*
 * The file is a table of directories sorted by path. A run asks for them in nearly that order, so the
 * row after the last one found is tried first. What is new goes at once to where the bytes of the next
 * file are gathered.
 */
#include "workspace/sources.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/filestate.h"
#include "util/log.h"
#include "util/strbuf.h"
#include "util/table.h"
#include <errno.h>

static const char file_name[] = "sources";

struct source_text {
	struct filestate seen; /* mode 0: not known */
	uint64_t at, len;      /* in the table's bytes, a NUL behind it */
};

struct source_row {
	uint64_t dir, dir_len; /* the same */
	struct source_text of[SOURCE_KINDS];
};
_Static_assert(sizeof(struct source_row) == 256, "a directory's rows have no padding");

static const struct table_kind sources_kind = {"vx-srcs\n", 1, sizeof(struct source_row)};

/* The next file, its rows in the order in which they come. */
struct next {
	struct source_row *rows;
	size_t n, cap;
	struct strbuf bytes;
	struct source_text last[SOURCE_KINDS];
};

struct sources {
	int statefd;
	struct table table;
	const struct source_row *rows;
	size_t nrows;
	size_t finger;       /* the row of the directory that was asked for last */
	unsigned char *used; /* by row: a bit for each text that was given out */
	struct next next;
};

static bool
is_inside(const struct table *t, uint64_t at, uint64_t len)
{
	return at < t->nbytes && len < t->nbytes - at && !t->bytes[at + len];
}

/* Nothing of the file is believed before its checksum; offsets are still bounded. */
static bool
rows_are_sound(const struct table *t)
{
	const struct source_row *rows = t->rows;

	for (size_t i = 0; i < t->nrows; i++) {
		if (!is_inside(t, rows[i].dir, rows[i].dir_len))
			return false;
		for (size_t k = 0; k < SOURCE_KINDS; k++)
			if (rows[i].of[k].seen.mode &&
				!is_inside(t, rows[i].of[k].at, rows[i].of[k].len))
				return false;
	}
	return true;
}

struct sources *
sources_open(int statefd)
{
	struct sources *s = xcalloc(1, sizeof(*s));
	int r = 0;

	s->statefd = statefd;
	strbuf_init(&s->next.bytes);
	if (statefd >= 0)
		r = table_open(statefd, file_name, &sources_kind, &s->table);
	if (r > 0 && rows_are_sound(&s->table)) {
		s->rows = s->table.rows;
		s->nrows = s->table.nrows;
		s->used = xcalloc(s->nrows, 1);
	} else if (r) {
		log_debug("cache", "the sources file is damaged or of another version: made anew");
	}
	return s;
}

/* Where `dir` stands to the row's, as strcmp says. */
static int
compare(const struct sources *s, const char *dir, size_t row)
{
	return strcmp(dir, s->table.bytes + s->rows[row].dir);
}

/* SIZE_MAX: no row. */
static size_t
find_row(struct sources *s, const char *dir)
{
	size_t lo = 0, hi = s->nrows;

	for (size_t i = s->finger; i < s->nrows && i < s->finger + 2; i++)
		if (!compare(s, dir, i))
			return s->finger = i;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = compare(s, dir, mid);

		if (!c)
			return s->finger = mid;
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return SIZE_MAX;
}

bool
sources_has(struct sources *s, const char *dir, enum source which)
{
	size_t row = find_row(s, dir);

	return row != SIZE_MAX && s->rows[row].of[which].seen.mode;
}

const char *
sources_get(struct sources *s, const char *dir, enum source which, const struct stat *now,
	size_t *ret_len)
{
	size_t row = find_row(s, dir);
	const struct source_text *t = row == SIZE_MAX ? NULL : &s->rows[row].of[which];

	if (!t || !t->seen.mode || !filestate_holds(&t->seen, now))
		return NULL;
	s->used[row] |= (unsigned char)(1u << which);
	*ret_len = (size_t)t->len;
	return s->table.bytes + t->at;
}

static void
keep(struct next *next, const char *dir, enum source which, const struct filestate *seen,
	const char *text, size_t len)
{
	struct source_row *row = next->n ? &next->rows[next->n - 1] : NULL;
	struct source_text *last = &next->last[which];

	/* Of many directories: the rest in huge pages. */
	if (next->bytes.len > ALLOC_HUGE_PAGE / 8 && next->bytes.cap < ALLOC_HUGE_PAGE)
		strbuf_grow(&next->bytes, 2 * (size_t)ALLOC_HUGE_PAGE - 1 - next->bytes.len);
	/* Configs are often alike from one project to the next. */
	if (!last->seen.mode || last->len != len ||
		memcmp(next->bytes.buf + last->at, text, len) != 0)
		last->at = table_add_text(&next->bytes, text, len);
	last->len = len;
	last->seen = *seen;
	if (!row || strcmp(next->bytes.buf + row->dir, dir) != 0) {
		GROW(next->rows, next->n + 1, next->cap);
		row = &next->rows[next->n++];
		*row = (struct source_row){.dir_len = strlen(dir)};
		row->dir = table_add_text(&next->bytes, dir, row->dir_len);
	}
	row->of[which] = *last;
}

void
sources_put(struct sources *s, const char *dir, enum source which, const struct stat *seen,
	int64_t learned_ns, const char *text, size_t len)
{
	struct filestate state;

	if (s->statefd < 0)
		return;
	filestate_take(&state, seen, learned_ns);
	keep(&s->next, dir, which, &state, text, len);
}

/* Closing. */

/* Whether the file holds what this run had no use for: a member that is gone. */
static bool
has_unused(const struct sources *s)
{
	for (size_t i = 0; i < s->nrows; i++)
		for (unsigned k = 0; k < SOURCE_KINDS; k++)
			if (s->rows[i].of[k].seen.mode && !(s->used[i] & 1u << k))
				return true;
	return false;
}

static void
keep_used(struct sources *s)
{
	for (size_t i = 0; i < s->nrows; i++)
		for (unsigned k = 0; k < SOURCE_KINDS; k++) {
			const struct source_text *t = &s->rows[i].of[k];

			if (s->used[i] & 1u << k)
				keep(&s->next, s->table.bytes + s->rows[i].dir, (enum source)k,
					&t->seen, s->table.bytes + t->at, (size_t)t->len);
		}
}

static int
compare_rows(const void *a, const void *b, void *bytes)
{
	const struct source_row *x = a, *y = b;

	return strcmp((const char *)bytes + x->dir, (const char *)bytes + y->dir);
}

/* Sorted, and what is new of a directory in one row with what stays. */
static void
order_rows(struct next *next)
{
	char *bytes = next->bytes.buf;
	size_t n = 0;

	/* They come sorted where all is new. */
	for (size_t i = 1; i < next->n; i++)
		if (compare_rows(&next->rows[i - 1], &next->rows[i], bytes) > 0) {
			qsort_r(next->rows, next->n, sizeof(*next->rows), compare_rows, bytes);
			break;
		}
	for (size_t i = 0; i < next->n; i++) {
		struct source_row *row = &next->rows[i];

		if (!n || compare_rows(&next->rows[n - 1], row, bytes) != 0) {
			next->rows[n++] = *row;
			continue;
		}
		for (size_t k = 0; k < SOURCE_KINDS; k++)
			if (row->of[k].seen.mode)
				next->rows[n - 1].of[k] = row->of[k];
	}
	next->n = n;
}

static int
write_all(struct sources *s)
{
	struct next *next = &s->next;

	keep_used(s);
	order_rows(next);
	return table_write(s->statefd, file_name, &sources_kind, next->rows, next->n,
		next->bytes.buf, next->bytes.len);
}

void
sources_close(struct sources *s, bool keep_it)
{
	if (keep_it && s->statefd >= 0 && (s->next.n || has_unused(s)) && write_all(s))
		log_debug("cache", "sources file not written: %s", strerror(errno));
	table_close(&s->table);
	free(s->next.rows);
	strbuf_release(&s->next.bytes);
	free(s->used);
	free(s);
}
