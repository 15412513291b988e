/* SPDX-License-Identifier: MIT */
/*
 * Each tree in three passes, so that one that is not to be copied costs little: its names, no more of
 * them than may be; what they are; then the copies. The host's side is opened directory by directory
 * beneath the workspace, following no link; the upper directory is ours alone until the command
 * starts.
 */
#include "sandbox/preload.h"
#include "proto/ruleset.h"
#include "sandbox/host.h"
#include "sandbox/setup.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* A file of several names, where it was first met. */
struct hard_link {
	ino_t host_ino;
	size_t entry;
};

struct copier {
	struct preload *p;
	const struct ruleset *rules;
	struct owner owner;
	int host, upper;
	dev_t dev;       /* of the workspace */
	size_t top;      /* of the tree at work: its first entry */
	struct stat *st; /* of its entries on the host */
	size_t st_cap;
	struct hard_link *links;
	size_t nlinks, links_cap;
	off_t bytes; /* of the tree */
	off_t bytes_left;
	bool cannot_share;
};

/* mode: S_IFDIR, or 0 for all else. */
static void
add_entry(struct preload *p, char *path_take, mode_t mode)
{
	GROW(p->v, p->n + 1, p->cap);
	p->v[p->n++] = (struct preload_entry){.path = path_take, .mode = mode};
}

static bool
is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Of a copy. Root gives it the host's. Everybody else can keep the group, if it is one of his; as whose the copy
 * is then written is what the overlay would not do for the host's own file (EOVERFLOW). */
static bool
give_owner(const struct copier *c, int dir, const char *name, const struct stat *st)
{
	if (st->st_uid == c->owner.uid && st->st_gid == c->owner.gid)
		return true;
	if (c->owner.maps_all && !owner_is_foreign(&c->owner, st))
		return !fchownat(dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
	if (!c->owner.maps_all && fchownat(dir, name, (uid_t)-1, st->st_gid, AT_SYMLINK_NOFOLLOW))
		return errno == EPERM || errno == EINVAL;
	return true;
}

/* Pass one: names. */

static bool
list_dir(struct copier *c, size_t i)
{
	struct preload *p = c->p;
	cleanup_dir DIR *d = host_opendir(c->host, p->v[i].path);
	const char *name;
	enum host_kind kind;
	int got = -1;

	p->v[i].first = p->n;
	while (d && (got = host_readdir(d, &name, &kind)) == 1) {
		if (p->n - c->top > PRELOAD_TREE_MAX || p->n > PRELOAD_ALL_MAX)
			return false;
		add_entry(p, path_join(p->v[i].path, name), kind == HOST_DIR ? S_IFDIR : 0);
	}
	p->v[i].n = p->n - p->v[i].first;
	return got == 0;
}

static bool
list_tree(struct copier *c)
{
	for (size_t i = c->top; i < c->p->n; i++)
		if (S_ISDIR(c->p->v[i].mode) && !list_dir(c, i))
			return false;
	return true;
}

/* Pass two: what they are. */

/* Labels that the system sets by itself are no part of the file. */
static bool
has_attributes(int fd)
{
	char names[1024];
	ssize_t n = flistxattr(fd, names, sizeof(names));

	if (n < 0)
		return errno != ENOTSUP;
	for (const char *s = names; s < names + n; s += strlen(s) + 1)
		if (strncmp(s, "security.", 9) != 0 || !strcmp(s, "security.capability"))
			return true;
	return false;
}

static bool
may_copy(struct copier *c, size_t i)
{
	const struct stat *st = &c->st[i - c->top];

	if (st->st_dev != c->dev)
		return false;
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return S_ISDIR(c->p->v[i].mode);
	case S_IFREG:
		c->bytes += st->st_size;
		return !S_ISDIR(c->p->v[i].mode);
	case S_IFLNK:
		return !S_ISDIR(c->p->v[i].mode);
	default:
		return false; /* a fifo or socket leads to somebody; a copy would not */
	}
}

