/* SPDX-License-Identifier: MIT */
#include "workspace/workspace.h"
#include "config/evaluated.h"
#include "config/json.h"
#include "config/script.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/err.h"
#include "util/fd.h"
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
	const char *manifest_shown;
	bool named; /* by its manifest or config, not by its directory */
};

enum {
	UNMET_SHOWN = 8
};

/* Projects whose config has to be evaluated, all at once when all are found. */
struct unevaluated {
	struct loaded **items;
	size_t n, cap;
};

struct loading {
	struct workspace *w;
	const struct root *root;
	struct sources *sources;
	struct evaluated *evaluated;
	struct unevaluated unevaluated;
	/* The directory of the last member: the next one is often beside it. */
	char *parent;
	int parentfd;
	/* The last config that was parsed: often the next one says the same. */
	struct strbuf config_text;
	struct json_doc config;
	struct strbuf shown; /* the file that is being read */
	struct loaded **items;
	size_t n, cap;
	size_t nfar; /* tasks for workspace.far */
	const char **notes;
	size_t nnotes, notes_cap;
};

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

	if (type != DT_DIR &&
		(!strcmp(name, "package.json") || is_config_name(name) || is_unread_name(name)))
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

static void
note(struct loading *l, const char *text)
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

/* It is called as its directory, which cannot be. */
static int
refuse_dir_name(const struct project *p, struct err *e)
{
	cleanup_free char *file =
		path_join(p->dir, p->has_manifest ? "package.json" : "vx.config.json");
	const char *shown = p->config && !p->has_manifest ? p->config : file;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_add_sanitised(&text, shown, strlen(shown));
	strbuf_adds(&text, ": the project has no name but its directory's, \"");
	strbuf_add_sanitised(&text, p->name, strlen(p->name));
	return err_set(e, ERR_CONFIG, 0, "%s\", and that %s: write \"name\": \"another-name\" here",
		text.buf, manifest_name_fault(p->name));
}

static int
choose_name(struct loading *l, struct loaded *it, struct err *e)
{
	struct project *p = &it->p;
	const char *manifest_shown = it->manifest_shown;

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
	if (p->def.name)
		return manifest_check_name(p->name, p->config, e);
	return manifest_name_fault(p->name) ? refuse_dir_name(p, e) : 0;
}

static size_t
count_far(const struct projectdef *def)
{
	size_t n = 0;

	for (size_t k = 0; k < def->ntasks; k++)
		n += taskdef_leaves_project(&def->tasks[k]);
	return n;
}

/* From the text of its config, or what that yielded; NULL: it has none. */
static int
define_project(struct loading *l, struct loaded *it, const char *config, size_t len, bool evaluated,
	struct err *e)
{
	if (config) {
		if (parse_config(l, config, len, it->p.config, e) < 0)
			return -1;
		l->config.evaluated = evaluated;
		if (projectdef_parse(&l->config, it->p.dir, &l->w->arena, &it->p.def, e) < 0)
			return -1;
		l->nfar += count_far(&it->p.def);
	}
	return choose_name(l, it, e);
}

static const char **
take_names(struct loading *l, const struct strvec *from)
{
	const char **names = arena_array(&l->w->arena, from->n, const char *);

	for (size_t i = 0; i < from->n; i++)
		names[i] = arena_strdup(&l->w->arena, from->v[i]);
	return names;
}

static struct rests
take_rests(struct loading *l, const struct strvec *needs, const struct strvec *manifests, bool any)
{
	return (struct rests){
		take_names(l, needs), needs->n, take_names(l, manifests), manifests->n, any};
}

/* From what is remembered of it, or later. */
static int
define_by_script(struct loading *l, struct loaded *it, struct err *e)
{
	struct unevaluated *u = &l->unevaluated;
	size_t len;
	const char *json = evaluated_get(l->evaluated, it->p.config, &len);

	if (json) {
		cleanup_strvec struct strvec needs = STRVEC_INIT, manifests = STRVEC_INIT;

		evaluated_needs(l->evaluated, it->p.config, &needs, &manifests);
		it->p.rests = take_rests(l, &needs, &manifests, false);
		return define_project(l, it, json, len, true, e);
	}
	GROW(u->items, u->n + 1, u->cap);
	u->items[u->n++] = it;
	return 0;
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
	if (is_script(&f->marks) ? define_by_script(l, it, e) < 0
				 : define_project(l, it, f->of[SOURCE_CONFIG].text,
					   f->of[SOURCE_CONFIG].len, false, e) < 0)
		return -1;
	GROW(l->items, l->n + 1, l->cap);
	l->items[l->n++] = it;
	htab_put(&l->w->by_dir, it->p.dir, &it->p);
	return 0;
}

