/* SPDX-License-Identifier: MIT */
/*
 * The file is a table of rows sorted by path (docs/CACHE.md).
 * What was learned in this run lives in a table beside it and is merged in at close. A run asks for
 * paths in nearly sorted order, so the row after the last one found is tried first.
 *
 * A warm run is mostly the look at thousands of files, and half of that is done by a second thread
 * while configs are read. It shares nothing that is written but `same`.
 */
#include "cache/filehash.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/beside.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/filestate.h"
#include "util/fs.h"
#include "util/htab.h"
#include "util/log.h"
#include "util/strbuf.h"
#include "util/table.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct stat_row {
	uint64_t name, name_len; /* in the table's bytes */
	struct filestate seen;
	struct digest digest;
};
_Static_assert(sizeof(struct stat_row) == 112, "a file's rows have no padding");

static const struct table_kind stat_kind = {"vx-stat\n", 2, sizeof(struct stat_row)};

enum row_state {
	ROW_UNASKED,
	ROW_ASKED,
	ROW_REPLACED
};

/* What this run learned, by path. */
struct learned {
	const char *path;
	struct stat_row row;
	bool keep;   /* false: not a fact any more, e.g. the file is gone */
	bool looked; /* under trust: id is the answer */
	struct file_id id;
	uint64_t changed_at; /* of filehash.nchanges */
};

struct filehash {
	int dirfd;
	struct table table;
	const struct stat_row *rows; /* of the table, as are the names */
	const char *names;
	size_t nrows;
	size_t finger;        /* the row after the last one found */
	unsigned char *state; /* enum row_state, by row */
	bool *same;           /* by row: looked at, and the row is the answer under trust */
	struct arena arena;
	struct htab learned;
	uint64_t nchanges;
	bool changed;
	bool trust;
	struct beside looker;
	int rootfd; /* for it */
};

static int
row_cmp(const struct stat_row *row, const char *names, const char *path, size_t len)
{
	size_t n = row->name_len < len ? row->name_len : len;
	int r = memcmp(names + row->name, path, n);

	return r ? r : (row->name_len > len) - (row->name_len < len);
}

/* Nothing of the file is believed before its checksum; offsets are still bounded. */
static bool
rows_are_sound(const struct table *t)
{
	const struct stat_row *rows = t->rows;

	for (size_t i = 0; i < t->nrows; i++)
		if (rows[i].name > t->nbytes || rows[i].name_len > t->nbytes - rows[i].name)
			return false;
	return true;
}

static void
load(struct filehash *fh)
{
	int r = table_open(fh->dirfd, "stat", &stat_kind, &fh->table);

	if (r > 0 && rows_are_sound(&fh->table)) {
		fh->rows = fh->table.rows;
		fh->nrows = fh->table.nrows;
		fh->names = fh->table.bytes;
		fh->state = xcalloc(fh->nrows, 1);
		fh->same = xcalloc(fh->nrows, sizeof(*fh->same));
	} else if (r) {
		log_debug("cache", "the stat file is damaged or of another version: made anew");
		fh->changed = true;
	}
}

int
filehash_open(int dirfd, struct filehash **ret, struct err *e)
{
	struct filehash *fh;
	int dup = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);

	if (dup < 0)
		return err_set(e, ERR_IO, errno, "state directory");
	fh = xcalloc(1, sizeof(*fh));
	fh->dirfd = dup;
	arena_init(&fh->arena);
	htab_init(&fh->learned);
	load(fh);
	*ret = fh;
	return 0;
}

/* SIZE_MAX: no row. Outwards from the finger, in steps that double, and then between the last two. */
static size_t
find_row(struct filehash *fh, const char *path, size_t len)
{
	size_t lo = 0, hi = fh->nrows, at = fh->finger, step = 1;

	while (lo < hi) {
		int c;

		if (at < lo || at >= hi)
			at = lo + (hi - lo) / 2;
		c = row_cmp(&fh->rows[at], fh->names, path, len);
		if (!c) {
			fh->finger = at + 1;
			return at;
		}
		if (c < 0)
			lo = at + 1;
		else
			hi = at;
		at = c < 0 ? at + step : at - step;
		step *= 2;
	}
	return SIZE_MAX;
}