static int
open_host_dir(const struct copier *c, size_t i)
{
	return fs_open_beneath(c->host, c->p->v[i].path, O_RDONLY | O_DIRECTORY, 0);
}

static bool
look_at_tree(struct copier *c)
{
	const struct preload *p = c->p;

	GROW(c->st, p->n - c->top, c->st_cap);
	c->bytes = 0;
	for (size_t i = c->top; i < p->n; i++) {
		const struct preload_entry *dir = &p->v[i];
		cleanup_close int fd = -1;

		if (!S_ISDIR(dir->mode))
			continue;
		fd = open_host_dir(c, i);
		if (fd < 0 || has_attributes(fd))
			return false;
		if (i == c->top && (fstat(fd, &c->st[0]) || !may_copy(c, i)))
			return false;
		for (size_t k = dir->first; k < dir->first + dir->n; k++)
			if (fstatat(fd, path_base(p->v[k].path), &c->st[k - c->top],
				    AT_SYMLINK_NOFOLLOW) ||
				!may_copy(c, k))
				return false;
	}
	return !c->cannot_share || c->bytes <= c->bytes_left;
}

/* Pass three: copies. */

static bool
copy_content(struct copier *c, int in, int out, off_t size)
{
	if (!size)
		return true;
	if (!c->cannot_share) {
		if (!ioctl(out, FICLONE, in))
			return true;
		c->cannot_share = true;
		if (c->bytes > c->bytes_left)
			return false;
	}
	return !fs_copy_content(in, out);
}

static bool
copy_file(struct copier *c, size_t i, int from, int to)
{
	const struct stat *st = &c->st[i - c->top];
	const char *name = path_base(c->p->v[i].path);
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	cleanup_close int in = openat(from, name, flags | O_NOATIME);
	cleanup_close int out = -1;
	struct stat now;

	/* Only its owner can leave the time of reading as it is. */
	if (in < 0 && errno == EPERM)
		in = openat(from, name, flags);
	if (in < 0 || has_attributes(in))
		return false;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 0777);
	if (out < 0 || !copy_content(c, in, out, st->st_size))
		return false;
	if (!give_owner(c, to, name, st))
		return false;
	/* the last of these: what changes an owner, or writes, takes set-id bits away */
	if ((st->st_mode & 07000) && fchmod(out, st->st_mode & 07777))
		return false;
	if (futimens(out, times))
		return false;
	/* Written meanwhile: what was read may be half of the one and half of the other. */
	return !fstat(in, &now) && now.st_ino == st->st_ino && now.st_size == st->st_size &&
	       same_time(&now.st_ctim, &st->st_ctim) && same_time(&now.st_mtim, &st->st_mtim);
}

/* A further name of a file that was copied: 1; -1 when it cannot be made; 0 when there is none yet. */
static int
link_copy(struct copier *c, size_t i)
{
	const struct stat *st = &c->st[i - c->top];

	for (size_t k = 0; k < c->nlinks; k++)
		if (c->links[k].host_ino == st->st_ino)
			return linkat(c->upper, c->p->v[c->links[k].entry].path, c->upper,
				       c->p->v[i].path, 0)
				       ? -1
				       : 1;
	GROW(c->links, c->nlinks + 1, c->links_cap);
	c->links[c->nlinks++] = (struct hard_link){st->st_ino, i};
	return 0;
}

static bool
copy_link(struct copier *c, size_t i, int from, int to)
{
	const struct stat *st = &c->st[i - c->top];
	const char *name = path_base(c->p->v[i].path);
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target));

	if (n <= 0 || n == sizeof(target))
		return false;
	target[n] = '\0';
	return !symlinkat(target, to, name) && give_owner(c, to, name, st) &&
	       !utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

static bool
copy_name(struct copier *c, size_t i, int from, int to)
{
	const struct stat *st = &c->st[i - c->top];
	int linked;

	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return !mkdirat(to, path_base(c->p->v[i].path), 0700);
	case S_IFLNK:
		return copy_link(c, i, from, to);
	default:
		linked = st->st_nlink > 1 ? link_copy(c, i) : 0;
		return linked ? linked > 0 : copy_file(c, i, from, to);
	}
}

