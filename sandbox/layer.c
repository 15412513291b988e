/* SPDX-License-Identifier: MIT */
/*
 * Requests to verdicts, verdicts to answers and denials. What the kernel keeps of an answer it
 * keeps for ever: overlayfs asks again only when it forgot the name.
 *
 * Node numbers: the root, the one whiteout, then a number for each traverse directory that was
 * looked up, in order; those of mirrors are tagged. A directory keeps its number for good; there is no more of them than the
 * workspace has directories, so FORGET is not listened to. The whiteout's number is the same
 * everywhere: with fresh ones the kernel would ask twice for each look-up after the first.
 */
#include "sandbox/layer.h"
#include "sandbox/fuse.h"
#include "sandbox/host.h"
#include "sandbox/mirror.h"
#include "sandbox/pure.h"
#include "sandbox/seen.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <limits.h>

enum {
	NODE_WHITEOUT = 2,
	NODE_WORKSPACE = 3, /* LAYER_WORKSPACE */
	NODE_FIRST_DIR = 4,

	NPARTS = LAYER_HOME_MIRROR + 1,
	PART_NAME = NAME_MAX + 1,
};

struct layer {
	struct layer_options o;
	struct owner owner;
	struct htab ids;   /* path -> number */
	const char **dirs; /* number - NODE_FIRST_DIR -> path, which ids owns */
	size_t ndirs, dirs_cap;
	struct pure pure;
	struct seen seen;
	uint64_t denials;
	uint64_t probes;
	struct mirror *mirror, *home_mirror; /* NULL: nobody asked for it */
};

const char *
layer_part_name(enum layer_part part)
{
	static char names[NPARTS][PART_NAME + 1];

	if (!*names[part])
		memset(names[part], 'a' + (int)part, PART_NAME);
	return names[part];
}

struct layer *
layer_new(const struct layer_options *o)
{
	struct layer *l = xcalloc(1, sizeof(*l));

	l->o = *o;
	l->owner = o->owner;
	htab_init(&l->ids);
	htab_putn_copy(&l->ids, "", 0, (void *)(uintptr_t)FUSE_ROOT_ID);
	pure_init(&l->pure, o->hostfd, o->rules, &l->owner);
	seen_init(&l->seen);
	return l;
}

void
layer_free(struct layer *l)
{
	if (!l)
		return;
	htab_release(&l->ids);
	free(l->dirs);
	pure_release(&l->pure);
	seen_release(&l->seen);
	mirror_free(l->mirror);
	mirror_free(l->home_mirror);
	free(l);
}

uint64_t
layer_denials(const struct layer *l)
{
	return l->denials;
}

bool
layer_look_again(const struct layer *l, struct strvec *ret_late)
{
	return pure_look_again(&l->pure, ret_late);
}

/* A path of the home is absolute, one of the workspace is not. */
static bool
is_in_home(const char *path)
{
	return *path == '/';
}

static int
look(const struct layer *l, const char *path, enum host_kind *ret, struct stat *ret_st)
{
	if (is_in_home(path))
		return host_look(l->o.homefd, path_below(path, l->o.home), ret, ret_st);
	return host_look(l->o.hostfd, path, ret, ret_st);
}

/* The path of a directory's number; NULL for any other. */
static const char *
dir_path(const struct layer *l, uint64_t node)
{
	if (node == FUSE_ROOT_ID || node == NODE_WORKSPACE)
		return "";
	if (node < NODE_FIRST_DIR || node - NODE_FIRST_DIR >= l->ndirs)
		return NULL;
	return l->dirs[node - NODE_FIRST_DIR];
}

static uint64_t
dir_number(struct layer *l, const char *path)
{
	size_t len = strlen(path);
	uint64_t node = (uintptr_t)htab_getn(&l->ids, path, len);

	if (node)
		return node;
	node = NODE_FIRST_DIR + l->ndirs;
	htab_putn_copy(&l->ids, path, len, (void *)(uintptr_t)node);
	GROW(l->dirs, l->ndirs + 1, l->dirs_cap);
	l->dirs[l->ndirs++] = htab_findn(&l->ids, path, len)->key;
	return node;
}

