/* SPDX-License-Identifier: MIT */
/*
 * The kernel keeps nothing of a file but its pages, which it drops when size or time have changed, and of
 * a directory's name for a second: names on the way to everything else are asked for all the time. So
 * for that long a directory that was replaced is still seen, and with it what is bound on it; then the look-up
 * gives another node, and the kernel drops the mount with the name.
 */
#include "sandbox/livewall.h"
#include "proto/never.h"
#include "proto/status.h"
#include "sandbox/fuse.h"
#include "sandbox/host.h"
#include "sandbox/livenodes.h"
#include "sandbox/seen.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	DIR_SECONDS = 1,
	PATH_LEN_MAX = 64 << 10,
	MOVED_NAMES_MAX = 100 * 1000, /* in a directory that is renamed */
	NO_NUMBER = 0xffff,           /* of a name in a listing: a look-up says it */
};

struct listed {
	char *name;
	ino_t ino;
	unsigned char type;
};

struct handle {
	struct livenode *node; /* NULL: free */
	int fd;                /* of a file; -1: a directory */
	struct listed *list;
	size_t n, cap;
};

struct livewall {
	struct livewall_options o;
	struct owner owner;
	struct livenodes nodes;
	struct handle *handles; /* their number is the index */
	size_t nhandles, handles_cap, first_free;
	dev_t dev; /* of the workspace */
	struct seen seen;
	uint64_t denials, probes;
	struct strvec manifests;
	char *out;
};

