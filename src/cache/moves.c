/* SPDX-License-Identifier: MIT */
#include "cache/moves.h"
#include "cache/place.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/num.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>

static const char LIST[] = "moves";
static const char LIST_OFF[] = "moves.off";
static const char OLD[] = "old";
static const char FIRST_LINE[] = "vx-moves 2\n";
static const char LAST_LINE[] = "end\n";
enum {
	LIST_MAX = 1 << 30
};

static const char *const words[] = {
	[MOVE_OPEN] = "open",
	[MOVE_PLACE] = "place",
	[MOVE_BRING] = "bring",
	[MOVE_REMOVE] = "remove",
	[MOVE_RMDIR] = "rmdir",
	[MOVE_MODE] = "mode",
};

struct move *
moves_add(struct moves *m, enum move_kind kind, const char *path)
{
	GROW(m->v, m->n + 1, m->cap);
	m->v[m->n] = (struct move){.kind = kind, .path = xstrdup(path)};
	return &m->v[m->n++];
}

static uint64_t
born_ns(const struct statx *sx)
{
	if (!(sx->stx_mask & STATX_BTIME))
		return 0;
	return (uint64_t)sx->stx_btime.tv_sec * 1000000000 + sx->stx_btime.tv_nsec;
}

void
moves_add_remove(struct moves *m, int rootfd, const char *path)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(rootfd, path, &base);
	struct statx sx;
	struct move *mv;

	if (parent < 0 ||
		statx(parent, base, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &sx))
		return;
	if (S_ISDIR(sx.stx_mode))
		return;
	mv = moves_add(m, MOVE_REMOVE, path);
	mv->ino = sx.stx_ino;
	mv->born = born_ns(&sx);
}

void
moves_append_take(struct moves *m, struct moves *from)
{
	for (size_t i = 0; i < from->n; i++) {
		GROW(m->v, m->n + 1, m->cap);
		m->v[m->n++] = from->v[i];
	}
	from->n = 0;
	moves_release(from);
}

void
moves_release(struct moves *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].path);
	free(m->v);
	*m = (struct moves){0};
}

static int
outer_first(const void *a, const void *b)
{
	return strcmp(((const struct move *)a)->path, ((const struct move *)b)->path);
}

static int
inner_first(const void *a, const void *b)
{
	return outer_first(b, a);
}

static void
sort_once_each(struct moves *m, int (*cmp)(const void *a, const void *b))
{
	size_t n = 0;

	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), cmp);
	for (size_t i = 0; i < m->n; i++) {
		if (n && !strcmp(m->v[i].path, m->v[n - 1].path))
			free(m->v[i].path);
		else
			m->v[n++] = m->v[i];
	}
	m->n = n;
}

void
moves_sort_outer_first(struct moves *m)
{
	sort_once_each(m, outer_first);
}

void
moves_sort_inner_first(struct moves *m)
{
	sort_once_each(m, inner_first);
}

static bool
has_ino(enum move_kind kind)
{
	return kind == MOVE_PLACE || kind == MOVE_BRING || kind == MOVE_REMOVE;
}

static void
encode(const struct move *mv, struct strbuf *out)
{
	strbuf_addf(out, "%s ", words[mv->kind]);
	if (has_ino(mv->kind))
		strbuf_addf(out, "%llu ", (unsigned long long)mv->ino);
	if (mv->kind == MOVE_BRING)
		strbuf_addf(out, "%llu ", (unsigned long long)mv->number);
	if (mv->kind == MOVE_REMOVE)
		strbuf_addf(out, "%llu ", (unsigned long long)mv->born);
	if (mv->kind == MOVE_MODE)
		strbuf_addf(out, "%04o ", mv->mode);
	for (const char *s = mv->path; *s; s++) {
		if (*s == '\\' || *s == '\n')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *s == '\n' ? 'n' : *s);
	}
	strbuf_addch(out, '\n');
}

/* Says which directory it is, so that the list is of use in that one only. */
static int
add_scratch_line(int scratchfd, struct strbuf *out)
{
	struct statx sx;

	if (statx(scratchfd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &sx))
		return -1;
	strbuf_addf(out, "scratch %llu %llu\n", (unsigned long long)sx.stx_ino,
		(unsigned long long)born_ns(&sx));
	return 0;
}