static struct fuse_attr
whiteout_attr(const struct layer *l)
{
	return (struct fuse_attr){
		.ino = NODE_WHITEOUT,
		.mode = S_IFCHR, /* of device 0:0 */
		.nlink = 1,
		.uid = l->owner.uid,
		.gid = l->owner.gid,
		.blksize = 4096,
	};
}

/* Copy-up takes all of this from here. */
static struct fuse_attr
dir_attr(const struct layer *l, uint64_t node, const struct stat *st)
{
	struct fuse_attr attr = fuse_attr_of(st, &l->owner);

	attr.ino = node;
	attr.mode = S_IFDIR | (st->st_mode & 07777);
	attr.blksize = 4096;
	return attr;
}

static int
answer_entry(const struct fuse_request *r, uint64_t node, const struct fuse_attr *attr)
{
	struct fuse_entry_out out = {
		.nodeid = node,
		.entry_valid = FUSE_FOREVER_SECONDS,
		.attr_valid = FUSE_FOREVER_SECONDS,
	};

	if (attr)
		out.attr = *attr;
	return fuse_answer(r, 0, &out, sizeof(out));
}

/* Node 0 is "no such name", to be remembered: whatever comes to be there passes, with all that is in it.
 * What is not remembered passes as it is now; the kernel asks again when it has forgotten the name. */
static int
answer_pass(const struct fuse_request *r, bool for_ever)
{
	return for_ever ? answer_entry(r, 0, NULL) : fuse_answer_error(r, ENOENT);
}

static int
answer_whiteout(const struct layer *l, const struct fuse_request *r)
{
	struct fuse_attr attr = whiteout_attr(l);

	return answer_entry(r, NODE_WHITEOUT, &attr);
}

static int
answer_dir(struct layer *l, const struct fuse_request *r, const char *path, const struct stat *st)
{
	uint64_t node = dir_number(l, path);
	struct fuse_attr attr = dir_attr(l, node, st);

	/* The home's wall is full from the start. */
	if (!is_in_home(path) && wall_mkdir(l->o.wall, path))
		return fuse_answer_error(r, EIO);
	return answer_entry(r, node, &attr);
}

static void
tell_denied(struct layer *l, const struct fuse_request *r, const char *path, bool host_has_it)
{
	struct layer_denial d = {path, host_has_it ? DENIAL_READ : DENIAL_PROBE, r->in->pid};

	if (!host_has_it) {
		/* Any number of these can be made up: they must not crowd out the others. */
		if (l->probes < LAYER_PROBES_MAX && seen_add(&l->seen, path)) {
			l->probes++;
			l->o.denied(l->o.ctx, &d);
		}
		return;
	}
	if (!seen_add(&l->seen, path))
		return;
	l->denials++;
	l->o.denied(l->o.ctx, &d);
}

static int
serve_passed(struct layer *l, const struct fuse_request *r, const char *path, enum host_kind kind,
	const struct stat *st)
{
	/* A directory of another owner below a write grant could not be copied up: every name in
	 * it passes, but it is shown as the caller's (findings 6). */
	if (kind == HOST_DIR && owner_is_foreign(&l->owner, st) &&
		ruleset_is_written(l->o.rules, path))
		return answer_dir(l, r, path, st);
	/* In the place of what is no directory there may be one later. */
	return answer_pass(
		r, kind == HOST_DIR || ruleset_verdict(l->o.rules, path, HOST_DIR) == VERDICT_PASS);
}

static int
serve_traversed(
	struct layer *l, const struct fuse_request *r, const char *path, const struct stat *st)
{
	/* Once a directory it stays one: the kernel may know names in it. */
	if (htab_get(&l->ids, path) || !pure_check(&l->pure, path))
		return answer_dir(l, r, path, st);
	return answer_pass(r, true);
}

