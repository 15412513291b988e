/* SPDX-License-Identifier: MIT */
#include "workspace/root.h"
#include "config/evaluated.h"
#include "config/settings.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "workspace/manifest.h"
#include "workspace/members.h"
#include "workspace/pnpm.h"
#include <errno.h>
#include <fcntl.h>

void
root_release(struct root *r)
{
	fd_close(&r->fd);
	free(r->path);
	free(r->cwd);
	free(r->source);
	free(r->note);
	strvec_release(&r->members);
	script_release(&r->settings);
	*r = (struct root){.fd = -1};
}

/* The error begins with the name of a file in `dir`, which is no path from here. */
static int
place_below(const char *dir, struct err *e)
{
	const struct err in = *e;

	err_clear(e);
	return err_set(e, in.kind, 0, "%s%s%s", dir, strcmp(dir, "/") ? "/" : "", in.text);
}

/* A directory that could be the root. */
struct candidate {
	char *dir;
	struct strvec globs;
	char *source; /* NULL: it declares no members */
	struct script settings;
	bool ends_walk; /* has a pnpm-workspace.yaml: pnpm looks no further up */
	bool is_lone;   /* nothing but a project's config makes it a workspace */
};

static void
candidate_release(struct candidate *c)
{
	free(c->dir);
	free(c->source);
	strvec_release(&c->globs);
	script_release(&c->settings);
	*c = (struct candidate){0};
}

static void
declare(struct candidate *c, const char *source, const char *const *globs, size_t n)
{
	c->source = xstrdup(source);
	for (size_t i = 0; i < n; i++)
		strvec_push(&c->globs, globs[i]);
}

/* path_below for absolute paths, "/" included. */
static const char *
below(const char *path, const char *dir)
{
	return path_below(path, strcmp(dir, "/") ? dir : "");
}

static bool
has_file(int fd, const char *name)
{
	return !faccessat(fd, name, F_OK, 0);
}

static bool
has_config(int fd)
{
	static const char *const names[] = {"vx.config.json", "vx.config.ts", "vx.config.mts",
		"vx.config.js", "vx.config.mjs", "vx.config.cts", "vx.config.cjs"};

	for (size_t i = 0; i < array_len(names); i++)
		if (has_file(fd, names[i]))
			return true;
	/* Who loads the project says that it is not read. */
	for (size_t i = 0; i < array_len(script_unread_endings); i++) {
		char name[32];

		snprintf(name, sizeof(name), "vx.config.%s", script_unread_endings[i]);
		if (has_file(fd, name))
			return true;
	}
	return false;
}

/* From where, and how, the root is looked for. */
struct search {
	const char *start;
	uid_t owner; /* of `start` */
	enum root_scripts scripts;
};

/* Of a link, too: who made it has chosen the file. */
static int
check_owner(int fd, const char *name, const struct search *s, struct err *e)
{
	static const int flags[] = {AT_SYMLINK_NOFOLLOW, 0};
	struct stat st;

	for (size_t i = 0; i < array_len(flags); i++) {
		if (fstatat(fd, name, &st, flags[i]))
			return err_set(e, ERR_IO, errno, "%s", name);
		if (st.st_uid && st.st_uid != geteuid() && st.st_uid != s->owner)
			return err_set(e, ERR_CONFIG, 0,
				"%s: is not evaluated: it belongs to uid %ju, which is neither you "
				"nor who owns %s",
				name, (uintmax_t)st.st_uid, s->start);
	}
	return 0;
}

/* What the directory's script yields, into c->settings. */
static int
evaluate(int fd, struct candidate *c, const char *name, const struct search *s, struct err *e)
{
	cleanup_close int state = fs_open_beneath(fd, ".vx", O_RDONLY | O_DIRECTORY, 0);
	struct evaluated *memory;
	const char *json;
	int r = 0;

	if (check_owner(fd, name, s, e))
		return -1;
	c->settings.path = name;
	memory = evaluated_open(state, fd, c->dir);
	json = evaluated_get(memory, name, &c->settings.len);
	if (json) {
		c->settings.json = xmemdupz(json, c->settings.len);
		evaluated_needs(memory, name, &c->settings.needs, &c->settings.manifests);
	} else {
		struct script_runtime *rt = script_open(c->dir);

		r = script_evaluate(rt, &c->settings, 1, e);
		script_close(rt);
	}
	evaluated_close(memory, false);
	return r;
}