int
moves_write(const struct moves *m, int scratchfd, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_close int fd =
		openat(scratchfd, LIST_OFF, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	strbuf_adds(&text, FIRST_LINE);
	if (add_scratch_line(scratchfd, &text))
		return err_set(e, ERR_IO, errno, "the scratch");
	for (size_t i = 0; i < m->n; i++)
		encode(&m->v[i], &text);
	strbuf_adds(&text, LAST_LINE);
	if (fd < 0 || fd_write_all(fd, text.buf, text.len) || fdatasync(fd) ||
		renameat(scratchfd, LIST_OFF, scratchfd, LIST))
		return err_set(e, ERR_IO, errno, "writing the list of moves into the scratch");
	log_debug("phase", "moves listed");
	return 0;
}

/* Takes the next blank-ended word off *p as a number. */
static int
take_number(char **p, uint64_t *ret, struct err *e)
{
	char *end = strchr(*p, ' ');

	if (!end)
		return err_set(e, ERR_IO, 0, "a number is due");
	*end = '\0';
	if (num_parse_u64(*p, 0, UINT64_MAX, ret, "number", e))
		return -1;
	*p = end + 1;
	return 0;
}

static int
take_mode(char **p, uint32_t *ret, struct err *e)
{
	char *s = *p;
	uint32_t mode = 0;

	for (; *s >= '0' && *s <= '7' && mode <= 07777; s++)
		mode = mode << 3 | (uint32_t)(*s - '0');
	if (*s != ' ' || mode > 07777)
		return err_set(e, ERR_IO, 0, "a mode is due");
	*p = s + 1;
	*ret = mode;
	return 0;
}

static void
unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1])
			*to++ = *++s == 'n' ? '\n' : *s;
		else
			*to++ = *s;
	}
	*to = '\0';
}

static int
decode_line(char *line, struct moves *ret, struct err *e)
{
	struct move mv = {0};
	char *p = strchr(line, ' ');
	size_t kind = 0;

	if (!p)
		return err_set(e, ERR_IO, 0, "no path");
	*p++ = '\0';
	while (kind < array_len(words) && strcmp(words[kind], line) != 0)
		kind++;
	if (kind == array_len(words))
		return err_set(e, ERR_IO, 0, "unknown word");
	mv.kind = (enum move_kind)kind;
	if (has_ino(mv.kind) && take_number(&p, &mv.ino, e))
		return -1;
	if (mv.kind == MOVE_BRING && take_number(&p, &mv.number, e))
		return -1;
	if (mv.kind == MOVE_REMOVE && take_number(&p, &mv.born, e))
		return -1;
	if (mv.kind == MOVE_MODE && take_mode(&p, &mv.mode, e))
		return -1;
	unescape(p);
	if (!*p || !path_is_normal(p))
		return err_set(e, ERR_IO, 0, "a path from the workspace is due");
	mv.path = xstrdup(p);
	GROW(ret->v, ret->n + 1, ret->cap);
	ret->v[ret->n++] = mv;
	return 0;
}

/* `head`: what the list must begin with, here. */
static int
decode(struct strbuf *text, const struct strbuf *head, struct moves *ret, struct err *e)
{
	size_t version = sizeof(FIRST_LINE) - 1, last = sizeof(LAST_LINE) - 1;
	char *p = text->buf + head->len, *end = text->buf + text->len - last;

	if (text->len < version + last || memcmp(text->buf, FIRST_LINE, version) != 0 ||
		memcmp(end, LAST_LINE, last) != 0 || end[-1] != '\n' ||
		memchr(text->buf, '\0', text->len))
		return err_set(e, ERR_IO, 0, "it is no list of this vx");
	if (text->len < head->len + last || memcmp(text->buf, head->buf, head->len) != 0)
		return err_set(e, ERR_IO, 0,
			"vx did not write it there (it came with a copy, an archive or a "
			"repository), and does nothing of it");
	while (p < end) {
		char *nl = memchr(p, '\n', (size_t)(end - p));

		*nl = '\0';
		if (decode_line(p, ret, e))
			return -1;
		p = nl + 1;
	}
	return 0;
}