/* Everything passes, for ever, but the stores and the directories on the way to one. */
static int
serve_in_home(struct layer *l, const struct fuse_request *r, const char *path)
{
	bool is_way = !strcmp(path, l->o.home), is_store = false;
	enum host_kind kind;
	struct stat st;

	for (size_t i = 0; i < l->o.stores->n && !is_store; i++) {
		is_store = !strcmp(l->o.stores->v[i], path);
		is_way = is_way || path_is_within(l->o.stores->v[i], path);
	}
	if (!is_store && !is_way)
		return answer_pass(r, true);
	if (look(l, path, &kind, &st))
		return fuse_answer_error(r, EIO);
	if (!is_store)
		return kind == HOST_DIR ? answer_dir(l, r, path, &st) : answer_pass(r, true);
	/* Tools look for them at each start: that there is none is not worth a word. */
	if (kind != HOST_ABSENT)
		tell_denied(l, r, path, true);
	return answer_whiteout(l, r);
}

static int
serve_workspace(const struct layer *l, const struct fuse_request *r)
{
	struct fuse_attr attr;
	struct stat st;

	if (fstat(l->o.hostfd, &st))
		return fuse_answer_error(r, EIO);
	attr = dir_attr(l, NODE_WORKSPACE, &st);
	return answer_entry(r, NODE_WORKSPACE, &attr);
}

static int
serve_mirror(const struct layer *l, const struct fuse_request *r, struct mirror **m, int rootfd,
	uint64_t tag)
{
	if (!*m)
		*m = mirror_new(rootfd, tag, &l->owner, &l->o.scratch);
	return mirror_enter(*m, r);
}

/* Names in the connection's root that are none of the workspace. */
static int
serve_part(struct layer *l, const struct fuse_request *r)
{
	if (!strcmp(r->arg, layer_part_name(LAYER_WORKSPACE)))
		return serve_workspace(l, r);
	if (!strcmp(r->arg, layer_part_name(LAYER_MIRROR)))
		return serve_mirror(l, r, &l->mirror, l->o.hostfd, MIRROR_WORKSPACE);
	if (l->o.home && !strcmp(r->arg, layer_part_name(LAYER_HOME)))
		return serve_in_home(l, r, l->o.home);
	if (l->o.home && !strcmp(r->arg, layer_part_name(LAYER_HOME_MIRROR)))
		return serve_mirror(l, r, &l->home_mirror, l->o.homefd, MIRROR_HOME);
	return fuse_answer_error(r, ENOENT);
}

static int
serve_lookup(struct layer *l, const struct fuse_request *r)
{
	const char *dir = dir_path(l, r->in->nodeid);
	cleanup_free char *path = NULL;
	enum host_kind kind;
	struct stat st;
	size_t next;

	if (!dir)
		return fuse_answer_error(r, r->in->nodeid == NODE_WHITEOUT ? ENOTDIR : ESTALE);
	if (!fuse_name(r, 0, &next))
		return fuse_answer_error(r, EINVAL);
	if (r->in->nodeid == FUSE_ROOT_ID && strlen(r->arg) == PART_NAME)
		return serve_part(l, r);
	path = path_join(dir, r->arg);
	if (is_in_home(path))
		return serve_in_home(l, r, path);
	if (look(l, path, &kind, &st))
		return fuse_answer_error(r, EIO);
	switch (ruleset_verdict(l->o.rules, path, kind)) {
	case VERDICT_PASS:
		return serve_passed(l, r, path, kind, &st);
	case VERDICT_TRAVERSE:
		return serve_traversed(l, r, path, &st);
	case VERDICT_HIDE:
		/* Overlayfs reads the host's names after the wall's: one that comes in between (what another
		 * task has just committed) is listed, and whoever walks the tree asks for it. It is hidden
		 * like any, but to the task it is none that the host has. */
		tell_denied(l, r, path, kind != HOST_ABSENT && !wall_is_newer(l->o.wall, path));
		break;
	case VERDICT_QUIET:
		break;
	}
	return answer_whiteout(l, r);
}