static int
load_settings(int fd, struct candidate *c, const struct search *s, struct arena *a,
	struct settings *ret, const char **ret_name, struct err *e)
{
	if (settings_find(fd, ret_name, e))
		return -1;
	if (*ret_name && strcmp(*ret_name, "vx.workspace.json") != 0) {
		if (s->scripts == ROOT_LOOK)
			return 0;
		if (evaluate(fd, c, *ret_name, s, e))
			return -1;
	}
	return settings_load(fd, &c->settings, a, ret, e);
}

/* 1: a candidate, 0: not one. */
static int
look_at(int fd, struct candidate *c, const struct search *s, struct arena *a, struct err *e)
{
	cleanup_free char *yaml_shown = path_join(c->dir, "pnpm-workspace.yaml");
	cleanup_free char *manifest_shown = path_join(c->dir, "package.json");
	struct settings settings;
	struct pnpm pnpm = {0};
	struct manifest manifest = {0};
	const char *name = NULL;
	int yaml, package;

	settings_init(&settings);
	if (load_settings(fd, c, s, a, &settings, &name, e) < 0)
		return place_below(c->dir, e);
	if (settings.projects) {
		declare(c, name, settings.projects, settings.nprojects);
		return 1;
	}
	yaml = pnpm_load(fd, yaml_shown, a, &pnpm, e);
	if (yaml < 0)
		return -1;
	c->ends_walk = yaml > 0;
	if (pnpm.npackages) {
		declare(c, "pnpm-workspace.yaml", pnpm.packages, pnpm.npackages);
		return 1;
	}
	package = manifest_load(fd, "package.json", manifest_shown, a, &manifest, e);
	if (package < 0)
		return -1;
	if (manifest.has_workspaces) {
		declare(c, "package.json", manifest.workspaces, manifest.nworkspaces);
		return 1;
	}
	c->is_lone = !yaml && !name && has_config(fd);
	return yaml || package || c->is_lone || name;
}

/* Whether one of the members is reached through a link and really lies where the start directory is, or above it. */
static bool
claims_by_link(const struct members *m, const struct candidate *c, int fd, const char *start)
{
	cleanup_strvec struct strvec dirs = STRVEC_INIT;
	struct err ignored = ERR_INIT; /* who loads the members says it */
	bool found = false;

	if (members_expand(m, fd, &dirs, &ignored) < 0)
		return false;
	for (size_t i = 0; i < dirs.n && !found; i++) {
		cleanup_close int plain = fs_open_beneath(fd, dirs.v[i], O_PATH | O_DIRECTORY, 0);
		cleanup_free char *path = NULL, *real = NULL;

		if (plain >= 0 || errno != ELOOP)
			continue;
		path = path_join(c->dir, dirs.v[i]);
		real = realpath(path, NULL);
		found = real && strcmp(real, c->dir) && path_is_within(real, c->dir) &&
			path_is_within(start, real);
	}
	return found;
}

/* Whether the candidate's globs name the start directory or one above it. A declared root claims
 * itself: who stands in it means it, though a workspace further up may list it too. */
static int
claims(const struct candidate *c, int fd, const char *start, struct arena *a, struct err *e)
{
	struct members m;
	bool r;

	if (!c->source)
		return 0;
	if (!strcmp(c->dir, start))
		return 1;
	if (members_parse(&c->globs, c->source, c->dir, a, &m, e) < 0)
		return place_below(c->dir, e);
	r = members_claim(&m, below(start, c->dir)) || claims_by_link(&m, c, fd, start);
	members_release(&m);
	return r;
}

