/* SPDX-License-Identifier: MIT */
#include "workspace/workspace.h"
#include "config/json.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/edges.h"
#include "workspace/manifest.h"
#include "workspace/members.h"
#include "workspace/pnpm.h"
#include "workspace/root.h"
#include "workspace/sources.h"
#include <dirent.h>

/* A project while it is being loaded; the manifest is needed until the edges are known. */
struct loaded {
	struct project p;
	struct manifest manifest;
	bool named; /* by its manifest or config, not by its directory */
};

struct loading {
	struct workspace *w;
	const struct root *root;
	struct sources *sources;
	/* The last config that was parsed: often the next one says the same. */
	struct strbuf config_text;
	struct json_doc config;
	struct loaded **items;
	size_t n, cap;
	const char **notes;
	size_t nnotes, notes_cap;
};

/* The files that make a directory a project. */
struct marks {
	bool manifest;
	char configs[2][16]; /* the first two vx.config.*, by name */
	size_t nconfigs;
};

static bool
is_config_name(const char *name)
{
	static const char *const endings[] = {"json", "ts", "mts", "js", "mjs", "cts", "cjs"};
	static const char stem[] = "vx.config.";

	if (strncmp(name, stem, sizeof(stem) - 1))
		return false;
	for (size_t i = 0; i < array_len(endings); i++)
		if (!strcmp(name + sizeof(stem) - 1, endings[i]))
			return true;
	return false;
}

static void
mark_name(struct marks *m, const char *name)
{
	if (!strcmp(name, "package.json"))
		m->manifest = true;
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

	if (type != DT_DIR && (!strcmp(name, "package.json") || is_config_name(name)))
		strbuf_add(names, name, strlen(name) + 1);
}

/* `fd` is an O_PATH of the directory, which is listed anew only if it has changed. errno on -1. */
static int
find_marks(struct loading *l, int fd, const char *dir, struct marks *ret)
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	cleanup_close int listed = -1;
	int64_t begun;
	struct stat st;
	const char *text;
	size_t len;

	if (fstat(fd, &st))
		return -1;
	text = sources_get(l->sources, dir, SOURCE_LISTING, &st, &len);
	if (!text) {
		begun = (int64_t)clock_files_ns();
		listed = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (listed < 0 || members_scan(listed, note_name, &names) < 0)
			return -1;
		sources_put(l->sources, dir, SOURCE_LISTING, &st, begun, names.buf, names.len);
		text = names.buf;
		len = names.len;
	}
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		mark_name(ret, text + at);
	return 0;
}

/* A manifest's or config's text, read into `buf` if it is not remembered. */
static int
read_source(struct loading *l, int fd, const char *dir, enum source which, const char *shown,
	struct strbuf *buf, const char **ret, size_t *ret_len, struct err *e)
{
	const char *name = which == SOURCE_MANIFEST ? "package.json" : "vx.config.json";
	struct stat st;
	int64_t begun;

	/* Links are followed here and there. */
	*ret = fstatat(fd, name, &st, 0) ? NULL : sources_get(l->sources, dir, which, &st, ret_len);
	if (*ret)
		return 0;
	begun = (int64_t)clock_files_ns();
	if (json_read(fd, name, shown, buf, &st, e) < 0)
		return -1;
	sources_put(l->sources, dir, which, &st, begun, buf->buf, buf->len);
	*ret = buf->buf;
	*ret_len = buf->len;
	return 0;
}

static const char *
shown_path(struct loading *l, const char *dir, const char *name)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	strbuf_adds(&path, dir);
	path_append(&path, name);
	return arena_memdupz(&l->w->arena, path.buf, path.len);
}

static const char *
dir_shown(const char *dir)
{
	return *dir ? dir : "the workspace root";
}

static void
note(struct loading *l, const char *text)
{
	GROW(l->notes, l->nnotes + 1, l->notes_cap);
	l->notes[l->nnotes++] = text;
}

static int
check_configs(const char *dir, struct marks *m, struct err *e)
{
	const char *slash = *dir ? "/" : "";

	if (m->nconfigs > 1) {
		bool swap = strcmp(m->configs[0], m->configs[1]) > 0;

		return err_set(e, ERR_CONFIG, 0, "%s holds two configs, %s and %s: remove one",
			dir_shown(dir), m->configs[swap], m->configs[!swap]);
	}
	if (m->nconfigs && strcmp(m->configs[0], "vx.config.json"))
		return err_set(e, ERR_CONFIG, 0,
			"%s%s%s: JavaScript and TypeScript configs are not in this vx yet: write "
			"vx.config.json",
			dir, slash, m->configs[0]);
	return 0;
}