/* The second thread. */
static void *
look_ahead(void *arg)
{
	struct filehash *fh = arg;
	char path[PATH_MAX];

	for (size_t i = 0; i < fh->nrows && !fh->looker.hurry; i++) {
		const struct stat_row *row = &fh->rows[i];
		struct stat st;

		if (row->name_len >= sizeof(path))
			continue;
		memcpy(path, fh->names + row->name, row->name_len);
		path[row->name_len] = '\0';
		fh->same[i] = !fstatat(fh->rootfd, path, &st, AT_SYMLINK_NOFOLLOW) &&
			      filestate_holds(&row->seen, &st);
	}
	return NULL;
}

void
filehash_look_ahead(struct filehash *fh, int rootfd)
{
	fh->rootfd = rootfd;
	/* Without a thread all is looked at when it is asked for. */
	if (fh->nrows)
		beside_start(&fh->looker, look_ahead, fh);
}

void
filehash_trust(struct filehash *fh, bool on)
{
	beside_end(&fh->looker, false);
	fh->trust = on;
	if (on)
		return;
	for (size_t i = 0; i < fh->learned.n; i++)
		((struct learned *)fh->learned.entries[i].value)->looked = false;
	if (fh->nrows)
		memset(fh->same, 0, fh->nrows * sizeof(*fh->same));
}

static enum file_kind
kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return mode & 0111 ? FILE_EXEC : FILE_PLAIN;
	return S_ISLNK(mode) ? FILE_LINK : FILE_OTHER;
}

static bool
is_gone(int num)
{
	return num == ENOENT || num == ENOTDIR || num == ELOOP;
}

