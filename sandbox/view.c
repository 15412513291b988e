/* SPDX-License-Identifier: MIT */
/*
 * The view. The workspace becomes one overlay: policy layer over wall layer over the real workspace,
 * writes into the scratch. Around it the host, read-only in place: no new root, no pivot, no
 * recursive clone of the tree (findings 13), so everything that must stay writable, and every layer,
 * is taken before the root is made read-only and attached after.
 */
#include "sandbox/view.h"
#include "sandbox/fuse.h"
#include "sandbox/layer.h"
#include "sandbox/mount.h"
#include "sandbox/wall.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/mounts.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* New in Linux 6.8; the headers of the build may be older. */
static const char lower_add[] = "lowerdir+";

static const char no_remedy[] = "see the cause; vx works from kernel 6.1 on";

/* What is mounted strictly below this directory (our own stage in the scratch aside), the first; NULL:
 * nothing. Owned. */
static char *
mount_below(const struct view *v, const char *dir)
{
	struct mounts m = MOUNTS_INIT;
	struct err e = ERR_INIT;
	char *found = NULL;

	if (mounts_read(&m, v->s->proc, "self/mountinfo", &e))
		m.n = 0;
	for (size_t i = 0; i < m.n && !found; i++)
		if (strcmp(m.v[i].point, dir) != 0 && path_is_within(m.v[i].point, dir) &&
			!path_is_within(m.v[i].point, v->s->spec.scratch))
			found = xstrdup(m.v[i].point);
	mounts_release(&m);
	return found;
}

/* The fresh procfs comes first: the helper looks processes up in it, and a machine whose own /proc
 * is masked refuses it, which deserves its own words. */
static void
make_proc(struct view *v)
{
	static const char *const options[] = {"source", "proc", NULL};

	v->proc = mount_new(
		"proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, options);
	if (v->proc < 0 && errno == EPERM && v->s->spec.weaker) {
		setup_notice("weakerWhenNested: a /proc of its own is refused here, so /proc is "
			     "empty for the "
			     "task, and its result never proven");
		return;
	}
	if (v->proc < 0 && errno == EPERM)
		setup_die(errno,
			"parts of the surrounding /proc are masked or read-only: run the container "
			"with an unmasked one (docker: --security-opt systempaths=unmasked, "
			"podman: "
			"--security-opt unmask=ALL), or set exec.sandbox.weakerWhenNested",
			"cannot mount a /proc for the sandbox");
	if (v->proc < 0)
		setup_die(errno, no_remedy, "cannot mount a /proc for the sandbox");
}

static int
mount_fuse(const struct view *v, int dev, const char *source, const char *flag)
{
	char fd[16], uid[16], gid[16];
	const char *const options[] = {"source", source, "fd", fd, "rootmode", "40000", "user_id",
		uid, "group_id", gid, "allow_other", "", flag, "", NULL};

	snprintf(fd, sizeof(fd), "%d", dev);
	snprintf(uid, sizeof(uid), "%u", (unsigned)v->s->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)v->s->gid);
	return mount_new("fuse", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, options);
}

/* No device is a degraded mode, said in the VIEW frame; a device that does not mount is an error. */
static void
make_policy_layer(struct view *v)
{
	v->fuse = -1;
	/* Opened in this user namespace, or the kernel does not let us mount it here. */
	v->fuse_dev = v->s->spec.fuse_off ? -1 : mount_open_fuse();
	if (v->fuse_dev < 0)
		return;
	/* Read-only: else each listing updates atime and costs a request (findings 2). */
	v->fuse = mount_fuse(v, v->fuse_dev, "vx-policy", "ro");
	if (v->fuse < 0)
		setup_die(errno, no_remedy, "cannot mount the policy layer (fuse)");
}

/*
 * The live view stands on a file system that answers for each name. Without it there could be binds only,
 * and nothing that hides or refuses a name that comes later.
 *
 * Root that maps all ids can have processes of other users inside, and the helper does their work as
 * root: there the kernel judges permissions, by the owners and modes that it is told. For everybody else the
 * host judges when the helper asks it, with the same groups as outside.
 */