/* Whether the globs leave the directory out without a "!" that says so. */
static bool
forgets(const struct candidate *c, const char *dir, struct arena *a)
{
	cleanup_strvec struct strvec positive = STRVEC_INIT;
	struct err ignored = ERR_INIT; /* claims has told it */
	struct members m;
	bool r;

	for (size_t i = 0; i < c->globs.n; i++)
		if (*c->globs.v[i] != '!')
			strvec_push(&positive, c->globs.v[i]);
	if (members_parse(&positive, c->source, c->dir, a, &m, &ignored) < 0)
		return false;
	r = !members_claim(&m, below(dir, c->dir));
	members_release(&m);
	return r;
}

/* A config that was written for the workspace above, and is not in it, would else make one in silence. */
static char *
say_lone(const struct candidate *lone, const struct candidate *above, struct arena *a)
{
	cleanup_free char *source = NULL;
	const char *dir;

	if (!above->dir || !lone->is_lone || !forgets(above, lone->dir, a))
		return NULL;
	source = path_join(above->dir, above->source);
	dir = below(lone->dir, above->dir);
	return xasprintf("%s does not name %s, which so is a workspace of its own: add \"%s\" "
			 "there, or put a vx.workspace.json that says {} here",
		source, dir, dir);
}

/* Walks up from `start`; *ret is the root's candidate, with dir NULL when there is none. */
static int
walk_up(const struct search *s, struct arena *a, struct candidate *ret, char **ret_note,
	struct err *e)
{
	cleanup_free char *dir = xstrdup(s->start);
	struct candidate nearest = {0}, above = {0};
	bool is_apart = false; /* in a repository in the one that was the last to be looked at */

	for (bool last = false; !last;) {
		cleanup_close int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct candidate c = {.dir = xstrdup(dir)};
		int is = fd < 0 ? 0 : look_at(fd, &c, s, a, e), claimed = 0;
		size_t parent = path_parent_len(dir);

		if (is > 0)
			claimed = claims(&c, fd, s->start, a, e);
		last = c.ends_walk || !strcmp(dir, "/");
		if (is < 0 || claimed < 0) {
			candidate_release(&c);
			candidate_release(&nearest);
			candidate_release(&above);
			return -1;
		}
		if (claimed || (is && !nearest.dir)) {
			candidate_release(&nearest);
			nearest = c;
			last |= claimed > 0;
		} else if (is && c.source && !above.dir && !is_apart) {
			above = c;
		} else {
			candidate_release(&c);
		}
		is_apart |= fd >= 0 && has_file(fd, ".git");
		dir[parent ? parent : 1] = '\0';
	}
	*ret_note = nearest.dir ? say_lone(&nearest, &above, a) : NULL;
	candidate_release(&above);
	*ret = nearest;
	return 0;
}

int
root_find(const char *start, enum root_scripts scripts, struct root *ret, struct err *e)
{
	cleanup_free char *cwd = realpath(start ? start : ".", NULL);
	struct search s = {.start = cwd, .scripts = scripts};
	struct candidate c = {0};
	cleanup_free char *note = NULL;
	struct stat st;
	struct arena a;
	int fd, r;

	if (!cwd || stat(cwd, &st))
		return err_set(e, ERR_USAGE, errno, "%s", start ? start : "current directory");
	s.owner = st.st_uid;
	arena_init(&a);
	r = walk_up(&s, &a, &c, &note, e);
	arena_release(&a);
	if (r < 0)
		return -1;
	if (!c.dir)
		return err_set(e, ERR_USAGE, 0,
			"no workspace in %s or above it: a vx.workspace.json with \"projects\", a "
			"pnpm-workspace.yaml, a package.json or a vx.config.json makes one",
			cwd);
	fd = open(c.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err_set(e, ERR_IO, errno, "open %s", c.dir);
		candidate_release(&c);
		return -1;
	}
	*ret = (struct root){
		.fd = fd,
		.path = c.dir,
		.cwd = xstrdup(below(cwd, c.dir)),
		.members = c.globs,
		.source = c.source,
		.settings = c.settings,
		.note = take_ptr(&note),
	};
	return 0;
}
