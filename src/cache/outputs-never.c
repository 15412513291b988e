/* SPDX-License-Identifier: MIT */
#include "cache/outputs-never.h"
#include "cache/never.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/htab.h"
#include "util/path.h"
#include <errno.h>

struct check {
	int rootfd;
	const struct globset *set;
	struct htab repos; /* directory -> bits of what it would have */
};

/* Whether a glob that selects the path (n bytes of it are `name`) says it in so many words. */
static bool
is_named(const struct globset *set, const char *path, size_t n)
{
	for (size_t i = 0; i < set->npos; i++) {
		const struct glob *g = set->pos[i];

		for (size_t k = 0; k < glob_nalternatives(g); k++) {
			const char *head = glob_literal_head(g, k);
			size_t len = strlen(head);

			if (len >= n && !memcmp(head, path, n) && (!head[n] || head[n] == '/') &&
				(path_is_within(path, head) || path_is_within(head, path)))
				return true;
		}
	}
	return false;
}

static const char *
why_not_name(const struct check *c, const char *path)
{
	for (size_t n = 0; (n = never_prefix(path, n));)
		if (!is_named(c->set, path, n))
			return "others would execute or obey it";
	for (const char *s = path;; s++) {
		size_t n = strcspn(s, "/");

		if (never_is_git(s, n) && !is_named(c->set, path, (size_t)(s - path) + n))
			return "it would be a git repository";
		s += n;
		if (!*s)
			return NULL;
	}
}

/* Whether the link leads to a directory that is there. Only looked at. */
static bool
leads_to_dir(const struct check *c, const struct output *link)
{
	cleanup_free char *parent = xmemdupz(link->path, path_parent_len(link->path));
	cleanup_free char *joined = path_join(parent, link->target);
	cleanup_free char *to = path_normalise(joined);
	struct stat st;

	return !fstatat(c->rootfd,
		       *link->target == '/' ? link->target
		       : *to                ? to
					    : ".",
		       &st, 0) &&
	       S_ISDIR(st.st_mode);
}

/*
 * A link in the place of a directory of outputs, or on the way there: the next restore would follow it
 * to where its author says. One that a literal glob names itself is an output as long as it leads to no
 * directory; else saving would have followed it.
 */
static bool
leads_outputs_away(const struct check *c, const struct output *link)
{
	for (size_t i = 0; i < c->set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(c->set->pos[i]); k++) {
			const char *head = glob_literal_head(c->set->pos[i], k);

			if (path_is_within(head, link->path) &&
				(strcmp(head, link->path) != 0 ||
					!glob_alternative_is_literal(c->set->pos[i], k) ||
					leads_to_dir(c, link)))
				return true;
		}
	return false;
}

static unsigned
repo_bits(const struct check *c, const char *path, size_t n)
{
	return (unsigned)(uintptr_t)htab_getn(&c->repos, path, n);
}

/* What git would see in the directory of a name by which it knows repositories. */
static void
note_repo(struct check *c, const char *path)
{
	unsigned bit = never_repo_bit(path_base(path)), bits;
	size_t n = path_parent_len(path);

	if (!bit)
		return;
	bits = repo_bits(c, path, n);
	if (!bits) {
		cleanup_free char *dir = xmemdupz(path, n);

		bits = never_repo_bits_at(c->rootfd, dir);
	}
	htab_putn_copy(&c->repos, path, n, (void *)(uintptr_t)(bits | bit));
}

/* One called NAME.git may be named as a whole. */
static bool
makes_repo(const struct check *c, const char *path)
{
	size_t n = path_parent_len(path);

	return never_repo_bit(path_base(path)) && never_is_repo(repo_bits(c, path, n)) &&
	       !(n > 4 && !memcmp(path + n - 4, ".git", 4) && is_named(c->set, path, n));
}

static bool
turns_repo(const struct check *c, const struct output *out)
{
	const char *path = out->path, *base = path_base(path);
	cleanup_free char *dir = NULL;

	if (!never_in_repository(base, strlen(base)) &&
		!(out->type == OUTPUT_LINK && never_holds_repositories(base, strlen(base))))
		return false;
	dir = xmemdupz(path, path_parent_len(path));
	return never_is_repo(never_repo_bits_at(c->rootfd, dir));
}

static const char *
why_not(const struct check *c, const struct output *out)
{
	const char *base = path_base(out->path), *why = why_not_name(c, out->path);

	if (why)
		return why;
	if (out->type == OUTPUT_LINK && leads_outputs_away(c, out))
		return "it is a link in the place of a directory of outputs";
	if (makes_repo(c, out->path))
		return "its directory would be a git repository";
	if (is_named(c->set, out->path, strlen(out->path)))
		return NULL;
	if (out->type == OUTPUT_LINK &&
		(never_leads(base, strlen(base)) || outputs_is_manifest(c->set, out->path)))
		return "a link of this name leads to what others would obey";
	return turns_repo(c, out) ? "a git repository would obey it" : NULL;
}

const struct output *
outputs_find_never(int rootfd, const struct globset *set, const struct output *const *v, size_t n,
	const char **ret_why)
{
	struct check c = {.rootfd = rootfd, .set = set};
	const struct output *found = NULL;

	htab_init(&c.repos);
	for (size_t i = 0; i < n; i++)
		note_repo(&c, v[i]->path);
	for (size_t i = 0; i < n && !found; i++) {
		const char *why = why_not(&c, v[i]);

		if (!why)
			continue;
		found = v[i];
		*ret_why = why;
	}
	htab_release(&c.repos);
	return found;
}

bool
outputs_is_manifest(const struct globset *set, const char *path)
{
	return never_is_manifest(path) && !is_named(set, path, strlen(path));
}

const char *
outputs_why_not_manifest(int fd)
{
	enum never_manifest m = never_manifest_at(fd);

	return m == MANIFEST_PLAIN ? NULL : never_manifest_why(m);
}