static void
make_live(struct view *v)
{
	v->live = v->live_dev = -1;
	if (!v->s->spec.live)
		return;
	v->live_dev = v->s->spec.fuse_off ? -1 : mount_open_fuse();
	if (v->live_dev < 0)
		setup_die(0,
			"let this user open /dev/fuse (in a container: --device /dev/fuse), or use "
			"the "
			"transaction view",
			"the live view needs /dev/fuse, which cannot be used here");
	v->live = mount_fuse(
		v, v->live_dev, "vx-live", v->s->maps_all ? "default_permissions" : "rw");
	if (v->live < 0)
		setup_die(errno, no_remedy, "cannot mount the live view (fuse)");
}

/* What is granted for writing outside, where something in it must be refused. */
static void
make_outside(struct view *v)
{
	v->outside = v->outside_dev = -1;
	if (!v->s->outside.is_served)
		return;
	v->outside_dev = v->s->spec.fuse_off ? -1 : mount_open_fuse();
	if (v->outside_dev < 0)
		setup_die(
			0, "start again", "/dev/fuse could be opened before, and cannot any more");
	v->outside = mount_fuse(
		v, v->outside_dev, "vx-outside", v->s->maps_all ? "default_permissions" : "rw");
	if (v->outside < 0)
		setup_die(errno, no_remedy, "cannot mount what is granted outside (fuse)");
}

