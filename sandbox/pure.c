/* SPDX-License-Identifier: MIT */
#include "sandbox/pure.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include <errno.h>
#include <time.h>

enum {
	FRESH_MS = 20
};

void
pure_init(struct pure *p, int hostfd, const struct ruleset *rules, const struct owner *owner)
{
	*p = (struct pure){.host = hostfd, .rules = rules, .owner = owner};
	htab_init(&p->roots);
}

static void
forget_from(struct pure *p, size_t n)
{
	while (p->n > n)
		free(p->dirs[--p->n].path);
}

void
pure_release(struct pure *p)
{
	forget_from(p, 0);
	free(p->dirs);
	htab_release(&p->roots);
}

/* One test under way. */
struct test {
	struct strvec todo; /* directories */
	size_t done;
	size_t names;
};

static bool
name_is_pure(struct pure *p, struct test *t, const char *path, enum host_kind kind)
{
	switch (ruleset_verdict(p->rules, path, kind)) {
	case VERDICT_PASS:
		return true;
	case VERDICT_TRAVERSE:
		strvec_push(&t->todo, path);
		return true;
	case VERDICT_HIDE:
	case VERDICT_QUIET:
		break;
	}
	return false;
}

/* File systems stamp by a clock of some milliseconds. */
static bool
is_fresh(const struct stat *st)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME_COARSE, &now))
		return true;
	return (now.tv_sec - st->st_ctim.tv_sec) * 1000 +
		       (now.tv_nsec - st->st_ctim.tv_nsec) / 1000000 <
	       FRESH_MS;
}

static bool
dir_is_pure(struct pure *p, struct test *t, const char *path)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	cleanup_dir DIR *d = host_opendir(p->host, path);
	const char *name;
	enum host_kind kind;
	struct stat st;
	size_t start;
	bool fresh;
	int got;

	/* The times before the names: what changes in between shows. */
	if (!d || fstat(dirfd(d), &st))
		return false;
	fresh = is_fresh(&st);
	/* It has to be shown with another owner, see layer.c. */
	if (owner_is_foreign(p->owner, &st) && ruleset_is_written(p->rules, path))
		return false;
	strbuf_adds(&sb, path);
	start = sb.len;
	while ((got = host_readdir(d, &name, &kind)) == 1) {
		strbuf_truncate(&sb, start);
		path_append(&sb, name);
		if (++t->names > PURE_NAMES_MAX || !name_is_pure(p, t, sb.buf, kind))
			return false;
	}
	if (got < 0)
		return false;
	GROW(p->dirs, p->n + 1, p->cap);
	p->dirs[p->n++] = (struct pure_dir){xstrdup(path), st.st_mtim, st.st_ctim, fresh};
	return true;
}

bool
pure_check(struct pure *p, const char *path)
{
	struct test t = {.todo = STRVEC_INIT};
	size_t before = p->n;
	bool is_pure = true;

	if (htab_get(&p->roots, path))
		return true;
	if (ruleset_hides_below(p->rules, path))
		return false;
	strvec_push(&t.todo, path);
	while (is_pure && t.done < t.todo.n)
		is_pure = dir_is_pure(p, &t, t.todo.v[t.done++]);
	strvec_release(&t.todo);
	p->names += t.names;
	if (!is_pure) {
		forget_from(p, before);
		return false;
	}
	htab_putn_copy(&p->roots, path, strlen(path), p);
	return true;
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* The second look under way. */
struct again {
	const struct pure *p;
	struct htab known; /* directories that are looked at for themselves */
	struct strvec todo;
	size_t done;
	size_t names;
	struct strvec *late;
};

static void
name_again(struct again *a, const char *path, enum host_kind kind)
{
	if (kind == HOST_ABSENT)
		return;
	switch (ruleset_verdict(a->p->rules, path, kind)) {
	case VERDICT_PASS:
		break;
	case VERDICT_TRAVERSE:
		if (!htab_get(&a->known, path))
			strvec_push(&a->todo, path);
		break;
	case VERDICT_HIDE:
	case VERDICT_QUIET:
		strvec_push(a->late, path);
		break;
	}
}

static bool
is_over(const struct again *a)
{
	return a->late->n >= PURE_LATE_MAX;
}

static void
dir_again(struct again *a, const char *path)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	cleanup_dir DIR *d = host_opendir(a->p->host, path);
	const char *name;
	enum host_kind kind;
	size_t start;
	int got = d || errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;

	strbuf_adds(&sb, path);
	start = sb.len;
	while (d && !is_over(a) && (got = host_readdir(d, &name, &kind)) == 1) {
		if (a->names++ >= a->p->names + PURE_NAMES_MAX) {
			got = -1;
			break;
		}
		strbuf_truncate(&sb, start);
		path_append(&sb, name);
		name_again(a, sb.buf, kind);
	}
	/* What cannot be looked through could be anything. */
	if (got < 0)
		strvec_push(a->late, path);
}

static bool
is_as_it_was(const struct pure *p, const struct pure_dir *d)
{
	enum host_kind kind;
	struct stat st;

	return !host_look(p->host, d->path, &kind, &st) && kind == HOST_DIR &&
	       same_time(&st.st_mtim, &d->mtime) && same_time(&st.st_ctim, &d->ctime);
}

bool
pure_look_again(const struct pure *p, struct strvec *ret_late)
{
	struct again a = {.p = p, .todo = STRVEC_INIT, .late = ret_late};
	bool changed = false;

	htab_init(&a.known);
	for (size_t i = 0; i < p->n; i++) {
		bool same = is_as_it_was(p, &p->dirs[i]);

		changed |= !same;
		if (!same || p->dirs[i].is_fresh)
			strvec_push(&a.todo, p->dirs[i].path);
	}
	for (size_t i = 0; a.todo.n && i < p->n; i++)
		htab_put(&a.known, p->dirs[i].path, &a);
	while (a.done < a.todo.n && !is_over(&a))
		dir_again(&a, a.todo.v[a.done++]);
	htab_release(&a.known);
	strvec_release(&a.todo);
	return changed || ret_late->n;
}
