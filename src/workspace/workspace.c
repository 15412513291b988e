/* SPDX-License-Identifier: MIT */
#include "workspace/workspace.h"
#include "config/evaluated.h"
#include "config/script.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/timing.h"
#include "workspace/members.h"
#include "workspace/root.h"
#include "workspace/sources.h"
#include "workspace/workspace-private.h"
#include <dirent.h>

/* The files that make a directory a project. */
struct marks {
	bool manifest;
	char configs[2][16]; /* the first two vx.config.*, by name */
	size_t nconfigs;
	char unread[17]; /* one that is none, as vx.config.yaml */
};

/* What a directory holds. */
struct found {
	struct marks marks;
	struct {
		const char *text; /* NULL: no such file */
		size_t len;
		struct strbuf read; /* where it is when it was not remembered */
	} of[SOURCE_KINDS];
};

static void
found_release(struct found *f)
{
	for (size_t i = 0; i < SOURCE_KINDS; i++)
		strbuf_release(&f->of[i].read);
}
#define cleanup_found __attribute__((cleanup(found_release)))

static void
found_init(struct found *f)
{
	*f = (struct found){0};
	for (size_t i = 0; i < SOURCE_KINDS; i++)
		strbuf_init(&f->of[i].read);
}

/* "ts" of "vx.config.ts"; NULL: it is called otherwise. */
static const char *
config_ending(const char *name)
{
	static const char stem[] = "vx.config.";

	return strncmp(name, stem, sizeof(stem) - 1) ? NULL : name + sizeof(stem) - 1;
}

static bool
is_ending(const char *s, const char *const *endings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, endings[i]))
			return true;
	return false;
}

static bool
is_config_name(const char *name)
{
	const char *ending = config_ending(name);

	return ending && (!strcmp(ending, "json") ||
				 is_ending(ending, script_endings, array_len(script_endings)));
}

static bool
is_unread_name(const char *name)
{
	const char *ending = config_ending(name);

	return ending && is_ending(ending, script_unread_endings, array_len(script_unread_endings));
}

static void
mark_name(struct marks *m, const char *name)
{
	if (!strcmp(name, "package.json"))
		m->manifest = true;
	if (is_unread_name(name))
		snprintf(m->unread, sizeof(m->unread), "%s", name);
	if (!is_config_name(name))
		return;
	if (m->nconfigs < 2)
		snprintf(m->configs[m->nconfigs], sizeof(m->configs[0]), "%s", name);
	m->nconfigs++;
}

/* The names that matter, for the memory: each with a NUL. */
static void
note_name(void *ctx, const char *name, unsigned char type)
{
	struct strbuf *names = ctx;

	/* A directory that is called as a config is a slip, which reading it shows. */
	if (is_config_name(name) ||
		(type != DT_DIR && (!strcmp(name, "package.json") || is_unread_name(name))))
		strbuf_add(names, name, strlen(name) + 1);
}

static const char *const source_names[SOURCE_KINDS] = {
	[SOURCE_LISTING] = ".",
	[SOURCE_MANIFEST] = "package.json",
	[SOURCE_CONFIG] = "vx.config.json",
};

static void
mark_names(struct found *f)
{
	const char *names = f->of[SOURCE_LISTING].text;

	for (size_t at = 0; at < f->of[SOURCE_LISTING].len; at += strlen(names + at) + 1)
		mark_name(&f->marks, names + at);
}

static bool
is_script(const struct marks *m)
{
	return m->nconfigs && strcmp(m->configs[0], source_names[SOURCE_CONFIG]) != 0;
}

/* Whether there is such a file to be read. */
static bool
is_there(const struct marks *m, enum source which)
{
	return which == SOURCE_MANIFEST ? m->manifest : m->nconfigs && !is_script(m);
}

/* A member's own directory, or a file in it (a link is followed), if it is what is remembered. */
static bool
recall(struct loading *l, int at, const char *path, const char *dir, enum source which,
	struct found *ret)
{
	struct stat st;

	if (!sources_has(l->sources, dir, which))
		return false;
	if (fstatat(at, path, &st, which == SOURCE_LISTING ? AT_SYMLINK_NOFOLLOW : 0))
		return false;
	ret->of[which].text = sources_get(l->sources, dir, which, &st, &ret->of[which].len);
	return ret->of[which].text != NULL;
}