int
moves_read(int scratchfd, struct moves *ret, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT, head = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct moves m = {0};
	struct stat st;

	/* It need not be vx that made it, so no link is followed and no fifo waited for. */
	fd = openat(scratchfd, LIST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	strbuf_adds(&head, FIRST_LINE);
	if (fd < 0 || fstat(fd, &st) || add_scratch_line(scratchfd, &head) ||
		(S_ISREG(st.st_mode) && fd_read_all(fd, &text, LIST_MAX)))
		return err_set(e, ERR_IO, errno, "the list of moves");
	if (decode(&text, &head, &m, e)) {
		moves_release(&m);
		return err_wrap(e, "the list of moves");
	}
	*ret = m;
	return 1;
}

int
moves_mark_end(int scratchfd, struct err *e)
{
	if (renameat(scratchfd, LIST, scratchfd, LIST_OFF))
		return err_set(e, ERR_IO, errno, "marking the end of the moves");
	log_debug("phase", "moves marked");
	return 0;
}

/* The parent of the last path asked for: the entries of one directory follow each other. */
struct parent {
	int fd;
	char *path;
};

static void
parent_release(struct parent *p)
{
	fd_close(&p->fd);
	cleanup_free_p(&p->path);
	p->path = NULL;
}

static int
parent_of(struct parent *p, int dirfd, const char *path)
{
	size_t n = path_parent_len(path);
	const char *base;

	if (p->path && strlen(p->path) == n && !memcmp(p->path, path, n))
		return p->fd;
	parent_release(p);
	p->fd = fs_open_parent(dirfd, path, &base);
	if (p->fd >= 0)
		p->path = xmemdupz(path, n);
	return p->fd;
}

/* There is nothing at a path: also when a directory above it is a link by now, as what takes the
 * place of a directory can be one. */
static bool
is_gone(int num)
{
	return num == ENOENT || num == ENOTDIR || num == ELOOP;
}

struct runner {
	int scratchfd, upperfd, rootfd;
	int oldfd; /* -1: not needed yet */
	struct parent from, to;
};

static int
run_place(struct runner *r, const struct move *mv, int from, const char *from_name)
{
	struct stat st;
	int to;

	/* Not there, or the one that was replaced: this was done before. */
	if (from < 0 || fstatat(from, from_name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	if (st.st_ino != mv->ino)
		return 0;
	to = parent_of(&r->to, r->rootfd, mv->path);
	return to < 0 ? -1 : place(from, from_name, to, path_base(mv->path), &st);
}

static int
run_bring(struct runner *r, const struct move *mv)
{
	char name[24];

	snprintf(name, sizeof(name), "%llu", (unsigned long long)mv->number);
	return run_place(r, mv, r->upperfd, name);
}

static int
open_old(struct runner *r)
{
	if (r->oldfd >= 0)
		return 0;
	if (mkdirat(r->scratchfd, OLD, 0700) && errno != EEXIST)
		return -1;
	r->oldfd = openat(r->scratchfd, OLD, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return r->oldfd < 0 ? -1 : 0;
}

static int
run_remove(struct runner *r, const struct move *mv)
{
	const char *base = path_base(mv->path);
	int to = parent_of(&r->to, r->rootfd, mv->path);
	char aside[24];
	struct statx sx;

	if (to < 0 || statx(to, base, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &sx))
		return is_gone(errno) ? 0 : -1;
	if (sx.stx_ino != mv->ino || born_ns(&sx) != mv->born || S_ISDIR(sx.stx_mode))
		return 0; /* somebody else's by now */
	snprintf(aside, sizeof(aside), "%llu", (unsigned long long)mv->ino);
	if (!open_old(r) && !renameat2(to, base, r->oldfd, aside, RENAME_NOREPLACE))
		return 0;
	return unlinkat(to, base, 0) && errno != ENOENT ? -1 : 0;
}

static int
run_rmdir(struct runner *r, const struct move *mv)
{
	int to = parent_of(&r->to, r->rootfd, mv->path);

	if (to >= 0 && !unlinkat(to, path_base(mv->path), AT_REMOVEDIR))
		return 0;
	/* EBUSY: a mount point */
	return is_gone(errno) || errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY ? 0 : -1;
}

static int
run_open(struct runner *r, const struct move *mv)
{
	const char *base = path_base(mv->path);
	int to = parent_of(&r->to, r->rootfd, mv->path);
	struct stat st;

	/* Gone: what should go into it says so, and what should go out of it has. */
	if (to < 0 || fstatat(to, base, &st, AT_SYMLINK_NOFOLLOW))
		return is_gone(errno) ? 0 : -1;
	if (!S_ISDIR(st.st_mode) || (st.st_mode & S_IRWXU) == S_IRWXU)
		return 0;
	return fchmodat(to, base, (st.st_mode & 07777) | S_IRWXU, AT_SYMLINK_NOFOLLOW);
}

static int
run_mode(struct runner *r, const struct move *mv)
{
	const char *base = path_base(mv->path);
	int to = parent_of(&r->to, r->rootfd, mv->path);

	if (to >= 0 && !fchmodat(to, base, mv->mode, AT_SYMLINK_NOFOLLOW))
		return 0;
	/* Deepest directories come first: one that cannot be reached has had its turn, and so had
	 * what is in it. What failed to arrive was told by its place. */
	return errno == EACCES || is_gone(errno) ? 0 : -1;
}

static int
run_one(struct runner *r, const struct move *mv)
{
	switch (mv->kind) {
	case MOVE_OPEN:
		return run_open(r, mv);
	case MOVE_PLACE:
		return run_place(
			r, mv, parent_of(&r->from, r->upperfd, mv->path), path_base(mv->path));
	case MOVE_BRING:
		return run_bring(r, mv);
	case MOVE_REMOVE:
		return run_remove(r, mv);
	case MOVE_RMDIR:
		return run_rmdir(r, mv);
	case MOVE_MODE:
		return run_mode(r, mv);
	}
	bug("move kind %d", mv->kind);
}

static void
explain(const struct move *mv, struct err *e)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	int num = errno;

	strbuf_add_sanitised(&path, mv->path, strlen(mv->path));
	if (num == ELOOP)
		err_set(e, ERR_IO, 0, "%s: a directory above it became a link meanwhile", path.buf);
	else if (num == ENOENT || num == ENOTDIR)
		err_set(e, ERR_IO, 0, "%s: the directory above it is gone", path.buf);
	else if (num == EISDIR)
		err_set(e, ERR_IO, 0,
			"%s: by now a directory is where it, or something in it, should go",
			path.buf);
	else
		err_set(e, ERR_IO, num, "%s", path.buf);
}

int
moves_run(const struct moves *m, int scratchfd, int rootfd, struct err *e)
{
	struct runner r = {scratchfd, -1, rootfd, -1, {-1, NULL}, {-1, NULL}};
	struct err first = ERR_INIT;
	size_t failed = 0;
	int rc = -1;

	r.upperfd = openat(scratchfd, MOVES_FROM, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r.upperfd < 0)
		return err_set(e, ERR_IO, errno, "the scratch");
	for (size_t i = 0; i < m->n; i++) {
		log_debug("phase", "move %zu of %zu", i + 1, m->n);
		if (!run_one(&r, &m->v[i]))
			continue;
		explain(&m->v[i], &first);
		failed++;
	}
	log_debug("phase", "moves done");
	if (!failed)
		rc = 0;
	else if (failed == 1)
		err_set(e, ERR_IO, 0, "not moved into the workspace: %s", first.text);
	else
		err_set(e, ERR_IO, 0, "not moved into the workspace: %s (and %zu more)", first.text,
			failed - 1);
	parent_release(&r.from);
	parent_release(&r.to);
	fd_close(&r.upperfd);
	fd_close(&r.oldfd);
	return rc;
}

bool
moves_must_copy(int from, int to)
{
	struct statx a, b;

	return statx(from, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) ||
	       statx(to, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) || a.stx_mnt_id != b.stx_mnt_id;
}

int
moves_apply(const struct moves *m, bool copies, int scratchfd, int rootfd, struct err *e)
{
	bool listed = m->n > 1 || copies;
	int rc;

	if (!m->n)
		return 0;
	if (listed && moves_write(m, scratchfd, e))
		return -1;
	rc = moves_run(m, scratchfd, rootfd, e);
	if (listed && moves_mark_end(scratchfd, e))
		return -1;
	return rc;
}

int
moves_roll_forward(int scratchfd, int rootfd, struct err *e)
{
	struct moves m = {0};
	int found = moves_read(scratchfd, &m, e), rc;

	if (found <= 0)
		return found;
	rc = moves_run(&m, scratchfd, rootfd, e);
	moves_release(&m);
	if (moves_mark_end(scratchfd, e))
		return -1;
	return rc ? -1 : 1;
}
