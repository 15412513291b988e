/* SPDX-License-Identifier: MIT */
/*
 * The trees that every sandbox has of its own: /dev, /proc, /run, and /dev/shm.
 */
#include "sandbox/mount.h"
#include "sandbox/view.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <unistd.h>

static const char no_remedy[] = "see the cause; vx works from kernel 6.1 on";

static const char *const device_names[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const char *const covered[] = {"/dev", "/proc", "/run", "/tmp"};

enum {
	MAX_HOPS = 40 /* as in the kernel */
};

/* The one link of /run that whole systems stand on (NixOS). */
static const char current_system[] = "/run/current-system";

bool
dev_covers(const struct view *v, const char *path)
{
	for (size_t i = 0; i < array_len(covered); i++)
		if (path_is_within(path, covered[i]))
			return true;
	return hermetic_covers(v, path);
}

/* Those of procfs are there, of what is inside. */
static bool
is_link_lost(const struct view *v, const char *path)
{
	if (!path_parent_len(path + 1) || !dev_covers(v, path) || path_is_within(path, "/proc"))
		return false;
	for (size_t i = 0; i < v->links.n; i += 2)
		if (!strcmp(v->links.v[i], path))
			return false;
	return true;
}

/* The links on the way to it, where they are covered: each with its target. */
static void
keep_links(struct view *v, const char *path)
{
	cleanup_strbuf struct strbuf done = STRBUF_INIT;
	cleanup_free char *rest = xstrdup(path);
	char target[PATH_MAX];
	size_t at = 0;

	for (unsigned hops = 0; rest[at] && hops <= MAX_HOPS;) {
		size_t n = strcspn(rest + at, "/"), before = done.len;
		const char *name = rest + at;
		ssize_t len;
		char *next;

		at += n + (name[n] == '/');
		if (!n || (n == 1 && *name == '.'))
			continue;
		if (n == 2 && !memcmp(name, "..", 2)) {
			while (done.len && done.buf[done.len - 1] != '/')
				strbuf_truncate(&done, done.len - 1);
			strbuf_truncate(&done, done.len ? done.len - 1 : 0);
			continue;
		}
		strbuf_addch(&done, '/');
		strbuf_add(&done, name, n);
		len = readlink(done.buf, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		hops++;
		if (is_link_lost(v, done.buf)) {
			strvec_push(&v->links, done.buf);
			strvec_push(&v->links, target);
		}
		strbuf_truncate(&done, *target == '/' ? 0 : before);
		next = xasprintf("%s/%s", target, rest + at);
		free(rest);
		rest = next;
		at = 0;
	}
}

/* Keeps where path really leads, if that is covered, and the way there. */
static void
keep(struct view *v, const char *path)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
	cleanup_free char *real = NULL;

	if (fd < 0)
		return;
	keep_links(v, path);
	real = setup_path_of(v->s, fd);
	if (!dev_covers(v, real) || strvec_contains(&v->keeps, real))
		return;
	if (!path_parent_len(real + 1))
		return; /* PATH=/tmp does not bring the whole of it back */
	strvec_push_take(&v->keeps, take_ptr(&real));
}

void
dev_prepare(struct view *v)
{
	const char *path = strvec_getenv(&v->s->spec.env, "PATH");

	for (size_t i = 0; i < array_len(device_names); i++) {
		char name[32];

		snprintf(name, sizeof(name), "/dev/%s", device_names[i]);
		v->devices[i] = mount_clone(AT_FDCWD, name, false);
		if (v->devices[i] < 0 && errno == ENOENT)
			continue;
		/* A device on a read-only mount is still read and written. Its node is the host's, and
		 * root could otherwise change its mode and owner there. */
		if (v->devices[i] < 0 || mount_set(v->devices[i], MOUNT_ATTR_RDONLY))
			setup_die(errno, no_remedy, "cannot take %s", name);
	}
	keep(v, "/etc/resolv.conf");
	keep_links(v, current_system);
	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");
		cleanup_strbuf struct strbuf entry = STRBUF_INIT;

		strbuf_add(&entry, p, n);
		if (*entry.buf == '/')
			keep(v, entry.buf);
		p += n + (p[n] == ':');
	}
	for (size_t i = 0; i < v->keeps.n; i++)
		view_keep(v, v->keeps.v[i]);
}

static int
attach_new(const char *type, unsigned attrs, const char *const *options, const char *at)
{
	int mnt = mount_new(type, attrs, options);

	if (mnt < 0 || mount_attach(mnt, AT_FDCWD, at))
		setup_die(errno, no_remedy, "cannot mount %s", at);
	return mnt;
}