/* Until the next call. */
static const char *
show(struct loading *l, const char *dir, const char *name)
{
	strbuf_reset(&l->shown);
	strbuf_adds(&l->shown, dir);
	path_append(&l->shown, name);
	return l->shown.buf;
}

static const char *
shown_path(struct loading *l, const char *dir, const char *name)
{
	return arena_strdup(&l->w->arena, show(l, dir, name));
}

static const char *
dir_shown(const char *dir)
{
	return *dir ? dir : "the workspace root";
}

void
workspace_note(struct loading *l, const char *text)
{
	GROW(l->notes, l->nnotes + 1, l->notes_cap);
	l->notes[l->nnotes++] = text;
}

static int
check_configs(const char *dir, struct marks *m, struct err *e)
{
	if (m->nconfigs > 1) {
		bool swap = strcmp(m->configs[0], m->configs[1]) > 0;

		return err_set(e, ERR_CONFIG, 0, "%s holds two configs, %s and %s: remove one",
			dir_shown(dir), m->configs[swap], m->configs[!swap]);
	}
	if (*m->unread)
		return err_set(e, ERR_CONFIG, 0,
			"%s%s%s: is not read: write it as vx.config.json (where comments are no "
			"errors) or vx.config.ts",
			dir, *dir ? "/" : "", m->unread);
	return 0;
}

/* The directory `fd` is listed anew only if it has changed. errno on -1. */
static int
list_names(struct loading *l, int fd, const char *dir, struct found *ret)
{
	struct strbuf *names = &ret->of[SOURCE_LISTING].read;
	int64_t begun;
	struct stat st;

	if (!recall(l, fd, ".", dir, SOURCE_LISTING, ret)) {
		begun = (int64_t)clock_files_ns();
		if (fstat(fd, &st) || members_scan(fd, note_name, names) < 0)
			return -1;
		sources_put(l->sources, dir, SOURCE_LISTING, &st, begun, names->buf, names->len);
		ret->of[SOURCE_LISTING].text = names->buf;
		ret->of[SOURCE_LISTING].len = names->len;
	}
	mark_names(ret);
	return 0;
}

static int
read_file(struct loading *l, int fd, const char *dir, enum source which, struct found *ret,
	struct err *e)
{
	struct strbuf *buf = &ret->of[which].read;
	struct stat st;
	int64_t begun;

	if (recall(l, fd, source_names[which], dir, which, ret))
		return 0;
	begun = (int64_t)clock_files_ns();
	if (json_read(fd, source_names[which], show(l, dir, source_names[which]), buf, &st, e) <
		0) {
		bool gone = which == SOURCE_MANIFEST && e->num == ENOENT; /* since it was listed */

		e->num = 0;
		if (gone)
			err_clear(e);
		return gone ? 0 : -1;
	}
	sources_put(l->sources, dir, which, &st, begun, buf->buf, buf->len);
	ret->of[which].text = buf->buf;
	ret->of[which].len = buf->len;
	return 0;
}

static int
read_files(struct loading *l, int fd, const char *dir, struct found *f, struct err *e)
{
	if (list_names(l, fd, dir, f) < 0)
		return err_set(e, ERR_IO, errno, "list %s", dir_shown(dir));
	if (check_configs(dir, &f->marks, e) < 0)
		return -1;
	for (enum source which = SOURCE_MANIFEST; which < SOURCE_KINDS; which++)
		if (is_there(&f->marks, which) && read_file(l, fd, dir, which, f, e) < 0)
			return -1;
	return 0;
}

/* The directory that holds `member`, opened beneath the root; -1: it has to be found another way. */
static int
open_parent(struct loading *l, const char *member)
{
	size_t n = path_parent_len(member);

	if (l->parent && strlen(l->parent) == n && !memcmp(l->parent, member, n))
		return l->parentfd;
	fd_close(&l->parentfd);
	free(l->parent);
	l->parent = xmemdupz(member, n);
	l->parentfd = fs_open_beneath(l->root->fd, l->parent, O_PATH | O_DIRECTORY, 0);
	return l->parentfd;
}

