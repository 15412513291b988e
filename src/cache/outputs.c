/* SPDX-License-Identifier: MIT */
/*
 * The walk starts at each glob's literal head (outputs-head.c) and goes only where something can
 * match. A head that lies in another's subtree is left out there and walked on its own, so every
 * path is met once.
 */
#include "cache/outputs.h"
#include "cache/access.h"
#include "cache/outputs-head.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum {
	NSEC = 1000 * 1000 * 1000,
	PATH_SHOWN = 100,            /* of one that is too long, in an error */
	FRESH_NS = 50 * 1000 * 1000, /* as cache/filehash.c */
};

void
outputs_release(struct outputs *o)
{
	for (size_t i = 0; i < o->n; i++) {
		free(o->v[i].path);
		free(o->v[i].target);
	}
	for (size_t i = 0; i < o->nwatch; i++)
		free(o->watch[i].path);
	for (size_t i = 0; i < o->nroots; i++) {
		free(o->roots[i].path);
		free(o->roots[i].real);
	}
	free(o->v);
	free(o->watch);
	free(o->roots);
	*o = (struct outputs){0};
}

static void
cleanup_outputs_p(struct outputs *o)
{
	int saved = errno;

	outputs_release(o);
	errno = saved;
}
#define cleanup_outputs __attribute__((cleanup(cleanup_outputs_p)))

struct output *
outputs_add(struct outputs *o)
{
	GROW(o->v, o->n + 1, o->cap);
	o->v[o->n] = (struct output){0};
	return &o->v[o->n++];
}

int
outputs_cmp(const char *a, const char *b)
{
	unsigned char x, y;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	x = *a == '/' ? 1 : (unsigned char)*a;
	y = *b == '/' ? 1 : (unsigned char)*b;
	/* A name may hold the byte 1 itself. */
	if (x == 1 && y == 1)
		return *a == '/' ? -1 : 1;
	return x - y;
}

static int
output_cmp(const void *a, const void *b)
{
	return outputs_cmp(((const struct output *)a)->path, ((const struct output *)b)->path);
}

void
outputs_sort(struct outputs *o)
{
	if (o->n)
		qsort(o->v, o->n, sizeof(*o->v), output_cmp);
}

int
outputs_too_long(const char *path, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;

	strbuf_add_sanitised(&shown, path, PATH_SHOWN);
	return err_set(e, ERR_IO, 0,
		"a path of %zu bytes is too long to be named (at most %d): it begins with %s…",
		strlen(path), PATH_MAX - 1, shown.buf);
}

const struct output *
outputs_find(const struct outputs *o, const char *path)
{
	size_t lo = 0, hi = o->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = outputs_cmp(path, o->v[mid].path);

		if (!c)
			return &o->v[mid];
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

bool
output_fill(struct output *out, const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		out->type = OUTPUT_FILE;
	else if (S_ISDIR(st->st_mode))
		out->type = OUTPUT_DIR;
	else if (S_ISLNK(st->st_mode))
		out->type = OUTPUT_LINK;
	else
		out->type = OUTPUT_SPECIAL;
	out->mode = st->st_mode & 0777;
	out->size = out->type == OUTPUT_DIR ? 0 : (uint64_t)st->st_size;
	out->mtime_ns = (int64_t)st->st_mtim.tv_sec * NSEC + st->st_mtim.tv_nsec;
	out->ctime_ns = (int64_t)st->st_ctim.tv_sec * NSEC + st->st_ctim.tv_nsec;
	out->ino = st->st_ino;
	return out->type != OUTPUT_SPECIAL;
}

/* Parts. */

static int
name_cmp(const void *path, const void *name)
{
	return strcmp(path, *(const char *const *)name);
}

bool
outputs_has_below(const struct strvec *names, const char *dir)
{
	cleanup_strbuf struct strbuf start = STRBUF_INIT;
	size_t lo = 0, hi = names->n;

	strbuf_adds(&start, dir);
	strbuf_addch(&start, '/');
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(names->v[mid], start.buf) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < names->n && !strncmp(names->v[lo], start.buf, start.len);
}

bool
outputs_is_mine(const struct outputs_part *part, const char *path)
{
	bool named;

	if (!part)
		return true;
	named = part->names->n &&
		bsearch(path, part->names->v, part->names->n, sizeof(char *), name_cmp);
	return part->others ? !named && !outputs_has_below(part->names, path) : named;
}

static void
drop_output(struct output *out)
{
	free(out->path);
	free(out->target);
}

void
outputs_share(struct outputs *o)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].type == OUTPUT_DIR)
			o->v[i].mtime_ns = OUTPUT_ANY_TIME;
	for (size_t i = 0; i < o->nwatch; i++)
		free(o->watch[i].path);
	o->nwatch = 0;
}

