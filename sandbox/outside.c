/* SPDX-License-Identifier: MIT */
/*
 * Directories outside of the workspace that are granted for writing. In both views they are the host's own, and
 * what the command writes in them is there at once, as in a live view of the workspace. So they are shown in the
 * same way: bound where nothing in them is of a name that is never committed, and served, name by name, where
 * there is something (liveplan.h, livewall.h). A linked worktree's repository is one: its objects are bound, and
 * its hooks are refused and told. All paths are from the root of the host.
 */
#include "sandbox/outside.h"
#include "sandbox/mount.h"
#include "sandbox/setup.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>

static bool
is_write(const struct spec_rule *r)
{
	/* Of the root itself nothing is seen: it is the root of the processes that are there. */
	return r->kind == SPEC_WRITE && r->path[0] == '/' && r->path[1];
}

static void
make_rules(struct outside *o, const struct spec *spec)
{
	cleanup_free struct spec_rule *rules = xcalloc(spec->nrules, sizeof(*rules));
	struct err e = ERR_INIT;
	size_t n = 0;

	for (size_t i = 0; i < spec->nrules; i++)
		if (is_write(&spec->rules[i]))
			rules[n++] = (struct spec_rule){
				.kind = SPEC_WRITE, .path = spec->rules[i].path + 1};
	if (ruleset_new(rules, n, NULL, &o->rules, &e))
		setup_die(0, "", "%s", e.text);
}

/* The directories, none of which lies in another. A file is what its rule names, and bound as it is. */
static void
find_tops(struct outside *o, const struct spec *spec)
{
	cleanup_strvec struct strvec paths = STRVEC_INIT;

	for (size_t i = 0; i < spec->nrules; i++)
		if (is_write(&spec->rules[i]))
			strvec_push(&paths, spec->rules[i].path + 1);
	strvec_sort(&paths);
	for (size_t i = 0; i < paths.n; i++) {
		struct stat st;
		enum host_kind kind;

		if (outside_top(o, paths.v[i]) < 0 && !host_look(o->host, paths.v[i], &kind, &st) &&
			kind == HOST_DIR)
			strvec_push(&o->tops, paths.v[i]);
	}
}

/* What is in one of them and no part of it: it is covered, and shown as what it is. */
static void
find_apart(struct outside *o, const struct setup *s)
{
	liveplan_leave_out(&o->plan, &s->host_st);
	liveplan_leave_out(&o->plan, &s->scratch_st);
	for (size_t i = 0; i < s->spec.hide.n; i++) {
		struct stat st;

		if (!lstat(s->spec.hide.v[i], &st))
			liveplan_leave_out(&o->plan, &st);
	}
}

/* init opens it itself: only in its user namespace can it mount with it. */
static bool
can_serve(const struct setup *s)
{
	cleanup_close int fd = s->spec.fuse_off ? -1 : mount_open_fuse();

	return fd >= 0;
}

/* What is there now is covered by itself, read-only, what comes is found at the end: as well kept, but nobody is told
 * of an attempt, and what is covered cannot be renamed or removed together with what it is in. */
static void
make_bare(struct outside *o, struct setup *s)
{
	const char *top;

	liveplan_release(&o->plan);
	liveplan_init(&o->plan);
	find_apart(o, s);
	if (liveplan_make_bare(&o->plan, &o->live, &o->tops, &top))
		setup_die(0,
			"let this user open /dev/fuse (in a container: --device /dev/fuse), or "
			"grant "
			"directories further down",
			"/%s has too many names, or some that cannot be read, to keep out of it "
			"without "
			"/dev/fuse what is never written unless its own path is granted",
			top);
	o->is_served = false;
}

void
outside_prepare(struct setup *s)
{
	struct outside *o = &s->outside;

	strvec_init(&o->tops);
	liveplan_init(&o->plan);
	o->host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->host < 0)
		setup_die(errno, "see the cause", "cannot open /");
	find_tops(o, &s->spec);
	if (!o->tops.n)
		return;
	make_rules(o, &s->spec);
	o->live = (struct liverules){o->rules, "", o->host, s->spec.git_config};
	find_apart(o, s);
	liveplan_make(&o->plan, &o->live, &o->tops);
	for (size_t i = 0; i < o->tops.n; i++)
		o->is_served |= !liveplan_binds(&o->plan, o->tops.v[i]);
	if (o->is_served && !can_serve(s))
		make_bare(o, s);
}

ssize_t
outside_top(const struct outside *o, const char *path)
{
	for (size_t i = 0; i < o->tops.n; i++)
		if (path_is_within(path, o->tops.v[i]))
			return (ssize_t)i;
	return -1;
}