static void
make_wall(struct view *v)
{
	static const char *const options[] = {"source", "vx-wall", "mode", "0755", NULL};

	/* No content goes in, and a link takes it two thirds of the time that tmpfs needs. */
	v->wall = mount_new("ramfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, options);
	if (v->wall < 0)
		setup_die(errno, no_remedy, "cannot mount the wall layer (ramfs)");
	if (mkdirat(v->wall, "w", 0755) || mkdirat(v->wall, "h", 0755))
		setup_die(errno, no_remedy, "cannot make the wall layer");
}

/*
 * The helper takes over the fds it needs from the common table. From here on the fuse device must
 * not be ours: if the helper dies while it answers a request of ours, the kernel aborts the
 * connection only when the last fd of the device closes, and init, asleep in that very request, could
 * not close it. It would stay in D state for ever.
 */
static void
hand_over(struct view *v)
{
	struct report r = {.type = REPORT_LAYERS};
	unsigned fuse = v->fuse_dev < 0 ? ~0U : (unsigned)v->fuse_dev;

	r.u.layers.live = v->live_dev;
	r.u.layers.live_mnt = v->live;
	r.u.layers.outside = v->outside_dev;
	r.u.layers.outside_mnt = v->outside;
	r.u.layers.fuse = v->fuse_dev;
	r.u.layers.fuse_mnt = v->fuse;
	r.u.layers.wall = v->wall;
	r.u.layers.proc = v->proc;
	if (syscall(SYS_close_range, fuse, fuse, CLOSE_RANGE_UNSHARE))
		setup_die(errno, "a container must allow close_range",
			"cannot part with the helper's fds");
	/* The table is ours by now. */
	if (v->live_dev >= 0)
		close(v->live_dev);
	if (v->outside_dev >= 0)
		close(v->outside_dev);
	setup_report(&r);
}

/* Without FUSE the wall is all there is, and full from the start. */
static void
fill_wall(struct view *v)
{
	struct err e = ERR_INIT;
	struct wall *wall = wall_new(v->wall, "w", v->s->host, v->s->rules, &e);

	if (!wall || wall_fill_all(wall, &e))
		setup_die(0, "", "%s", e.text);
	wall_free(wall);
}

/* Layers of older kernels are named, so they stand somewhere: on "s" in the scratch, whose names hold
 * none of the characters that the option has a meaning for. */
static void
stage_layers(struct view *v)
{
	if (v->attached)
		return;
	v->attached = true;
	if ((mkdir("s", 0700) && errno != EEXIST) || mount_attach(v->wall, AT_FDCWD, "s") ||
		mkdir("s/w.", 0755) || mkdir("s/h.", 0755) ||
		(v->fuse >= 0 && (mkdir("s/f", 0755) || mount_attach(v->fuse, AT_FDCWD, "s/f"))))
		setup_die(errno, no_remedy, "cannot attach the layers in the scratch");
}

static int
add_lowers_detached(struct view *v, const struct overlay *o, int context)
{
	cleanup_close int wall = openat(v->wall, o->wall_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int policy = -1;

	if (wall < 0)
		return -1;
	if (v->fuse >= 0) {
		policy = openat(v->fuse, *o->policy_name ? o->policy_name : ".",
			O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (policy < 0 || fsconfig(context, FSCONFIG_SET_FD, lower_add, NULL, policy))
			return -1;
	}
	if (fsconfig(context, FSCONFIG_SET_FD, lower_add, NULL, wall))
		return -1;
	return fsconfig(context, FSCONFIG_SET_FD, lower_add, NULL, o->lower);
}

static int
add_lowers_attached(struct view *v, const struct overlay *o, int context)
{
	char at[8], lowers[64];
	const char *policy = v->fuse < 0 ? "" : *o->policy_name ? "s/p:" : "s/f:";
	cleanup_close int lower = -1;

	stage_layers(v);
	snprintf(at, sizeof(at), "s/%s.", o->wall_name);
	lower = mount_clone(o->lower, "", false);
	if (lower < 0 || mount_attach(lower, AT_FDCWD, at))
		return -1;
	/* Its name is too long for an option. */
	if (v->fuse >= 0 && *o->policy_name) {
		cleanup_close int part = mount_clone(v->fuse, o->policy_name, false);

		/* It may be there, from an overlay before: the layer stands on top. */
		if (part < 0 || (mkdir("s/p", 0755) && errno != EEXIST) ||
			mount_attach(part, AT_FDCWD, "s/p"))
			return -1;
	}
	snprintf(lowers, sizeof(lowers), "%ss/%s:%s", policy, o->wall_name, at);
	return fsconfig(context, FSCONFIG_SET_STRING, "lowerdir", lowers, 0);
}

static int
try_overlay(struct view *v, const struct overlay *o, bool detached, char **ret_why)
{
	/* volatile is no luxury: without it the unmount syncs the host's whole file system. No uuid: where "null"
	 * is known (6.6) "off" means that too, with layers of several file systems, but writes a line to the kernel's
	 * log for each mount. */
	const char *const options[] = {"userxattr", "", "volatile", "", "index", "off", "uuid",
		detached ? "null" : "off", "xino", "off", NULL};
	cleanup_close int context = fsopen("overlay", FSOPEN_CLOEXEC);
	cleanup_close int mnt = -1;
	cleanup_strbuf struct strbuf message = STRBUF_INIT;
	const char *step = "open";

	free(take_ptr(ret_why));
	if (context < 0)
		goto failed;
	step = "layers";
	if (detached ? add_lowers_detached(v, o, context) : add_lowers_attached(v, o, context))
		goto failed;
	step = "options";
	if (fsconfig(context, FSCONFIG_SET_STRING, "upperdir", o->upper, 0) ||
		fsconfig(context, FSCONFIG_SET_STRING, "workdir", o->work, 0))
		goto failed;
	for (const char *const *p = options; *p; p += 2)
		if (*p[1] ? fsconfig(context, FSCONFIG_SET_STRING, p[0], p[1], 0)
			  : fsconfig(context, FSCONFIG_SET_FLAG, p[0], NULL, 0))
			goto failed;
	step = "mount";
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		goto failed;
	mnt = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mnt >= 0)
		return take_fd(&mnt);
failed:;
	int num = errno;

	if (context >= 0)
		mount_message(context, &message);
	*ret_why = xasprintf(
		"overlay (%s): %s%s%s", step, strerror(num), message.len ? ": " : "", message.buf);
	errno = num;
	return -1;
}

static int
make_overlay(struct view *v, const struct overlay *o, char **ret_why)
{
	int mnt = -1;

	if (!v->attached && !v->s->spec.attached)
		mnt = try_overlay(v, o, true, ret_why);
	/* lowerdir+ is known from 6.8, by fd from 6.13, detached layers are taken from 6.15. */
	if (mnt < 0)
		mnt = try_overlay(v, o, false, ret_why);
	return mnt;
}

/* Why the kernel does not take the directory for a layer, as far as that can be found out. Owned. */
static char *
why_no_layer(const struct view *v, const struct overlay *o, const char *kernel_says)
{
	cleanup_free char *point = mount_below(v, o->path);
	struct statfs fs;

	if (point)
		return xasprintf("%s is mounted in it", point);
	if (!fstatfs(o->lower, &fs) && (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return xstrdup("it is on an overlay over others, and the kernel makes no further "
			       "one");
	return xstrdup(kernel_says);
}

/* An attempt that came as far as to the layers has marked the work directory as one that was in use
 * without syncing, which the kernel takes no second time. */
static void
renew_work(const char *name)
{
	if (fs_remove_tree(AT_FDCWD, name) || mkdir(name, 0700))
		setup_die(errno, no_remedy, "cannot clear %s in the scratch", name);
}

int
view_overlay(struct view *v, const struct overlay *o, const char *must_mirror, char **ret_why)
{
	struct overlay mirrored = *o;
	cleanup_free char *reason = must_mirror ? xstrdup(must_mirror) : NULL;
	cleanup_close int mirror = -1;
	int mnt;

	if (!must_mirror) {
		mnt = make_overlay(v, o, ret_why);
		if (mnt >= 0 || errno != EINVAL)
			return mnt;
		reason = why_no_layer(v, o, *ret_why);
		renew_work(o->work);
	}
	free(take_ptr(ret_why));
	if (v->fuse < 0) {
		*ret_why = xasprintf("%s, and the mirror that would do needs /dev/fuse", reason);
		return -1;
	}
	mirror = openat(v->fuse, o->mirror_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mirror < 0)
		setup_die(errno, no_remedy, "cannot open the mirror of %s", o->path);
	mirrored.lower = mirror;
	mirrored.policy_name = o->beside_mirror;
	mnt = make_overlay(v, &mirrored, ret_why);
	if (mnt >= 0)
		setup_notice("%s %s is served by a mirror: %s", o->what, o->path, reason);
	return mnt;
}

/* What came up read-only (an unusable work directory) must not be found out by the command. */
static void
check_writable(int mnt, const char *what)
{
	struct statvfs st;

	if (fstatvfs(mnt, &st))
		setup_die(errno, no_remedy, "cannot look at the overlay of %s", what);
	if (st.f_flag & ST_RDONLY)
		setup_die(0, "set VX_SCRATCH_DIR to an empty directory of your own on a disk",
			"the overlay of %s came up read-only: its scratch is not usable", what);
}

static int
make_workspace(struct view *v)
{
	const struct spec *spec = &v->s->spec;
	struct overlay o = {
		.wall_name = "w",
		.policy_name = "",
		.beside_mirror = layer_part_name(LAYER_WORKSPACE),
		.mirror_name = layer_part_name(LAYER_MIRROR),
		.path = spec->workspace,
		.lower = v->workspace,
		.upper = "u",
		.work = "w",
		.what = "the workspace",
	};
	cleanup_free char *why = NULL, *reason = NULL;
	int mnt;

	/* Without FUSE the others' files stay what they are. */
	if (v->s->foreign && v->fuse >= 0)
		reason = xasprintf("%s belongs to another user or group", v->s->foreign);
	mnt = view_overlay(v, &o, reason, &why);

	if (mnt < 0)
		setup_die(0,
			v->fuse < 0 ? "let this user open /dev/fuse (in a container: --device "
				      "/dev/fuse), unmount what is mounted in the workspace, or "
				      "keep it on a volume"
				    : "the scratch needs a file system that can be an overlay's "
				      "upper layer (set VX_SCRATCH_DIR to a volume)",
			"cannot build the view of %s: %s", spec->workspace, why);
	check_writable(mnt, "the workspace");
	return mnt;
}

void
view_add_bind(struct view *v, const char *path, int mnt, bool is_dir)
{
	GROW(v->binds, v->nbinds + 1, v->binds_cap);
	v->binds[v->nbinds] =
		(struct bind){.path = path, .mnt = mnt, .is_dir = is_dir, .nth = v->nbinds};
	v->nbinds++;
}

static bool
is_dir_fd(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISDIR(st.st_mode);
}

/* A directory of a plan, as it is now, found without a link on the way; -1: gone meanwhile, or another one, of
 * which nothing is known. With the mounts inside: the kernel gives no copy of a tree in which it would uncover
 * something. For reading: made read-only before it stands anywhere, with all that is mounted in it. */
static int
take_planned(int rootfd, const struct livebind *b)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					      (b->write ? 0 : MOUNT_ATTR_RDONLY)};
	cleanup_close int at = fs_open_beneath(rootfd, b->path, O_PATH | O_DIRECTORY, 0);
	struct stat st;
	int mnt;

	if (at < 0 || fstat(at, &st) || st.st_dev != b->dev || st.st_ino != b->ino)
		return -1;
	mnt = mount_clone(at, "", true);
	if (mnt < 0 || mount_setattr(mnt, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)))
		setup_die(errno, no_remedy, "cannot show %s in the sandbox", b->path);
	return mnt;
}

static const char *
outside_path(struct view *v, const char *path)
{
	strvec_pushf(&v->outside_paths, "/%s", path);
	return v->outside_paths.v[v->outside_paths.n - 1];
}

static void
take_served(struct view *v)
{
	const struct outside *o = &v->s->outside;

	/* Kernels before 6.15 copy no part of what is attached nowhere. */
	if (mkdir("o", 0700) || mount_attach(v->outside, AT_FDCWD, "o"))
		setup_die(errno, no_remedy, "cannot attach what is granted outside in the scratch");
	for (size_t i = 0; i < o->tops.n; i++) {
		int mnt;

		if (liveplan_binds(&o->plan, o->tops.v[i]))
			continue;
		mnt = mount_clone(v->outside, o->tops.v[i], false);
		if (mnt < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue; /* gone meanwhile */
		if (mnt < 0)
			setup_die(errno, no_remedy, "cannot grant /%s", o->tops.v[i]);
		view_add_bind(v, outside_path(v, o->tops.v[i]), mnt, true);
	}
	if (umount2("o", MNT_DETACH))
		setup_die(errno, no_remedy, "cannot take what is granted outside from the scratch");
}

/* The directories that are granted for writing: outside.h. */
static void
take_outside(struct view *v)
{
	const struct outside *o = &v->s->outside;

	if (v->outside >= 0)
		take_served(v);
	for (size_t i = 0; i < o->plan.n; i++) {
		const struct livebind *b = &o->plan.v[i];
		int mnt = take_planned(v->root, b);

		if (mnt < 0)
			continue;
		view_add_bind(v, outside_path(v, b->path), mnt, true);
		/* A granted directory itself stands on what its path shows here: a home's overlay, or nothing yet. */
		if (strvec_contains(&o->tops, b->path))
			continue;
		v->binds[v->nbinds - 1].dev = b->dev;
		v->binds[v->nbinds - 1].ino = b->ino;
	}
	for (size_t i = 0; i < o->plan.kept.n; i++) {
		const struct livekept *k = o->plan.kept.entries[i].value;

		/* A link is no place for a mount, and where it leads is not in question here. */
		if (!k->is_free && !S_ISLNK(k->type))
			view_keep(v, outside_path(v, o->plan.kept.entries[i].key));
	}
	if (o->plan.cut)
		setup_note("what is granted for writing outside of the workspace has more "
			   "directories than can be bound: some are served, which is slower");
}

bool
view_is_granted_live(const struct view *v, const char *path)
{
	const struct spec *spec = &v->s->spec;

	for (size_t i = 0; i < spec->nrules; i++)
		if (spec->rules[i].kind == SPEC_WRITE && spec->rules[i].path[0] == '/' &&
			path_is_within(path, spec->rules[i].path))
			return true;
	return false;
}

/* A bind of a directory above would have it written. Everything else outside is read-only. */
static void
keep_unwritten(struct view *v, const char *path)
{
	size_t n = v->nbinds;

	if (!view_is_granted_live(v, path))
		return;
	view_keep(v, path);
	if (v->nbinds == n)
		setup_die(errno, "make it first, or grant less",
			"deny.write %s: nothing could keep the task from writing it", path);
	view_pin(v, path);
}

/* Where there is something of ours in which the task can make it. */
static bool
is_thrown_away(const struct view *v, const char *path)
{
	bool is_own = v->s->own_home || v->s->home >= 0;

	return path_is_within(path, "/tmp") || path_is_within(path, "/dev/shm") ||
	       (is_own && v->s->home_path && path_is_within(path, v->s->home_path));
}

/* Grants outside the workspace are live: the host's own tree, read-write or, where something of ours
 * covers it, read-only. */
static void
take_grants(struct view *v)
{
	const struct spec *spec = &v->s->spec;

	for (size_t i = 0; i < spec->nrules; i++) {
		const struct spec_rule *r = &spec->rules[i];
		bool write = r->kind == SPEC_WRITE;
		int mnt;

		if (r->path[0] == '/' && r->kind == SPEC_DENY_WRITE)
			keep_unwritten(v, r->path);
		if (r->path[0] != '/' || (!write && r->kind != SPEC_READ))
			continue;
		if (!write && !dev_covers(v, r->path))
			continue;
		if (!write) {
			view_keep(v, r->path);
			continue;
		}
		if (outside_top(&v->s->outside, r->path + 1) >= 0)
			continue;
		mnt = mount_clone(AT_FDCWD, r->path, true);
		if (mnt < 0 && (errno == ENOENT || errno == ENOTDIR)) {
			setup_note("%s, granted for writing, is not there: what the task writes "
				   "there %s; make it first",
				r->path,
				is_thrown_away(v, r->path) ? "is thrown away"
							   : "cannot be written");
			continue;
		}
		if (mnt < 0)
			setup_die(errno, "leave it out of the grants", "cannot grant %s", r->path);
		view_add_bind(v, r->path, mnt, is_dir_fd(mnt));
	}
}

void
view_keep(struct view *v, const char *path)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
	int mnt = mount_clone(AT_FDCWD, path, true);

	if (mnt < 0)
		return;
	if (mount_setattr(mnt, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)))
		setup_die(errno, no_remedy, "cannot show %s read-only", path);
	view_add_bind(v, path, mnt, is_dir_fd(mnt));
}