/* What the file holds; false: that cannot be told. */
static bool
content_of(int rootfd, const struct outputs *o, const char *path, struct digest *ret)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	cleanup_close int fd = fs_open_beneath(
		rootfd, outputs_real(o, path, &buf), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	return fd >= 0 && !digest_fd(fd, ret, NULL);
}

static bool
is_unchanged(int rootfd, const struct outputs *now, const struct output *out,
	const struct output *was, const struct digest *fresh)
{
	static const struct digest none;
	struct digest d;

	if (was->type != out->type || was->mode != out->mode || was->ino != out->ino)
		return false;
	if (out->type == OUTPUT_DIR)
		return true;
	return was->size == out->size && was->mtime_ns == out->mtime_ns &&
	       was->ctime_ns == out->ctime_ns &&
	       (digest_equal(fresh, &none) ||
		       (content_of(rootfd, now, out->path, &d) && digest_equal(fresh, &d)));
}

void
outputs_before_release(struct outputs_before *b)
{
	outputs_release(&b->o);
	cleanup_free_p(&b->fresh);
}

int
outputs_look_before(int rootfd, const struct globset *set, const char *const *nested,
	size_t nnested, struct outputs_before *ret, struct err *e)
{
	int64_t now = (int64_t)clock_wall_ns();

	if (outputs_scan(rootfd, set, nested, nnested, &ret->o, e))
		return -1;
	ret->fresh = xcalloc(ret->o.n, sizeof(*ret->fresh));
	for (size_t i = 0; i < ret->o.n; i++) {
		const struct output *out = &ret->o.v[i];
		int64_t window = out->ctime_ns % NSEC ? FRESH_NS : 2LL * NSEC;

		/* One that cannot be read stays without: its owner made it so. */
		if (out->type == OUTPUT_FILE && out->ctime_ns > now - window)
			content_of(rootfd, &ret->o, out->path, &ret->fresh[i]);
	}
	return 0;
}

void
outputs_since(
	int rootfd, struct outputs *now, const struct outputs_before *before, const char **ret_gone)
{
	size_t n = 0;

	*ret_gone = NULL;
	for (size_t i = 0; i < before->o.n && !*ret_gone; i++)
		if (!outputs_find(now, before->o.v[i].path))
			*ret_gone = before->o.v[i].path;
	for (size_t i = 0; i < now->n; i++) {
		const struct output *was = outputs_find(&before->o, now->v[i].path);

		if (was && is_unchanged(
				   rootfd, now, &now->v[i], was, &before->fresh[was - before->o.v]))
			drop_output(&now->v[i]);
		else
			now->v[n++] = now->v[i];
	}
	now->n = n;
	outputs_share(now);
}

void
outputs_only(struct outputs *now, const struct outputs *made)
{
	size_t n = 0;

	for (size_t i = 0; i < now->n; i++)
		if (outputs_find(made, now->v[i].path))
			now->v[n++] = now->v[i];
		else
			drop_output(&now->v[i]);
	now->n = n;
	outputs_share(now);
}

const char *
outputs_real(const struct outputs *o, const char *path, struct strbuf *buf)
{
	const struct output_root *best = NULL;

	for (size_t i = 0; i < o->nroots; i++)
		if (path_is_within(path, o->roots[i].path) &&
			(!best || strlen(o->roots[i].path) > strlen(best->path)))
			best = &o->roots[i];
	if (!best)
		return path;
	strbuf_reset(buf);
	strbuf_adds(buf, best->real);
	path_append(buf, path_below(path, best->path));
	return buf->buf;
}

/* Selecting. */

static bool
names_node_modules(const struct glob *g)
{
	return strstr(glob_text(g), "node_modules") != NULL;
}

/* Whether the walk may enter a node_modules directory. */
static bool
node_modules_wanted(const struct globset *set, const char *path)
{
	for (size_t i = 0; i < set->npos; i++)
		if (names_node_modules(set->pos[i]) &&
			(glob_match(set->pos[i], path) || glob_may_match_below(set->pos[i], path)))
			return true;
	return false;
}

