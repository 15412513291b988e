/* SPDX-License-Identifier: MIT */
/*
 * The home directory and the credential stores, of this and of other homes.
 *
 * Home gets an overlay like the workspace's, with all of the host's home below except the stores, and
 * with writes into the scratch that nobody commits. Tools keep their caches there and must be able to
 * write, and nothing they write may reach another task. The stores are hidden by their names, in the
 * wall and in the policy layer, which tells who asks for one (layer.c).
 *
 * A home that is the workspace itself or inside it has no overlay: there the workspace's policy speaks,
 * of stores too. Neither has "/", nor what the sandbox has of its own, as /tmp. One with mounts inside is served by its mirror, and stays read-only where there
 * is no FUSE. There, and elsewhere (`store` of the spec), stores are covered by mounts, of which nobody is told.
 */
#include "proto/stores.h"
#include "sandbox/layer.h"
#include "sandbox/mount.h"
#include "sandbox/view.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

static const char no_remedy[] = "see the cause; vx works from kernel 6.1 on";

static const char whiteout[] = "home-whiteout";

/* What the grants say about one store. */
enum store_state {
	STORE_HIDDEN,
	STORE_OPEN,   /* granted by its own path */
	STORE_PARTLY, /* something in it is granted, or the workspace: the rest stays hidden */
};

static enum store_state
store_state(const struct spec *spec, const char *path)
{
	enum store_state state =
		path_is_within(spec->workspace, path) ? STORE_PARTLY : STORE_HIDDEN;

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
				setup_die(errno, no_remedy, "cannot hide %s", store);
		} else if (errno != EEXIST) {
			setup_die(errno, no_remedy, "cannot hide %s", store);
		}
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
	}
	if (at < 0)
		setup_die(errno, no_remedy, "cannot hide %s", store);
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
		setup_die(errno, no_remedy, "cannot hide %s", store);
}

/*
 * By a mount on top of whatever shows it: where the home is no overlay, and where a grant of a directory
 * above binds the host's own tree. It becomes one of the binds: sorted among them it lands above the
 * grant that shows it and below what is granted inside.
 *
 * No link is followed: whoever may write in a home, or a task that was granted to, could have any file of
 * the host covered by one. The core names the ends that are worth it (exec/homes.h).
 */
static void
hide_by_mount(struct view *v, const char *path)
{
	static const char *const options[] = {"source", "vx-hidden", "mode", "0555", NULL};
	cleanup_close int fd = fs_open_beneath(v->root, path + 1, O_PATH, 0);
	struct stat st;
	int mnt;

	if (fd < 0)
		return;
	if (fstat(fd, &st))
		setup_die(errno, no_remedy, "cannot hide %s", path);
	mnt = S_ISDIR(st.st_mode)
		      ? mount_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
				options)
		      : mount_clone(AT_FDCWD, "/dev/null", false);
	if (mnt < 0)
		setup_die(errno, no_remedy, "cannot hide %s", path);
	strvec_push(&v->stores, path);
	view_add_bind(v, v->stores.v[v->stores.n - 1], mnt, S_ISDIR(st.st_mode));
	v->binds[v->nbinds - 1].covers = true;
	view_pin(v, path);
}

