/* SPDX-License-Identifier: MIT */
/*
 * Files that the command may write and that the kernel would not copy up, since their owner or group has no id in the
 * sandbox (EOVERFLOW, findings 6). Then the workspace is served by the mirror, which shows them as the caller's.
 * Directories need none of that: the policy layer shows them so itself. Nor do declared outputs, which are hidden, and
 * what was copied at start.
 */
#include "proto/ruleset.h"
#include "sandbox/setup.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strvec.h"
#include <fcntl.h>

enum {
	NAMES_MAX = 300, /* looked at: some 0.5 ms */
};

/* What a rule names for writing, or the directory in which its pattern begins. Owned. */
static char *
place_of(const struct spec_rule *r)
{
	const char *path = r->is_glob ? glob_text_path(r->path) : r->path;
	size_t n = strlen(path);

	if (r->is_glob) {
		n = strcspn(path, "*?[]{}()!\\,");
		while (n && path[n] != '/')
			n--;
	}
	return xmemdupz(path, n);
}

struct search {
	const struct setup *s;
	struct owner owner;
	struct strvec dirs; /* found, in their order */
	size_t names;
};

/* True: that one is. */
static bool
look_at(struct search *f, const char *path, enum host_kind kind, const struct stat *st)
{
	enum verdict v;

	if (kind != HOST_DIR && !owner_is_foreign(&f->owner, st))
		return false;
	v = ruleset_verdict(f->s->rules, path, kind);
	if ((v != VERDICT_PASS && v != VERDICT_TRAVERSE) || preload_find(&f->s->preload, path) ||
		!ruleset_is_written(f->s->rules, path))
		return false;
	if (kind == HOST_DIR)
		strvec_push(&f->dirs, path);
	return kind != HOST_DIR;
}

static char *
look_in(struct search *f, const char *dir)
{
	cleanup_dir DIR *d = host_opendir(f->s->host, dir);
	const char *name;
	enum host_kind kind;
	struct stat st;

	while (d && f->names < NAMES_MAX && host_readdir(d, &name, &kind) == 1) {
		cleanup_free char *path = path_join(dir, name);

		f->names++;
		if (!fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) &&
			look_at(f, path, kind, &st))
			return take_ptr(&path);
	}
	return NULL;
}

char *
foreign_find(const struct setup *s)
{
	struct search f = {s, setup_owner(s), STRVEC_INIT, 0};
	char *found = NULL;

	if (s->maps_all && s->uids.unnamed == -1U && s->gids.unnamed == -1U)
		return NULL;
	for (size_t i = 0; i < s->spec.nrules && !found; i++) {
		const struct spec_rule *r = &s->spec.rules[i];
		cleanup_free char *place = NULL;
		enum host_kind kind;
		struct stat st;

		if (r->kind != SPEC_WRITE || *r->path == '/')
			continue;
		place = place_of(r);
		if (!host_look(s->host, place, &kind, &st) && kind != HOST_ABSENT &&
			look_at(&f, place, kind, &st))
			found = take_ptr(&place);
	}
	/* Those nearest to what is named come first: where a tree is another's, that is soon seen. */
	for (size_t i = 0; i < f.dirs.n && !found && f.names < NAMES_MAX; i++)
		found = look_in(&f, f.dirs.v[i]);
	strvec_release(&f.dirs);
	return found;
}
