/* SPDX-License-Identifier: MIT */
/*
 * OPEN and OPENDIR are not answered, so that the kernel opens by itself and keeps pages and listings: who may
 * open is known from the mode (see shown_mode). What is read is read through a few files that are held open.
 */
#include "sandbox/mirror.h"
#include "sandbox/fuse.h"
#include "sandbox/livenodes.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	OPENED_MAX = 32,
	/* Of a name in a listing: of the host's record, of what it becomes, which is at most 8 bytes more. */
	RECORD_MIN = 24,
	RECORD_MORE = 8,
};

/* As getdents64 gives them. */
struct record {
	uint64_t ino;
	int64_t next;
	uint16_t len;
	uint8_t type;
	char name[];
};

struct opened {
	uint64_t node; /* 0: none */
	int fd;
	off_t at;      /* of a directory: where its position is */
	uint64_t used; /* by the clock of the mirror */
};

struct mirror {
	int root;
	uint64_t tag;
	struct owner owner;
	struct stat scratch;
	dev_t dev; /* of the root */
	struct livenodes nodes;
	struct opened opened[OPENED_MAX];
	uint64_t clock;
	char *out, *records;
};

struct mirror *
mirror_new(int rootfd, uint64_t tag, const struct owner *owner, const struct stat *scratch)
{
	struct mirror *m = xcalloc(1, sizeof(*m));
	struct stat st;

	*m = (struct mirror){.root = rootfd, .tag = tag, .owner = *owner, .scratch = *scratch};
	if (!fstat(rootfd, &st))
		m->dev = st.st_dev;
	livenodes_init(&m->nodes);
	for (size_t i = 0; i < OPENED_MAX; i++)
		m->opened[i].fd = -1;
	m->out = xmalloc(FUSE_IO_MAX);
	m->records = xmalloc(FUSE_IO_MAX);
	return m;
}

void
mirror_free(struct mirror *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < OPENED_MAX; i++)
		fd_close(&m->opened[i].fd);
	livenodes_release(&m->nodes);
	free(m->out);
	free(m->records);
	free(m);
}

/* Answers. */

/*
 * Who is shown as owner of another's object is judged by the owner's bits. The two that nothing else would
 * refuse in time are those that the caller has: what cannot be read must not be opened. (For writing it is copied, and
 * judged when it is committed.)
 */
static mode_t
shown_mode(const struct mirror *m, int fd, const struct stat *st)
{
	mode_t mode = st->st_mode;

	if (st->st_uid == m->owner.uid || S_ISLNK(mode) || !owner_is_foreign(&m->owner, st))
		return mode;
	mode &= ~(mode_t)(S_IRUSR | (S_ISDIR(mode) ? S_IXUSR : 0));
	if (!faccessat(fd, "", R_OK, AT_EMPTY_PATH | AT_EACCESS))
		mode |= S_IRUSR;
	if (S_ISDIR(mode) && !faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS))
		mode |= S_IXUSR;
	return mode;
}

static struct fuse_attr
attr_of(const struct mirror *m, int fd, const struct stat *st)
{
	struct fuse_attr attr = fuse_attr_of(st, &m->owner);

	attr.ino = fuse_number(st->st_ino, st->st_dev, m->dev);
	attr.mode = shown_mode(m, fd, st);
	return attr;
}

static int
answer_entry(
	struct mirror *m, const struct fuse_request *r, uint64_t id, int fd, const struct stat *st)
{
	struct fuse_entry_out out = {
		.nodeid = m->tag | id,
		.entry_valid = FUSE_FOREVER_SECONDS,
		.attr_valid = FUSE_FOREVER_SECONDS,
		.attr = attr_of(m, fd, st),
	};

	return fuse_answer(r, 0, &out, sizeof(out));
}

/* Where things are. Each of these returns 0 or an error number. */

static struct livenode *
node_of(const struct mirror *m, const struct fuse_request *r)
{
	return livenodes_get(&m->nodes, r->in->nodeid & ~MIRROR_TAGS);
}

/* The object at the path. */
static int
open_path(const struct mirror *m, const char *path, int flags, int *ret, struct stat *ret_st)
{
	/* O_NONBLOCK: a fifo may stand there by now. Only an owner can leave the time of reading as it is. */
	cleanup_close int fd = fs_open_beneath(m->root, path,
		flags & O_PATH ? flags : flags | O_NONBLOCK | O_NOCTTY | O_NOATIME, 0);

	if (fd < 0 && errno == EPERM && !(flags & O_PATH))
		fd = fs_open_beneath(m->root, path, flags | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, ret_st))
		return errno;
	*ret = take_fd(&fd);
	return 0;
}