static bool
is_there(int home, const char *store)
{
	struct stat st;

	return !fs_stat_beneath(home, store, &st) || (errno != ENOENT && errno != ENOTDIR);
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

/* With the overlay: by name, told. The policy layer also hides what comes later; the wall is for listings. */
static void
hide_in_overlay(struct view *v, int home, const char *store)
{
	cleanup_free char *path = path_join(v->s->home_path, store);
	enum store_state state = store_state(&v->s->spec, path);

	if (state == STORE_OPEN || (v->fuse >= 0 && !is_there(home, store)))
		return;
	if (state == STORE_PARTLY)
		keep_parts(v, path);
	else
		hide_by_name(v, home, store);
	if (state == STORE_PARTLY || view_is_granted_live(v, path))
		hide_by_mount(v, path);
}

/* Without one. */
static void
cover(struct view *v, const char *path)
{
	enum store_state state = store_state(&v->s->spec, path);

	if (state == STORE_OPEN || path_is_within(path, v->s->spec.workspace))
		return;
	if (state == STORE_PARTLY)
		keep_parts(v, path);
	hide_by_mount(v, path);
}

static void
cover_home(struct view *v, const char *home)
{
	for (size_t i = 0; i < array_len(stores); i++) {
		cleanup_free char *path =
			xasprintf("%s/%s", strcmp(home, "/") != 0 ? home : "", stores[i].name);

		cover(v, path);
	}
}

/* What the sandbox has of its own: with an overlay over the host's its tasks would see what all others leave
 * there. */
static bool
is_fresh(const char *path)
{
	static const char *const fresh[] = {"/dev", "/dev/shm", "/proc", "/run", "/tmp"};

	for (size_t i = 0; i < array_len(fresh); i++)
		if (!strcmp(path, fresh[i]))
			return true;
	return false;
}

void
home_find(struct setup *s)
{
	const struct spec *spec = &s->spec;
	cleanup_close int home = -1;

	s->home = -1;
	strvec_init(&s->home_stores);
	if (!spec->home)
		return;
	home = open(spec->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (home < 0)
		return;
	s->home_path = setup_path_of(s, home);
	if (!strcmp(s->home_path, "/") || is_fresh(s->home_path) ||
		path_is_within(s->home_path, spec->workspace))
		return;
	s->own_home = spec->hermetic;
	if (s->own_home && mkdir("home", 0700))
		setup_die(errno, "give an empty directory", "cannot make a home in the scratch");
	if (s->own_home)
		return;
	for (size_t i = 0; i < array_len(stores); i++) {
		cleanup_free char *path = path_join(s->home_path, stores[i].name);

		if (store_state(spec, path) == STORE_HIDDEN)
			strvec_push(&s->home_stores, path);
	}
	s->home = take_fd(&home);
}

static void
make_overlay(struct view *v)
{
	cleanup_close int home =
		open(v->s->home_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_free char *why = NULL;
	struct overlay o = {
		.wall_name = "h",
		.policy_name = layer_part_name(LAYER_HOME),
		.beside_mirror = layer_part_name(LAYER_HOME),
		.mirror_name = layer_part_name(LAYER_HOME_MIRROR),
		.path = v->s->home_path,
		.lower = home,
		.upper = "hu",
		.work = "hw",
		.what = "the home directory",
	};

	if (home < 0)
		setup_die(errno, no_remedy, "cannot open the home directory %s", v->s->home_path);
	if (mknodat(v->wall, whiteout, S_IFCHR, 0))
		setup_die(errno, no_remedy, "cannot make a whiteout");
	for (size_t i = 0; i < array_len(stores); i++)
		hide_in_overlay(v, home, stores[i].name);
	v->home = view_overlay(v, &o, NULL, &why);
	if (v->home >= 0)
		return;
	/* Something is mounted in it, or it is of a kind that cannot be a lower layer: the host's home
	 * stays, read-only as all of the host. */
	cover_home(v, v->s->home_path);
	setup_notice("the home directory %s stays read-only in the sandbox: %s; %s",
		v->s->home_path, why,
		v->fuse < 0 ? "let this user open /dev/fuse to have it written to"
			    : "set VX_SCRATCH_DIR to a volume to have it written to");
}

/* Nothing of the host's is in it but what is granted or in PATH, which is bound there. */
static void
make_own_home(struct view *v)
{
	int mnt = mount_clone(AT_FDCWD, "home", false);

	if (mnt < 0)
		setup_die(errno, no_remedy, "cannot take the home in the scratch");
	view_add_bind(v, v->s->home_path, mnt, true);
}

void
home_prepare(struct view *v)
{
	const struct spec *spec = &v->s->spec;

	if (v->s->own_home)
		make_own_home(v);
	else if (v->s->home >= 0)
		make_overlay(v);
	else if (v->s->home_path)
		cover_home(v, v->s->home_path);
	for (size_t i = 0; i < spec->stores.n; i++)
		cover(v, spec->stores.v[i]);
}

void
home_attach(struct view *v)
{
	cleanup_close int at = -1;

	if (v->home < 0)
		return;
	at = view_mount_point(v, v->s->home_path, true);
	if (at < 0 || mount_attach(v->home, at, ""))
		setup_die(errno, no_remedy, "cannot attach the home directory %s", v->s->home_path);
}
