/* SPDX-License-Identifier: MIT */
#include "exec/homes.h"
#include "proto/stores.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void
add(struct strvec *homes, const char *path)
{
	cleanup_free char *real = path && *path == '/' ? realpath(path, NULL) : NULL;
	struct stat st;

	if (real && !stat(real, &st) && S_ISDIR(st.st_mode) && !strvec_contains(homes, real))
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

void
homes_find_stores(struct strvec *ret)
{
	const struct strvec *homes = homes_known();

	for (size_t i = 0; i < homes->n; i++) {
		cleanup_close int fd = open(homes->v[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		for (size_t k = 0; fd >= 0 && k < array_len(stores); k++)
			if (!faccessat(fd, stores[k].name, R_OK, AT_EACCESS))
				strvec_push_take(ret, homes_store_path(homes->v[i], &stores[k]));
	}
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