/* The number of one that is removed is soon that of another: the time of its birth tells them apart. */
static struct statx_timestamp
birth_of(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) ||
		!(st.stx_mask & STATX_BTIME))
		return (struct statx_timestamp){0};
	return st.stx_btime;
}

static bool
is_born_with(const struct livenode *n, int fd)
{
	struct statx_timestamp born = birth_of(fd);

	return n->born == born.tv_sec && n->born_ns == born.tv_nsec;
}

/* The object of a node; ESTALE: another is in its place. */
static int
open_node(
	const struct mirror *m, const struct livenode *n, int flags, int *ret, struct stat *ret_st)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	int error = n && livenodes_path(n, &path) ? 0 : ESTALE;

	if (!error)
		error = open_path(m, path.buf, flags, &fd, ret_st);
	if (error)
		return error == ENOENT || error == ELOOP || error == ENOTDIR ? ESTALE : error;
	if (n->id != FUSE_ROOT_ID && (!livenode_is(n, ret_st) || !is_born_with(n, fd)))
		return ESTALE;
	*ret = take_fd(&fd);
	return 0;
}

/* A file or directory to read from: held open, or in the place of what was not read for the longest time. */
static int
open_content(struct mirror *m, const struct livenode *n, mode_t type, struct opened **ret)
{
	struct opened *o = m->opened;
	struct stat st;
	int error, fd;

	if (!n || n->type != type)
		return n ? EINVAL : ESTALE;
	for (size_t i = 1; i < OPENED_MAX && o->node != n->id; i++)
		if (m->opened[i].node == n->id || m->opened[i].used < o->used)
			o = &m->opened[i];
	if (o->node != n->id) {
		error = open_node(
			m, n, S_ISDIR(type) ? O_RDONLY | O_DIRECTORY : O_RDONLY, &fd, &st);
		if (error)
			return error;
		fd_close(&o->fd);
		*o = (struct opened){.node = n->id, .fd = fd};
	}
	o->used = ++m->clock;
	*ret = o;
	return 0;
}

/* Requests. */

static uint64_t
node_at(struct mirror *m, struct livenode *dir, const char *name, int fd, const struct stat *st)
{
	struct livenode *n = livenodes_find(&m->nodes, dir, name);
	struct statx_timestamp born = birth_of(fd);

	if (n && !is_born_with(n, fd))
		livenodes_unname(&m->nodes, n);
	n = livenodes_look_up(&m->nodes, dir, name, st);
	n->born = born.tv_sec;
	n->born_ns = born.tv_nsec;
	return n->id;
}

/* What is not there is remembered, as overlayfs does itself. */
static int
serve_lookup(struct mirror *m, const struct fuse_request *r)
{
	static const struct fuse_entry_out none = {.entry_valid = FUSE_FOREVER_SECONDS};
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_close int fd = -1;
	struct livenode *dir = node_of(m, r);
	size_t next;
	const char *name = fuse_name(r, 0, &next);
	struct stat st;
	int error = !name ? EINVAL : dir && livenodes_path(dir, &path) ? 0 : ESTALE;

	if (error)
		return fuse_answer_error(r, error);
	path_append(&path, name);
	error = open_path(m, path.buf, O_PATH | O_NOFOLLOW, &fd, &st);
	if (error == ENOENT || error == ENOTDIR || error == ELOOP)
		return fuse_answer(r, 0, &none, sizeof(none));
	if (!error && st.st_dev == m->scratch.st_dev && st.st_ino == m->scratch.st_ino)
		error = ELOOP;
	if (error)
		return fuse_answer_error(r, error);
	return answer_entry(m, r, node_at(m, dir, name, fd, &st), fd, &st);
}

int
mirror_enter(struct mirror *m, const struct fuse_request *r)
{
	struct stat st;

	if (fstat(m->root, &st))
		return fuse_answer_error(r, errno);
	return answer_entry(m, r, FUSE_ROOT_ID, m->root, &st);
}

static int
serve_getattr(const struct mirror *m, const struct fuse_request *r)
{
	struct fuse_attr_out out = {.attr_valid = FUSE_FOREVER_SECONDS};
	cleanup_close int fd = -1;
	struct stat st;
	int error = open_node(m, node_of(m, r), O_PATH | O_NOFOLLOW, &fd, &st);

	if (error)
		return fuse_answer_error(r, error);
	out.attr = attr_of(m, fd, &st);
	return fuse_answer(r, 0, &out, sizeof(out));
}

static int
serve_readlink(struct mirror *m, const struct fuse_request *r)
{
	cleanup_close int fd = -1;
	struct stat st;
	int error = open_node(m, node_of(m, r), O_PATH | O_NOFOLLOW, &fd, &st);
	ssize_t got;

	if (error)
		return fuse_answer_error(r, error);
	got = readlinkat(fd, "", m->out, PATH_MAX);
	return got < 0 ? fuse_answer_error(r, errno) : fuse_answer(r, 0, m->out, (size_t)got);
}

