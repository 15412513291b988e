/* SPDX-License-Identifier: MIT */
/*
 * Each name of the upper directory against the policy and against what the workspace has there now.
 * Three ways lead to removals: a whiteout, a directory that replaced one of the workspace, and the
 * declared outputs, under which every host file goes that the task did not leave. The first two take
 * only names that the task could see: `rm -rf src` succeeds inside when only hidden files are left in
 * src, and must not remove those (findings 1).
 */
#include "cache/never.h"
#include "exec/commit-private.h"
#include "exec/denials.h"
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/stop.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <limits.h>

enum {
	NAMED_IN_A_NOTE = 3
};

struct judge {
	struct commit *c;
	struct exec_result *r;
};

static void
speak(struct commit *c, size_t i)
{
	for (; i; i = c->v[i].parent) {
		if (c->v[i].spoken)
			return;
		c->v[i].spoken = true;
	}
}

static void
find(struct judge *j, enum denial_op op, const char *path)
{
	struct exec_denial d = {
		.op = op,
		.class = DENIAL_FINDING,
		.path = xstrdup(path),
		.program = xstrdup(""),
		.cmdline = xstrdup(""),
	};
	struct exec_denial *kept = denials_add_take(j->r, &d);

	if (kept)
		kept->grant = policy_grant_text(j->c->policy, true, path);
}

static void
ignore(struct judge *j, const char *path)
{
	if (j->c->nignored++ < NAMED_IN_A_NOTE)
		strvec_push(&j->c->ignored, path);
}

static void attr_printf(3, 4) note(struct judge *j, const char *path, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;
	va_list ap;

	strbuf_add_sanitised(&sb, path, strlen(path));
	strbuf_adds(&sb, ": ");
	va_start(ap, fmt);
	strbuf_vaddf(&sb, fmt, ap);
	va_end(ap);
	strvec_push(&j->r->notes, sb.buf);
}

/* Repositories. */

/* Which directories have, or will have, what makes git take them for a repository. */
static void
find_repositories(struct commit *c)
{
	for (size_t i = 1; i < c->n; i++)
		if (c->v[i].type != ENTRY_WHITEOUT)
			c->v[c->v[i].parent].repo |= never_repo_bit(path_base(c->v[i].path));
}

static bool
becomes_repository(const struct commit *c, const struct entry *dir)
{
	unsigned host = dir->repo ? never_repo_bits_at(c->rootfd, dir->path) : 0;

	return never_is_repo(dir->repo | host) && !never_is_repo(host);
}

static bool
is_named(const struct commit *c, const char *path)
{
	return policy_names_write(c->policy, path, path);
}

/* A grant of a directory does not make it a repository, unless it is called one. */
static bool
is_named_repository(const struct commit *c, const char *dir)
{
	size_t n = strlen(dir);

	return n > 4 && !strcmp(dir + n - 4, ".git") && is_named(c, dir);
}

/* allow.gitConfig. A link would be another file's config. */
static bool
is_freed_config(const struct commit *c, const struct entry *en)
{
	return c->policy->git_config && never_is_git_config(en->path) &&
	       (en->type == ENTRY_FILE || en->type == ENTRY_WHITEOUT);
}

/* One of the host, or that a rule names and the task makes. (Another one that it makes is refused as such.) */
static bool
is_repository(const struct commit *c, const struct entry *dir)
{
	unsigned bits = dir->host == HOST_DIRECTORY ? never_repo_bits_at(c->rootfd, dir->path) : 0;

	return never_is_repo(bits) ||
	       (never_is_repo(bits | dir->repo) && is_named_repository(c, dir->path));
}

/* Whether it is, at any depth, in what a repository obeys: its config, its hooks. Or a link that would put another
 * repository in the place of one of its own. */