static int
load_manifest(struct loading *l, int fd, const char *shown, struct loaded *it, struct err *e)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	struct err mine = ERR_INIT;
	const char *text;
	size_t len;

	if (read_source(l, fd, it->p.dir, SOURCE_MANIFEST, shown, &buf, &text, &len, &mine) < 0)
		/* gone since it was listed */
		return mine.num == ENOENT ? 0 : err_set(e, mine.kind, 0, "%s", mine.text);
	it->p.has_manifest = true;
	return manifest_parse(text, len, shown, &l->w->arena, &it->manifest, e);
}

/* Into l->config. */
static int
parse_config(struct loading *l, const char *text, size_t len, const char *shown, struct err *e)
{
	if (l->config.root && l->config_text.len == len && !memcmp(l->config_text.buf, text, len)) {
		l->config.file = shown;
		return 0;
	}
	json_doc_release(&l->config);
	strbuf_reset(&l->config_text);
	strbuf_add(&l->config_text, text, len);
	return json_parse(text, len, shown, true, &l->config, e);
}

static int
load_config(struct loading *l, int fd, struct project *p, struct err *e)
{
	cleanup_strbuf struct strbuf buf = STRBUF_INIT;
	const char *text;
	size_t len;

	p->config = shown_path(l, p->dir, "vx.config.json");
	if (read_source(l, fd, p->dir, SOURCE_CONFIG, p->config, &buf, &text, &len, e) < 0 ||
		parse_config(l, text, len, p->config, e) < 0)
		return -1;
	return projectdef_parse(&l->config, p->dir, &l->w->arena, &p->def, e);
}

static int
choose_name(struct loading *l, struct loaded *it, const char *manifest_shown, struct err *e)
{
	struct project *p = &it->p;
	const char *from = p->config ? p->config : manifest_shown;

	it->named = it->manifest.name || p->def.name;
	if (it->manifest.name) {
		p->name = it->manifest.name;
		if (p->def.name && strcmp(p->def.name, p->name))
			note(l, arena_printf(&l->w->arena,
					"%s: \"name\": \"%s\" is not used: %s says \"%s\"",
					p->config, p->def.name, manifest_shown, p->name));
		return 0;
	}
	/* The root's directory is called as whoever cloned it wished: no name of the project. */
	p->name = p->def.name ? p->def.name : p->is_root ? "//" : path_base(p->dir);
	if (p->is_root && !p->def.name)
		return 0;
	if (manifest_check_name(p->name, from, e) < 0)
		return p->def.name ? -1
				   : err_wrap(e, "named by its directory; write \"name\" in its "
						 "vx.config.json");
	return 0;
}

static int
load_project(struct loading *l, int fd, const char *dir, struct marks *m, struct err *e)
{
	struct arena *a = &l->w->arena;
	struct loaded *it = arena_new(a, struct loaded);
	const char *manifest_shown = shown_path(l, dir, "package.json");

	if (check_configs(dir, m, e) < 0)
		return -1;
	it->p.dir = arena_strdup(a, dir);
	it->p.is_root = !*dir;
	if (m->manifest && load_manifest(l, fd, manifest_shown, it, e) < 0)
		return -1;
	if (m->nconfigs && load_config(l, fd, &it->p, e) < 0)
		return -1;
	if (!it->p.has_manifest && !it->p.config)
		return 0;
	if (choose_name(l, it, manifest_shown, e) < 0)
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
	struct marks m = {0};

	if (!real)
		return open_failed(member, e);
	if (path_is_within(real, l->root->path)) {
		const char *root = strcmp(l->root->path, "/") ? l->root->path : "";

		*ret_dir = xstrdup(path_below(real, root));
		*ret_fd = fs_open_beneath(l->root->fd, *ret_dir, O_PATH | O_DIRECTORY, 0);
		return *ret_fd < 0 ? open_failed(member, e) : 1;
	}
	fd = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || find_marks(l, fd, real, &m) < 0 || (!m.manifest && !m.nconfigs))
		return 0;
	return err_set(e, ERR_CONFIG, 0,
		"%s: member \"%s\" (%s) is outside the workspace root %s: move %s up to a "
		"directory "
		"that holds both, or remove the link",
		l->root->source, member, real, l->root->path, l->root->source);
}

/* 1, 0: no project there, -1. */
static int
load_member(struct loading *l, const char *member, struct err *e)
{
	cleanup_close int fd = fs_open_beneath(l->root->fd, member, O_PATH | O_DIRECTORY, 0);
	cleanup_free char *real = NULL;
	const char *dir = member;
	struct marks m = {0};

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
	if (find_marks(l, fd, dir, &m) < 0)
		return err_set(e, ERR_IO, errno, "list %s", dir_shown(dir));
	if (!m.manifest && !m.nconfigs)
		return 0;
	if (load_project(l, fd, dir, &m, e) < 0)
		return -1;
	return htab_get(&l->w->by_dir, dir) != NULL;
}

