/* SPDX-License-Identifier: MIT */
#include "workspace/root.h"
#include "config/settings.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
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
	strvec_release(&r->members);
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
	char *source;   /* NULL: it declares no members */
	bool ends_walk; /* has a pnpm-workspace.yaml: pnpm looks no further up */
};

static void
candidate_release(struct candidate *c)
{
	free(c->dir);
	free(c->source);
	strvec_release(&c->globs);
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
	return false;
}

/* 1: a candidate, 0: not one. */
static int
look_at(int fd, struct candidate *c, struct arena *a, struct err *e)
{
	cleanup_free char *yaml_shown = path_join(c->dir, "pnpm-workspace.yaml");
	cleanup_free char *manifest_shown = path_join(c->dir, "package.json");
	struct settings settings;
	struct pnpm pnpm = {0};
	struct manifest manifest = {0};
	int yaml, package;

	settings_init(&settings);
	if (settings_load(fd, a, &settings, e) < 0)
		return place_below(c->dir, e);
	if (settings.projects) {
		declare(c, "vx.workspace.json", settings.projects, settings.nprojects);
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
	return yaml || package || has_config(fd) || has_file(fd, "vx.workspace.json");
}

/* Whether the candidate's globs name the start directory or one above it. A declared root claims
 * itself: who stands in it means it, though a workspace further up may list it too. */
static int
claims(const struct candidate *c, const char *start, struct arena *a, struct err *e)
{
	struct members m;
	bool r;

	if (!c->source)
		return 0;
	if (!strcmp(c->dir, start))
		return 1;
	if (members_parse(&c->globs, c->source, c->dir, a, &m, e) < 0)
		return place_below(c->dir, e);
	r = members_claim(&m, below(start, c->dir));
	members_release(&m);
	return r;
}

/* Walks up from `start`; *ret is the root's candidate, with dir NULL when there is none. */
static int
walk_up(const char *start, struct arena *a, struct candidate *ret, struct err *e)
{
	cleanup_free char *dir = xstrdup(start);
	struct candidate nearest = {0};

	for (bool last = false; !last;) {
		cleanup_close int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		struct candidate c = {.dir = xstrdup(dir)};
		int is = fd < 0 ? 0 : look_at(fd, &c, a, e), claimed = 0;
		size_t parent = path_parent_len(dir);

		if (is > 0)
			claimed = claims(&c, start, a, e);
		last = c.ends_walk || !strcmp(dir, "/");
		if (is < 0 || claimed < 0) {
			candidate_release(&c);
			candidate_release(&nearest);
			return -1;
		}
		if (claimed || (is && !nearest.dir)) {
			candidate_release(&nearest);
			nearest = c;
			last |= claimed > 0;
		} else {
			candidate_release(&c);
		}
		dir[parent ? parent : 1] = '\0';
	}
	*ret = nearest;
	return 0;
}

int
root_find(const char *start, struct root *ret, struct err *e)
{
	cleanup_free char *cwd = realpath(start ? start : ".", NULL);
	struct candidate c = {0};
	struct arena a;
	int fd, r;

	if (!cwd)
		return err_set(e, ERR_USAGE, errno, "%s", start ? start : "current directory");
	arena_init(&a);
	r = walk_up(cwd, &a, &c, e);
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
	};
	return 0;
}