static bool
is_nested(const char *path, const char *const *nested, size_t nnested)
{
	for (size_t i = 0; i < nnested; i++)
		if (path_is_within(path, nested[i]))
			return true;
	return false;
}

bool
outputs_select(
	const struct globset *set, const char *const *nested, size_t nnested, const char *path)
{
	bool modules = path_find(path, "node_modules");

	if (path_find(path, ".git") || path_find(path, ".vx"))
		return false;
	for (size_t i = 0; i < set->npos; i++) {
		const struct glob *g = set->pos[i];

		if (!glob_match(g, path) || globset_excludes(set, g, path) ||
			(modules && !names_node_modules(g)))
			continue;
		/* "**" also names the directory it starts from, which no task makes. */
		if (!path_is_within(glob_base(g), path) &&
			(glob_is_workspace(g) || !is_nested(path, nested, nnested)))
			return true;
	}
	return false;
}

/* Whether the walk may enter the directory of a nested project. */
static bool
nested_wanted(const struct globset *set, const char *path)
{
	for (size_t i = 0; i < set->npos; i++)
		if (glob_is_workspace(set->pos[i]) && glob_may_match_below(set->pos[i], path))
			return true;
	return false;
}

/* Scanning. */

struct scan {
	int rootfd;
	const struct globset *set;
	const char *const *nested;
	size_t nnested;
	const struct output_heads *heads;
	const struct output_head *head; /* where the present walk started */
	struct outputs *out;
	struct strbuf path; /* of the present entry, as declared */
	struct access_fixes fixes;
	struct err *e;
};

static void
add_watch(struct outputs *o, const char *path, int64_t mtime_ns)
{
	GROW(o->watch, o->nwatch + 1, o->watch_cap);
	o->watch[o->nwatch++] = (struct output_watch){xstrdup(path), mtime_ns};
}

static void
watch_dir(struct scan *s, const char *path, const struct stat *st)
{
	add_watch(s->out, path, (int64_t)st->st_mtim.tv_sec * NSEC + st->st_mtim.tv_nsec);
}

static int
fail_at(struct scan *s, const char *path, int num, const char *what)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	strbuf_add_sanitised(&name, path, strlen(path));
	return err_set(s->e, ERR_IO, num, "output %s%s", name.buf, what);
}

/* `dir` and `name`: where it really is. */
static int
record(struct scan *s, const char *path, const struct stat *st, int dir, const char *name)
{
	struct output out = {0};
	char target[PATH_MAX];
	ssize_t n = 0;

	output_fill(&out, st);
	if (strlen(path) >= PATH_MAX)
		return outputs_too_long(path, s->e);
	if (s->out->n >= OUTPUTS_MAX)
		return fail_at(s, path, 0, ": more than 1,048,576 names");
	if (out.type == OUTPUT_LINK) {
		n = readlinkat(dir, name, target, sizeof(target));
		if (n < 0)
			return fail_at(s, path, errno, "");
		out.target = xmemdupz(target, (size_t)n);
		out.size = (uint64_t)n;
	}
	out.path = xstrdup(path);
	*outputs_add(s->out) = out;
	return 0;
}

/* Below the head's real directory; the visitor runs before the walk enters. */
static int
prepare_dir(struct scan *s, const char *path, const struct stat *st)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *real = outputs_real(s->out, path, &buf);

	if (access_add(&s->fixes, s->rootfd, real, st->st_mode, 0500))
		return fail_at(s, path, errno, "");
	return 0;
}

static enum fs_visit
visit(void *ctx, const struct fs_entry *en)
{
	struct scan *s = ctx;
	const char *path;
	bool selected;

	if (!strcmp(en->name, ".git") || !strcmp(en->name, ".vx"))
		return FS_VISIT_SKIP;
	if (stop_is_asked()) {
		errno = ECANCELED;
		return FS_VISIT_STOP;
	}
	strbuf_reset(&s->path);
	strbuf_adds(&s->path, s->head->path);
	path_append(&s->path, en->path);
	path = s->path.buf;
	if (output_heads_has(s->heads, path))
		return FS_VISIT_SKIP;
	selected = outputs_select(s->set, s->nested, s->nnested, path);
	if (selected && record(s, path, en->st, en->parent, en->name))
		return FS_VISIT_STOP;
	if (!S_ISDIR(en->st->st_mode))
		return FS_VISIT_CONTINUE;
	/* What lies below a path that is too long cannot be named either. */
	if (strlen(path) >= PATH_MAX || !globset_may_match_below(s->set, path) ||
		(!strcmp(en->name, "node_modules") && !node_modules_wanted(s->set, path)) ||
		(is_nested(path, s->nested, s->nnested) && !nested_wanted(s->set, path)))
		return FS_VISIT_SKIP;
	if (!selected)
		watch_dir(s, path, en->st);
	return prepare_dir(s, path, en->st) ? FS_VISIT_STOP : FS_VISIT_CONTINUE;
}

