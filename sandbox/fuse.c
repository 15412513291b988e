/* SPDX-License-Identifier: MIT */
#include "sandbox/fuse.h"
#include "sandbox/host.h"
#include "util/clock.h"
#include "util/path.h"
#include <errno.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	ANSWERS_MAX = 1024, /* before other fds get a look */
	SPIN_NS = 50 * 1000,

	/* Since Linux 6.14: a connection whose server does not answer for so long is aborted, so
	 * that a stopped helper cannot leave processes that no signal ends (findings 15). */
	REQUEST_TIMEOUT = 1 << 10, /* in flags2 */
	REQUEST_TIMEOUT_SECONDS = 60,
};

/* As struct fuse_init_out since protocol 7.43, of one size with all from 7.23 on. */
struct init_out {
	uint32_t major;
	uint32_t minor;
	uint32_t max_readahead;
	uint32_t flags;
	uint16_t max_background;
	uint16_t congestion_threshold;
	uint32_t max_write;
	uint32_t time_gran;
	uint16_t max_pages;
	uint16_t map_alignment;
	uint32_t flags2;
	uint32_t max_stack_depth;
	uint16_t request_timeout;
	uint16_t unused[11];
};
_Static_assert(sizeof(struct init_out) == sizeof(struct fuse_init_out), "struct init_out");

int
fuse_answer(const struct fuse_request *r, int error, const void *p, size_t n)
{
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + n),
		.error = -error,
		.unique = r->in->unique,
	};
	struct iovec v[] = {
		{&h, sizeof(h)},
		{(void *)(uintptr_t)p, n},
	};

	/* ENOENT: whoever asked was interrupted meanwhile. */
	return writev(r->fd, v, n ? 2 : 1) < 0 && errno != ENOENT ? -1 : 0;
}

int
fuse_answer_error(const struct fuse_request *r, int error)
{
	return fuse_answer(r, error, NULL, 0);
}

int
fuse_answer_init(const struct fuse_request *r, uint32_t flags, uint32_t max_write)
{
	struct fuse_init_in in;
	struct init_out out = {0};

	if (r->narg < sizeof(in))
		return fuse_answer_error(r, EPROTO);
	memcpy(&in, r->arg, sizeof(in));
	out.major = FUSE_KERNEL_VERSION;
	if (in.major > FUSE_KERNEL_VERSION)
		return fuse_answer(r, 0, &out, sizeof(out)); /* it asks again with ours */
	if (in.major < FUSE_KERNEL_VERSION)
		return fuse_answer_error(r, EPROTO);
	out.minor = in.minor < FUSE_KERNEL_MINOR_VERSION ? in.minor : FUSE_KERNEL_MINOR_VERSION;
	out.max_readahead = in.max_readahead;
	out.flags = in.flags & (flags | FUSE_PARALLEL_DIROPS | FUSE_INIT_EXT);
	if (in.flags & FUSE_INIT_EXT)
		out.flags2 = in.flags2 & REQUEST_TIMEOUT;
	if (out.flags2)
		out.request_timeout = REQUEST_TIMEOUT_SECONDS;
	out.max_background = 64;
	out.congestion_threshold = 48;
	out.max_write = max_write;
	if (out.flags & FUSE_MAX_PAGES)
		out.max_pages = (uint16_t)((max_write + 4095) / 4096);
	out.time_gran = 1;
	return fuse_answer(r, 0, &out, sizeof(out));
}

struct fuse_attr
fuse_attr_of(const struct stat *st, const struct owner *owner)
{
	bool as_caller = owner_is_foreign(owner, st);

	return (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = as_caller ? owner->uid : st->st_uid,
		.gid = as_caller ? owner->gid : st->st_gid,
		.rdev = (minor(st->st_rdev) & 0xff) | major(st->st_rdev) << 8 |
			(minor(st->st_rdev) & ~0xffU) << 12,
		.blksize = (uint32_t)st->st_blksize,
	};
}

