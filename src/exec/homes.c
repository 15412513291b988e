/* SPDX-License-Identifier: MIT */
#include "exec/homes.h"
#include "exec/policy-private.h"
#include "proto/stores.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_ALIASES = 8
};

/* Homes as they were named, where that leads through a link: /home may be one. */
static struct strvec aliases = STRVEC_INIT;

static void
add(struct strvec *homes, const char *path)
{
	cleanup_free char *real = path && *path == '/' ? realpath(path, NULL) : NULL;
	struct stat st;

	if (!real || stat(real, &st) || !S_ISDIR(st.st_mode))
		return;
	if (strcmp(real, path) != 0 && !strvec_contains(&aliases, path))
		strvec_push(&aliases, path);
	if (!strvec_contains(homes, real))
		strvec_push_take(homes, take_ptr(&real));
}

/* The file, not the whole database: a directory service would be asked for everyone it knows, over the
 * network. Those of its users who have been here have their homes in /home. */
static void
add_listed(struct strvec *homes)
{
	FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *pw;

	if (!f)
		return;
	while ((pw = fgetpwent(f)))
		add(homes, pw->pw_dir);
	fclose(f);
}

static void
add_those_below(struct strvec *homes, const char *dir)
{
	cleanup_dir DIR *d = opendir(dir);
	const struct dirent *de;

	while (d && (de = readdir(d))) {
		cleanup_free char *path = *de->d_name != '.' ? path_join(dir, de->d_name) : NULL;

		add(homes, path);
	}
}

const struct strvec *
homes_known(void)
{
	static struct strvec homes;
	const struct passwd *pw;

	if (homes.n)
		return &homes;
	strvec_init(&homes);
	pw = getpwuid(geteuid());
	add(&homes, getenv("HOME"));
	add(&homes, pw ? pw->pw_dir : NULL);
	add_listed(&homes);
	add_those_below(&homes, "/home");
	return &homes;
}

char *
homes_store_path(const char *home, const struct store *s)
{
	return xasprintf("%s/%s", strcmp(home, "/") != 0 ? home : "", s->name);
}

/* Listing names of a directory and using them are two rights. */
static bool
may_read(int home, const char *path, const struct stat *st)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(home, path, &base);

	return parent >= 0 &&
	       (!faccessat(parent, base, R_OK, AT_EACCESS) ||
		       (S_ISDIR(st->st_mode) && !faccessat(parent, base, X_OK, AT_EACCESS)));
}

/* An absolute path below another spelling of the home: what is below. */
static const char *
below_alias(const char *home, const char *path)
{
	for (size_t i = 0; i < aliases.n; i++) {
		cleanup_free char *real =
			path_is_within(path, aliases.v[i]) ? realpath(aliases.v[i], NULL) : NULL;

		if (real && !strcmp(real, home))
			return path_below(path, aliases.v[i]);
	}
	return NULL;
}

/* Where the links of a store end, if that is in the home: its path from there. */
static char *
end_of(int homefd, const char *home, const char *name)
{
	cleanup_free char *from = xstrdup(name);

	for (int hops = 0; hops < MAX_ALIASES; hops++) {
		cleanup_free char *end = NULL;
		const char *below;
		int inside = links_resolve(homefd, home, from, &end);

		if (inside == 1)
			return *end ? take_ptr(&end) : NULL;
		below = inside < 0 ? NULL : below_alias(home, end);
		if (!below)
			return NULL;
		free(from);
		from = xstrdup(below);
	}
	return NULL;
}

static void
add_store(struct strvec *ret, int homefd, const char *home, const struct stat *home_st,
	const struct store *s)
{
	cleanup_free char *end = end_of(homefd, home, s->name), *path = NULL;
	struct stat st;

	if (!end || fs_stat_beneath(homefd, end, &st) || !may_read(homefd, end, &st))
		return;
	/* "/" is the home of nobody in particular: all there is lies in it. */
	if (strcmp(end, s->name) != 0 && (st.st_uid != home_st->st_uid || !strcmp(home, "/")))
		return;
	path = xasprintf("%s/%s", strcmp(home, "/") != 0 ? home : "", end);
	if (!strvec_contains(ret, path))
		strvec_push_take(ret, take_ptr(&path));
}

void
homes_add_stores(const char *home, struct strvec *ret)
{
	cleanup_close int fd = open(home, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	for (size_t i = 0; fd >= 0 && !fstat(fd, &st) && i < array_len(stores); i++)
		add_store(ret, fd, home, &st, &stores[i]);
}

void
homes_find_stores(struct strvec *ret)
{
	const struct strvec *homes = homes_known();

	for (size_t i = 0; i < homes->n; i++)
		homes_add_stores(homes->v[i], ret);
}

const struct store *
homes_store_at(const char *home, const char *path)
{
	const char *below;

	if (!home)
		return NULL;
	if (!strcmp(home, "/"))
		below = path + 1;
	else if (path_is_within(path, home))
		below = path_below(path, home);
	else
		return NULL;
	for (size_t i = 0; i < array_len(stores); i++)
		if (path_is_within(below, stores[i].name))
			return &stores[i];
	return NULL;
}