/* Owner, mode and times of a directory whose names are all there. */
static bool
finish_dir(const struct copier *c, const char *path, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};

	return give_owner(c, c->upper, path, st) &&
	       !fchmodat(c->upper, path, st->st_mode & 07777, 0) &&
	       !utimensat(c->upper, path, times, 0);
}

static bool
mark(const struct copier *c, const char *path, const char *name, const char *value)
{
	cleanup_close int fd = openat(c->upper, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && !fsetxattr(fd, name, value, strlen(value), 0);
}

/* Last of all: a second name changes the ctime of the first. A mode may have come out otherwise, by
 * an ACL that the scratch hands down. */
static bool
remember(const struct copier *c, size_t i)
{
	struct preload_entry *en = &c->p->v[i];
	struct stat st;

	if (fstatat(c->upper, en->path, &st, AT_SYMLINK_NOFOLLOW) ||
		st.st_mode != c->st[i - c->top].st_mode)
		return false;
	en->mode = st.st_mode;
	en->ino = st.st_ino;
	en->size = st.st_size;
	en->mtime = st.st_mtim;
	en->ctime = st.st_ctim;
	if (is_later(&en->ctime, &c->p->last))
		c->p->last = en->ctime;
	return true;
}

static bool
copy_tree(struct copier *c)
{
	struct preload *p = c->p;
	const char *top = p->v[c->top].path;

	if (mkdirat(c->upper, top, 0700) || !mark(c, top, "user.overlay.opaque", "y"))
		return false;
	for (size_t i = c->top; i < p->n; i++) {
		const struct preload_entry *dir = &p->v[i];
		cleanup_close int from = -1, to = -1;

		if (!dir->n)
			continue;
		from = open_host_dir(c, i);
		to = openat(c->upper, dir->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (from < 0 || to < 0)
			return false;
		for (size_t k = dir->first; k < dir->first + dir->n; k++)
			if (!copy_name(c, k, from, to))
				return false;
	}
	/* From the deepest up: what is made in a directory changes its time. */
	for (size_t i = p->n; i-- > c->top;)
		if (S_ISDIR(p->v[i].mode) && !finish_dir(c, p->v[i].path, &c->st[i - c->top]))
			return false;
	for (size_t i = c->top; i < p->n; i++)
		if (!remember(c, i))
			return false;
	return true;
}

static void
forget_tree(struct copier *c)
{
	struct preload *p = c->p;

	while (p->n > c->top)
		free(p->v[--p->n].path);
	while (c->nlinks && c->links[c->nlinks - 1].entry >= c->top)
		c->nlinks--;
}

/* What was begun must not be seen. */
static void
take_back(struct copier *c)
{
	const char *top = c->p->v[c->top].path, *base;
	cleanup_close int parent = fs_open_parent(c->upper, top, &base);

	if (parent < 0 || fs_remove_tree(parent, base))
		setup_die(errno, "see the cause", "cannot clear %s in the scratch", top);
}

/* The directories above. */

static bool
make_way(struct copier *c, const char *path)
{
	struct preload *p = c->p;
	struct stat st, *copy;

	if (htab_get(&p->ways, path))
		return true;
	if (fs_stat_beneath(c->host, path, &st) || !S_ISDIR(st.st_mode) ||
		mkdirat(c->upper, path, 0700))
		return false;
	if (!mark(c, path, "user.overlay.origin", "")) {
		unlinkat(c->upper, path, AT_REMOVEDIR);
		return false;
	}
	copy = xmalloc(sizeof(*copy));
	*copy = st;
	htab_putn_copy(&p->ways, path, strlen(path), copy);
	return true;
}

static bool
make_ways(struct copier *c, const char *path)
{
	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		cleanup_free char *way = xmemdupz(path, (size_t)(s - path));

		if (!make_way(c, way))
			return false;
	}
	return true;
}

static void
finish_ways(const struct copier *c, const struct setup *s)
{
	const struct htab *ways = &c->p->ways;
	struct timespec times[2] = {s->host_st.st_atim, s->host_st.st_mtim};

	for (size_t i = ways->n; i--;)
		if (!finish_dir(c, ways->entries[i].key, ways->entries[i].value))
			setup_die(errno, "see the cause", "cannot set up %s in the scratch",
				ways->entries[i].key);
	if (futimens(c->upper, times))
		setup_die(errno, "see the cause", "cannot set up the scratch");
}

static void
copy_grant(struct copier *c, const char *path)
{
	struct preload *p = c->p;
	enum host_kind kind;
	struct stat st;

	if (host_look(c->host, path, &kind, &st) || kind != HOST_DIR || preload_find(p, path) ||
		!ruleset_grants_whole(c->rules, path))
		return;
	c->top = p->n;
	add_entry(p, xstrdup(path), S_IFDIR);
	if (!list_tree(c) || !p->v[c->top].n || !look_at_tree(c) || !make_ways(c, path)) {
		forget_tree(c);
		return;
	}
	if (!copy_tree(c)) {
		take_back(c);
		forget_tree(c);
		return;
	}
	if (c->cannot_share)
		c->bytes_left -= c->bytes;
	for (size_t i = c->top; i < p->n; i++)
		htab_put(&p->by_path, p->v[i].path, (void *)(uintptr_t)(i + 1));
}

/* The directories that rules name for writing, those above before those below. */
static void
find_grants(const struct spec *spec, struct strvec *ret)
{
	for (size_t i = 0; i < spec->nrules; i++) {
		const struct spec_rule *r = &spec->rules[i];

		if (r->kind == SPEC_WRITE && !r->is_glob && *r->path && *r->path != '/')
			strvec_push(ret, r->path);
	}
	strvec_sort(ret);
}

void
preload(struct preload *p, const struct setup *s)
{
	cleanup_strvec struct strvec grants = STRVEC_INIT;
	struct copier c = {
		.p = p,
		.rules = s->rules,
		.owner = setup_owner(s),
		.host = s->host,
		.upper = -1,
		.dev = s->host_st.st_dev,
		.bytes_left = PRELOAD_BYTES_MAX,
	};

	*p = (struct preload){0};
	find_grants(&s->spec, &grants);
	if (!grants.n)
		return;
	c.upper = open("u", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c.upper < 0)
		setup_die(errno, "see the cause", "cannot open the scratch");
	for (size_t i = 0; i < grants.n; i++)
		if (!i || strcmp(grants.v[i - 1], grants.v[i]) != 0)
			copy_grant(&c, grants.v[i]);
	if (p->n || p->ways.n)
		finish_ways(&c, s);
	close(c.upper);
	free(c.st);
	free(c.links);
}

/* The clock mostly moves on by itself while the view is set up. Where the processor that moves it is
 * held up (a virtual machine's host was busy) it stands still for much longer than its tick. */
struct timespec
preload_settle(const struct preload *p)
{
	struct timespec now;

	/* Bounded: it may have been set back. Then all copies are told as changed. */
	for (int ms = 0;; ms++) {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (is_later(&now, &p->last) || ms == PRELOAD_SETTLE_MS)
			return now;
		poll(NULL, 0, 1); /* nobody tells when it moves */
	}
}

const struct preload_entry *
preload_find(const struct preload *p, const char *path)
{
	size_t i = (size_t)(uintptr_t)htab_get(&p->by_path, path);

	return i ? &p->v[i - 1] : NULL;
}

const struct stat *
preload_way(const struct preload *p, const char *path)
{
	return htab_get(&p->ways, path);
}

bool
preload_is_untouched(const struct preload *p, const struct preload_entry *en, const struct stat *st)
{
	/* A change within the tick of the copy would have left the same ctime. */
	return is_later(&p->started, &en->ctime) && en->ino == st->st_ino &&
	       en->mode == st->st_mode && en->size == st->st_size &&
	       same_time(&en->mtime, &st->st_mtim) && same_time(&en->ctime, &st->st_ctim);
}