/*
 * The directories on the way to it can be renamed, and what is mounted in one goes with it: then another directory of
 * its name could be made in which nothing is hidden or kept. A mount point cannot be renamed, so each becomes one.
 */
void
view_pin(struct view *v, const char *path)
{
	const struct outside *o = &v->s->outside;
	ssize_t top = outside_top(o, path + 1);
	size_t ntop = top < 0 ? 0 : strlen(o->tops.v[top]) + 1, n = strlen(path);

	if (top < 0)
		return;
	for (n = path_parent_len(path); n > ntop;
		n = path_parent_len(v->pinned.v[v->pinned.n - 1])) {
		strvec_push_take(&v->pinned, xmemdupz(path, n));
		view_add_bind(v, v->pinned.v[v->pinned.n - 1], -1, true);
		v->binds[v->nbinds - 1].pins = true;
	}
}

/* Of one path, first what is something of its own, and of these what was taken first: what keeps a grant from being
 * written comes after the grant, and has to be on top. qsort by itself promises no order of equals. */
static int
compare_binds(const void *a, const void *b)
{
	const struct bind *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	if (!order)
		order = x->pins - y->pins;
	return order ? order : (x->nth > y->nth) - (x->nth < y->nth);
}

int
view_mount_point(const struct view *v, const char *path, bool is_dir)
{
	const char *below = path + 1;
	int fd = fs_open_beneath(v->root, below, O_PATH, 0);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (is_dir)
		return fs_open_mkdirs(v->root, below);
	cleanup_free char *parent = xmemdupz(below, path_parent_len(below));
	cleanup_close int made = -1;

	if (fs_mkdirs(v->root, parent))
		return -1;
	made = fs_open_beneath(v->root, below, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0644);
	if (made < 0)
		return -1;
	return fs_open_beneath(v->root, below, O_PATH, 0);
}

