/* SPDX-License-Identifier: MIT */
#include "workspace/precious.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/strbuf.h"
#include "workspace/git.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <sys/stat.h>

enum state {
	UNKNOWN,
	UNTRACKED,
	HELD,
	CHANGED,
	GONE
};

struct asked {
	const char *path;
	size_t at; /* in the caller's array */
	enum state state;
};

/* git's name of content: the digest of "blob SIZE", a NUL and the bytes. */

static void
cleanup_md_p(EVP_MD_CTX **ctx)
{
	EVP_MD_CTX_free(*ctx);
}
#define cleanup_md __attribute__((cleanup(cleanup_md_p)))

static bool
blob_begin(EVP_MD_CTX *ctx, size_t id_len, uint64_t size)
{
	const EVP_MD *md = id_len == 40 ? EVP_sha1() : id_len == 64 ? EVP_sha256() : NULL;
	char head[32];
	int n = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);

	return ctx && md && EVP_DigestInit_ex(ctx, md, NULL) &&
	       EVP_DigestUpdate(ctx, head, (size_t)n + 1);
}

static bool
blob_is(EVP_MD_CTX *ctx, const struct git_record *r)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char id[EVP_MAX_MD_SIZE];
	unsigned n;

	if (!EVP_DigestFinal_ex(ctx, id, &n) || 2 * (size_t)n != r->id_len)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (r->id[2 * i] != hex[id[i] >> 4] || r->id[2 * i + 1] != hex[id[i] & 15])
			return false;
	return true;
}

static bool
file_is(int rootfd, const char *path, const struct stat *st, const struct git_record *r)
{
	static char buf[128 * 1024];
	cleanup_close int fd = fs_open_beneath(rootfd, path, O_RDONLY | O_NONBLOCK, 0);
	cleanup_md EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint64_t left = (uint64_t)st->st_size;

	if (fd < 0 || !blob_begin(ctx, r->id_len, left))
		return false;
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return !n && !left && blob_is(ctx, r);
		if ((uint64_t)n > left || !EVP_DigestUpdate(ctx, buf, (size_t)n))
			return false;
		left -= (uint64_t)n;
	}
}

static bool
link_is(int rootfd, const char *path, const struct git_record *r)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(rootfd, path, &base);
	cleanup_md EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	char target[PATH_MAX];
	ssize_t n = parent < 0 ? -1 : readlinkat(parent, base, target, sizeof(target));

	return n >= 0 && blob_begin(ctx, r->id_len, (uint64_t)n) &&
	       EVP_DigestUpdate(ctx, target, (size_t)n) && blob_is(ctx, r);
}

/* When in doubt it is changed. The executable bit alone is no change: not every file system has it. */
static enum state
compare(int rootfd, const char *path, const struct git_record *r)
{
	struct stat st;
	bool same;

	if (fs_stat_beneath(rootfd, path, &st))
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? GONE : CHANGED;
	if (r->unmerged)
		return CHANGED;
	same = r->is_link ? S_ISLNK(st.st_mode) && link_is(rootfd, path, r)
			  : S_ISREG(st.st_mode) && file_is(rootfd, path, &st, r);
	return same ? HELD : CHANGED;
}

bool
precious_is_held(int rootfd, const char *path, const struct git_record *r)
{
	struct stat st;

	return compare(rootfd, path, r) == HELD && !fs_stat_beneath(rootfd, path, &st) &&
	       (r->is_link || !(st.st_mode & 0100) == !r->is_executable);
}

static int
asked_cmp(const void *a, const void *b)
{
	return strcmp(((const struct asked *)a)->path, ((const struct asked *)b)->path);
}

static size_t
unique(struct asked *v, size_t n)
{
	size_t u = 0;

	for (size_t i = 0; i < n; i++)
		if (!u || strcmp(v[i].path, v[u - 1].path) != 0)
			v[u++] = v[i];
	return u;
}

/* What git has no record of lies in a nested repository, or has become ignored or gone meanwhile. */
static enum state
look(int rootfd, const char *path)
{
	struct stat st;

	return fs_stat_beneath(rootfd, path, &st) ? GONE : UNTRACKED;
}

static int
take_records(int rootfd, const struct strbuf *said, struct asked *v, size_t n, bool *ret_any,
	struct err *e)
{
	struct git_record rec;
	size_t at = 0;
	int r;

	while ((r = git_next_record(said, &at, &rec, e)) > 0) {
		struct asked key = {.path = rec.path}, *a;

		*ret_any |= rec.tracked;
		if (rec.is_repo)
			continue;
		a = bsearch(&key, v, n, sizeof(*v), asked_cmp);
		if (a)
			a->state = rec.tracked ? compare(rootfd, a->path, &rec) : UNTRACKED;
	}
	return r;
}

static void
count(size_t *n, size_t *first, size_t at)
{
	if (!*n || at < *first)
		*first = at;
	++*n;
}

static struct precious
sum_up(int rootfd, const struct asked *v, size_t n, bool any_tracked)
{
	struct precious p = {0};

	for (size_t i = 0; i < n; i++) {
		enum state state = v[i].state;

		p.among_tracked |= state == HELD || state == CHANGED || state == GONE;
		p.nothing_tracked |= state == UNTRACKED && !any_tracked;
		if (state == UNKNOWN)
			state = look(rootfd, v[i].path);
		if (state == HELD)
			count(&p.nheld, &p.held, v[i].at);
		else if (state == CHANGED)
			count(&p.nchanged, &p.changed, v[i].at);
		else if (state == UNTRACKED)
			count(&p.nuntracked, &p.untracked, v[i].at);
	}
	return p;
}

int
precious_find(int rootfd, const char *root_path, const char *dir, const char *const *paths,
	size_t n, struct precious *ret, struct err *e)
{
	cleanup_free char *git = git_find(root_path), *top = NULL, *git_dir = NULL;
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	cleanup_free struct asked *v = NULL;
	struct git_job job;
	bool any = false;

	if (!git || !git_find_work_tree(root_path, &top, &git_dir))
		return 0;
	if (git_list_start(git, rootfd, git_dir, top, dir, &job, e) || git_list_end(&job, &said, e))
		return -1;
	v = xcalloc(n, sizeof(*v));
	for (size_t i = 0; i < n; i++)
		v[i] = (struct asked){paths[i], i, UNKNOWN};
	qsort(v, n, sizeof(*v), asked_cmp);
	n = unique(v, n);
	if (take_records(rootfd, &said, v, n, &any, e))
		return -1;
	*ret = sum_up(rootfd, v, n, any);
	return 1;
}
