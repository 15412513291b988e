/* SPDX-License-Identifier: MIT */
#include "sandbox/liveplan.h"
#include "proto/never.h"
#include "sandbox/host.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"

struct planning {
	struct liveplan *p;
	const struct liverules *lr;
	struct strvec todo; /* directories that are served */
	struct htab looked; /* write-granted ones that were looked through */
	struct htab
		walled; /* those of them with a name below that is never committed, or that may get one */
	size_t names;
};

static bool
is_too_much(struct planning *pl)
{
	if (++pl->names <= LIVE_NAMES_MAX)
		return false;
	pl->p->cut = true;
	return true;
}

/* A write-granted directory, looked through once from its top. */

struct look {
	struct planning *pl;
	const char *top;
};

/* The directory and those above it. */
static void
wall_off(struct look *lk, const char *dir)
{
	cleanup_free char *at = xstrdup(dir);

	for (;;) {
		size_t n = strlen(at);

		if (htab_getn(&lk->pl->walled, at, n))
			return;
		htab_putn_copy(&lk->pl->walled, at, n, lk->pl);
		if (!strcmp(at, lk->top))
			return;
		at[path_parent_len(at)] = '\0';
	}
}

static void
add_manifest(struct liveplan *p, const char *path, const struct stat *st)
{
	struct livemanifest *m = xmalloc(sizeof(*m));

	*m = (struct livemanifest){st->st_ino, st->st_ctim};
	htab_putn_copy(&p->manifests, path, strlen(path), m);
}

static enum fs_visit
look_visit(void *ctx, const struct fs_entry *entry)
{
	struct look *lk = ctx;
	const struct liverules *lr = lk->pl->lr;
	cleanup_free char *path = path_join(lk->top, entry->path);
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));
	mode_t type = entry->st->st_mode & S_IFMT;

	if (is_too_much(lk->pl))
		return FS_VISIT_STOP;
	if (liveplan_is_apart(lk->pl->p, entry->st))
		return FS_VISIT_SKIP;
	if (never_is_manifest(path))
		add_manifest(lk->pl->p, path, entry->st);
	if (!strcmp(entry->name, "HEAD") && liverules_is_repository(lr, dir))
		wall_off(lk, dir);
	/* What hangs below such a directory is refused only where it is served. */
	if (!liverules_ends_never(lr, path, type) &&
		!(S_ISDIR(type) && liverules_leads(entry->name)))
		return FS_VISIT_CONTINUE;
	wall_off(lk, dir);
	return FS_VISIT_SKIP;
}

/* False: it could not be looked through, so nothing in it is bound. */
static bool
look_through(struct planning *pl, const char *dir)
{
	struct look lk = {pl, dir};

	return !fs_walk(pl->lr->host, dir, look_visit, &lk);
}

static int
open_dir(const struct planning *pl, const char *path)
{
	return fs_open_beneath(pl->lr->host, path, O_PATH | O_DIRECTORY, 0);
}

static void
bind_it(struct planning *pl, const char *path, bool write, int fd_take)
{
	struct liveplan *p = pl->p;
	cleanup_close int fd = fd_take;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return; /* gone meanwhile: served, should it come again */
	GROW(p->v, p->n + 1, p->cap);
	p->v[p->n++] = (struct livebind){
		.path = xstrdup(path),
		.write = write,
		.dev = st.st_dev,
		.ino = st.st_ino,
		.fd = write ? take_fd(&fd) : -1,
	};
	p->nwrites += write;
}

static bool
is_apart(const struct planning *pl, const char *path)
{
	struct stat st;

	return pl->p->napart && !fs_stat_beneath(pl->lr->host, path, &st) &&
	       liveplan_is_apart(pl->p, &st);
}

/* One that a rule names. */
static bool
is_repository(const struct planning *pl, const char *dir)
{
	const char *base = path_base(dir);

	return never_is_git(base, strlen(base)) && !liverules_ends_never(pl->lr, dir, S_IFDIR);
}

static void
plan_dir(struct planning *pl, const char *parent, const char *path)
{
	const struct liverules *lr = pl->lr;
	enum verdict v = ruleset_verdict(lr->rules, path, HOST_DIR);
	bool is_looked = *parent && htab_get(&pl->looked, parent);

	if ((v != VERDICT_PASS && v != VERDICT_TRAVERSE) || is_apart(pl, path))
		return;
	/* To the last name in it. */
	if (ruleset_is_written(lr->rules, path) &&
		(liverules_leads(path_base(path)) || liverules_ends_never(lr, path, S_IFDIR))) {
		/* But for what a repository that is granted has most of. */
		if (is_repository(pl, path))
			strvec_push(&pl->todo, path);
		return;
	}
	if (is_repository(pl, parent) &&
		!never_is_git_data(path_base(path), strlen(path_base(path))))
		return;
	if (pl->p->n >= LIVE_BINDS_MAX || pl->p->nwrites >= LIVE_WRITES_MAX) {
		pl->p->cut = true;
		return;
	}
	if (v == VERDICT_PASS && !ruleset_is_written(lr->rules, path)) {
		bind_it(pl, path, false, open_dir(pl, path));
		return;
	}
	if (ruleset_grants_whole(lr->rules, path)) {
		/* Opened before it is looked through: what is bound is what was. */
		cleanup_close int fd = open_dir(pl, path);

		if (!is_looked && !look_through(pl, path))
			return;
		htab_putn_copy(&pl->looked, path, strlen(path), pl);
		if (!htab_get(&pl->walled, path) && liverules_is_whole(lr, path)) {
			bind_it(pl, path, true, take_fd(&fd));
			return;
		}
	}
	strvec_push(&pl->todo, path);
}

