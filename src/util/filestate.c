/* SPDX-License-Identifier: MIT */
#include "util/filestate.h"

enum {
	/* A write so soon before the content was read may have a twin after it with the same times.
	 * The clock of a network file system is another machine's. */
	RACY_NS = 50 * 1000 * 1000,
	NSEC = 1000 * 1000 * 1000,
};
/* Times without a fraction come from file systems that count whole or even seconds. */
static const int64_t COARSE_NS = 2LL * NSEC + RACY_NS;

_Static_assert(sizeof(struct filestate) == 64, "a file's state has no padding");

static int64_t
ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NSEC + t->tv_nsec;
}

void
filestate_take(struct filestate *ret, const struct stat *st, int64_t learned_ns)
{
	*ret = (struct filestate){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = ns(&st->st_mtim),
		.ctime_ns = ns(&st->st_ctim),
		.learned_ns = learned_ns,
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

bool
filestate_is_coarse(int64_t time_ns, int64_t looked_ns)
{
	return time_ns % NSEC == 0 && time_ns >= looked_ns - COARSE_NS;
}

bool
filestate_holds(const struct filestate *f, const struct stat *now)
{
	int64_t window = f->ctime_ns % NSEC ? RACY_NS : COARSE_NS;
	int64_t last = f->mtime_ns > f->ctime_ns ? f->mtime_ns : f->ctime_ns;

	/* Without a ctime (a FAT root directory after each mount) nothing tells a change. */
	return f->ctime_ns && f->ino == now->st_ino && f->ctime_ns == ns(&now->st_ctim) &&
	       f->mtime_ns == ns(&now->st_mtim) && f->size == (uint64_t)now->st_size &&
	       f->mode == now->st_mode && f->dev == now->st_dev && f->uid == now->st_uid &&
	       f->gid == now->st_gid && last < f->learned_ns - window;
}
