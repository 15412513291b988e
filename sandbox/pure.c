/* SPDX-License-Identifier: MIT */
#include "sandbox/pure.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"

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

static bool
dir_is_pure(struct pure *p, struct test *t, const char *path)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	cleanup_dir DIR *d = host_opendir(p->host, path);
	const char *name;
	enum host_kind kind;
	struct stat st;
	size_t start;
	int got;

	/* The times before the names: what changes in between shows. */
	if (!d || fstat(dirfd(d), &st))
		return false;
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
	p->dirs[p->n++] = (struct pure_dir){xstrdup(path), st.st_mtim, st.st_ctim};
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

bool
pure_changed(const struct pure *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct pure_dir *d = &p->dirs[i];
		enum host_kind kind;
		struct stat st;

		if (host_look(p->host, d->path, &kind, &st) || kind != HOST_DIR ||
			!same_time(&st.st_mtim, &d->mtime) || !same_time(&st.st_ctim, &d->ctime))
			return true;
	}
	return false;
}