static void
plan_below(struct planning *pl, const char *dir)
{
	cleanup_dir DIR *d = host_opendir(pl->lr->host, dir);
	enum host_kind kind;
	const char *name;

	while (d && host_readdir(d, &name, &kind) == 1) {
		cleanup_free char *path = path_join(dir, name);

		if (is_too_much(pl))
			return;
		if (kind == HOST_DIR)
			plan_dir(pl, dir, path);
	}
}

void
liveplan_init(struct liveplan *p)
{
	*p = (struct liveplan){0};
	htab_init(&p->manifests);
	htab_init(&p->kept);
}

void
liveplan_leave_out(struct liveplan *p, const struct stat *dir)
{
	GROW(p->apart, p->napart + 1, p->apart_cap);
	p->apart[p->napart++] = (struct liveplace){dir->st_dev, dir->st_ino};
}

bool
liveplan_is_apart(const struct liveplan *p, const struct stat *st)
{
	for (size_t i = 0; i < p->napart; i++)
		if (p->apart[i].dev == st->st_dev && p->apart[i].ino == st->st_ino)
			return true;
	return false;
}

const struct livebind *
liveplan_binds(const struct liveplan *p, const char *path)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->v[i].path, path))
			return &p->v[i];
	return NULL;
}

void
liveplan_make(struct liveplan *p, const struct liverules *lr, const struct strvec *tops)
{
	struct planning pl = {.p = p, .lr = lr, .todo = STRVEC_INIT};

	htab_init(&pl.looked);
	htab_init(&pl.walled);
	for (size_t i = 0; tops && i < tops->n; i++)
		plan_dir(&pl, "", tops->v[i]);
	/* The workspace itself is always served: what is made in it is seen. */
	if (!tops)
		strvec_push(&pl.todo, "");
	for (size_t i = 0; i < pl.todo.n; i++)
		plan_below(&pl, pl.todo.v[i]);
	strvec_release(&pl.todo);
	htab_release(&pl.looked);
	htab_release(&pl.walled);
}

/* Where nothing can be served. */

static void
keep(struct liveplan *p, const char *path, const struct stat *st, bool is_free)
{
	struct livekept *k = xmalloc(sizeof(*k));

	*k = (struct livekept){st->st_dev, st->st_ino, st->st_mode & S_IFMT, is_free};
	htab_putn_copy(&p->kept, path, strlen(path), k);
}

static enum fs_visit
keep_visit(void *ctx, const struct fs_entry *entry)
{
	struct look *lk = ctx;
	const struct liverules *lr = lk->pl->lr;
	struct liveplan *p = lk->pl->p;
	cleanup_free char *path = path_join(lk->top, entry->path);

	if (is_too_much(lk->pl) || p->kept.n >= LIVE_BINDS_MAX)
		return FS_VISIT_STOP;
	if (liveplan_is_apart(p, entry->st))
		return FS_VISIT_SKIP;
	if (S_ISDIR(entry->st->st_mode) && never_is_git(entry->name, strlen(entry->name))) {
		keep(p, path, entry->st, true);
		return FS_VISIT_CONTINUE;
	}
	if (!liverules_may_change(lr, path, entry->st->st_mode & S_IFMT)) {
		keep(p, path, entry->st, false);
		return FS_VISIT_SKIP;
	}
	if (!strcmp(entry->name, "HEAD")) {
		cleanup_free char *dir = xmemdupz(path, path_parent_len(path));

		if (liverules_is_repository(lr, dir))
			keep(p, path, entry->st, true);
	}
	return FS_VISIT_CONTINUE;
}

int
liveplan_make_bare(struct liveplan *p, const struct liverules *lr, const struct strvec *tops,
	const char **ret_top)
{
	struct planning pl = {.p = p, .lr = lr};

	for (size_t i = 0; i < tops->n; i++) {
		struct look lk = {&pl, tops->v[i]};

		if (liveplan_binds(p, tops->v[i]))
			continue;
		if (p->nwrites >= LIVE_WRITES_MAX ||
			fs_walk(lr->host, tops->v[i], keep_visit, &lk)) {
			*ret_top = tops->v[i];
			return -1;
		}
		bind_it(&pl, tops->v[i], true, open_dir(&pl, tops->v[i]));
	}
	return 0;
}

void
liveplan_release(struct liveplan *p)
{
	for (size_t i = 0; i < p->kept.n; i++)
		free(p->kept.entries[i].value);
	htab_release(&p->kept);
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
		fd_close(&p->v[i].fd);
	}
	free(p->v);
	free(p->apart);
	for (size_t i = 0; i < p->manifests.n; i++)
		free(p->manifests.entries[i].value);
	htab_release(&p->manifests);
	*p = (struct liveplan){0};
}