static void
attach_at(const struct view *v, const char *path, int mnt, bool is_dir)
{
	cleanup_close int at = view_mount_point(v, path, is_dir);

	if (at < 0 || mount_attach(mnt, at, ""))
		setup_die(errno,
			errno == ELOOP ? "name it by its real path: a link leads there" : no_remedy,
			"cannot show %s in the sandbox", path);
}

/* In what is served: what is there by now must be what was taken, else the host has put another directory in its
 * place, and that one is served. */
static bool
is_same(const struct view *v, const struct bind *b)
{
	cleanup_close int at = fs_open_beneath(v->root, b->path + 1, O_PATH | O_DIRECTORY, 0);
	struct stat root, st;

	return at >= 0 && !fstat(at, &st) && !fstat(v->root, &root) &&
	       st.st_ino == fuse_number(b->ino, b->dev, root.st_dev);
}

/* Whose home it is can take it away meanwhile, or put something else there, and must not be able to
 * have the tasks of others fail by that. */
static void
attach_cover(const struct view *v, const struct bind *b)
{
	cleanup_close int at = fs_open_beneath(v->root, b->path + 1, O_PATH, 0);
	struct stat st;

	if (at < 0 || fstat(at, &st) || S_ISDIR(st.st_mode) != b->is_dir)
		return;
	if (mount_attach(b->mnt, at, "") && errno != ENOENT)
		setup_die(errno, no_remedy, "cannot hide %s", b->path);
}

