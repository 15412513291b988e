/* SPDX-License-Identifier: MIT */
#include "exec/moves.h"
#include "exec/place.h"
#include "exec/scratch.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/num.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>

static const char LIST[] = "moves";
static const char LIST_NEW[] = "moves.new";
static const char END_MARK[] = "done";
static const char OLD[] = "old";
static const char FIRST_LINE[] = "vx-moves 1\n";
static const char LAST_LINE[] = "end\n";
enum {
	LIST_MAX = 1 << 30
};

static const char *const words[] = {
	[MOVE_OPEN] = "open",
	[MOVE_PLACE] = "place",
	[MOVE_REMOVE] = "remove",
	[MOVE_RMDIR] = "rmdir",
	[MOVE_MODE] = "mode",
};

static void (*announce)(const char *point);

void
moves_set_announce(void (*fn)(const char *point))
{
	announce = fn;
}

void
moves_announce(const char *point)
{
	if (announce)
		announce(point);
}

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

static void
encode(const struct move *mv, struct strbuf *out)
{
	strbuf_addf(out, "%s ", words[mv->kind]);
	if (mv->kind == MOVE_REMOVE || mv->kind == MOVE_PLACE)
		strbuf_addf(out, "%llu ", (unsigned long long)mv->ino);
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

int
moves_write(const struct moves *m, int scratchfd, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_close int fd =
		openat(scratchfd, LIST_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	strbuf_adds(&text, FIRST_LINE);
	for (size_t i = 0; i < m->n; i++)
		encode(&m->v[i], &text);
	strbuf_adds(&text, LAST_LINE);
	if (fd < 0 || fd_write_all(fd, text.buf, text.len) || fsync(fd) ||
		renameat(scratchfd, LIST_NEW, scratchfd, LIST))
		return err_set(e, ERR_IO, errno, "writing the list of moves into the scratch");
	moves_announce("list");
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

	for (; *s >= '0' && *s <= '7' && mode <= 0777; s++)
		mode = mode << 3 | (uint32_t)(*s - '0');
	if (*s != ' ' || mode > 0777)
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
	if ((mv.kind == MOVE_REMOVE || mv.kind == MOVE_PLACE) && take_number(&p, &mv.ino, e))
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

static int
decode(struct strbuf *text, struct moves *ret, struct err *e)
{
	size_t first = sizeof(FIRST_LINE) - 1, last = sizeof(LAST_LINE) - 1;
	char *p = text->buf + first, *end = text->buf + text->len - last;

	if (text->len < first + last || memcmp(text->buf, FIRST_LINE, first) != 0 ||
		memcmp(end, LAST_LINE, last) != 0 || end[-1] != '\n' ||
		memchr(text->buf, '\0', text->len))
		return err_set(e, ERR_IO, 0, "it is no list of this vx");
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
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct moves m = {0};
	struct stat st;

	if (!fstatat(scratchfd, END_MARK, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (fstatat(scratchfd, LIST, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : err_set(e, ERR_IO, errno, "the list of moves");
	if (fd_read_file(scratchfd, LIST, LIST_MAX, &text, e))
		return -1;
	if (decode(&text, &m, e)) {
		moves_release(&m);
		return err_wrap(e, "the list of moves");
	}
	*ret = m;
	return 1;
}

int
moves_mark_end(int scratchfd, struct err *e)
{
	cleanup_close int fd = openat(scratchfd, END_MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, ERR_IO, errno, "marking the end of the moves");
	moves_announce("marked");
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

struct runner {
	int upperfd, oldfd, rootfd;
	struct parent from, to;
};

static int
run_place(struct runner *r, const struct move *mv)
{
	const char *base = path_base(mv->path);
	struct stat st;
	int from = parent_of(&r->from, r->upperfd, mv->path), to;

	/* Not there, or the one that was replaced: this was done before. */
	if (from < 0 || fstatat(from, base, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	if (st.st_ino != mv->ino)
		return 0;
	to = parent_of(&r->to, r->rootfd, mv->path);
	return to < 0 ? -1 : place(from, to, base, &st);
}

static int
run_remove(struct runner *r, const struct move *mv)
{
	const char *base = path_base(mv->path);
	int to = parent_of(&r->to, r->rootfd, mv->path);
	char aside[24];
	struct statx sx;

	if (to < 0 || statx(to, base, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &sx))
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	if (sx.stx_ino != mv->ino || born_ns(&sx) != mv->born || S_ISDIR(sx.stx_mode))
		return 0; /* somebody else's by now */
	snprintf(aside, sizeof(aside), "%llu", (unsigned long long)mv->ino);
	if (!renameat2(to, base, r->oldfd, aside, RENAME_NOREPLACE))
		return 0;
	return unlinkat(to, base, 0) && errno != ENOENT ? -1 : 0;
}

static int
run_rmdir(struct runner *r, const struct move *mv)
{
	int to = parent_of(&r->to, r->rootfd, mv->path);

	if (to >= 0 && !unlinkat(to, path_base(mv->path), AT_REMOVEDIR))
		return 0;
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ENOTEMPTY:
	case EEXIST:
	case EBUSY: /* a mount point */
		return 0;
	default:
		return -1;
	}
}

static int
run_open(struct runner *r, const struct move *mv)
{
	const char *base = path_base(mv->path);
	int to = parent_of(&r->to, r->rootfd, mv->path);
	struct stat st;

	if (to < 0 || fstatat(to, base, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
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
	return errno == EACCES || errno == ENOENT ? 0 : -1;
}

static int
run_one(struct runner *r, const struct move *mv)
{
	switch (mv->kind) {
	case MOVE_OPEN:
		return run_open(r, mv);
	case MOVE_PLACE:
		return run_place(r, mv);
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
	struct runner r = {-1, -1, rootfd, {-1, NULL}, {-1, NULL}};
	struct err first = ERR_INIT;
	size_t failed = 0;
	int rc = -1;

	r.upperfd = openat(scratchfd, SCRATCH_UPPER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r.upperfd < 0 || (mkdirat(scratchfd, OLD, 0700) && errno != EEXIST)) {
		err_set(e, ERR_IO, errno, "the scratch");
		goto out;
	}
	r.oldfd = openat(scratchfd, OLD, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; i < m->n; i++) {
		moves_announce("move");
		if (!run_one(&r, &m->v[i]))
			continue;
		explain(&m->v[i], &first);
		failed++;
	}
	moves_announce("moved");
	if (!failed)
		rc = 0;
	else if (failed == 1)
		err_set(e, ERR_IO, 0, "not moved into the workspace: %s", first.text);
	else
		err_set(e, ERR_IO, 0, "not moved into the workspace: %s (and %zu more)", first.text,
			failed - 1);
out:
	parent_release(&r.from);
	parent_release(&r.to);
	fd_close(&r.upperfd);
	fd_close(&r.oldfd);
	return rc;
}
