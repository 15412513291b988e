/* SPDX-License-Identifier: MIT */
/*
 * Unix sockets of the host, where the command may have some of them (`socket` in the spec). Who sees a socket
 * can speak with it, be it read-only or not. So the granted ones are bound over what covers them, and each
 * other one that the command would see is covered by an empty file.
 *
 * Which there are the kernel tells by the names that they were bound by. One that was bound by a relative
 * name, was renamed, is of another network namespace, or comes later, is not known and not covered.
 * Through an overlay, and in a served live view, no socket of the host can be reached: there the kernel
 * knows it by another inode.
 */
#include "sandbox/mount.h"
#include "sandbox/view.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

enum {
	FIELDS_BEFORE_PATH = 7,
};

static const char no_remedy[] = "see the cause; vx works from kernel 6.1 on";

void
sockets_find(struct setup *s)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err e = ERR_INIT;
	char *rest = NULL;

	if (!s->spec.sockets.n)
		return;
	if (fd_read_file(s->proc, "self/net/unix", 256 << 20, &text, &e))
		setup_die(0, "leave allow.unixSockets out, or make it true",
			"cannot see which Unix sockets there are: %s", e.text);
	for (char *line = strtok_r(text.buf, "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest)) {
		for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
			line += strspn(line, " ");
			line += strcspn(line, " ");
		}
		line += strspn(line, " ");
		/* Those with '@' are of a name space that is not the command's. Accepted ones have the name of
		 * their listener. */
		if (*line == '/' && !strvec_contains(&s->bound, line))
			strvec_push(&s->bound, line);
	}
}

/* The command may make its own there. */
static bool
may_come_later(const struct view *v, const char *path)
{
	const struct spec *spec = &v->s->spec;

	return path_is_within(path, spec->workspace) || path_is_within(path, "/tmp") ||
	       (v->s->home_path && path_is_within(path, v->s->home_path));
}

void
sockets_prepare(struct view *v)
{
	const struct spec *spec = &v->s->spec;

	v->sockets = xcalloc(spec->sockets.n + 1, sizeof(*v->sockets));
	for (size_t i = 0; i < spec->sockets.n; i++) {
		const char *path = spec->sockets.v[i];
		struct shown_socket *shown = &v->sockets[i];
		bool inside = path_is_within(path, spec->workspace);
		cleanup_close int at =
			inside ? fs_open_beneath(v->workspace, path_below(path, spec->workspace),
					 O_PATH | O_NOFOLLOW, 0)
			       : fs_open_beneath(v->root, path + 1, O_PATH | O_NOFOLLOW, 0);

		shown->mnt = -1;
		if (at < 0 || fstat(at, &shown->st)) {
			if (!may_come_later(v, path))
				setup_note(
					"allow.unixSockets %s: there is no such socket; start what "
					"listens there first",
					path);
			continue;
		}
		/* The content of anything else would be shown by this, and is no business of it. */
		if (!S_ISSOCK(shown->st.st_mode))
			setup_die(0, "name the socket itself", "allow.unixSockets: %s is no socket",
				path);
		shown->mnt = mount_clone(at, "", false);
		if (shown->mnt < 0 || mount_set(shown->mnt, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID))
			setup_die(errno, no_remedy, "cannot show %s", path);
		if (inside)
			continue;
		view_add_bind(v, path, take_fd(&shown->mnt), false);
	}
}

/* Where the view shows the host's own inodes. */
static bool
is_reachable(const struct view *v, const char *path)
{
	const struct setup *s = v->s;

	if (path_is_within(path, s->spec.workspace)) {
		const char *below = path_below(path, s->spec.workspace);

		for (size_t i = 0; s->spec.live && i < s->plan.n; i++)
			if (v->live_binds[i] >= 0 && path_is_within(below, s->plan.v[i].path))
				return true;
		return false;
	}
	if (v->home < 0 || !path_is_within(path, s->home_path))
		return true;
	for (size_t i = 0; i < v->nbinds; i++)
		if (path_is_within(path, v->binds[i].path))
			return true;
	return false;
}

/* By whatever name it is met. */
static bool
is_shown(const struct view *v, const struct stat *st)
{
	for (size_t i = 0; i < v->s->spec.sockets.n; i++)
		if (v->sockets[i].st.st_ino == st->st_ino &&
			v->sockets[i].st.st_dev == st->st_dev && S_ISSOCK(v->sockets[i].st.st_mode))
			return true;
	return false;
}

/* Anybody can bind a socket by any name in a root of his own: nothing but a socket is covered for that. */
static void
cover(const struct view *v, const char *path)
{
	cleanup_close int at = open(path, O_PATH | O_CLOEXEC), mnt = -1;
	struct stat st;

	if (at < 0 || fstat(at, &st) || !S_ISSOCK(st.st_mode) || is_shown(v, &st))
		return;
	mnt = mount_clone(AT_FDCWD, "/dev/null", false);
	if (mnt < 0 || mount_set(mnt, MOUNT_ATTR_RDONLY) ||
		(mount_attach(mnt, at, "") && errno != ENOENT))
		setup_die(errno, no_remedy, "cannot hide the socket %s", path);
}

void
sockets_attach(struct view *v)
{
	const struct spec *spec = &v->s->spec;

	for (size_t i = 0; i < spec->sockets.n; i++) {
		const char *path = spec->sockets.v[i];
		cleanup_close int at = -1;

		if (v->sockets[i].mnt < 0)
			continue;
		at = fs_open_beneath(v->root, path + 1, O_PATH | O_NOFOLLOW, 0);
		if (at < 0 || mount_attach(v->sockets[i].mnt, at, ""))
			setup_die(errno, "let no entry of deny select it",
				"cannot show the socket %s", path);
	}
	for (size_t i = 0; i < v->s->bound.n; i++)
		if (is_reachable(v, v->s->bound.v[i]))
			cover(v, v->s->bound.v[i]);
}