static int
scan_head(struct scan *s, const struct output_head *h)
{
	bool selected = outputs_select(s->set, s->nested, s->nnested, h->path);

	s->head = h;
	if (h->what == HEAD_ABSENT) {
		add_watch(s->out, h->real, OUTPUT_ABSENT);
		return 0;
	}
	if (h->what == HEAD_OTHER) {
		const char *base;
		cleanup_close int parent = fs_open_parent(s->rootfd, h->real, &base);

		if (parent < 0)
			return fail_at(s, h->path, errno, "");
		return selected ? record(s, h->path, &h->st, parent, base) : 0;
	}
	if (selected && record(s, h->path, &h->st, -1, NULL))
		return -1;
	if (!selected)
		watch_dir(s, h->path, &h->st);
	if (!globset_may_match_below(s->set, h->path))
		return 0;
	if (prepare_dir(s, h->path, &h->st))
		return -1;
	if (fs_walk(s->rootfd, h->real, visit, s) && !err_is_set(s->e))
		return fail_at(s, s->path.len ? s->path.buf : h->path, errno, "");
	return err_is_set(s->e) ? -1 : 0;
}

static int
scan_with(int rootfd, const struct output_heads *heads, const struct globset *set,
	const char *const *nested, size_t nnested, struct outputs *ret, struct err *e)
{
	struct outputs o = {.looked_ns = (int64_t)clock_files_ns()};
	struct err own = ERR_INIT;
	struct scan s = {rootfd, set, nested, nnested, heads, NULL, &o, STRBUF_INIT, {0}, &own};
	int r = 0;

	output_heads_roots(heads, &o);
	for (size_t i = 0; i < heads->n && !r; i++)
		r = scan_head(&s, &heads->v[i]);
	if (access_restore(&s.fixes, rootfd) && !r)
		r = err_set(&own, ERR_IO, errno, "give output directories their modes back");
	strbuf_release(&s.path);
	if (r) {
		outputs_release(&o);
		return err_set(e, own.kind, 0, "%s", own.text);
	}
	outputs_sort(&o);
	*ret = o;
	return 0;
}

int
outputs_scan(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	struct outputs *ret, struct err *e)
{
	cleanup_output_heads struct output_heads heads = {0};

	if (output_heads_find(rootfd, set, nested, nnested, &heads, e))
		return -1;
	return scan_with(rootfd, &heads, set, nested, nnested, ret, e);
}

int
outputs_check_types(const struct outputs *o, struct err *e)
{
	for (size_t i = 0; i < o->n; i++) {
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		if (o->v[i].type != OUTPUT_SPECIAL)
			continue;
		strbuf_add_sanitised(&name, o->v[i].path, strlen(o->v[i].path));
		return err_set(e, ERR_IO, 0,
			"output %s is a fifo, socket or device: only files, directories and links "
			"can be outputs",
			name.buf);
	}
	return 0;
}

void
outputs_drop_special(struct outputs *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++) {
		if (o->v[i].type == OUTPUT_SPECIAL)
			free(o->v[i].path);
		else
			o->v[n++] = o->v[i];
	}
	o->n = n;
}

int
outputs_find_roots(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	struct outputs *ret, struct err *e)
{
	cleanup_output_heads struct output_heads heads = {0};

	if (output_heads_find(rootfd, set, nested, nnested, &heads, e))
		return -1;
	*ret = (struct outputs){0};
	output_heads_roots(&heads, ret);
	return 0;
}

/* Removing. */

struct removing {
	int rootfd;
	const struct output_heads *heads;
	const struct outputs *have;
	const struct outputs_part *part;
	struct access_fixes fixes;
	struct strbuf parent; /* the path of dir */
	int dir;
	struct err *e;
};