/* The member without opening it, if all of it is as it is remembered and it is no link. */
static bool
recall_member(struct loading *l, const char *member, struct found *f)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	int at = open_parent(l, member);
	const char *base = *member ? path_base(member) : ".";

	if (at < 0 || !recall(l, at, base, member, SOURCE_LISTING, f))
		return false;
	mark_names(f);
	for (enum source which = SOURCE_MANIFEST; which < SOURCE_KINDS; which++) {
		strbuf_reset(&path);
		strbuf_adds(&path, base);
		path_append(&path, source_names[which]);
		if (is_there(&f->marks, which) && !recall(l, at, path.buf, member, which, f))
			return false;
	}
	return true;
}

static int
load_project(struct loading *l, const char *dir, const struct found *f, struct err *e)
{
	const char *manifest = f->of[SOURCE_MANIFEST].text;
	struct arena *a = &l->w->arena;
	struct loaded *it;

	if (!manifest && !f->marks.nconfigs)
		return 0;
	it = arena_new(a, struct loaded);
	it->p.dir = arena_strdup(a, dir);
	it->p.is_root = !*dir;
	it->p.has_manifest = manifest != NULL;
	it->manifest_shown = shown_path(l, dir, source_names[SOURCE_MANIFEST]);
	if (manifest && manifest_parse(manifest, f->of[SOURCE_MANIFEST].len, it->manifest_shown, a,
				&it->manifest, e) < 0)
		return -1;
	if (f->marks.nconfigs)
		it->p.config = shown_path(l, dir, f->marks.configs[0]);
	it->p.undefined = is_script(&f->marks);
	l->w->nundefined += it->p.undefined;
	if (it->p.undefined)
		it->p.name = it->manifest.name;
	else if (workspace_define_data(
			 l, it, f->of[SOURCE_CONFIG].text, f->of[SOURCE_CONFIG].len, e) < 0)
		return -1;
	GROW(l->items, l->n + 1, l->cap);
	l->items[l->n++] = it;
	htab_put(&l->w->by_dir, it->p.dir, &it->p);
	return 0;
}

/* A glob may name what is not there, or a file: then there is no member. */
static int
open_failed(const char *member, struct err *e)
{
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_set(e, ERR_IO, errno, "open member %s", dir_shown(member));
}

/* A member that is reached through a link counts, under the path where it really is, if that is in
 * the workspace. 1, 0: no project there, -1. */
static int
open_linked(struct loading *l, const char *member, char **ret_dir, int *ret_fd, struct err *e)
{
	cleanup_free char *path = path_join(l->root->path, member);
	cleanup_free char *real = realpath(path, NULL);
	cleanup_close int fd = -1;
	cleanup_found struct found f;

	found_init(&f);
	if (!real && errno == ELOOP)
		return 0; /* a link to itself leads nowhere, as one to what is not there */
	if (!real)
		return open_failed(member, e);
	if (path_is_within(real, l->root->path)) {
		const char *root = strcmp(l->root->path, "/") ? l->root->path : "";

		*ret_dir = xstrdup(path_below(real, root));
		*ret_fd = fs_open_beneath(l->root->fd, *ret_dir, O_RDONLY | O_DIRECTORY, 0);
		return *ret_fd < 0 ? open_failed(member, e) : 1;
	}
	fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || list_names(l, fd, real, &f) < 0 || (!f.marks.manifest && !f.marks.nconfigs))
		return 0;
	return err_set(e, ERR_CONFIG, 0,
		"%s: member \"%s\" (%s) is outside the workspace root %s: move %s up to a "
		"directory "
		"that holds both, or remove the link",
		l->root->source, member, real, l->root->path, l->root->source);
}

/* The member by the way that shows what is wrong with it. 1, 0: no project there, -1. */
static int
load_opened(struct loading *l, const char *member, struct err *e)
{
	cleanup_close int fd = fs_open_beneath(l->root->fd, member, O_RDONLY | O_DIRECTORY, 0);
	cleanup_free char *real = NULL;
	cleanup_found struct found f;
	const char *dir = member;

	found_init(&f);
	if (fd < 0 && errno == ELOOP) {
		int r = open_linked(l, member, &real, &fd, e);

		if (r <= 0)
			return r;
		dir = real;
	}
	if (fd < 0)
		return open_failed(member, e);
	if (htab_get(&l->w->by_dir, dir))
		return 1;
	if (read_files(l, fd, dir, &f, e) < 0 || load_project(l, dir, &f, e) < 0)
		return -1;
	return htab_get(&l->w->by_dir, dir) != NULL;
}