static bool
is_in_repository(const struct commit *c, const struct entry *en)
{
	for (const struct entry *at = en; at != c->v; at = &c->v[at->parent]) {
		const char *base = path_base(at->path);

		if ((never_in_repository(base, strlen(base)) ||
			    (en->type == ENTRY_LINK &&
				    never_holds_repositories(base, strlen(base)))) &&
			!policy_names_write(c->policy, at->path, en->path) &&
			!(at == en && is_freed_config(c, en)) &&
			is_repository(c, &c->v[at->parent]))
			return true;
	}
	return false;
}

/*
 * A link in the place of declared outputs, or on the way to them. A later restore, which no sandbox
 * confines, would follow it and write where this task points.
 */
static bool
is_link_to_outputs(const struct commit *c, const struct entry *en)
{
	const struct globset *set = policy_outputs(c->policy);

	if (en->type != ENTRY_LINK || !set)
		return false;
	for (size_t i = 0; i < set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(set->pos[i]); k++)
			if (path_is_within(glob_literal_head(set->pos[i], k), en->path))
				return true;
	return false;
}

/* Whether moving this entry would make or turn a repository that nobody named, or lead to a name that
 * is never moved. */
static bool
is_trap(const struct commit *c, const struct entry *en)
{
	const char *base = path_base(en->path);
	const struct entry *parent = &c->v[en->parent];

	if (en->type == ENTRY_WHITEOUT || en->merge)
		return false;
	if (never_is_git(base, strlen(base)) ||
		(en->type == ENTRY_LINK && never_leads(base, strlen(base))))
		return !is_named(c, en->path);
	if (en->type == ENTRY_DIR && en->host != HOST_DIRECTORY && never_is_repo(en->repo))
		return !is_named_repository(c, en->path);
	if (is_named(c, en->path))
		return false;
	if (parent->makes_repo && never_repo_bit(base))
		return !is_named_repository(c, parent->path);
	return is_in_repository(c, en);
}

/* Why the package.json that the task left stays out, though it was granted; NULL: it may go. */
static const char *
why_not_manifest(const struct commit *c, const struct entry *en)
{
	cleanup_close int now = -1, before = -1;
	enum never_manifest m;

	if (!never_is_manifest(en->path) || is_named(c, en->path))
		return NULL;
	if (en->type == ENTRY_LINK)
		return "a link can come to lead to anything";
	/* One that we cannot open may say anything, too. */
	now = fs_open_beneath(c->upperfd, en->path, O_RDONLY | O_NONBLOCK, 0);
	m = now < 0 ? MANIFEST_UNREADABLE : never_manifest_at(now);
	if (m == MANIFEST_PLAIN)
		return NULL;
	before = fs_open_beneath(c->rootfd, en->path, O_RDONLY | O_NONBLOCK, 0);
	return before >= 0 && never_manifest_at(before) == m ? NULL : never_manifest_why(m);
}

/* A .git is one finding, whoever wrote what into it. */
static enum write_verdict
verdict_of(const struct commit *c, const struct entry *en)
{
	enum write_verdict v = policy_judge_write(c->policy, en->path);
	const char *base = path_base(en->path);

	if (v == WRITE_IGNORED || (v != WRITE_GRANTED && !never_is_git(base, strlen(base))))
		return v;
	if (!is_link_to_outputs(c, en) && !is_trap(c, en))
		return v;
	return policy_ignores_write(c->policy, en->path) ? WRITE_IGNORED : WRITE_NEVER;
}

/* Removals. */

struct removal {
	struct judge *j;
	struct moves *to;
	const char *dir;
	bool for_outputs;   /* stale outputs go with the rest */
	struct strvec dirs; /* that may go once they are empty */
	size_t hidden;      /* names that the task could not see */
	size_t refused;
};

static bool
is_stale_output(const struct commit *c, const char *path)
{
	return policy_hides_output(c->policy, path) &&
	       policy_judge_write(c->policy, path) == WRITE_GRANTED;
}