/* The directory that really holds `real`, kept open for the next one. */
static int
parent_dir(struct removing *r, const char *real)
{
	size_t n = path_parent_len(real);

	if (r->dir >= 0 && r->parent.len == n && !memcmp(r->parent.buf, real, n))
		return r->dir;
	fd_close(&r->dir);
	strbuf_reset(&r->parent);
	strbuf_add(&r->parent, real, n);
	r->dir = fs_open_beneath(r->rootfd, r->parent.buf, O_PATH | O_DIRECTORY, 0);
	return r->dir;
}

static int
unlink_real(struct removing *r, const char *real, int flags)
{
	int dir = parent_dir(r, real);
	struct stat st;

	if (dir < 0)
		return -1;
	if (!unlinkat(dir, path_base(real), flags))
		return 0;
	if (errno != EACCES || fstat(dir, &st))
		return -1;
	if (access_add(&r->fixes, r->rootfd, r->parent.buf, st.st_mode, 0700))
		return -1;
	return unlinkat(dir, path_base(real), flags);
}

/* A mount point, and what is not empty, stays; so does the directory that a wildcard starts from. */
static bool
may_stay(int num)
{
	return num == ENOENT || num == ENOTEMPTY || num == EEXIST || num == EBUSY;
}

/* Directories that are no outputs themselves, from `path` up to its head, while they are empty. */
static void
remove_emptied(struct removing *r, const char *path)
{
	cleanup_strbuf struct strbuf at = STRBUF_INIT, buf = STRBUF_INIT;

	strbuf_adds(&at, path);
	for (;;) {
		strbuf_truncate(&at, path_parent_len(at.buf));
		if (!output_heads_is_below(r->heads, at.buf) || outputs_find(r->have, at.buf) ||
			unlink_real(r, outputs_real(r->have, at.buf, &buf), AT_REMOVEDIR))
			return;
	}
}

static int
remove_one(struct removing *r, const struct output *out)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *real = outputs_real(r->have, out->path, &buf);
	bool is_dir = out->type == OUTPUT_DIR;

	if (is_dir && output_heads_stays(r->heads, out->path))
		return 0;
	if (unlink_real(r, real, is_dir ? AT_REMOVEDIR : 0)) {
		cleanup_strbuf struct strbuf name = STRBUF_INIT;

		if (is_dir ? may_stay(errno) : errno == ENOENT)
			return 0;
		strbuf_add_sanitised(&name, out->path, strlen(out->path));
		return err_set(r->e, ERR_IO, errno, "remove output %s", name.buf);
	}
	remove_emptied(r, out->path);
	return 0;
}

/* Directories of mode 0 with something in them were opened for the scan and closed again. */
static int
open_dirs(struct removing *r)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;

	for (size_t i = 0; i < r->have->n; i++) {
		const struct output *out = &r->have->v[i];

		if (out->type == OUTPUT_DIR && (out->mode & 0100) == 0 &&
			access_add(&r->fixes, r->rootfd, outputs_real(r->have, out->path, &buf),
				out->mode, 0700))
			return err_set(r->e, ERR_IO, errno, "open output %s", out->path);
	}
	return 0;
}

static int
remove_all(struct removing *r)
{
	if (open_dirs(r))
		return -1;
	for (size_t i = r->have->n; i > 0; i--)
		if (outputs_is_mine(r->part, r->have->v[i - 1].path) &&
			remove_one(r, &r->have->v[i - 1]))
			return -1;
	return 0;
}

int
outputs_clean(int rootfd, const struct globset *set, const char *const *nested, size_t nnested,
	const struct outputs_part *part, struct err *e)
{
	cleanup_output_heads struct output_heads heads = {0};
	cleanup_outputs struct outputs have = {0};
	struct removing r = {rootfd, &heads, &have, part, {0}, STRBUF_INIT, -1, e};
	int rc;

	if (output_heads_find(rootfd, set, nested, nnested, &heads, e) ||
		scan_with(rootfd, &heads, set, nested, nnested, &have, e))
		return -1;
	rc = remove_all(&r);
	if (access_restore(&r.fixes, rootfd) && !rc)
		rc = err_set(e, ERR_IO, errno, "give output directories their modes back");
	fd_close(&r.dir);
	strbuf_release(&r.parent);
	return rc;
}