/* With what the host has mounted in it: nothing of ours is there yet. */
static void
attach_pin(const struct view *v, const char *path)
{
	cleanup_close int at = fs_open_beneath(v->root, path + 1, O_PATH | O_DIRECTORY, 0);
	cleanup_close int mnt = at < 0 ? -1 : mount_clone(at, "", true);

	if (at < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return; /* gone meanwhile, with what is in it */
	if (mnt < 0 || mount_attach(mnt, at, ""))
		setup_die(errno, no_remedy, "cannot keep %s where it is", path);
}

/* Parents first. */
static void
attach_binds(struct view *v)
{
	const char *pinned = "";

	if (!v->nbinds)
		return;
	qsort(v->binds, v->nbinds, sizeof(*v->binds), compare_binds);
	for (size_t i = 0; i < v->nbinds; i++)
		if (v->binds[i].pins && strcmp(v->binds[i].path, pinned) != 0)
			attach_pin(v, pinned = v->binds[i].path);
		else if (v->binds[i].pins)
			continue;
		else if (v->binds[i].covers)
			attach_cover(v, &v->binds[i]);
		else if (!v->binds[i].ino || is_same(v, &v->binds[i]))
			attach_at(v, v->binds[i].path, v->binds[i].mnt, v->binds[i].is_dir);
}

/* Once all that has its place in them is there. */
static void
close_binds(struct view *v)
{
	for (size_t i = 0; i < v->nbinds; i++)
		if (v->binds[i].covers && mount_set(v->binds[i].mnt, MOUNT_ATTR_RDONLY))
			setup_die(errno, no_remedy, "cannot close %s", v->binds[i].path);
}

void
view_cover(const struct view *v, const char *path)
{
	static const char *const options[] = {"source", "vx-hidden", "mode", "0555", NULL};
	cleanup_close int at = open(path, O_PATH | O_CLOEXEC);
	cleanup_close int mnt = -1;

	if (at < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return;
	if (at < 0)
		setup_die(errno, no_remedy, "cannot hide %s", path);
	if (is_dir_fd(at))
		mnt = mount_new(
			"tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, options);
	else
		mnt = mount_clone(AT_FDCWD, "/dev/null", false);
	/* The workspace may lie in what is hidden, at a second path: it has its mount point in the cover. */
	if (mnt >= 0 && is_dir_fd(at) && path_is_within(v->s->spec.workspace, path) &&
		fs_mkdirs(mnt, path_below(v->s->spec.workspace, path)))
		setup_die(errno, no_remedy, "cannot make room for the workspace in %s", path);
	/* The node of /dev/null is the host's: nobody inside may change it. */
	if (mnt < 0 || mount_set(mnt, MOUNT_ATTR_RDONLY) || mount_attach(mnt, at, ""))
		setup_die(errno, no_remedy, "cannot hide %s", path);
}

/*
 * The root as it is, read-only, set-id bits dead, and cut off from the host's mount events. In the
 * fresh namespace that is one call on the mounts we were given; what is attached later, or was taken
 * before, is not touched by it.
 */
static void
make_root_readonly(void)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE};

	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)))
		setup_die(errno, no_remedy, "cannot make the host read-only");
}