static int
load_member(struct loading *l, const char *member, struct err *e)
{
	cleanup_found struct found f;

	found_init(&f);
	if (htab_get(&l->w->by_dir, member) || !recall_member(l, member, &f))
		return load_opened(l, member, e);
	if (check_configs(member, &f.marks, e) < 0 || load_project(l, member, &f, e) < 0)
		return -1;
	return htab_get(&l->w->by_dir, member) != NULL;
}

static bool
is_our_source(const char *source)
{
	return !strncmp(source, "vx.workspace.", 13);
}

static const char *
field_of(const char *source)
{
	return is_our_source(source)                    ? "projects"
	       : !strcmp(source, "pnpm-workspace.yaml") ? "packages"
							: "workspaces";
}

static int
refuse_no_project(const struct loading *l, const struct strvec *missed, struct err *e)
{
	enum {
		PATTERNS_SHOWN = 4
	};
	cleanup_strbuf struct strbuf list = STRBUF_INIT;
	const char *source = l->root->source;

	if (!source)
		return err_set(e, ERR_CONFIG, 0,
			"%s holds neither a vx.config.json nor a package.json, and no file there "
			"names projects: write \"projects\": [\"packages/*\"] in its "
			"vx.workspace.json",
			l->root->path);
	if (!missed->n)
		return err_set(e, ERR_CONFIG, 0,
			"%s: %s: the list is empty, and there is no vx.config.json or package.json "
			"beside it",
			source, field_of(source));
	for (size_t i = 0; i < missed->n && i < PATTERNS_SHOWN; i++)
		strbuf_addf(&list, "%s\"%s\"",
			!i                   ? ""
			: i + 1 == missed->n ? " and "
					     : ", ",
			missed->v[i]);
	if (missed->n > PATTERNS_SHOWN)
		strbuf_addf(&list, " and %zu more", missed->n - PATTERNS_SHOWN);
	return err_set(e, ERR_CONFIG, 0,
		"%s: %s: %s %s no directory with a vx.config.json or package.json", source,
		field_of(source), list.buf, missed->n == 1 ? "matches" : "match");
}

/*
 * A list that names no project is a slip in our own file; in a package manager's it is one only where
 * there is no project at all. Single patterns without a project are said.
 */
static int
check_members(struct loading *l, const bool *hit, struct err *e)
{
	const struct strvec *globs = &l->root->members;
	cleanup_strvec struct strvec missed = STRVEC_INIT;
	bool is_ours = l->root->source && is_our_source(l->root->source);
	size_t positive = 0;

	for (size_t i = 0; i < globs->n; i++) {
		if (*globs->v[i] == '!')
			continue;
		positive++;
		if (!hit[i])
			strvec_push(&missed, globs->v[i]);
	}
	if (!l->n || (is_ours && positive && missed.n == positive))
		return refuse_no_project(l, &missed, e);
	for (size_t i = 0; i < missed.n; i++)
		workspace_note(
			l, arena_printf(&l->w->arena,
				   "%s: %s: \"%s\" matches no directory with a vx.config.json or "
				   "package.json",
				   l->root->source, field_of(l->root->source), missed.v[i]));
	return 0;
}

static int
load_members(struct loading *l, struct err *e)
{
	cleanup_strvec struct strvec dirs = STRVEC_INIT;
	cleanup_free bool *hit = xcalloc(l->root->members.n + 1, sizeof(*hit));
	struct members *members = &l->w->members;
	int r;

	if (load_member(l, "", e) < 0)
		return -1;
	if (!l->root->source)
		return check_members(l, hit, e);
	if (members_parse(&l->root->members, l->root->source, l->root->path, &l->w->arena, members,
		    e) < 0)
		return -1;
	timing_stage("discover projects");
	r = members_expand(members, l->root->fd, &dirs, e);
	timing_stage("load configs");
	for (size_t i = 0; i < dirs.n && r >= 0; i++) {
		r = load_member(l, dirs.v[i], e);
		if (r > 0)
			members_mark(members, dirs.v[i], hit);
	}
	return r < 0 ? -1 : check_members(l, hit, e);
}

