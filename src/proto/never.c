/* SPDX-License-Identifier: MIT */
#include "proto/never.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include <strings.h>

static const char MODULES[] = "node_modules";

/* `name`, or `name` directly below `parent`. A trailing "*" stands for anything. */
static const struct {
	const char *parent;
	const char *name;
} names[] = {
	{NULL, ".bash_profile"},
	{NULL, ".bashrc"},
	{".cargo", "config"},
	{".cargo", "config.toml"},
	{".claude", "agents"},
	{".claude", "commands"},
	{NULL, ".devcontainer"},
	{NULL, ".envrc"},
	{NULL, ".exrc"},
	{NULL, ".gdbinit"},
	{NULL, ".gitconfig"},
	{NULL, ".github"},
	{NULL, ".gitmodules"},
	{".hg", "hgrc"},
	{".hg", "hgrc-not-shared"},
	{".hg", "sharedpath"},
	{NULL, ".husky"},
	{NULL, ".idea"},
	{NULL, ".lldbinit"},
	{NULL, ".mcp.json"},
	{".mise", "config.toml"},
	{NULL, ".mise.*"},
	{NULL, ".npmrc"},
	{NULL, ".pnpmfile.cjs"},
	{NULL, ".profile"},
	{NULL, ".ripgreprc"},
	{NULL, ".vimrc"},
	{NULL, ".vscode"},
	{NULL, ".yarnrc"},
	{NULL, ".yarnrc.yml"},
	{NULL, ".zprofile"},
	{NULL, ".zshrc"},
	{NULL, "mise.local.toml"},
	{NULL, "mise.toml"},
	{NULL, "pnpm-workspace.yaml"},
	{NULL, ".zshenv"},
	{NULL, ".zlogin"},
	{NULL, ".vx"},
	{NULL, "vx-scratch-*"},
	{NULL, ".cursor"},
	{".claude", "settings.local.json"},
	{".claude", "settings.json"},
	{NULL, ".bash_login"},
	{NULL, "vx-lock.json"},
	{NULL, "vx.config.*"},
	{NULL, "vx.workspace.*"},
};

/* `commondir` sends git to another directory for the other two. */
static const char *const repository_names[] = {"commondir", "config", "config.worktree", "hooks"};
/* Directly in a repository, below these, names are those of branches and objects. */
static const char *const repository_data[] = {"logs", "objects", "refs"};
/* Those of submodules, and what worktrees have of their own. */
static const char *const repository_holders[] = {"modules", "worktrees"};

static bool
is_name(const char *s, size_t n, const char *pattern)
{
	size_t k = strlen(pattern);

	if (pattern[k - 1] == '*')
		return n >= k - 1 && !strncasecmp(s, pattern, k - 1);
	return n == k && !strncasecmp(s, pattern, n);
}

static bool
is_one_of(const char *s, size_t n, const char *const *list, size_t nlist)
{
	for (size_t i = 0; i < nlist; i++)
		if (is_name(s, n, list[i]))
			return true;
	return false;
}

bool
never_is_git(const char *name, size_t n)
{
	return is_name(name, n, ".git");
}

bool
never_is_git_config(const char *path)
{
	static const char tail[] = ".git/config";
	size_t n = strlen(path), k = sizeof(tail) - 1;

	return n >= k && !strcmp(path + n - k, tail) && (n == k || path[n - k - 1] == '/');
}

bool
never_in_repository(const char *name, size_t n)
{
	return is_one_of(name, n, repository_names, array_len(repository_names));
}

bool
never_holds_repositories(const char *name, size_t n)
{
	return is_one_of(name, n, repository_holders, array_len(repository_holders));
}

bool
never_is_git_data(const char *name, size_t n)
{
	return is_one_of(name, n, repository_data, array_len(repository_data));
}

/*
 * Obeyed at the root of a repository alone, and below a node_modules there is none that somebody made: a .git is
 * never put there. But packages are published with it: of 285 that many use, 13 are.
 */
static const char of_packages[] = ".github";

bool
never_is_of_package(const char *path)
{
	const char *base = path_base(path);

	return is_name(base, strlen(base), of_packages) && path_find(path, MODULES);
}

static bool
is_listed(const char *parent, size_t nparent, const char *name, size_t n)
{
	for (size_t i = 0; i < array_len(names); i++)
		if (is_name(name, n, names[i].name) &&
			(!names[i].parent || is_name(parent, nparent, names[i].parent)))
			return true;
	return false;
}

bool
never_leads(const char *name, size_t n)
{
	for (size_t i = 0; i < array_len(names); i++)
		if (names[i].parent && is_name(name, n, names[i].parent))
			return true;
	return false;
}

size_t
never_prefix(const char *path, size_t from)
{
	const char *parent = "", *name = path;
	size_t nparent = 0, git = 0; /* components since a .git; 0: none yet */
	bool data = false, modules = false;

	for (;;) {
		size_t n = strcspn(name, "/"), end = (size_t)(name - path) + n;

		if (git == 1)
			data = never_is_git_data(name, n);
		if (end > from && ((is_listed(parent, nparent, name, n) &&
					   !(modules && is_name(name, n, of_packages))) ||
					  (git && !data && never_in_repository(name, n))))
			return end;
		if (git)
			git++;
		else if (never_is_git(name, n))
			git = 1;
		modules = modules || (n == strlen(MODULES) && !memcmp(name, MODULES, n));
		if (!name[n])
			return 0;
		parent = name;
		nparent = n;
		name += n + 1;
	}
}

/* Repositories. */

enum {
	REPO_HEAD = 1,
	REPO_OBJECTS = 2,
	REPO_REFS = 4,
	REPO_COMMONDIR = 8
};

static const struct {
	const char *name;
	unsigned bit;
} repo_bits[] = {
	{"HEAD", REPO_HEAD},
	{"objects", REPO_OBJECTS},
	{"refs", REPO_REFS},
	{"commondir", REPO_COMMONDIR},
};

unsigned
never_repo_bit(const char *name)
{
	for (size_t i = 0; i < array_len(repo_bits); i++)
		if (!strcmp(name, repo_bits[i].name))
			return repo_bits[i].bit;
	return 0;
}

unsigned
never_repo_bits_at(int rootfd, const char *dir)
{
	unsigned bits = 0;

	for (size_t i = 0; i < array_len(repo_bits); i++) {
		cleanup_free char *path = path_join(dir, repo_bits[i].name);
		struct stat st;

		if (!fs_stat_beneath(rootfd, path, &st))
			bits |= repo_bits[i].bit;
	}
	return bits;
}

bool
never_is_repo(unsigned bits)
{
	return (bits & REPO_HEAD) &&
	       ((bits & REPO_COMMONDIR) ||
		       (bits & (REPO_OBJECTS | REPO_REFS)) == (REPO_OBJECTS | REPO_REFS));
}

bool
never_is_manifest(const char *path)
{
	const char *base = path_base(path);

	return is_name(base, strlen(base), "package.json") && !path_find(path, MODULES);
}
