/* SPDX-License-Identifier: MIT */
#include "exec/policy-private.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <limits.h>

enum {
	MAX_HOPS = 40
};

/* The link at dirfd/path: its length, 0 when there is none. */
static ssize_t
read_link(int rootfd, const char *path, char target[PATH_MAX])
{
	const char *base;
	cleanup_close int parent = fs_open_parent(rootfd, path, &base);
	ssize_t n = parent < 0 ? -1 : readlinkat(parent, base, target, PATH_MAX - 1);

	if (n >= 0) {
		target[n] = '\0';
		return n;
	}
	return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

/* What is left to walk, with a link's target put before it. */
static void
follow(struct strbuf *rest, size_t at, const char *target)
{
	struct strbuf next = STRBUF_INIT;

	strbuf_adds(&next, target);
	strbuf_addch(&next, '/');
	strbuf_adds(&next, rest->buf + at);
	strbuf_release(rest);
	*rest = next;
}

static char *
outside(const char *dir, const char *rest)
{
	cleanup_free char *joined = xasprintf("%s/%s", dir, rest);

	return path_normalise(joined);
}

int
links_resolve(int rootfd, const char *root, const char *path, char **ret)
{
	cleanup_strbuf struct strbuf done = STRBUF_INIT, rest = STRBUF_INIT;
	char target[PATH_MAX];
	unsigned hops = 0;
	size_t at = 0;

	strbuf_adds(&rest, path);
	while (at < rest.len) {
		size_t n = strcspn(rest.buf + at, "/"), before = done.len;
		const char *name = rest.buf + at;
		ssize_t len;

		at += n + (name[n] == '/');
		if (!n || (n == 1 && *name == '.'))
			continue;
		if (n == 2 && !memcmp(name, "..", 2)) {
			if (!done.len) {
				*ret = outside(root, name);
				return 0;
			}
			strbuf_truncate(&done, path_parent_len(done.buf));
			continue;
		}
		if (done.len)
			strbuf_addch(&done, '/');
		strbuf_add(&done, name, n);
		len = read_link(rootfd, done.buf, target);
		if (len < 0)
			return -1;
		if (!len)
			continue;
		if (++hops > MAX_HOPS) {
			errno = ELOOP;
			return -1;
		}
		strbuf_truncate(&done, before);
		if (*target != '/') {
			follow(&rest, at, target);
		} else if (path_is_within(target, root)) {
			strbuf_truncate(&done, 0);
			follow(&rest, at, path_below(target, root));
		} else {
			*ret = outside(target, rest.buf + at);
			return 0;
		}
		at = 0;
	}
	*ret = strbuf_take(&done);
	return 1;
}

int
policy_resolve(const struct workspace *w, const char *path, char **ret)
{
	return links_resolve(w->rootfd, w->path, path, ret);
}

struct links {
	struct policy *p;
	const bool *keyed; /* by project index; NULL: the task has no key */
	struct htab seen;  /* what was linked so far */
};

/* `dir` lies in some node_modules: what a package manager put there. */
static bool
is_in_store(const char *dir)
{
	const char *modules = path_find(dir, "node_modules");

	return modules && strchr(modules, '/');
}

/* Anyone who may write where links are read can make one, so it opens what a package manager would have
 * linked and nothing larger: a project, or a place in a store. With a key, a project that is in it. */
static bool
may_open(const struct links *l, const char *dir)
{
	const struct project *project = htab_get(&l->p->w->by_dir, dir);

	if (l->keyed)
		return project && l->keyed[project->index];
	return project || is_in_store(dir);
}

/* modules: the directory that the link is in, of which a reader of the link sees all. */
static void
add_link(struct links *l, const char *modules, const char *path)
{
	const char *own = l->p->node->project->dir;
	cleanup_free char *dir = NULL;

	/* One that leads nowhere, or where nobody may look, opens nothing. Outside of the workspace all is
	 * readable anyway, and so is all in these two. A link to the project itself, or to a directory that
	 * it is in, must not grant all of that. */
	if (policy_resolve(l->p->w, path, &dir) != 1 || path_is_within(dir, modules) ||
		path_is_within(dir, "node_modules") || path_is_within(own, dir) ||
		htab_putn_copy(&l->seen, dir, strlen(dir), l))
		return;
	if (!may_open(l, dir)) {
		strvec_push(&l->p->withheld, dir);
		strvec_push(&l->p->withheld_links, path);
		return;
	}
	policy_add_rule(l->p, SPEC_READ, false, dir);
	if (htab_get(&l->p->w->by_dir, dir))
		strvec_push(&l->p->linked, dir);
}

/* The links in a node_modules directory or, when dir is another than that, in an @scope of it. */
static int
add_links(struct links *l, const char *modules, const char *dir, struct err *e)
{
	cleanup_close int fd = fs_open_beneath(l->p->w->rootfd, dir, O_RDONLY | O_DIRECTORY, 0);
	cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!d) /* none there: nothing to read either */
		return 0;
	take_fd(&fd);
	while (errno = 0, (de = readdir(d))) {
		cleanup_free char *path = NULL;

		if (*de->d_name == '.')
			continue;
		path = path_join(dir, de->d_name);
		if (de->d_type == DT_LNK || de->d_type == DT_UNKNOWN)
			add_link(l, modules, path);
		if (de->d_type != DT_LNK && *de->d_name == '@' && dir == modules &&
			add_links(l, modules, path, e))
			return -1;
	}
	return errno ? err_set(e, ERR_IO, errno, "reading %s", dir) : 0;
}

static int
add_links_of(struct links *l, const char *project, struct err *e)
{
	cleanup_free char *modules = path_join(project, "node_modules");

	return add_links(l, modules, modules, e);
}

static void
hide_caches(struct policy *p)
{
	cleanup_free char *own = path_join(p->node->project->dir, "node_modules");

	policy_hide_tool_caches(p, own);
	if (*p->node->project->dir)
		policy_hide_tool_caches(p, "node_modules");
	for (size_t i = 0; i < p->linked.n; i++) {
		cleanup_free char *modules = path_join(p->linked.v[i], "node_modules");

		policy_hide_tool_caches(p, modules);
	}
}

int
policy_add_node_modules(struct policy *p, struct err *e)
{
	const struct project *project = p->node->project;
	cleanup_free char *own = path_join(project->dir, "node_modules");
	cleanup_free bool *keyed = NULL;
	struct links l = {.p = p};
	int rc;

	if (p->node->def->cache) {
		size_t n;
		cleanup_free const struct node **folded = graph_upstream(p->node, true, &n);

		l.keyed = keyed = xcalloc(p->w->nprojects + 1, sizeof(*keyed));
		for (size_t i = 0; i < n; i++)
			if (!node_is_group(folded[i]))
				keyed[folded[i]->project->index] = true;
	}
	policy_add_rule(p, SPEC_READ, false, own);
	if (*project->dir)
		policy_add_rule(p, SPEC_READ, false, "node_modules");
	htab_init(&l.seen);
	rc = add_links_of(&l, project->dir, e);
	if (!rc && *project->dir)
		rc = add_links_of(&l, "", e);
	/* What a package needs is linked in its own node_modules where nothing is hoisted; the list grows
	 * meanwhile. */
	for (size_t i = 0; !rc && i < p->linked.n; i++)
		rc = add_links_of(&l, p->linked.v[i], e);
	htab_release(&l.seen);
	if (p->derived)
		hide_caches(p);
	return rc;
}