static int
compare_name(const void *a, const void *b)
{
	const struct loaded *x = *(struct loaded *const *)a, *y = *(struct loaded *const *)b;
	int c = strcmp(x->p.name, y->p.name);

	return c ? c : strcmp(x->p.dir, y->p.dir);
}

/* Two of one name: the one that was named by its directory is the one to be given a name. */
static int
refuse_twins(const struct loaded *a, const struct loaded *b, struct err *e)
{
	const struct loaded *change = a->named && !b->named ? b : !a->named ? a : b;
	const char *dir = change->p.dir, *slash = *dir ? "/" : "";
	const char *file = change->manifest.name ? "package.json" : "vx.config.json";

	return err_set(e, ERR_CONFIG, 0,
		"two projects are called \"%s\": %s and %s; write \"name\": \"another-name\" in "
		"%s%s%s",
		a->p.name, dir_shown(a->p.dir), dir_shown(b->p.dir), dir, slash, file);
}

static int
index_names(struct loading *l, struct err *e)
{
	struct workspace *w = l->w;

	if (l->n)
		qsort(l->items, l->n, sizeof(struct loaded *), compare_name);
	w->projects = arena_array(&w->arena, l->n, struct project *);
	w->nprojects = l->n;
	for (size_t i = 0; i < l->n; i++) {
		if (i && !strcmp(l->items[i]->p.name, l->items[i - 1]->p.name))
			return refuse_twins(l->items[i - 1], l->items[i], e);
		w->projects[i] = &l->items[i]->p;
		w->projects[i]->index = i;
		htab_put(&w->by_name, w->projects[i]->name, w->projects[i]);
	}
	return 0;
}

int
workspace_compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a || !*b)
		return *a ? 1 : *b ? -1 : 0;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int
compare_dir(const void *a, const void *b)
{
	return workspace_compare_paths(
		(*(struct project *const *)a)->dir, (*(struct project *const *)b)->dir);
}

/* While they stand as they were found, nearly in that order. */
static void
link_nested(struct loading *l)
{
	cleanup_free struct project **sorted = xcalloc(l->n, sizeof(struct project *));
	cleanup_free size_t *outer = xcalloc(l->n, sizeof(*outer));
	size_t top = 0, n = l->n;
	bool is_sorted = true;

	for (size_t i = 0; i < n; i++) {
		sorted[i] = &l->items[i]->p;
		is_sorted = is_sorted && (!i || compare_dir(&sorted[i - 1], &sorted[i]) <= 0);
	}
	if (!is_sorted)
		qsort(sorted, n, sizeof(struct project *), compare_dir);
	/* `outer` is the chain of projects around the current one, by index in sorted. */
	for (size_t pass = 0; pass < 2; pass++) {
		top = 0;
		for (size_t i = 0; i < n; i++) {
			struct project *holder;

			while (top && !path_is_within(sorted[i]->dir, sorted[outer[top - 1]]->dir))
				top--;
			if (top) {
				holder = sorted[outer[top - 1]];
				if (pass)
					holder->nested[holder->nnested] = sorted[i];
				holder->nnested++;
			}
			outer[top++] = i;
		}
		for (size_t i = 0; i < n && !pass; i++) {
			sorted[i]->nested =
				arena_array(&l->w->arena, sorted[i]->nnested, struct project *);
			sorted[i]->nnested = 0;
		}
	}
}

/* Evaluated before there was a place to remember it in. */
static void
remember_settings(struct loading *l)
{
	const struct script *s = &l->root->settings;
	size_t len;

	if (s->path && !evaluated_get(l->evaluated, s->path, &len) && s->why)
		evaluated_put(l->evaluated, s);
}

static int
load(struct loading *l, struct err *e)
{
	struct workspace *w = l->w;

	timing_stage("workspace config");
	if (settings_load(l->root->fd, &l->root->settings, &w->arena, &w->settings, e) < 0)
		return -1;
	remember_settings(l);
	w->rests = workspace_take_rests(w, &l->root->settings.needs, &l->root->settings.manifests,
		l->root->settings.reads_any);
	if (load_members(l, e) < 0 || workspace_define_nameless(l, e) < 0)
		return -1;
	timing_stage("package graph");
	link_nested(l);
	return index_names(l, e) < 0 || workspace_link(l, e) ? -1 : 0;
}