static int
evaluate_all(struct loading *l, struct err *e)
{
	const struct unevaluated *u = &l->unevaluated;
	cleanup_free struct script *v = xcalloc(u->n + 1, sizeof(*v));
	int r;

	for (size_t i = 0; i < u->n; i++)
		v[i].path = u->items[i]->p.config;
	r = script_evaluate(l->root->path, v, u->n, e);
	for (size_t i = 0; i < u->n; i++) {
		if (!r)
			r = define_project(l, u->items[i], v[i].json, v[i].len, true, e);
		if (!r)
			evaluated_put(l->evaluated, &v[i]);
		u->items[i]->p.rests = take_rests(l, &v[i].needs, &v[i].manifests, v[i].reads_any);
		script_release(&v[i]);
	}
	return r;
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
	struct members *members = &l->w->members;
	int r;

	if (load_member(l, "", e) < 0)
		return -1;
	if (!l->root->source)
		return check_members(l, hit, e);
	if (members_parse(&l->root->members, l->root->source, l->root->path, &l->w->arena, members,
		    e) < 0)
		return -1;
	r = members_expand(members, l->root->fd, &dirs, e);
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

/* Most workspaces have none: they were counted as their configs were read. */
static void
list_far(struct loading *l)
{
	struct workspace *w = l->w;

	if (!l->nfar)
		return;
	w->far = arena_array(&w->arena, l->nfar, const struct taskdef *);
	for (size_t i = 0; i < w->nprojects; i++)
		for (size_t k = 0; k < w->projects[i]->def.ntasks; k++)
			if (taskdef_leaves_project(&w->projects[i]->def.tasks[k]))
				w->far[w->nfar++] = &w->projects[i]->def.tasks[k];
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

static int
link_edges(struct loading *l, struct err *e)
{
	struct workspace *w = l->w;
	cleanup_free const struct manifest **manifests = xcalloc(l->n, sizeof(*manifests));
	cleanup_free struct catalog_entry *catalogs = NULL;
	cleanup_strvec struct strvec unmet = STRVEC_INIT;
	const struct manifest *root = NULL;
	struct pnpm pnpm = {0};
	size_t n;
	int r;

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
	r = edges_link(w,
		&(struct edge_sources){
			.manifests = manifests,
			.catalogs = catalogs,
			.ncatalogs = n,
			.is_whole = !w->settings.projects,
		},
		&unmet, e);
	for (size_t i = 0; i < unmet.n && i < UNMET_SHOWN; i++)
		note(l, arena_strdup(&w->arena, unmet.v[i]));
	if (unmet.n > UNMET_SHOWN)
		note(l, arena_printf(&w->arena, "and %zu more \"workspace:\" entries are not met",
				unmet.n - UNMET_SHOWN));
	return r;
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

	if (settings_load(l->root->fd, &l->root->settings, &w->arena, &w->settings, e) < 0)
		return -1;
	remember_settings(l);
	w->rests = take_rests(l, &l->root->settings.needs, &l->root->settings.manifests,
		l->root->settings.reads_any);
	if (load_members(l, e) < 0 || evaluate_all(l, e) < 0)
		return -1;
	link_nested(l);
	if (index_names(l, e) < 0)
		return -1;
	list_far(l);
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
		.evaluated = evaluated_open(statefd, root->fd, root->path),
		.parentfd = -1,
		.config_text = STRBUF_INIT,
		.shown = STRBUF_INIT,
	};
	int r;

	arena_init(&w.arena);
	htab_init(&w.by_name);
	htab_init(&w.by_dir);
	members_init(&w.members);
	settings_init(&w.settings);
	w.path = arena_strdup(&w.arena, root->path);
	r = load(&l, e);
	sources_close(l.sources, !r);
	evaluated_close(l.evaluated, !r);
	free(l.parent);
	fd_close(&l.parentfd);
	json_doc_release(&l.config);
	strbuf_release(&l.config_text);
	strbuf_release(&l.shown);
	free(l.items);
	free(l.unevaluated.items);
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
		json_load(fd, "vx.config.json", p->config, true, &doc, &e) == 0) {
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