/* The content now, and the stat that goes with it. 1, 0 gone, -1 with errno. */
static int
read_content(int rootfd, const char *path, struct stat *ret_st, struct digest *ret)
{
	cleanup_close int fd = -1;

	if (S_ISLNK(ret_st->st_mode)) {
		const char *base;
		char target[PATH_MAX];
		ssize_t n;

		fd = fs_open_parent(rootfd, path, &base);
		if (fd < 0)
			return is_gone(errno) ? 0 : -1;
		n = readlinkat(fd, base, target, sizeof(target));
		if (n < 0)
			/* EINVAL: no link any more */
			return is_gone(errno) || errno == EINVAL ? 0 : -1;
		digest_bytes(target, (size_t)n, ret);
		return 1;
	}
	/* NONBLOCK: a fifo that took the file's place must not hold us. */
	fd = fs_open_beneath(rootfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return is_gone(errno) ? 0 : -1;
	if (fstat(fd, ret_st))
		return -1;
	if (!S_ISREG(ret_st->st_mode))
		return 0;
	return digest_fd(fd, ret, NULL) ? -1 : 1;
}

/* overlayfs takes an empty file with this attribute for one that is not there: a sandboxed task would
 * run on another tree than the one that is keyed. */
static bool
is_hidden_by_overlay(int rootfd, const char *path)
{
	cleanup_close int fd =
		fs_open_beneath(rootfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	return fd >= 0 && fgetxattr(fd, "user.overlay.whiteout", NULL, 0) >= 0;
}

static struct learned *
learned_at(struct filehash *fh, const char *path, size_t len)
{
	struct learned *l = htab_getn(&fh->learned, path, len);

	if (!l) {
		l = arena_new(&fh->arena, struct learned);
		l->path = arena_memdupz(&fh->arena, path, len);
		htab_putn(&fh->learned, l->path, len, l);
	}
	return l;
}

static void
drop_row(struct filehash *fh, size_t row)
{
	if (row != SIZE_MAX && fh->state[row] != ROW_REPLACED) {
		fh->state[row] = ROW_REPLACED;
		fh->changed = true;
	}
}

/* The row that speaks of the file, or NULL. */
static const struct stat_row *
known_row(const struct filehash *fh, const char *path, size_t len, size_t row)
{
	const struct learned *l;

	if (row != SIZE_MAX && fh->state[row] != ROW_REPLACED)
		return &fh->rows[row];
	l = htab_getn(&fh->learned, path, len);
	return l && l->keep ? &l->row : NULL;
}

static void
forget_gone(struct filehash *fh, const char *path, size_t len, size_t row)
{
	struct learned *l;

	if (!known_row(fh, path, len, row))
		return;
	drop_row(fh, row);
	l = learned_at(fh, path, len);
	l->keep = false;
	l->changed_at = ++fh->nchanges;
	fh->changed = true;
}

/* The identity of what `st` is, by the memory or by reading. */
static int
identify(struct filehash *fh, int rootfd, const char *path, size_t len, size_t row,
	struct file_id *ret, struct stat *st, struct err *e)
{
	struct learned *l;
	bool differs;
	const struct stat_row *known = known_row(fh, path, len, row);
	int64_t learned_ns;
	struct digest d;
	int r;

	if (row != SIZE_MAX && fh->state[row] != ROW_REPLACED)
		fh->state[row] = ROW_ASKED;
	*ret = (struct file_id){.kind = kind_of(st->st_mode)};
	if (ret->kind == FILE_OTHER)
		return 0;
	if (known && filestate_holds(&known->seen, st)) {
		ret->digest = known->digest;
		return 0;
	}
	learned_ns = (int64_t)clock_files_ns();
	r = read_content(rootfd, path, st, &d);
	if (r < 0)
		return err_set(e, ERR_IO, errno, "read %s", path);
	if (r && S_ISREG(st->st_mode) && !st->st_size && is_hidden_by_overlay(rootfd, path))
		return err_set(e, ERR_IO, 0,
			"%s has the attribute user.overlay.whiteout, which would hide it from a "
			"sandboxed task: remove it (setfattr -x)",
			path);
	if (!r) {
		/* gone, or something else by now; the next look sees what */
		forget_gone(fh, path, len, row);
		*ret = (struct file_id){.kind = FILE_ABSENT};
		return 0;
	}
	l = htab_getn(&fh->learned, path, len);
	differs = known ? !digest_equal(&known->digest, &d) ||
				  kind_of(known->seen.mode) != kind_of(st->st_mode)
			: l != NULL;
	drop_row(fh, row);
	l = learned_at(fh, path, len);
	l->keep = true;
	if (differs)
		l->changed_at = ++fh->nchanges;
	fh->changed = true;
	filestate_take(&l->row.seen, st, learned_ns);
	l->row.digest = d;
	*ret = (struct file_id){.kind = kind_of(st->st_mode), .digest = d};
	return 0;
}

/* Under trust, what was seen is remembered and not looked at again. */
static bool
is_remembered(struct filehash *fh, const char *path, size_t len, size_t row, struct file_id *ret)
{
	const struct learned *l;

	if (row != SIZE_MAX && fh->same[row]) {
		fh->state[row] = ROW_ASKED;
		*ret = (struct file_id){kind_of(fh->rows[row].seen.mode), fh->rows[row].digest};
		return true;
	}
	if (row != SIZE_MAX && fh->state[row] != ROW_REPLACED)
		return false;
	l = htab_getn(&fh->learned, path, len);
	if (!l || !l->looked)
		return false;
	*ret = l->id;
	return true;
}

static void
remember(struct filehash *fh, const char *path, size_t len, size_t row, const struct file_id *id)
{
	struct learned *l;

	if (row != SIZE_MAX && fh->state[row] != ROW_REPLACED) {
		/* FILE_OTHER is no answer that a row can give */
		fh->same[row] = id->kind != FILE_OTHER;
		return;
	}
	l = learned_at(fh, path, len);
	l->looked = true;
	l->id = *id;
}

int
filehash_get(struct filehash *fh, int rootfd, const char *path, struct file_id *ret, struct err *e)
{
	size_t len = strlen(path), row = find_row(fh, path, len);
	struct file_id id = {.kind = FILE_ABSENT};
	struct stat st;

	if (fh->trust && is_remembered(fh, path, len, row, ret))
		return 0;
	/* A link on the way would be followed here, but what is read is opened beneath; and a known
	 * file is the same file by device, inode and times, whatever way led there. */
	if (fstatat(rootfd, path, &st, AT_SYMLINK_NOFOLLOW)) {
		if (!is_gone(errno))
			return err_set(e, ERR_IO, errno, "stat %s", path);
		forget_gone(fh, path, len, row);
	} else if (identify(fh, rootfd, path, len, row, &id, &st, e)) {
		return -1;
	}
	if (fh->trust)
		remember(fh, path, len, row, &id);
	*ret = id;
	return 0;
}

uint64_t
filehash_changes(const struct filehash *fh)
{
	return fh->nchanges;
}

bool
filehash_changed_since(const struct filehash *fh, const char *path, uint64_t n)
{
	const struct learned *l = htab_get(&fh->learned, path);

	return l && l->changed_at > n;
}

void
file_id_text(const struct file_id *id, struct strbuf *out)
{
	static const char *const prefix[] = {
		[FILE_ABSENT] = "absent",
		[FILE_PLAIN] = "100644:",
		[FILE_EXEC] = "100755:",
		[FILE_LINK] = "120000:",
		[FILE_OTHER] = "other",
	};
	char hex[DIGEST_HEX];

	strbuf_adds(out, prefix[id->kind]);
	if (id->kind == FILE_ABSENT || id->kind == FILE_OTHER)
		return;
	digest_hex(&id->digest, hex);
	strbuf_add(out, hex, DIGEST_HEX - 1);
}

/* Closing: the rows to keep, sorted by path. */

struct kept {
	const char *path;
	size_t len;
	const struct stat_row *row;
};

static int
kept_cmp(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	int r = memcmp(x->path, y->path, x->len < y->len ? x->len : y->len);

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

static size_t
collect(const struct filehash *fh, bool complete, struct kept *out)
{
	size_t n = 0;

	for (size_t i = 0; i < fh->nrows; i++) {
		const struct stat_row *r = &fh->rows[i];

		if (fh->state[i] == ROW_REPLACED || (complete && fh->state[i] == ROW_UNASKED))
			continue;
		out[n++] = (struct kept){fh->names + r->name, r->name_len, r};
	}
	for (size_t i = 0; i < fh->learned.n; i++) {
		const struct learned *l = fh->learned.entries[i].value;

		if (l->keep)
			out[n++] = (struct kept){l->path, fh->learned.entries[i].len, &l->row};
	}
	qsort(out, n, sizeof(*out), kept_cmp);
	return n;
}

static int
write_rows(int dirfd, const struct kept *v, size_t n)
{
	cleanup_free struct stat_row *rows = xcalloc(n, sizeof(*rows));
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	for (size_t i = 0; i < n; i++) {
		rows[i] = *v[i].row;
		rows[i].name = names.len;
		rows[i].name_len = v[i].len;
		strbuf_add(&names, v[i].path, v[i].len);
	}
	return table_write(dirfd, "stat", &stat_kind, rows, n, names.buf, names.len);
}

static void
save(struct filehash *fh, bool complete)
{
	struct kept *v = xreallocarray(NULL, fh->nrows + fh->learned.n + 1, sizeof(*v));
	size_t n = collect(fh, complete, v);

	if (write_rows(fh->dirfd, v, n))
		log_debug("cache", "stat file not written: %s", strerror(errno));
	free(v);
}

void
filehash_close(struct filehash *fh, bool complete)
{
	if (!fh)
		return;
	beside_end(&fh->looker, true);
	if (fh->changed || (complete && fh->nrows && memchr(fh->state, ROW_UNASKED, fh->nrows)))
		save(fh, complete);
	table_close(&fh->table);
	close(fh->dirfd);
	htab_release(&fh->learned);
	arena_release(&fh->arena);
	free(fh->same);
	free(fh->state);
	free(fh);
}