uint64_t
fuse_number(uint64_t ino, dev_t dev, dev_t root_dev)
{
	return dev == root_dev ? ino : ino ^ (uint64_t)dev * 0x9e3779b97f4a7c15;
}

int
fuse_answer_statfs(const struct fuse_request *r, int fd)
{
	struct statvfs st;
	struct fuse_statfs_out out = {0};

	if (fstatvfs(fd, &st))
		return fuse_answer_error(r, errno);
	out.st = (struct fuse_kstatfs){
		.blocks = st.f_blocks,
		.bfree = st.f_bfree,
		.bavail = st.f_bavail,
		.files = st.f_files,
		.ffree = st.f_ffree,
		.bsize = (uint32_t)st.f_bsize,
		.frsize = (uint32_t)st.f_frsize,
		.namelen = (uint32_t)st.f_namemax,
	};
	return fuse_answer(r, 0, &out, sizeof(out));
}

void
fuse_forget(const struct fuse_request *r, void (*forget)(void *ctx, uint64_t id, uint64_t lookups),
	void *ctx)
{
	struct fuse_batch_forget_in batch;
	struct fuse_forget_in one;
	struct fuse_forget_one each;
	size_t at = sizeof(batch);

	if (r->in->opcode == FUSE_FORGET && r->narg >= sizeof(one)) {
		memcpy(&one, r->arg, sizeof(one));
		forget(ctx, r->in->nodeid, one.nlookup);
	}
	if (r->in->opcode != FUSE_BATCH_FORGET || r->narg < sizeof(batch))
		return;
	memcpy(&batch, r->arg, sizeof(batch));
	for (uint32_t i = 0; i < batch.count && r->narg - at >= sizeof(each); i++) {
		memcpy(&each, r->arg + at, sizeof(each));
		forget(ctx, each.nodeid, each.nlookup);
		at += sizeof(each);
	}
}

bool
fuse_arg(const struct fuse_request *r, void *ret, size_t n)
{
	if (r->narg < n)
		return false;
	memcpy(ret, r->arg, n);
	return true;
}

size_t
fuse_add_dirent(char *out, size_t room, const struct fuse_dirent *d, const char *name)
{
	size_t size = FUSE_DIRENT_SIZE(d);

	if (size > room)
		return 0;
	memset(out, 0, size);
	memcpy(out, d, FUSE_NAME_OFFSET);
	memcpy(out + FUSE_NAME_OFFSET, name, d->namelen);
	return size;
}

const char *
fuse_name(const struct fuse_request *r, size_t at, size_t *ret_next)
{
	const char *name = r->arg + at;
	const char *end = at < r->narg ? memchr(name, '\0', r->narg - at) : NULL;

	if (!end || end == name || memchr(name, '/', (size_t)(end - name)) || !path_is_normal(name))
		return NULL;
	*ret_next = at + (size_t)(end - name) + 1;
	return name;
}

int
fuse_serve(int fd, int (*handle)(void *ctx, const struct fuse_request *r), void *ctx)
{
	/* The kernel wants room for the largest request there can be. */
	static _Alignas(struct fuse_in_header) char buf[FUSE_IO_MAX + 4096];
	uint64_t last = 0;

	for (int n = 0; n < ANSWERS_MAX;) {
		ssize_t got = read(fd, buf, sizeof(buf));
		struct fuse_request r = {.fd = fd};

		if (got < 0 && errno == EAGAIN) {
			if (!last || clock_monotonic_ns() - last > SPIN_NS)
				return 0;
			sched_yield();
			continue;
		}
		/* ENOENT: the request was taken back before it was read. */
		if (got < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (got < (ssize_t)sizeof(*r.in))
			return -1;
		r.in = (const struct fuse_in_header *)(const void *)buf;
		r.arg = buf + sizeof(*r.in);
		r.narg = (size_t)got - sizeof(*r.in);
		if (r.in->len != (size_t)got ? fuse_answer_error(&r, EIO) : handle(ctx, &r))
			return -1;
		last = clock_monotonic_ns();
		n++;
	}
	return 0;
}