static void
remove_name(struct removal *rm, const char *path)
{
	switch (policy_judge_write(rm->j->c->policy, path)) {
	case WRITE_GRANTED:
		moves_add_remove(rm->to, rm->j->c->rootfd, path);
		return;
	case WRITE_IGNORED:
		ignore(rm->j, path);
		break;
	case WRITE_UNDECLARED:
	case WRITE_NEVER:
		find(rm->j, DENIAL_DELETE, path);
		break;
	}
	rm->refused++;
}

static enum fs_visit
remove_visit(void *ctx, const struct fs_entry *entry)
{
	struct removal *rm = ctx;
	const struct commit *c = rm->j->c;
	cleanup_free char *path = path_join(rm->dir, entry->path);
	const struct entry *en = commit_entry(c, path);
	bool is_dir = S_ISDIR(entry->st->st_mode);

	if (en && en->type != ENTRY_WHITEOUT)
		return FS_VISIT_SKIP; /* judged as an entry */
	if (!is_dir && is_stale_output(c, path)) {
		if (rm->for_outputs)
			remove_name(rm, path);
		return FS_VISIT_CONTINUE;
	}
	if (!policy_may_see(c->policy, path, is_dir) && !(is_dir && is_stale_output(c, path))) {
		rm->hidden++;
		return FS_VISIT_SKIP;
	}
	if (is_dir)
		strvec_push(&rm->dirs, path);
	else
		remove_name(rm, path);
	return FS_VISIT_CONTINUE;
}

/* The names in the host directory rm->dir, and, with `itself`, the directory. */
static int
remove_dir(struct removal *rm, bool itself, struct err *e)
{
	const struct policy *p = rm->j->c->policy;

	if (itself)
		strvec_push(&rm->dirs, rm->dir);
	if (fs_walk(rm->j->c->rootfd, rm->dir, remove_visit, rm)) {
		strvec_release(&rm->dirs);
		return err_set(e, ERR_IO, errno, "looking at what the task removed: %s", rm->dir);
	}
	/* parents were met first */
	for (size_t i = rm->dirs.n; i > 0; i--)
		if (policy_judge_write(p, rm->dirs.v[i - 1]) == WRITE_GRANTED)
			moves_add(rm->to, MOVE_RMDIR, rm->dirs.v[i - 1]);
	if (itself && !rm->refused && !rm->hidden &&
		policy_judge_write(p, rm->dir) != WRITE_GRANTED)
		remove_name(rm, rm->dir);
	strvec_release(&rm->dirs);
	return 0;
}

static int
remove_visible(struct judge *j, const char *dir, bool itself, struct err *e)
{
	struct removal rm = {.j = j, .to = &j->c->late, .dir = dir, .dirs = STRVEC_INIT};

	if (remove_dir(&rm, itself, e))
		return -1;
	if (rm.hidden)
		note(j, dir, "removed by the task, but what it could not see in there stays (%zu)",
			rm.hidden);
	return 0;
}

/* A file or link where the workspace has a directory: 1 when that can go whole, 0 when not. */
static int
make_way(struct judge *j, const char *dir, struct err *e)
{
	struct moves to = {0};
	struct removal rm = {
		.j = j, .to = &to, .dir = dir, .for_outputs = true, .dirs = STRVEC_INIT};
	int rc = remove_dir(&rm, true, e) ? -1 : !rm.hidden && !rm.refused;

	if (rc == 1)
		moves_append_take(&j->c->early, &to);
	moves_release(&to);
	if (rc == 0)
		note(j, dir,
			"the task put a file in the place of this directory, which cannot go (%zu "
			"names "
			"in it that it could not see, %zu that it may not remove)",
			rm.hidden, rm.refused);
	return rc;
}

/* Entries. */