static const char *
field_of(const char *source)
{
	return !strcmp(source, "vx.workspace.json")     ? "projects"
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
	bool is_ours = l->root->source && !strcmp(l->root->source, "vx.workspace.json");
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
		note(l, arena_printf(&l->w->arena,
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
	struct members members;
	int r;

	if (load_member(l, "", e) < 0)
		return -1;
	if (!l->root->source)
		return check_members(l, hit, e);
	if (members_parse(&l->root->members, l->root->source, l->root->path, &l->w->arena, &members,
		    e) < 0)
		return -1;
	r = members_expand(&members, l->root->fd, &dirs, e);
	for (size_t i = 0; i < dirs.n && r >= 0; i++) {
		r = load_member(l, dirs.v[i], e);
		if (r > 0)
			members_mark(&members, dirs.v[i], hit);
	}
	members_release(&members);
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

static void
find_far(struct workspace *w)
{
	size_t n = 0;

	for (int pass = 0; pass < 2; pass++) {
		n = 0;
		for (size_t i = 0; i < w->nprojects; i++)
			for (size_t k = 0; k < w->projects[i]->def.ntasks; k++) {
				const struct taskdef *t = &w->projects[i]->def.tasks[k];

				if (!taskdef_leaves_project(t))
					continue;
				if (pass)
					w->far[n] = t;
				n++;
			}
		if (!pass)
			w->far = arena_array(&w->arena, n, const struct taskdef *);
	}
	w->nfar = n;
}

static void
link_nested(struct workspace *w)
{
	cleanup_free struct project **sorted = xcalloc(w->nprojects, sizeof(struct project *));
	cleanup_free size_t *outer = xcalloc(w->nprojects, sizeof(*outer));
	size_t top = 0, n = w->nprojects;

	memcpy(sorted, w->projects, n * sizeof(struct project *));
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
				arena_array(&w->arena, sorted[i]->nnested, struct project *);
			sorted[i]->nnested = 0;
		}
	}
}

static int
link_edges(struct loading *l, struct err *e)
{
	struct workspace *w = l->w;
	cleanup_free const struct manifest **manifests = xcalloc(l->n, sizeof(*manifests));
	cleanup_free struct catalog_entry *catalogs = NULL;
	const struct manifest *root = NULL;
	struct pnpm pnpm = {0};
	size_t n;

	for (size_t i = 0; i < l->n; i++) {
		manifests[i] = &l->items[i]->manifest;
		if (l->items[i]->p.is_root)
			root = manifests[i];
	}
	if (pnpm_load(l->root->fd, "pnpm-workspace.yaml", &w->arena, &pnpm, e) < 0)
		return -1;
	n = pnpm.ncatalogs + (root ? root->ncatalogs : 0);
	catalogs = xcalloc(n, sizeof(*catalogs));
	for (size_t i = 0; i < n; i++)
		catalogs[i] =
			i < pnpm.ncatalogs ? pnpm.catalogs[i] : root->catalogs[i - pnpm.ncatalogs];
	return edges_link(w,
		&(struct edge_sources){
			.manifests = manifests, .catalogs = catalogs, .ncatalogs = n},
		e);
}

static int
load(struct loading *l, struct err *e)
{
	struct workspace *w = l->w;

	if (settings_load(l->root->fd, &w->arena, &w->settings, e) < 0)
		return -1;
	if (load_members(l, e) < 0 || index_names(l, e) < 0)
		return -1;
	link_nested(w);
	find_far(w);
	if (link_edges(l, e) < 0)
		return -1;
	w->notes = arena_array(&w->arena, l->nnotes, const char *);
	for (size_t i = 0; i < l->nnotes; i++)
		w->notes[w->nnotes++] = l->notes[i];
	return 0;
}

int
workspace_load(const struct root *root, int statefd, struct workspace *ret, struct err *e)
{
	struct workspace w = {.rootfd = root->fd};
	struct loading l = {
		.w = &w,
		.root = root,
		.sources = sources_open(statefd),
		.config_text = STRBUF_INIT,
	};
	int r;

	arena_init(&w.arena);
	htab_init(&w.by_name);
	htab_init(&w.by_dir);
	settings_init(&w.settings);
	w.path = arena_strdup(&w.arena, root->path);
	r = load(&l, e);
	sources_close(l.sources, !r);
	json_doc_release(&l.config);
	strbuf_release(&l.config_text);
	free(l.items);
	free(l.notes);
	if (r < 0) {
		workspace_release(&w);
		return -1;
	}
	*ret = w;
	return 0;
}

void
workspace_release(struct workspace *w)
{
	htab_release(&w->by_name);
	htab_release(&w->by_dir);
	arena_release(&w->arena);
	*w = (struct workspace){.rootfd = -1};
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
	if (fd >= 0 && json_load(fd, "vx.config.json", p->config, true, &doc, &e) == 0) {
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