/* The live view. */

/* What the plan binds, taken before the root becomes read-only. One that is gone is served, should it come
 * again. */
static void
take_live_binds(struct view *v)
{
	const struct liveplan *p = &v->s->plan;

	v->live_binds = xcalloc(p->n + 1, sizeof(*v->live_binds));
	for (size_t i = 0; i < p->n; i++)
		v->live_binds[i] = take_planned(v->workspace, &p->v[i]);
	if (p->cut)
		setup_note("the live view has more directories than it binds: in some of them "
			   "watchers "
			   "are not told what changes");
}

/*
 * On the served tree, which must stand in the workspace's place already: kernels before 6.15 attach nothing
 * to what is attached nowhere. The look-ups of the mount points are answered by the helper. What is there
 * by now must be what was taken: else the host has put another directory in its place, and that one is
 * served.
 */
static void
attach_live_binds(struct view *v)
{
	const struct liveplan *p = &v->s->plan;
	struct stat root;

	/* Until it has asked, the kernel takes the workspace to be of an owner that has no id here, and would
	 * refuse to make a name in it. */
	if (fstat(v->live, &root))
		setup_die(errno, no_remedy, "cannot look at the live view");
	for (size_t i = 0; i < p->n; i++) {
		cleanup_close int at = -1;
		struct stat is, was;

		if (v->live_binds[i] < 0)
			continue;
		at = fs_open_beneath(v->live, p->v[i].path, O_PATH | O_DIRECTORY, 0);
		if (at < 0 || fstat(at, &is) || fstat(v->live_binds[i], &was) ||
			is.st_ino != was.st_ino)
			continue;
		if (mount_attach(v->live_binds[i], at, ""))
			setup_die(errno, no_remedy, "cannot show %s in the sandbox", p->v[i].path);
	}
}