/* Nothing but a hole is before it, from `at` on. */
static off_t
next_data(int fd, off_t at)
{
	off_t data = lseek(fd, at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? INT64_MAX : at;
	return data;
}

/* Of two files of one size. Where both have a hole nothing is read: it can be any size. */
static bool
same_content(const struct commit *c, const struct entry *en)
{
	enum {
		CHUNK = 64 << 10
	};
	cleanup_close int a = fs_open_beneath(c->upperfd, en->path, O_RDONLY | O_NONBLOCK, 0);
	cleanup_close int b = fs_open_beneath(c->rootfd, en->path, O_RDONLY | O_NONBLOCK, 0);
	cleanup_free char *buf = NULL;

	if (a < 0 || b < 0)
		return false;
	buf = xmalloc(2 * (size_t)CHUNK);
	for (off_t at = 0;;) {
		off_t data_a = next_data(a, at), data_b = next_data(b, at);
		ssize_t n, k;

		at = data_a < data_b ? data_a : data_b;
		if (at == INT64_MAX)
			return true;
		n = pread(a, buf, CHUNK, at);
		if (n < 0 || stop_is_asked())
			return false;
		if (!n)
			return true;
		k = pread(b, buf + CHUNK, (size_t)n, at);
		if (k != n || memcmp(buf, buf + CHUNK, (size_t)n) != 0)
			return false;
		at += n;
	}
}

static bool
is_noise(const struct commit *c, const struct entry *en, const struct stat *st)
{
	char target[PATH_MAX];
	cleanup_close int parent = -1;
	const char *base;
	ssize_t n;

	if (en->type == ENTRY_FILE)
		return S_ISREG(st->st_mode) && (uint64_t)st->st_size == en->size &&
		       (st->st_mode & 0777) == en->mode &&
		       st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec == en->mtime_ns &&
		       same_content(c, en);
	if (en->type != ENTRY_LINK || !S_ISLNK(st->st_mode))
		return false;
	parent = fs_open_parent(c->rootfd, en->path, &base);
	n = parent < 0 ? -1 : readlinkat(parent, base, target, sizeof(target));
	return n >= 0 && (size_t)n == strlen(en->target) && !memcmp(target, en->target, (size_t)n);
}

/* What is refused of an entry that is no new directory. */
static void
refuse(struct judge *j, size_t i, enum write_verdict v, enum denial_op op)
{
	struct entry *en = &j->c->v[i];

	en->fate = en->type == ENTRY_DIR && v == WRITE_UNDECLARED ? FATE_DROP : FATE_DROP_ALL;
	if (v == WRITE_IGNORED)
		ignore(j, en->path);
	else
		find(j, op, en->path);
	speak(j->c, i);
}

static int
judge_whiteout(struct judge *j, size_t i, struct err *e)
{
	struct entry *en = &j->c->v[i];
	enum write_verdict v;

	en->fate = FATE_DROP_ALL;
	if (en->host == HOST_NOTHING)
		return 0;
	if (en->host == HOST_DIRECTORY)
		return remove_visible(j, en->path, true, e);
	v = verdict_of(j->c, en);
	if (v == WRITE_GRANTED)
		moves_add_remove(&j->c->late, j->c->rootfd, en->path);
	else
		refuse(j, i, v, DENIAL_DELETE);
	return 0;
}

static void
judge_new_dir(struct judge *j, size_t i)
{
	struct entry *en = &j->c->v[i];
	enum write_verdict v = verdict_of(j->c, en);

	if (v == WRITE_GRANTED)
		en->fate = FATE_MOVE;
	else if (v == WRITE_UNDECLARED && en->host == HOST_NOTHING &&
		 policy_may_make_dir(j->c->policy, en->path))
		en->fate = FATE_MOVE;
	else if (v == WRITE_UNDECLARED && en->host == HOST_NOTHING)
		en->fate = FATE_DROP;
	else
		refuse(j, i, v, DENIAL_WRITE);
	if (en->fate == FATE_MOVE && is_trap(j->c, en))
		refuse(j, i, WRITE_NEVER, DENIAL_WRITE);
	en->undeclared = en->fate == FATE_DROP && !en->spoken;
}

static int
judge_dir_over_dir(struct judge *j, size_t i, const struct stat *st, struct err *e)
{
	struct commit *c = j->c;
	struct entry *en = &c->v[i];
	enum write_verdict v = verdict_of(c, en);

	en->fate = FATE_INTO;
	en->replaces = en->opaque || (!en->merge && c->v[en->parent].replaces);
	en->makes_repo = becomes_repository(c, en);
	if (!en->merge && v == WRITE_NEVER) {
		refuse(j, i, v, DENIAL_WRITE);
		return 0;
	}
	if ((st->st_mode & 0777) != en->mode) {
		if (v == WRITE_GRANTED)
			en->sets_mode = true;
		else if (en->merge && v != WRITE_IGNORED) {
			find(j, DENIAL_WRITE, en->path);
			speak(c, i);
		}
	}
	return en->replaces ? remove_visible(j, en->path, false, e) : 0;
}

static int
judge_leaf(struct judge *j, size_t i, const struct stat *st, struct err *e)
{
	struct commit *c = j->c;
	struct entry *en = &c->v[i];
	enum write_verdict v;
	const char *why;
	int way;

	if (en->host == HOST_NO_DIRECTORY && is_noise(c, en, st)) {
		en->fate = FATE_KEEP;
		return 0;
	}
	v = verdict_of(c, en);
	if (v != WRITE_GRANTED) {
		refuse(j, i, v, DENIAL_WRITE);
		return 0;
	}
	why = why_not_manifest(c, en);
	if (why) {
		note(j, en->path, "not kept, as no grant names it itself: %s", why);
		refuse(j, i, WRITE_NEVER, DENIAL_WRITE);
		return 0;
	}
	en->fate = FATE_MOVE;
	if (en->host != HOST_DIRECTORY)
		return 0;
	way = make_way(j, en->path, e);
	if (way == 0)
		refuse(j, i, WRITE_UNDECLARED, DENIAL_WRITE);
	return way < 0 ? -1 : 0;
}

static void
judge_other(struct judge *j, size_t i)
{
	struct entry *en = &j->c->v[i];
	enum write_verdict v = verdict_of(j->c, en);

	if (v != WRITE_GRANTED) {
		refuse(j, i, v, DENIAL_WRITE);
		return;
	}
	en->fate = FATE_DROP_ALL;
	note(j, en->path, "a fifo, socket or device is not moved into the workspace");
	speak(j->c, i);
}

static int
judge_entry(struct judge *j, size_t i, struct err *e)
{
	struct commit *c = j->c;
	struct entry *en = &c->v[i];
	const struct entry *parent = &c->v[en->parent];
	struct stat st = {0};

	if (parent->fate == FATE_DROP_ALL) {
		en->fate = FATE_DROP_ALL;
		return 0;
	}
	en->host = HOST_NOTHING;
	if (parent->host == HOST_DIRECTORY) {
		if (!fs_stat_beneath(c->rootfd, en->path, &st))
			en->host = S_ISDIR(st.st_mode) ? HOST_DIRECTORY : HOST_NO_DIRECTORY;
		else if (errno != ENOENT && errno != ENOTDIR)
			return err_set(e, ERR_IO, errno, "%s in the workspace", en->path);
	}
	switch (en->type) {
	case ENTRY_DIR:
		if (en->host == HOST_DIRECTORY)
			return judge_dir_over_dir(j, i, &st, e);
		judge_new_dir(j, i);
		return 0;
	case ENTRY_FILE:
	case ENTRY_LINK:
		return judge_leaf(j, i, &st, e);
	case ENTRY_WHITEOUT:
		return judge_whiteout(j, i, e);
	case ENTRY_OTHER:
		judge_other(j, i);
		return 0;
	}
	bug("entry type %d", en->type);
}

/* The declared outputs of the workspace that the task did not leave. */

static bool
is_wildcards_own_dir(const struct globset *set, const char *path)
{
	for (size_t i = 0; i < set->npos; i++)
		for (size_t k = 0; k < glob_nalternatives(set->pos[i]); k++)
			if (!glob_alternative_is_literal(set->pos[i], k) &&
				!strcmp(glob_literal_head(set->pos[i], k), path))
				return true;
	return false;
}

static void
sweep_output(struct judge *j, const struct output *o)
{
	struct commit *c = j->c;
	const struct entry *en = commit_entry(c, o->path);

	if ((en && en->type != ENTRY_WHITEOUT) ||
		policy_judge_write(c->policy, o->path) != WRITE_GRANTED)
		return;
	if (o->type != OUTPUT_DIR)
		moves_add_remove(&c->late, c->rootfd, o->path);
	else if (!is_wildcards_own_dir(policy_outputs(c->policy), o->path))
		moves_add(&c->late, MOVE_RMDIR, o->path);
}

/* What the task added before is its own; of the rest, what it removed. */
static void
sweep_added(struct judge *j)
{
	struct commit *c = j->c;
	const struct policy *p = c->policy;
	const struct moves *lists[] = {&c->early, &c->late};

	for (size_t l = 0; l < array_len(lists); l++)
		for (size_t i = 0; i < lists[l]->n && !c->removed; i++)
			if (policy_is_output(p, lists[l]->v[i].path) &&
				!policy_hides_output(p, lists[l]->v[i].path))
				c->removed = xstrdup(lists[l]->v[i].path);
	/* from the end: a directory goes after what is in it */
	for (size_t i = p->added->n; i > 0; i--) {
		struct stat st;
		struct output o = {.path = p->added->v[i - 1]};

		if (!fs_stat_beneath(c->rootfd, o.path, &st) && output_fill(&o, &st))
			sweep_output(j, &o);
	}
}

static int
sweep_outputs(struct judge *j, struct err *e)
{
	const struct policy *p = j->c->policy;
	struct outputs found = {0};

	if (!policy_outputs(p))
		return 0;
	if (p->added) {
		sweep_added(j);
		return 0;
	}
	if (outputs_scan(j->c->rootfd, policy_outputs(p), p->nested, p->node->project->nnested,
		    &found, e))
		return -1;
	/* from the end: a directory goes after what is in it */
	for (size_t i = found.n; i > 0; i--)
		sweep_output(j, &found.v[i - 1]);
	outputs_release(&found);
	return 0;
}

static void
note_ignored(struct judge *j)
{
	const struct commit *c = j->c;
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	if (!c->nignored)
		return;
	strbuf_addf(&sb, "%zu write%s %s: ", c->nignored, c->nignored == 1 ? "" : "s",
		c->policy->derived ? "to tool caches discarded"
				   : "discarded, as ignore.write says");
	for (size_t i = 0; i < c->ignored.n; i++) {
		if (i)
			strbuf_adds(&sb, ", ");
		strbuf_add_sanitised(&sb, c->ignored.v[i], strlen(c->ignored.v[i]));
	}
	if (c->nignored > c->ignored.n)
		strbuf_adds(&sb, ", …");
	strvec_push(&j->r->notes, sb.buf);
}

int
commit_judge(struct commit *c, struct exec_result *r, struct err *e)
{
	struct judge j = {c, r};

	if (err_is_set(&c->bad)) {
		*e = c->bad;
		return -1;
	}
	find_repositories(c);
	c->v[0].makes_repo = becomes_repository(c, &c->v[0]);
	for (size_t i = 1; i < c->n; i++) {
		if (stop_is_asked())
			return err_set(e, ERR_IO, ECANCELED, "judging what the task wrote");
		if (judge_entry(&j, i, e))
			return -1;
	}
	if (sweep_outputs(&j, e))
		return -1;
	for (size_t i = c->n - 1; i > 0; i--) {
		if (!c->v[i].undeclared || c->v[i].spoken)
			continue;
		find(&j, DENIAL_WRITE, c->v[i].path);
		speak(c, i);
	}
	note_ignored(&j);
	denials_join_advice(r);
	denials_sort(r);
	c->judged = true;
	return 0;
}
