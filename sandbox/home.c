/* SPDX-License-Identifier: MIT */
/*
 * The home directory: an overlay like the workspace's, with all of the host's home below except the
 * credential stores, and with writes into the scratch that nobody commits. Tools keep their caches
 * there and must be able to write, and nothing they write may reach another task.
 *
 * A home that is "/", or the workspace itself or inside it, has none of its own: there the workspace's
 * policy speaks. A home with mounts inside cannot be a lower layer; it stays read-only and the stores
 * are covered by mounts.
 */
#include "sandbox/mount.h"
#include "sandbox/view.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

static const char no_remedy[] = "see the cause; vx works from kernel 6.1 on";

static const char *const stores[] = {
	".ssh",
	".gnupg",
	".aws",
	".azure",
	".kube",
	".config/gcloud",
	".config/gh",
	".docker/config.json",
	".netrc",
	".git-credentials",
	".npmrc",
	".yarnrc.yml",
	".pypirc",
	".bunfig.toml",
	".config/.bunfig.toml",
	".cargo/credentials",
	".cargo/credentials.toml",
	".gem/credentials",
	".config/hub",
	".config/containers/auth.json",
	".terraform.d/credentials.tfrc.json",
	".vault-token",
	".pgpass",
};

static const char whiteout[] = "home-whiteout";

/* What the grants say about one store. */
enum store_state {
	STORE_HIDDEN,
	STORE_OPEN,   /* granted by its own path */
	STORE_PARTLY, /* something in it is granted: the rest stays hidden */
};

static enum store_state
store_state(const struct view *v, const char *path)
{
	const struct spec *spec = &v->s->spec;
	enum store_state state = STORE_HIDDEN;

	for (size_t i = 0; i < spec->nrules; i++) {
		const struct spec_rule *r = &spec->rules[i];

		if (r->path[0] != '/' || (r->kind != SPEC_READ && r->kind != SPEC_WRITE) ||
			!path_is_within(r->path, path))
			continue;
		if (!strcmp(r->path, path))
			return STORE_OPEN;
		state = STORE_PARTLY;
	}
	return state;
}

/* The same directory in the wall, as the host has it: merged directories show the attributes of their
 * topmost layer. False when the host has no such directory (or a link in its place): then there is
 * nothing to hide below it by a name. */
static bool
wall_parents(const struct view *v, int home, const char *store, int *ret)
{
	cleanup_close int at = openat(v->wall, "h", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	for (slash = strchr(store, '/'); slash && at >= 0; slash = strchr(slash + 1, '/')) {
		cleanup_free char *dir = strndup(store, (size_t)(slash - store));
		const char *name = path_base(dir);
		struct stat st;
		int next;

		if (fs_stat_beneath(home, dir, &st) || !S_ISDIR(st.st_mode))
			return false;
		if (!mkdirat(at, name, 0700)) {
			if (fchmodat(at, name, st.st_mode & 07777, 0))
				setup_die(errno, no_remedy, "cannot hide ~/%s", store);
		} else if (errno != EEXIST) {
			setup_die(errno, no_remedy, "cannot hide ~/%s", store);
		}
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
	}
	if (at < 0)
		setup_die(errno, no_remedy, "cannot hide ~/%s", store);
	*ret = take_fd(&at);
	return true;
}

/* By its name, in the wall. Whether the host has it now does not matter: it may come later. */
static void
hide_by_name(const struct view *v, int home, const char *store)
{
	cleanup_close int dir = -1;

	if (wall_parents(v, home, store, &dir) &&
		linkat(v->wall, whiteout, dir, path_base(store), 0))
		setup_die(errno, no_remedy, "cannot hide ~/%s", store);
}

/*
 * By a mount on top of whatever shows it: where its name is a link, where the home is no overlay, and
 * where a grant of a directory above binds the host's own tree. It becomes one of the binds: sorted
 * among them it lands above the grant that shows it and below what is granted inside.
 */
static void
hide_by_mount(struct view *v, int home, const char *store)
{
	static const char *const options[] = {"source", "vx-hidden", "mode", "0555", NULL};
	cleanup_close int fd = openat(home, store, O_PATH | O_CLOEXEC);
	struct stat st;
	int mnt;

	if (fd < 0)
		return;
	if (fstat(fd, &st))
		setup_die(errno, no_remedy, "cannot hide ~/%s", store);
	mnt = S_ISDIR(st.st_mode)
		      ? mount_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
				options)
		      : mount_clone(AT_FDCWD, "/dev/null", false);
	if (mnt < 0)
		setup_die(errno, no_remedy, "cannot hide ~/%s", store);
	strvec_push_take(&v->stores, view_path_of(v, fd));
	view_add_bind(v, v->stores.v[v->stores.n - 1], mnt, S_ISDIR(st.st_mode));
	v->binds[v->nbinds - 1].close = true;
}