static int
serve_getattr(struct layer *l, const struct fuse_request *r)
{
	struct fuse_attr_out out = {.attr_valid = FUSE_FOREVER_SECONDS};
	const char *path = dir_path(l, r->in->nodeid);
	enum host_kind kind;
	struct stat st;

	if (r->in->nodeid == NODE_WHITEOUT) {
		out.attr = whiteout_attr(l);
		return fuse_answer(r, 0, &out, sizeof(out));
	}
	if (!path)
		return fuse_answer_error(r, ESTALE);
	if (look(l, path, &kind, &st))
		return fuse_answer_error(r, EIO);
	if (kind != HOST_DIR)
		return fuse_answer_error(r, ESTALE);
	out.attr = dir_attr(l, r->in->nodeid, &st);
	return fuse_answer(r, 0, &out, sizeof(out));
}

/* The listing is always empty: overlayfs takes the names from the layers below, and when it comes
 * to the wall it must be full. The kernel keeps the empty listing, so this comes once a directory.
 */
static int
serve_readdir(struct layer *l, const struct fuse_request *r)
{
	const char *path = dir_path(l, r->in->nodeid);

	if (!path)
		return fuse_answer_error(r, ENOTDIR);
	if (!is_in_home(path) && wall_fill(l->o.wall, path))
		return fuse_answer_error(r, errno == EACCES ? EACCES : EIO);
	return fuse_answer(r, 0, NULL, 0);
}

static int
serve_statfs(const struct fuse_request *r)
{
	struct fuse_statfs_out out = {.st = {.bsize = 4096, .frsize = 4096, .namelen = 255}};

	return fuse_answer(r, 0, &out, sizeof(out));
}

static struct mirror *
mirror_of(const struct layer *l, uint64_t node)
{
	switch (node & MIRROR_TAGS) {
	case MIRROR_WORKSPACE:
		return l->mirror;
	case MIRROR_HOME:
		return l->home_mirror;
	default:
		return NULL;
	}
}

/* The layer's own nodes stay. */
static void
forget(void *ctx, uint64_t id, uint64_t lookups)
{
	struct mirror *m = mirror_of(ctx, id);

	if (m)
		mirror_forget(m, id, lookups);
}

static int
serve_request(void *ctx, const struct fuse_request *r)
{
	struct layer *l = ctx;
	struct mirror *m = mirror_of(l, r->in->nodeid);

	switch (r->in->opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		fuse_forget(r, forget, l);
		return 0; /* these are not answered */
	case FUSE_INTERRUPT:
		return 0;
	default:
		if (m)
			return mirror_request(m, r);
	}
	switch (r->in->opcode) {
	case FUSE_INIT:
		return fuse_answer_init(r,
			FUSE_NO_OPENDIR_SUPPORT | FUSE_NO_OPEN_SUPPORT | FUSE_ASYNC_READ |
				FUSE_MAX_PAGES | FUSE_CACHE_SYMLINKS,
			FUSE_IO_MAX);
	case FUSE_LOOKUP:
		return serve_lookup(l, r);
	case FUSE_GETATTR:
		return serve_getattr(l, r);
	case FUSE_READDIR:
		return serve_readdir(l, r);
	case FUSE_STATFS:
		return serve_statfs(r);
	case FUSE_DESTROY:
		return fuse_answer_error(r, 0);
	case FUSE_SETATTR:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_SYMLINK:
	case FUSE_RENAME:
	case FUSE_RENAME2:
	case FUSE_LINK:
	case FUSE_CREATE:
	case FUSE_WRITE:
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
		return fuse_answer_error(r, EROFS);
	default:
		/* OPENDIR too: the kernel then opens without asking, and keeps the listing. */
		return fuse_answer_error(r, ENOSYS);
	}
}

int
layer_serve(struct layer *l, int fusefd)
{
	return fuse_serve(fusefd, serve_request, l);
}
