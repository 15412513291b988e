/* SPDX-License-Identifier: MIT */
#include "sandbox/liverules.h"
#include "proto/never.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include <sys/stat.h>

enum {
	LOOKS_MAX = 64
};

static bool
is_named(const struct liverules *lr, const char *path)
{
	return ruleset_names_write(lr->rules, path, path);
}

static bool
is_freed(const struct liverules *lr, const char *path)
{
	return lr->git_config && never_is_git_config(path) && ruleset_may_write(lr->rules, path);
}

bool
liverules_is_never(const struct liverules *lr, const char *path)
{
	size_t own = path_is_within(path, lr->cwd) ? strlen(lr->cwd) : 0;

	for (size_t n = 0; (n = never_prefix(path, n));) {
		cleanup_free char *name = xmemdupz(path, n);

		if (n > own && !ruleset_names_write(lr->rules, name, path) &&
			(path[n] || !is_freed(lr, path)))
			return true;
	}
	return false;
}

bool
liverules_is_called_repository(const struct liverules *lr, const char *dir)
{
	size_t n = strlen(dir);

	return n > 4 && !strcmp(dir + n - 4, ".git") && is_named(lr, dir);
}

bool
liverules_is_repository(const struct liverules *lr, const char *dir)
{
	return never_is_repo(never_repo_bits_at(lr->host, dir));
}

/* The last name that a directory lacked. */
static bool
completes_repository(const struct liverules *lr, const char *dir, const char *base)
{
	unsigned bit = never_repo_bit(base), bits;

	if (!bit || liverules_is_called_repository(lr, dir))
		return false;
	bits = never_repo_bits_at(lr->host, dir);
	return never_is_repo(bits | bit) && !never_is_repo(bits);
}

/* In what a repository obeys, at any depth: its config, its hooks. Or a link that would put another repository in the
 * place of one of its own. Each such name costs a few looks at the host, and a path can be made of nothing else. */
static bool
is_in_repository(const struct liverules *lr, const char *path, mode_t type)
{
	int looks = 0;

	for (const char *name = path;;) {
		size_t n = strcspn(name, "/");

		if (never_in_repository(name, n) ||
			(S_ISLNK(type) && never_holds_repositories(name, n))) {
			size_t above = name > path ? (size_t)(name - path) - 1 : 0;
			cleanup_free char *dir = xmemdupz(path, above);

			if (++looks > LOOKS_MAX || never_is_repo(never_repo_bits_at(lr->host, dir)))
				return true;
		}
		if (!name[n])
			return false;
		name += n + 1;
	}
}

bool
liverules_leads(const char *name)
{
	return never_is_git(name, strlen(name)) || never_leads(name, strlen(name));
}

bool
liverules_ends_never(const struct liverules *lr, const char *path, mode_t type)
{
	const char *base = path_base(path), *tail = base;
	size_t n = strlen(base);

	if (base > path)
		for (tail = base - 1; tail > path && tail[-1] != '/'; tail--)
			;
	if (!never_is_git(base, n) && !(S_ISLNK(type) && never_leads(base, n)) &&
		(!never_prefix(tail, (size_t)(base - tail)) || never_is_of_package(path)))
		return false;
	return !is_named(lr, path) && !(S_ISREG(type) && is_freed(lr, path));
}

bool
liverules_is_trap(const struct liverules *lr, const char *path, mode_t type)
{
	cleanup_free char *dir = xmemdupz(path, path_parent_len(path));
	const char *base = path_base(path);
	size_t n = strlen(base);

	if (is_named(lr, path) || (S_ISREG(type) && is_freed(lr, path)))
		return false;
	if (never_is_git(base, n) || (S_ISLNK(type) && never_leads(base, n)))
		return true;
	return completes_repository(lr, dir, base) || is_in_repository(lr, path, type);
}

bool
liverules_may_change(const struct liverules *lr, const char *path, mode_t type)
{
	enum host_kind kind = S_ISDIR(type) ? HOST_DIR : S_ISLNK(type) ? HOST_LINK : HOST_FILE;
	enum verdict v = ruleset_verdict(lr->rules, path, kind);

	return (v == VERDICT_PASS || v == VERDICT_TRAVERSE) && ruleset_may_write(lr->rules, path) &&
	       !liverules_is_never(lr, path) && !liverules_is_trap(lr, path, type);
}

bool
liverules_may_make_dir(const struct liverules *lr, const char *path)
{
	if (ruleset_verdict(lr->rules, path, HOST_DIR) == VERDICT_HIDE ||
		ruleset_is_quiet(lr->rules, path))
		return false;
	return (ruleset_may_write(lr->rules, path) || ruleset_may_write_below(lr->rules, path)) &&
	       !liverules_is_never(lr, path) && !liverules_is_trap(lr, path, S_IFDIR);
}

bool
liverules_is_whole(const struct liverules *lr, const char *dir)
{
	return ruleset_grants_whole(lr->rules, dir) && !liverules_is_never(lr, dir) &&
	       !liverules_is_trap(lr, dir, S_IFDIR);
}