static bool
is_link(int home, const char *store)
{
	cleanup_close int fd = fs_open_beneath(home, store, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	return fd >= 0 ? !fstat(fd, &st) && S_ISLNK(st.st_mode) : errno == ELOOP;
}

/* What is granted inside a store that stays hidden. Write grants are live binds already. */
static void
keep_parts(struct view *v, const char *path)
{
	const struct spec *spec = &v->s->spec;

	for (size_t i = 0; i < spec->nrules; i++) {
		const struct spec_rule *r = &spec->rules[i];

		if (r->kind == SPEC_READ && path_is_within(r->path, path))
			view_keep(v, r->path);
	}
}

static bool
is_below_grant(const struct view *v, const char *path)
{
	const struct spec *spec = &v->s->spec;

	for (size_t i = 0; i < spec->nrules; i++)
		if (spec->rules[i].kind == SPEC_WRITE && spec->rules[i].path[0] == '/' &&
			path_is_within(path, spec->rules[i].path))
			return true;
	return false;
}

static void
hide_store(struct view *v, int home, const char *store, bool by_name)
{
	cleanup_free char *path = path_join(v->home_path, store);
	enum store_state state = store_state(v, path);

	if (state == STORE_OPEN)
		return;
	if (state == STORE_PARTLY)
		keep_parts(v, path);
	else if (by_name)
		hide_by_name(v, home, store);
	if (state == STORE_PARTLY || !by_name || is_below_grant(v, path) || is_link(home, store))
		hide_by_mount(v, home, store);
}

void
home_prepare(struct view *v)
{
	const struct spec *spec = &v->s->spec;
	cleanup_close int home = -1;
	cleanup_free char *why = NULL;
	struct overlay o = {"h", false, -1, "hu", "hw"};

	if (!spec->home)
		return;
	home = open(spec->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (home < 0)
		return;
	v->home_path = view_path_of(v, home);
	if (!strcmp(v->home_path, "/") || path_is_within(v->home_path, spec->workspace)) {
		free(take_ptr(&v->home_path));
		return;
	}
	if (mknodat(v->wall, whiteout, S_IFCHR, 0))
		setup_die(errno, no_remedy, "cannot make a whiteout");
	for (size_t i = 0; i < array_len(stores); i++)
		hide_store(v, home, stores[i], true);
	o.lower = home;
	v->home = view_overlay(v, &o, &why);
	if (v->home >= 0)
		return;
	/* Something is mounted in it, or it is of a kind that cannot be a lower layer: the host's home
	 * stays, read-only as all of the host. */
	for (size_t i = 0; i < array_len(stores); i++)
		hide_store(v, home, stores[i], false);
	setup_note("the home directory %s stays read-only in the sandbox: %s", v->home_path, why);
}

void
home_attach(struct view *v)
{
	cleanup_close int at = -1;

	if (v->home < 0)
		return;
	at = view_mount_point(v, v->home_path, true);
	if (at < 0 || mount_attach(v->home, at, ""))
		setup_die(errno, no_remedy, "cannot attach the home directory %s", v->home_path);
}