static int
serve_read(struct mirror *m, const struct fuse_request *r)
{
	struct fuse_read_in in;
	struct opened *o;
	ssize_t got;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = open_content(m, node_of(m, r), S_IFREG, &o);
	if (error)
		return fuse_answer_error(r, error);
	got = pread(o->fd, m->out, in.size < FUSE_IO_MAX ? in.size : FUSE_IO_MAX, (off_t)in.offset);
	return got < 0 ? fuse_answer_error(r, errno) : fuse_answer(r, 0, m->out, (size_t)got);
}

/* Holes: a copy of the file shall have them too. */
static int
serve_lseek(struct mirror *m, const struct fuse_request *r)
{
	struct fuse_lseek_out out = {0};
	struct fuse_lseek_in in;
	struct opened *o;
	off_t at;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	if (in.whence != SEEK_DATA && in.whence != SEEK_HOLE)
		return fuse_answer_error(r, EINVAL);
	error = open_content(m, node_of(m, r), S_IFREG, &o);
	if (error)
		return fuse_answer_error(r, error);
	at = lseek(o->fd, (off_t)in.offset, (int)in.whence);
	if (at < 0)
		return fuse_answer_error(r, errno);
	out.offset = (uint64_t)at;
	return fuse_answer(r, 0, &out, sizeof(out));
}

static uint32_t
type_of(int dir, const struct record *rec)
{
	struct stat st;

	if (rec->type != DT_UNKNOWN || fstatat(dir, rec->name, &st, AT_SYMLINK_NOFOLLOW))
		return rec->type;
	return IFTODT(st.st_mode);
}

/* The host's records as the kernel wants them, and their positions as they are. */
static size_t
translate(const struct mirror *m, int dir, dev_t dev, size_t nbytes)
{
	size_t len = 0;

	for (size_t at = 0; at < nbytes;) {
		const struct record *rec = (const void *)(m->records + at);
		struct fuse_dirent d = {
			.ino = fuse_number(rec->ino, dev, m->dev),
			.off = (uint64_t)rec->next,
			.namelen = (uint32_t)strlen(rec->name),
			.type = type_of(dir, rec),
		};

		len += fuse_add_dirent(m->out + len, FUSE_IO_MAX - len, &d, rec->name);
		at += rec->len;
	}
	return len;
}

/* Positions are the host's own, which hold as long as the directory is open. Where it had to be opened anew they
 * hold as they do over NFS. */
static int
serve_readdir(struct mirror *m, const struct fuse_request *r)
{
	struct fuse_read_in in;
	struct opened *o;
	struct stat st;
	size_t room;
	long got;
	int error;

	if (!fuse_arg(r, &in, sizeof(in)))
		return fuse_answer_error(r, EINVAL);
	error = open_content(m, node_of(m, r), S_IFDIR, &o);
	if (!error && ((off_t)in.offset != o->at || !in.offset) &&
		lseek(o->fd, (off_t)in.offset, SEEK_SET) < 0)
		error = errno;
	if (error)
		return fuse_answer_error(r, error);
	room = in.size < FUSE_IO_MAX ? in.size : FUSE_IO_MAX;
	got = syscall(
		SYS_getdents64, o->fd, m->records, room / (RECORD_MIN + RECORD_MORE) * RECORD_MIN);
	if (got < 0 || fstat(o->fd, &st))
		return fuse_answer_error(r, errno);
	o->at = lseek(o->fd, 0, SEEK_CUR);
	return fuse_answer(r, 0, m->out, translate(m, o->fd, st.st_dev, (size_t)got));
}

int
mirror_request(struct mirror *m, const struct fuse_request *r)
{
	switch (r->in->opcode) {
	case FUSE_LOOKUP:
		return serve_lookup(m, r);
	case FUSE_GETATTR:
		return serve_getattr(m, r);
	case FUSE_READLINK:
		return serve_readlink(m, r);
	case FUSE_READ:
		return serve_read(m, r);
	case FUSE_LSEEK:
		return serve_lseek(m, r);
	case FUSE_READDIR:
		return serve_readdir(m, r);
	case FUSE_STATFS:
		return fuse_answer_statfs(r, m->root);
	default:
		return fuse_answer_error(r, ENOSYS);
	}
}

void
mirror_forget(struct mirror *m, uint64_t id, uint64_t lookups)
{
	struct livenode *n = livenodes_get(&m->nodes, id & ~MIRROR_TAGS);

	if (n && n->id != FUSE_ROOT_ID)
		livenodes_forget(&m->nodes, n, lookups);
}