static void
attach_dev(struct view *v)
{
	static const char *const dev[] = {"source", "vx-dev", "mode", "0755", NULL};
	static const char *const shm[] = {"source", "vx-shm", "mode", "1777", "size", "25%", NULL};
	static const char *const pts[] = {
		"source", "devpts", "newinstance", "", "ptmxmode", "0666", "mode", "0620", NULL};
	static const char *const links[][2] = {
		{"/proc/self/fd", "fd"},
		{"/proc/self/fd/0", "stdin"},
		{"/proc/self/fd/1", "stdout"},
		{"/proc/self/fd/2", "stderr"},
		{"pts/ptmx", "ptmx"},
	};

	v->dev = attach_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, dev, "/dev");
	for (size_t i = 0; i < array_len(device_names); i++) {
		cleanup_close int point = -1;
		cleanup_close int device = v->devices[i];

		if (device < 0)
			continue;
		point = openat(
			v->dev, device_names[i], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (point < 0 || mount_attach(device, v->dev, device_names[i]))
			setup_die(errno, no_remedy, "cannot attach /dev/%s", device_names[i]);
	}
	for (size_t i = 0; i < array_len(links); i++)
		if (symlinkat(links[i][0], v->dev, links[i][1]))
			setup_die(errno, no_remedy, "cannot make /dev/%s", links[i][1]);
	if (mkdirat(v->dev, "pts", 0755) || mkdirat(v->dev, "shm", 01777))
		setup_die(errno, no_remedy, "cannot make the directories of /dev");
	close(attach_new("devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, pts, "/dev/pts"));
	close(attach_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, shm, "/dev/shm"));
}

/* What the kernel shows of keyrings and does not know by namespace. Not where sandboxes may be made inside: a /proc with
 * something mounted in it is no ground for another one (findings 9), and the calls that use keys stay refused. */
static void
hide_keys(const struct view *v)
{
	if (v->s->spec.nested && !v->s->maps_all)
		return;
	view_cover(v, "/proc/keys");
	view_cover(v, "/proc/key-users");
}

/*
 * Files of procfs that belong to uid 0 are refused to everyone else by the kernel, also to uid 0 of
 * a namespace. But a root that maps itself is that uid 0: /proc/sys and /proc/sysrq-trigger would be
 * the host's, and open.
 */
static void
guard_proc(struct view *v)
{
	static const char *const readonly[] = {"sys", "sysrq-trigger", "irq", "bus", "fs"};
	static const char *const hidden[] = {"/proc/kcore", "/proc/kmsg", "/proc/timer_list",
		"/proc/sched_debug", "/proc/latency_stats", "/proc/acpi", "/proc/scsi"};

	for (size_t i = 0; i < array_len(readonly); i++) {
		cleanup_close int mnt = mount_clone(v->proc, readonly[i], false);

		if (mnt < 0 && errno == ENOENT)
			continue;
		if (mnt < 0 || mount_set(mnt, MOUNT_ATTR_RDONLY) ||
			mount_attach(mnt, v->proc, readonly[i]))
			setup_die(errno, no_remedy, "cannot make /proc/%s read-only", readonly[i]);
	}
	for (size_t i = 0; i < array_len(hidden); i++)
		view_cover(v, hidden[i]);
}

static void
attach_run(struct view *v)
{
	static const char *const options[] = {"source", "vx-run", "mode", "0755", NULL};
	int mnt = mount_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, options);

	v->run = -1;
	if (mnt < 0)
		setup_die(errno, no_remedy, "cannot make /run");
	if (mount_attach(mnt, AT_FDCWD, "/run")) {
		if (errno != ENOENT)
			setup_die(errno, no_remedy, "cannot hide /run");
		close(mnt);
		return;
	}
	v->run = mnt;
}

void
dev_attach(struct view *v)
{
	attach_run(v);
	attach_dev(v);
	/* The surrounding one shows the processes of others. */
	if (v->proc < 0) {
		view_cover(v, "/proc");
		return;
	}
	if (mount_attach(v->proc, AT_FDCWD, "/proc"))
		setup_die(errno, no_remedy, "cannot attach /proc");
	hide_keys(v);
	if (v->s->maps_all)
		guard_proc(v);
}

/* Below what is bound they are there already. */
void
dev_attach_links(const struct view *v)
{
	for (size_t i = 0; i < v->links.n; i += 2) {
		const char *path = v->links.v[i];
		cleanup_free char *parent = xmemdupz(path + 1, path_parent_len(path + 1));
		cleanup_close int dir = fs_open_mkdirs(v->root, parent);

		if (dir < 0 ||
			(symlinkat(v->links.v[i + 1], dir, path_base(path)) && errno != EEXIST))
			setup_die(errno, no_remedy, "cannot keep %s", path);
	}
}

void
dev_finish(struct view *v)
{
	if (mount_set(v->dev, MOUNT_ATTR_RDONLY) ||
		(v->run >= 0 && mount_set(v->run, MOUNT_ATTR_RDONLY)))
		setup_die(errno, no_remedy, "cannot close /dev and /run");
}