struct livewall *
livewall_new(const struct livewall_options *o)
{
	struct livewall *w = xcalloc(1, sizeof(*w));
	struct rlimit files;
	struct stat st;

	w->o = *o;
	w->owner = o->owner;
	if (!fstat(o->rules.host, &st))
		w->dev = st.st_dev;
	livenodes_init(&w->nodes);
	seen_init(&w->seen);
	strvec_init(&w->manifests);
	w->out = xmalloc(FUSE_IO_MAX);
	/* Each file that the command has open here is open in this process. Init has forked before: the
	 * command keeps the limit that the caller set. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return w;
}

static void
empty_list(struct handle *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->list[i].name);
	h->n = 0;
}

static void
close_handle(struct livewall *w, struct handle *h)
{
	empty_list(h);
	free(take_ptr(&h->list));
	h->cap = 0;
	fd_close(&h->fd);
	if ((size_t)(h - w->handles) < w->first_free)
		w->first_free = (size_t)(h - w->handles);
	livenodes_unref(&w->nodes, take_ptr(&h->node));
}

void
livewall_free(struct livewall *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->nhandles; i++)
		if (w->handles[i].node)
			close_handle(w, &w->handles[i]);
	free(w->handles);
	livenodes_release(&w->nodes);
	seen_release(&w->seen);
	strvec_release(&w->manifests);
	free(w->out);
	free(w);
}

uint64_t
livewall_denials(const struct livewall *w)
{
	return w->denials;
}

const struct strvec *
livewall_manifests(const struct livewall *w)
{
	return &w->manifests;
}

/* What is denied. */

static void
tell(struct livewall *w, const struct fuse_request *r, enum denial_op op, const char *path)
{
	struct layer_denial d = {path, op, r->in->pid};
	cleanup_free char *key = xasprintf("%d %s", op, path);

	/* Any number of these can be made up: they must not crowd out the others. */
	if (op == DENIAL_PROBE && w->probes >= LAYER_PROBES_MAX)
		return;
	if (!seen_add(&w->seen, key))
		return;
	if (op == DENIAL_PROBE)
		w->probes++;
	else
		w->denials++;
	w->o.denied(w->o.ctx, &d);
}

/* For every refused write, whatever it was: the same error whether or not there is such a name. */
static int
refuse(struct livewall *w, const struct fuse_request *r, enum denial_op op, const char *path)
{
	tell(w, r, op, path);
	return fuse_answer_error(r, EROFS);
}

/* Where things are. Each of these returns 0 or an error number. */

/* What the command may see at the path. */
static int
see(struct livewall *w, const struct fuse_request *r, const char *path, struct stat *ret)
{
	enum host_kind kind;

	if (strlen(path) > PATH_LEN_MAX)
		return ENAMETOOLONG;
	if (host_look(w->o.rules.host, path, &kind, ret))
		return EIO;
	switch (ruleset_verdict(w->o.rules.rules, path, kind)) {
	case VERDICT_PASS:
	case VERDICT_TRAVERSE:
		return kind == HOST_ABSENT ? ENOENT : 0;
	case VERDICT_HIDE:
		tell(w, r, kind == HOST_ABSENT ? DENIAL_PROBE : DENIAL_READ, path);
		break;
	case VERDICT_QUIET:
		break;
	}
	return ENOENT;
}

/* The path of a node; ESTALE: it has none any more, and the kernel looks the name up again. */
static int
path_of(const struct livewall *w, uint64_t id, struct livenode **ret, struct strbuf *ret_path)
{
	*ret = livenodes_get(&w->nodes, id);
	return *ret && livenodes_path(*ret, ret_path) ? 0 : ESTALE;
}

/* The same, of an object that is still the one that was looked up. */
static int
find(struct livewall *w, const struct fuse_request *r, struct livenode **ret,
	struct strbuf *ret_path, struct stat *ret_st)
{
	int error = path_of(w, r->in->nodeid, ret, ret_path);

	if (error)
		return error;
	error = see(w, r, ret_path->buf, ret_st);
	if (error)
		return error == ENOENT ? ESTALE : error;
	return (*ret)->id == FUSE_ROOT_ID || livenode_is(*ret, ret_st) ? 0 : ESTALE;
}

/* That object, O_PATH: what is done to it by a name below /proc is done to no other. */
static int
open_object(const struct livewall *w, const struct livenode *n, const char *path, int *ret)
{
	cleanup_close int fd = fs_open_beneath(w->o.rules.host, path, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? ESTALE : errno;
	if (fstat(fd, &st))
		return errno;
	if (n->id != FUSE_ROOT_ID && !livenode_is(n, &st))
		return ESTALE;
	*ret = take_fd(&fd);
	return 0;
}

/* A name in a directory: what all calls that change names begin with. */
struct place {
	struct livenode *dir;
	const char *base;
	struct strbuf path;
	int parent;
};

static void
place_release(struct place *p)
{
	fd_close(&p->parent);
	strbuf_release(&p->path);
}
#define cleanup_place __attribute__((cleanup(place_release)))
#define PLACE_INIT                                                                                 \
	{                                                                                          \
		NULL, NULL, STRBUF_INIT, -1                                                        \
	}

static int
place_at(struct livewall *w, uint64_t dir, const char *name, struct place *ret)
{
	int error = name ? path_of(w, dir, &ret->dir, &ret->path) : EINVAL;

	if (error)
		return error;
	if (ret->path.len + strlen(name) > PATH_LEN_MAX)
		return ENAMETOOLONG;
	ret->parent = fs_open_beneath(w->o.rules.host, ret->path.buf, O_PATH | O_DIRECTORY, 0);
	if (ret->parent < 0)
		return errno == ELOOP || errno == ENOTDIR ? ESTALE : errno;
	path_append(&ret->path, name);
	ret->base = name;
	return 0;
}

/* Answers. */

static struct fuse_attr
attr_of(const struct livewall *w, const struct stat *st)
{
	struct fuse_attr attr = fuse_attr_of(st, &w->owner);

	attr.ino = fuse_number(st->st_ino, st->st_dev, w->dev);
	return attr;
}

/* Where the kernel judges permissions itself (view.c) it asks for those of every directory on the way. */
static uint64_t
attr_seconds(const struct livewall *w, const struct stat *st)
{
	return w->owner.maps_all && S_ISDIR(st->st_mode) ? DIR_SECONDS : 0;
}

static struct fuse_entry_out
entry_of(struct livewall *w, const struct place *p, const struct stat *st)
{
	return (struct fuse_entry_out){
		.nodeid = livenodes_look_up(&w->nodes, p->dir, p->base, st)->id,
		.entry_valid = S_ISDIR(st->st_mode) ? DIR_SECONDS : 0,
		.attr_valid = attr_seconds(w, st),
		.attr = attr_of(w, st),
	};
}

static int
answer_entry(struct livewall *w, const struct fuse_request *r, const struct place *p,
	const struct stat *st)
{
	struct fuse_entry_out out = entry_of(w, p, st);

	return fuse_answer(r, 0, &out, sizeof(out));
}

static int
answer_attr(const struct livewall *w, const struct fuse_request *r, const struct stat *st)
{
	struct fuse_attr_out out = {.attr_valid = attr_seconds(w, st), .attr = attr_of(w, st)};

	return fuse_answer(r, 0, &out, sizeof(out));
}

/* Reading names. */

static int
serve_lookup(struct livewall *w, const struct fuse_request *r)
{
	cleanup_place struct place p = PLACE_INIT;
	size_t next;
	const char *name = fuse_name(r, 0, &next);
	int error = name ? path_of(w, r->in->nodeid, &p.dir, &p.path) : EINVAL;
	struct stat st;

	if (error)
		return fuse_answer_error(r, error);
	path_append(&p.path, name);
	p.base = name;
	error = see(w, r, p.path.buf, &st);
	return error ? fuse_answer_error(r, error) : answer_entry(w, r, &p, &st);
}

static struct handle *
handle_at(const struct livewall *w, uint64_t number)
{
	return number < w->nhandles && w->handles[number].node ? &w->handles[number] : NULL;
}

/* A file that has lost its name but is still open. */
static const struct handle *
handle_of(const struct livewall *w, const struct livenode *n)
{
	for (size_t i = 0; n && n->refs && i < w->nhandles; i++)
		if (w->handles[i].node == n && w->handles[i].fd >= 0)
			return &w->handles[i];
	return NULL;
}

static int
serve_getattr(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct livenode *n = NULL;
	struct stat st;
	int error = find(w, r, &n, &path, &st);
	const struct handle *h;

	if (error != ESTALE)
		return error ? fuse_answer_error(r, error) : answer_attr(w, r, &st);
	h = handle_of(w, n);
	if (!h || fstat(h->fd, &st))
		return fuse_answer_error(r, ESTALE);
	return answer_attr(w, r, &st);
}

static int
serve_readlink(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct livenode *n;
	struct stat st;
	int error = find(w, r, &n, &path, &st);
	ssize_t got;

	if (!error)
		error = open_object(w, n, path.buf, &fd);
	if (error)
		return fuse_answer_error(r, error);
	got = readlinkat(fd, "", w->out, PATH_MAX);
	return got < 0 ? fuse_answer_error(r, errno) : fuse_answer(r, 0, w->out, (size_t)got);
}

static int
serve_access(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct fuse_access_in in;
	struct livenode *n;
	char name[32];
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = find(w, r, &n, &path, &st);
	if (!error)
		error = open_object(w, n, path.buf, &fd);
	if (error)
		return fuse_answer_error(r, error);
	/* A question, not an attempt: nothing is told. Of a link nothing is asked of the host. */
	if ((in.mask & W_OK) && !liverules_may_change(&w->o.rules, path.buf, n->type) &&
		!(S_ISDIR(n->type) && ruleset_may_write_below(w->o.rules.rules, path.buf)))
		return fuse_answer_error(r, EROFS);
	if (S_ISLNK(n->type))
		return fuse_answer_error(r, 0);
	snprintf(name, sizeof(name), "self/fd/%d", fd);
	return fuse_answer_error(r, faccessat(w->o.proc, name, (int)(in.mask & 7), 0) ? errno : 0);
}

/* Open files. */

/* Takes fd. */
static uint64_t
new_handle(struct livewall *w, struct livenode *n, int fd)
{
	size_t i = w->first_free;

	while (i < w->nhandles && w->handles[i].node)
		i++;
	w->first_free = i + 1;
	if (i == w->nhandles) {
		GROW(w->handles, w->nhandles + 1, w->handles_cap);
		w->nhandles++;
	}
	w->handles[i] = (struct handle){.node = n, .fd = fd};
	livenodes_ref(n);
	return i;
}

static void
note_manifest(struct livewall *w, const char *path)
{
	cleanup_free char *key = NULL;

	if (!never_is_manifest(path) || ruleset_names_write(w->o.rules.rules, path, path))
		return;
	key = xasprintf("manifest %s", path);
	if (seen_add(&w->seen, key))
		strvec_push(&w->manifests, path);
}

static bool
is_for_writing(uint32_t flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

/* O_NONBLOCK: a fifo may stand there by now. */
static int
host_flags(uint32_t flags)
{
	return (int)(flags & (O_ACCMODE | O_APPEND | O_TRUNC)) | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
}

static int
set_size(struct livewall *w, const struct livenode *n, const char *path,
	const struct fuse_setattr_in *in)
{
	const struct handle *h = in->valid & FATTR_FH ? handle_at(w, in->fh) : NULL;
	cleanup_close int fd = -1;
	struct stat st;

	if (h && h->fd >= 0)
		return ftruncate(h->fd, (off_t)in->size) ? errno : 0;
	if (!S_ISREG(n->type))
		return EINVAL;
	fd = fs_open_beneath(w->o.rules.host, path, host_flags(O_WRONLY), 0);
	if (fd < 0)
		return errno;
	if (fstat(fd, &st) || !livenode_is(n, &st))
		return ESTALE;
	return ftruncate(fd, (off_t)in->size) ? errno : 0;
}

static int
serve_open(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct fuse_open_out out = {0};
	struct fuse_open_in in;
	struct livenode *n;
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = find(w, r, &n, &path, &st);
	if (error)
		return fuse_answer_error(r, error);
	if (!S_ISREG(n->type))
		return fuse_answer_error(r, EACCES);
	if (is_for_writing(in.flags) && !liverules_may_change(&w->o.rules, path.buf, n->type))
		return refuse(w, r, DENIAL_WRITE, path.buf);
	/* Truncated only once it is known to be the file. */
	fd = fs_open_beneath(
		w->o.rules.host, path.buf, host_flags(in.flags & ~(uint32_t)O_TRUNC), 0);
	if (fd < 0)
		return fuse_answer_error(r, errno == ENOENT || errno == ELOOP ? ESTALE : errno);
	if (fstat(fd, &st) || !livenode_is(n, &st))
		return fuse_answer_error(r, ESTALE);
	error = in.flags & O_TRUNC ? set_size(w, n, path.buf, &(struct fuse_setattr_in){0}) : 0;
	if (error)
		return fuse_answer_error(r, error);
	if (is_for_writing(in.flags))
		note_manifest(w, path.buf);
	out.fh = new_handle(w, n, take_fd(&fd));
	return fuse_answer(r, 0, &out, sizeof(out));
}

/* What root made for a process that has another id, here where all ids are what they are. */
static int
give_owner(const struct livewall *w, const struct fuse_request *r, int fd)
{
	struct stat st;

	if (!w->owner.maps_all || (!r->in->uid && !r->in->gid))
		return 0;
	if (fstat(fd, &st))
		return errno;
	/* A directory hands its group down where it says so. */
	return fchownat(fd, "", r->in->uid, st.st_gid ? (gid_t)-1 : r->in->gid, AT_EMPTY_PATH)
		       ? errno
		       : 0;
}

static int
create_file(const struct livewall *w, const struct fuse_request *r, const struct place *p,
	uint32_t flags, mode_t mode, int *ret)
{
	int host = host_flags(flags) | O_CLOEXEC, error;
	cleanup_close int fd = openat(p->parent, p->base, host | O_CREAT | O_EXCL, mode & 0777);

	if (fd >= 0) {
		error = give_owner(w, r, fd);
		if (error)
			return error;
	} else if (errno == EEXIST && !(flags & O_EXCL)) {
		struct stat st;

		fd = openat(p->parent, p->base, host & ~O_TRUNC);
		if (fd < 0 || fstat(fd, &st))
			return errno;
		if (!S_ISREG(st.st_mode))
			return EACCES;
		if ((flags & O_TRUNC) && ftruncate(fd, 0))
			return errno;
	}
	if (fd < 0)
		return errno;
	*ret = take_fd(&fd);
	return 0;
}

static int
serve_create(struct livewall *w, const struct fuse_request *r)
{
	cleanup_place struct place p = PLACE_INIT;
	cleanup_close int fd = -1;
	struct fuse_create_in in;
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {0};
	size_t next;
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = place_at(w, r->in->nodeid, fuse_name(r, sizeof(in), &next), &p);
	if (error)
		return fuse_answer_error(r, error);
	if (!liverules_may_change(&w->o.rules, p.path.buf, S_IFREG))
		return refuse(w, r, DENIAL_WRITE, p.path.buf);
	error = create_file(w, r, &p, in.flags, in.mode, &fd);
	if (!error && fstat(fd, &st))
		error = errno;
	if (error)
		return fuse_answer_error(r, error);
	note_manifest(w, p.path.buf);
	out.entry = entry_of(w, &p, &st);
	out.open.fh = new_handle(w, livenodes_get(&w->nodes, out.entry.nodeid), take_fd(&fd));
	return fuse_answer(r, 0, &out, sizeof(out));
}

static int
serve_read(struct livewall *w, const struct fuse_request *r)
{
	struct fuse_read_in in;
	const struct handle *h;
	ssize_t got;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	h = handle_at(w, in.fh);
	if (!h || h->fd < 0)
		return fuse_answer_error(r, EBADF);
	got = pread(h->fd, w->out, in.size < FUSE_IO_MAX ? in.size : FUSE_IO_MAX, (off_t)in.offset);
	return got < 0 ? fuse_answer_error(r, errno) : fuse_answer(r, 0, w->out, (size_t)got);
}

static int
serve_write(struct livewall *w, const struct fuse_request *r)
{
	struct fuse_write_out out = {0};
	struct fuse_write_in in;
	const struct handle *h;
	ssize_t done;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	h = handle_at(w, in.fh);
	if (!h || h->fd < 0 || in.size > r->narg - sizeof(in))
		return fuse_answer_error(r, EBADF);
	done = pwrite(h->fd, r->arg + sizeof(in), in.size, (off_t)in.offset);
	if (done < 0)
		return fuse_answer_error(r, errno);
	out.size = (uint32_t)done;
	return fuse_answer(r, 0, &out, sizeof(out));
}

static int
serve_fsync(struct livewall *w, const struct fuse_request *r)
{
	struct fuse_fsync_in in;
	const struct handle *h;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	h = handle_at(w, in.fh);
	if (!h || h->fd < 0)
		return fuse_answer_error(r, EBADF);
	return fuse_answer_error(
		r, (in.fsync_flags & FUSE_FSYNC_FDATASYNC ? fdatasync(h->fd) : fsync(h->fd)) ? errno
											     : 0);
}

static int
serve_release(struct livewall *w, const struct fuse_request *r)
{
	struct fuse_release_in in;
	struct handle *h;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	h = handle_at(w, in.fh);
	if (h)
		close_handle(w, h);
	return fuse_answer_error(r, 0);
}

/* Listings: what is there and may be seen at the moment that the first name is asked for. */

static int
serve_opendir(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct fuse_open_out out = {0};
	struct livenode *n;
	struct stat st;
	int error = find(w, r, &n, &path, &st);

	if (error)
		return fuse_answer_error(r, error);
	out.fh = new_handle(w, n, -1);
	return fuse_answer(r, 0, &out, sizeof(out));
}

static void
add_listed(struct handle *h, const char *name, ino_t ino, unsigned char type)
{
	GROW(h->list, h->n + 1, h->cap);
	h->list[h->n++] = (struct listed){xstrdup(name), ino, type};
}

static int
fill_list(const struct livewall *w, struct handle *h, const char *dir)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_dir DIR *d = host_opendir(w->o.rules.host, dir);
	size_t start;
	const char *name;
	enum host_kind kind;
	struct stat st;
	int got;

	empty_list(h);
	if (!d || fstat(dirfd(d), &st))
		return errno;
	add_listed(h, ".", st.st_ino, DT_DIR);
	add_listed(h, "..", st.st_ino, DT_DIR);
	strbuf_adds(&path, dir);
	start = path.len;
	while ((got = host_readdir(d, &name, &kind)) == 1) {
		enum verdict v;

		strbuf_truncate(&path, start);
		path_append(&path, name);
		v = ruleset_verdict(w->o.rules.rules, path.buf, kind);
		if (kind == HOST_ABSENT || (v != VERDICT_PASS && v != VERDICT_TRAVERSE))
			continue;
		add_listed(h, name, NO_NUMBER,
			kind == HOST_DIR    ? DT_DIR
			: kind == HOST_LINK ? DT_LNK
					    : DT_UNKNOWN);
	}
	return got < 0 ? errno : 0;
}

static int
serve_readdir(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct fuse_read_in in;
	struct livenode *n;
	struct handle *h;
	size_t len = 0, room;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	h = handle_at(w, in.fh);
	if (!h)
		return fuse_answer_error(r, EBADF);
	if (!in.offset) {
		error = path_of(w, r->in->nodeid, &n, &path);
		/* A directory that was removed has no names. */
		if (error)
			empty_list(h);
		else
			error = fill_list(w, h, path.buf);
		if (error && error != ESTALE && error != ENOENT)
			return fuse_answer_error(
				r, error == ENOTDIR || error == ELOOP ? ESTALE : error);
	}
	room = in.size < FUSE_IO_MAX ? in.size : FUSE_IO_MAX;
	for (size_t i = in.offset; i < h->n; i++) {
		struct fuse_dirent d = {
			h->list[i].ino, i + 1, (uint32_t)strlen(h->list[i].name), h->list[i].type};
		size_t size = fuse_add_dirent(w->out + len, room - len, &d, h->list[i].name);

		if (!size)
			break;
		len += size;
	}
	return fuse_answer(r, 0, w->out, len);
}

/* Changing names. */

static int
serve_mkdir(struct livewall *w, const struct fuse_request *r)
{
	cleanup_place struct place p = PLACE_INIT;
	cleanup_close int fd = -1;
	struct fuse_mkdir_in in;
	size_t next;
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = place_at(w, r->in->nodeid, fuse_name(r, sizeof(in), &next), &p);
	if (error)
		return fuse_answer_error(r, error);
	if (!liverules_may_make_dir(&w->o.rules, p.path.buf))
		return refuse(w, r, DENIAL_WRITE, p.path.buf);
	if (mkdirat(p.parent, p.base, in.mode & 0777))
		return fuse_answer_error(r, errno);
	fd = openat(p.parent, p.base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return fuse_answer_error(r, errno);
	error = give_owner(w, r, fd);
	if (!error && fstat(fd, &st))
		error = errno;
	return error ? fuse_answer_error(r, error) : answer_entry(w, r, &p, &st);
}

/* Regular files only: open(2) comes as CREATE. */
static int
serve_mknod(struct livewall *w, const struct fuse_request *r)
{
	cleanup_place struct place p = PLACE_INIT;
	cleanup_close int fd = -1;
	struct fuse_mknod_in in;
	size_t next;
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = place_at(w, r->in->nodeid, fuse_name(r, sizeof(in), &next), &p);
	if (error)
		return fuse_answer_error(r, error);
	if (!liverules_may_change(&w->o.rules, p.path.buf, S_IFREG))
		return refuse(w, r, DENIAL_WRITE, p.path.buf);
	if (!S_ISREG(in.mode))
		return fuse_answer_error(r, EPERM);
	error = create_file(w, r, &p, O_WRONLY | O_EXCL, in.mode, &fd);
	if (!error && fstat(fd, &st))
		error = errno;
	if (error)
		return fuse_answer_error(r, error);
	note_manifest(w, p.path.buf);
	return answer_entry(w, r, &p, &st);
}

static int
serve_symlink(struct livewall *w, const struct fuse_request *r)
{
	cleanup_place struct place p = PLACE_INIT;
	size_t next = 0;
	const char *name = fuse_name(r, 0, &next), *target = r->arg + next;
	cleanup_close int fd = -1;
	struct stat st;
	int error = place_at(w, r->in->nodeid, name, &p);

	if (!error && (next >= r->narg || !memchr(target, '\0', r->narg - next)))
		error = EINVAL;
	if (error)
		return fuse_answer_error(r, error);
	if (!liverules_may_change(&w->o.rules, p.path.buf, S_IFLNK))
		return refuse(w, r, DENIAL_WRITE, p.path.buf);
	if (symlinkat(target, p.parent, p.base))
		return fuse_answer_error(r, errno);
	fd = openat(p.parent, p.base, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return fuse_answer_error(r, errno);
	error = give_owner(w, r, fd);
	note_manifest(w, p.path.buf);
	return error ? fuse_answer_error(r, error) : answer_entry(w, r, &p, &st);
}

/* dir: what the kernel says it is. */
static int
serve_remove(struct livewall *w, const struct fuse_request *r, bool dir)
{
	cleanup_place struct place p = PLACE_INIT;
	struct livenode *n;
	size_t next;
	struct stat st;
	int error = place_at(w, r->in->nodeid, fuse_name(r, 0, &next), &p);

	if (!error)
		error = see(w, r, p.path.buf, &st);
	if (error)
		return fuse_answer_error(r, error);
	if (!liverules_may_change(&w->o.rules, p.path.buf, st.st_mode & S_IFMT))
		return refuse(w, r, DENIAL_DELETE, p.path.buf);
	if (unlinkat(p.parent, p.base, dir ? AT_REMOVEDIR : 0))
		return fuse_answer_error(r, errno);
	n = livenodes_find(&w->nodes, p.dir, p.base);
	if (n) {
		/* The kernel still knows it, and what has it open uses it. */
		livenodes_ref(n);
		livenodes_unname(&w->nodes, n);
		livenodes_unref(&w->nodes, n);
	}
	return fuse_answer_error(r, 0);
}

/* What is in a directory that is to be called otherwise. */
struct moving {
	struct livewall *w;
	const char *from, *to;
	size_t n;
	bool refused;
};

static enum fs_visit
moving_visit(void *ctx, const struct fs_entry *entry)
{
	struct moving *m = ctx;
	const struct liverules *lr = &m->w->o.rules;
	cleanup_free char *from = path_join(m->from, entry->path);
	cleanup_free char *to = path_join(m->to, entry->path);
	mode_t type = entry->st->st_mode & S_IFMT;

	/* At the old name as well: what is never committed is not taken away either. */
	m->refused = ++m->n > MOVED_NAMES_MAX || liverules_ends_never(lr, from, type) ||
		     liverules_ends_never(lr, to, type);
	if (!strcmp(entry->name, "HEAD") && !m->refused) {
		cleanup_free char *dir = xmemdupz(from, path_parent_len(from));

		m->refused = never_is_repo(never_repo_bits_at(lr->host, dir));
	}
	if (m->refused)
		return FS_VISIT_STOP;
	note_manifest(m->w, to);
	return FS_VISIT_CONTINUE;
}

/*
 * Whether what is at `from` may be called `to`. EXDEV where a directory cannot go whole: programs then
 * copy what they see, name by name, and each is judged.
 */
static int
may_move(struct livewall *w, const struct place *from, const struct place *to, mode_t type,
	const char **ret_refused)
{
	const struct liverules *lr = &w->o.rules;
	struct moving m = {w, from->path.buf, to->path.buf, 0, false};

	*ret_refused = !liverules_may_change(lr, from->path.buf, type) ? from->path.buf
		       : !liverules_may_change(lr, to->path.buf, type) ? to->path.buf
								       : NULL;
	if (*ret_refused)
		return EROFS;
	if (!S_ISDIR(type))
		return 0;
	if (!liverules_is_whole(lr, from->path.buf) || !liverules_is_whole(lr, to->path.buf) ||
		liverules_leads(to->base))
		return EXDEV;
	return fs_walk(lr->host, from->path.buf, moving_visit, &m) ? EXDEV : 0;
}

static int
rename_place(struct livewall *w, const struct fuse_request *r, struct place *from, struct place *to,
	unsigned flags)
{
	struct livenode *a, *b;
	const char *refused;
	struct stat st;
	int error = see(w, r, from->path.buf, &st);

	if (error)
		return fuse_answer_error(r, error);
	error = may_move(w, from, to, st.st_mode & S_IFMT, &refused);
	if (!error && !see(w, r, to->path.buf, &st)) {
		/* What is replaced, or exchanged, is changed too. */
		if (flags & RENAME_EXCHANGE)
			error = may_move(w, to, from, st.st_mode & S_IFMT, &refused);
		else if (!liverules_may_change(&w->o.rules, to->path.buf, st.st_mode & S_IFMT))
			error = EROFS, refused = to->path.buf;
	}
	if (error == EROFS)
		return refuse(w, r, DENIAL_WRITE, refused);
	if (error)
		return fuse_answer_error(r, error);
	if (syscall(SYS_renameat2, from->parent, from->base, to->parent, to->base, flags))
		return fuse_answer_error(r, errno);
	note_manifest(w, to->path.buf);
	a = livenodes_find(&w->nodes, from->dir, from->base);
	b = livenodes_find(&w->nodes, to->dir, to->base);
	if (b)
		livenodes_ref(b);
	if (a)
		livenodes_rename(&w->nodes, a, to->dir, to->base);
	else if (b)
		livenodes_unname(&w->nodes, b);
	if (b && a != b && (flags & RENAME_EXCHANGE))
		livenodes_rename(&w->nodes, b, from->dir, from->base);
	if (b)
		livenodes_unref(&w->nodes, b);
	return fuse_answer_error(r, 0);
}

static int
serve_rename(struct livewall *w, const struct fuse_request *r, bool has_flags)
{
	cleanup_place struct place from = PLACE_INIT, to = PLACE_INIT;
	struct fuse_rename2_in in = {0};
	size_t size = has_flags ? sizeof(in) : sizeof(struct fuse_rename_in), next = 0;
	const char *old;
	int error;

	if (r->narg < size)
		return fuse_answer_error(r, EINVAL);
	memcpy(&in, r->arg, size);
	if (in.flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return fuse_answer_error(r, EINVAL);
	old = fuse_name(r, size, &next);
	error = place_at(w, r->in->nodeid, old, &from);
	if (!error)
		error = place_at(w, in.newdir, fuse_name(r, next, &next), &to);
	if (error)
		return fuse_answer_error(r, error);
	return rename_place(w, r, &from, &to, in.flags);
}

/* A second name makes the file writable by its rules, so it must be that by the first one's, too. */
static int
serve_link(struct livewall *w, const struct fuse_request *r)
{
	cleanup_place struct place to = PLACE_INIT;
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct fuse_link_in in;
	struct livenode *n;
	char name[32];
	size_t next;
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = place_at(w, r->in->nodeid, fuse_name(r, sizeof(in), &next), &to);
	if (!error)
		error = path_of(w, in.oldnodeid, &n, &path);
	if (!error)
		error = see(w, r, path.buf, &st);
	if (!error)
		error = open_object(w, n, path.buf, &fd);
	if (error)
		return fuse_answer_error(r, error);
	if (!S_ISREG(n->type))
		return fuse_answer_error(r, EPERM);
	if (!liverules_may_change(&w->o.rules, path.buf, n->type))
		return refuse(w, r, DENIAL_WRITE, path.buf);
	if (!liverules_may_change(&w->o.rules, to.path.buf, n->type))
		return refuse(w, r, DENIAL_WRITE, to.path.buf);
	/* Of the object that was judged. */
	snprintf(name, sizeof(name), "self/fd/%d", fd);
	if (linkat(w->o.proc, name, to.parent, to.base, AT_SYMLINK_FOLLOW) || fstat(fd, &st))
		return fuse_answer_error(r, errno);
	note_manifest(w, to.path.buf);
	return answer_entry(w, r, &to, &st);
}

/* Changing attributes. */

static int
set_owner(const struct livewall *w, const struct fuse_setattr_in *in, int fd)
{
	uid_t uid = in->valid & FATTR_UID ? in->uid : (uid_t)-1;
	gid_t gid = in->valid & FATTR_GID ? in->gid : (gid_t)-1;

	/* Where owners are not shown as they are, there are none to be set. */
	if (!w->owner.maps_all)
		return (uid == (uid_t)-1 || uid == w->owner.uid) &&
				       (gid == (gid_t)-1 || gid == w->owner.gid)
			       ? 0
			       : EPERM;
	return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) ? errno : 0;
}

static int
set_times(const struct fuse_setattr_in *in, int fd)
{
	struct timespec t[2] = {
		{.tv_sec = (time_t)in->atime, .tv_nsec = in->atimensec},
		{.tv_sec = (time_t)in->mtime, .tv_nsec = in->mtimensec},
	};

	if (!(in->valid & FATTR_ATIME))
		t[0].tv_nsec = UTIME_OMIT;
	else if (in->valid & FATTR_ATIME_NOW)
		t[0].tv_nsec = UTIME_NOW;
	if (!(in->valid & FATTR_MTIME))
		t[1].tv_nsec = UTIME_OMIT;
	else if (in->valid & FATTR_MTIME_NOW)
		t[1].tv_nsec = UTIME_NOW;
	return utimensat(fd, "", t, AT_EMPTY_PATH) ? errno : 0;
}

static int
set_attr(struct livewall *w, const struct livenode *n, const char *path, int fd,
	const struct fuse_setattr_in *in)
{
	char name[32];
	int error = 0;

	snprintf(name, sizeof(name), "self/fd/%d", fd);
	if (in->valid & (FATTR_UID | FATTR_GID))
		error = set_owner(w, in, fd);
	/* No set-id bit is made in the workspace. */
	if (!error && (in->valid & FATTR_MODE) && fchmodat(w->o.proc, name, in->mode & 01777, 0))
		error = errno;
	if (!error && (in->valid & FATTR_SIZE))
		error = set_size(w, n, path, in);
	if (!error && (in->valid & (FATTR_ATIME | FATTR_MTIME)))
		error = set_times(in, fd);
	return error;
}

static int
serve_setattr(struct livewall *w, const struct fuse_request *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct fuse_setattr_in in;
	struct livenode *n = NULL;
	const struct handle *h;
	struct stat st;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = find(w, r, &n, &path, &st);
	h = error == ESTALE ? handle_of(w, n) : NULL;
	if (h && (in.valid & (FATTR_FH | FATTR_SIZE)) == (FATTR_FH | FATTR_SIZE)) {
		/* A file without a name, which was judged when it was opened. */
		error = set_size(w, n, "", &in);
		if (!error && fstat(h->fd, &st))
			error = errno;
		return error ? fuse_answer_error(r, error) : answer_attr(w, r, &st);
	}
	if (!error)
		error = open_object(w, n, path.buf, &fd);
	if (error)
		return fuse_answer_error(r, error);
	if (!liverules_may_change(&w->o.rules, path.buf, n->type))
		return refuse(w, r, DENIAL_WRITE, path.buf);
	error = set_attr(w, n, path.buf, fd, &in);
	if (!error && fstat(fd, &st))
		error = errno;
	return error ? fuse_answer_error(r, error) : answer_attr(w, r, &st);
}

/* Nodes. */

static void
forget(void *ctx, uint64_t id, uint64_t lookups)
{
	struct livewall *w = ctx;
	struct livenode *n = id == FUSE_ROOT_ID ? NULL : livenodes_get(&w->nodes, id);

	if (n)
		livenodes_forget(&w->nodes, n, lookups);
}

static int
serve_request(void *ctx, const struct fuse_request *r)
{
	struct livewall *w = ctx;

	switch (r->in->opcode) {
	case FUSE_INIT:
		return fuse_answer_init(r,
			FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES |
				FUSE_AUTO_INVAL_DATA | FUSE_MAX_PAGES,
			FUSE_IO_MAX);
	case FUSE_LOOKUP:
		return serve_lookup(w, r);
	case FUSE_GETATTR:
		return serve_getattr(w, r);
	case FUSE_SETATTR:
		return serve_setattr(w, r);
	case FUSE_READLINK:
		return serve_readlink(w, r);
	case FUSE_ACCESS:
		return serve_access(w, r);
	case FUSE_STATFS:
		return fuse_answer_statfs(r, w->o.rules.host);
	case FUSE_OPEN:
		return serve_open(w, r);
	case FUSE_CREATE:
		return serve_create(w, r);
	case FUSE_READ:
		return serve_read(w, r);
	case FUSE_WRITE:
		return serve_write(w, r);
	case FUSE_FSYNC:
		return serve_fsync(w, r);
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return serve_release(w, r);
	case FUSE_OPENDIR:
		return serve_opendir(w, r);
	case FUSE_READDIR:
		return serve_readdir(w, r);
	case FUSE_MKDIR:
		return serve_mkdir(w, r);
	case FUSE_MKNOD:
		return serve_mknod(w, r);
	case FUSE_SYMLINK:
		return serve_symlink(w, r);
	case FUSE_UNLINK:
		return serve_remove(w, r, false);
	case FUSE_RMDIR:
		return serve_remove(w, r, true);
	case FUSE_RENAME:
		return serve_rename(w, r, false);
	case FUSE_RENAME2:
		return serve_rename(w, r, true);
	case FUSE_LINK:
		return serve_link(w, r);
	case FUSE_DESTROY:
		return fuse_answer_error(r, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		fuse_forget(r, forget, w);
		return 0; /* these are not answered */
	case FUSE_INTERRUPT:
		return 0;
	default:
		return fuse_answer_error(r, ENOSYS);
	}
}

int
livewall_serve(struct livewall *w, int fusefd)
{
	return fuse_serve(fusefd, serve_request, w);
}