static int
open_workspace(const struct view *v)
{
	const struct setup *s = v->s;
	int fd = open(s->spec.workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		setup_die(
			errno, "see the cause", "cannot open the workspace %s", s->spec.workspace);
	/* The helper holds the same directory from its own side: both must mean one. */
	if (st.st_dev != s->host_st.st_dev || st.st_ino != s->host_st.st_ino)
		setup_die(0, "start again", "the workspace %s was replaced meanwhile",
			s->spec.workspace);
	return fd;
}

/*
 * Entered at once. What the policy layer is asked for on the way it is asked now, right after the overlay was made, when
 * the helper is awake: to wake it costs several times the answer. What is attached later covers no directory
 * of the workspace; but in a live view.
 */
static int
enter_cwd(const struct view *v, int workspace_mnt)
{
	const char *cwd = v->s->spec.cwd;
	int fd = fs_open_beneath(workspace_mnt, cwd, O_PATH | O_DIRECTORY, 0);

	if (fd < 0 || fchdir(fd))
		setup_die(errno,
			"grant the directory, or let the command start in one that is granted",
			"cannot enter the working directory %s", *cwd ? cwd : ".");
	return fd;
}

/*
 * In its place, and the layers below it. Those that stand nowhere are taken down by whoever closes their last fd, with
 * a wait for every processor for each; there they go with the mount namespace. Nothing reaches them: what is
 * mounted on them covers them, and nobody inside may take that away, not even in a namespace of his own.
 */
static void
attach_workspace(const struct view *v, int mnt)
{
	cleanup_close int at = view_mount_point(v, v->s->spec.workspace, true);
	const int from_below[] = {v->attached ? -1 : v->wall, v->attached ? -1 : v->fuse, mnt};

	for (size_t i = 0; i < array_len(from_below); i++)
		if (at < 0 || (from_below[i] >= 0 && mount_attach(from_below[i], at, "")))
			setup_die(errno, no_remedy, "cannot attach the workspace %s",
				v->s->spec.workspace);
}

void
view_build(struct setup *s)
{
	struct view v = {.s = s, .home = -1};
	struct net net;
	int workspace, tmp, cwd = -1;

	v.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	v.workspace = open_workspace(&v);
	make_proc(&v);
	make_live(&v);
	make_outside(&v);
	make_policy_layer(&v);
	make_wall(&v);
	hand_over(&v);
	net_start(&net, s);
	if (v.fuse < 0)
		fill_wall(&v);
	if (s->spec.live)
		take_live_binds(&v);

	tmp = mount_clone(AT_FDCWD, "tmp", false);
	if (tmp < 0)
		setup_die(errno, no_remedy, "cannot take the scratch's tmp");
	dev_prepare(&v);
	take_outside(&v);
	take_grants(&v);
	home_prepare(&v);
	sockets_prepare(&v);
	for (size_t i = 0; i < s->spec.hide.n; i++)
		view_pin(&v, s->spec.hide.v[i]);
	view_pin(&v, s->spec.workspace);
	workspace = s->spec.live ? v.live : make_workspace(&v);
	if (v.attached && umount2("s", MNT_DETACH))
		setup_die(errno, no_remedy, "cannot take the layers away from the scratch");
	if (!s->spec.live)
		cwd = enter_cwd(&v, workspace);

	make_root_readonly();
	hermetic_attach(&v);
	if (mount_attach(tmp, AT_FDCWD, "/tmp") && errno != ENOENT)
		setup_die(errno, no_remedy, "cannot attach /tmp");
	dev_attach(&v);
	home_attach(&v);
	attach_binds(&v);
	dev_attach_links(&v);
	for (size_t i = 0; i < s->spec.hide.n; i++)
		view_cover(&v, s->spec.hide.v[i]);
	attach_workspace(&v, workspace);
	if (s->spec.live) {
		attach_live_binds(&v);
		cwd = enter_cwd(&v, workspace);
	}
	sockets_attach(&v);
	close_binds(&v);
	hermetic_close(&v);
	dev_finish(&v);
	net_enter(&net);
	init_run(s, cwd, !v.attached);
}