static void
loading_free(struct loading *l, bool keep)
{
	sources_close(l->sources, keep);
	evaluated_close(l->evaluated, keep);
	script_close(l->runtime);
	free(l->parent);
	fd_close(&l->parentfd);
	json_doc_release(&l->config);
	strbuf_release(&l->config_text);
	strbuf_release(&l->shown);
	free(l->items);
	free(l->manifests);
	free(l->catalogs);
	free(l->notes);
	free(l);
}

void
workspace_settle(struct workspace *w)
{
	struct loading *l = w->loading;

	if (!l)
		return;
	for (size_t i = 0; i < w->nprojects; i++)
		if (w->projects[i]->undefined)
			evaluated_keep(l->evaluated, w->projects[i]->config);
	w->notes = arena_array(&w->arena, l->nnotes, const char *);
	for (size_t i = 0; i < l->nnotes; i++)
		w->notes[w->nnotes++] = l->notes[i];
	loading_free(l, true);
	w->loading = NULL;
}

int
workspace_load(const struct root *root, int statefd, struct workspace *ret, struct err *e)
{
	struct workspace *w = ret;
	struct loading *l = xcalloc(1, sizeof(*l));

	*w = (struct workspace){.rootfd = root->fd, .loading = l};
	*l = (struct loading){
		.w = w,
		.root = root,
		.sources = sources_open(statefd),
		.evaluated = evaluated_open(statefd, root->fd, root->path),
		.runtime = script_open(root->path),
		.parentfd = -1,
		.config_text = STRBUF_INIT,
		.shown = STRBUF_INIT,
	};
	arena_init(&w->arena);
	htab_init(&w->by_name);
	htab_init(&w->by_dir);
	members_init(&w->members);
	settings_init(&w->settings);
	w->path = arena_strdup(&w->arena, root->path);
	if (load(l, e) < 0) {
		workspace_release(w);
		return -1;
	}
	if (!w->nundefined)
		workspace_settle(w);
	return 0;
}

void
workspace_release(struct workspace *w)
{
	if (w->loading)
		loading_free(w->loading, false);
	htab_release(&w->by_name);
	htab_release(&w->by_dir);
	members_release(&w->members);
	arena_release(&w->arena);
	*w = (struct workspace){.rootfd = -1};
}

bool
workspace_would_hold(const struct workspace *w, const char *dir)
{
	return !*dir || members_name(&w->members, dir);
}

struct project *
workspace_project_at(const struct workspace *w, const char *dir)
{
	size_t n = strlen(dir);

	for (;;) {
		struct project *p = htab_getn(&w->by_dir, dir, n);

		if (p || !n)
			return p;
		while (n && dir[n - 1] != '/')
			n--;
		if (n)
			n--;
	}
}

struct project *
workspace_project(const struct workspace *w, const char *name)
{
	if (!strcmp(name, "//"))
		return htab_get(&w->by_dir, "");
	return htab_get(&w->by_name, name);
}

char *
workspace_entry_place(const struct workspace *w, const struct project *p, const char *task,
	const char *list, size_t index)
{
	cleanup_close int fd = fs_open_beneath(w->rootfd, p->dir, O_RDONLY | O_DIRECTORY, 0);
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	struct json_doc doc = {0};
	struct err e = ERR_INIT;

	strbuf_add_sanitised(&sb, p->config, strlen(p->config));
	if (fd >= 0 && !strcmp(path_base(p->config), "vx.config.json") &&
		json_load(fd, "vx.config.json", p->config, JSON_OURS, &doc, &e) == 0) {
		const struct json_at root = {&doc, NULL, NULL, 0};
		const struct json_at tasks = {&doc, &root, "tasks", 0};
		const struct json_at in_task = {&doc, &tasks, task, 0};
		const struct json_at at_list = {&doc, task ? &in_task : &root, list, 0};
		const struct json_at entry = {&doc, &at_list, NULL, index};
		size_t line, col;

		json_place(&entry, false, &line, &col);
		strbuf_addf(&sb, ":%zu:%zu", line, col);
		json_doc_release(&doc);
	}
	return strbuf_take(&sb);
}

struct taskdef *
project_task(const struct project *p, const char *task)
{
	for (size_t i = 0; i < p->def.ntasks; i++)
		if (!strcmp(p->def.tasks[i].name, task))
			return &p->def.tasks[i];
	return NULL;
}
