/* SPDX-License-Identifier: MIT */
#include "workspace/changes.h"
#include "config/json.h"
#include "config/taskdef.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/htab.h"
#include "util/path.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "workspace/files.h"
#include "workspace/git.h"
#include "workspace/inputs.h"
#include "workspace/precious.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DEPTH_MAX = 16, /* repositories in repositories */
	REFS_SHOWN = 8,
};

/* ------------------------------------------------------------------ commits */

/* The commit's id, owned. 1, 0: there is none, -1. `rev` does not begin with a dash. */
static int
resolve(const struct git_repo *r, const char *rev, char **ret, struct err *e)
{
	cleanup_free char *commit = xasprintf("%s^{commit}", rev);
	const char *const args[] = {"rev-parse", "--verify", "--quiet", commit, NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	struct err none = ERR_INIT;
	int found = git_ask(r, args, &said, &none);
	size_t n;

	if (found < 0) {
		*e = none;
		return -1;
	}
	n = strspn(said.buf, "0123456789abcdef");
	/* "^main" is none, though rev-parse has an answer */
	if (!found || (n != 40 && n != 64) || strcmp(said.buf + n, "\n") != 0)
		return 0;
	*ret = xmemdupz(said.buf, n);
	return 1;
}

static bool
is_shallow(const struct git_repo *r)
{
	const char *const args[] = {"rev-parse", "--is-shallow-repository", NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	struct err none = ERR_INIT;

	return git_ask(r, args, &said, &none) == 1 && !strcmp(said.buf, "true\n");
}

/* "origin", or the only one there is; "": no name to be typed. Owned. */
static char *
find_remote(const struct git_repo *r)
{
	const char *const args[] = {"remote", NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	struct err none = ERR_INIT;
	const char *first = NULL;
	char *save = NULL;

	if (git_ask(r, args, &said, &none) != 1)
		return xstrdup("");
	for (char *s = strtok_r(said.buf, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
		if (!strcmp(s, "origin"))
			return xstrdup(s);
		if (!first)
			first = s;
	}
	/* It is to be pasted into a shell, and the config of a repository may be anybody's. */
	if (!first || *first == '-' ||
		first[strspn(first, "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-")])
		return xstrdup("");
	return xstrdup(first);
}

enum missing {
	HISTORY,  /* of commits that are there */
	BRANCHES, /* too: a clone with a depth has a single one unless it was told otherwise */
};

/* What to type in a shallow clone, at the end of a message: "" where it is none. `name`, where not NULL, is what may be
 * called otherwise then. Owned. */
static char *
shallow_advice(const struct git_repo *r, enum missing what, const char *name)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT, shown = STRBUF_INIT;
	cleanup_free char *remote = NULL;

	if (!is_shallow(r))
		return xstrdup("");
	remote = find_remote(r);
	strbuf_adds(&sb, "; this clone is shallow; ");
	if (what == HISTORY || !*remote) {
		strbuf_adds(&sb, "first: git fetch --unshallow");
	} else {
		if (name)
			strbuf_add_sanitised(&shown, name, strlen(name));
		if (name)
			strbuf_addf(&sb, "a branch of that name will be %s/%s after: ", remote,
				shown.buf);
		else
			strbuf_adds(&sb, "first: ");
		strbuf_addf(&sb, "git fetch --unshallow %s '+refs/heads/*:refs/remotes/%s/*'",
			remote, remote);
	}
	return strbuf_take(&sb);
}

/* What the ref may not be. A range with HEAD on its right is its left side: *ret, owned. */
static int
check_ref(const char *ref, char **ret, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;
	const char *dots = strstr(ref, "...");
	cleanup_free char *base = NULL;

	strbuf_add_sanitised(&shown, ref, strlen(ref));
	if (!*ref)
		return err_set(e, ERR_USAGE, 0, "names no commit");
	if (*ref == '-')
		return err_set(
			e, ERR_USAGE, 0, "'%s' begins with a dash, so it is no commit", shown.buf);
	base = dots && dots > ref && !strcmp(dots, "...HEAD") ? xmemdupz(ref, (size_t)(dots - ref))
							      : xstrdup(ref);
	if (strstr(base, ".."))
		return err_set(e, ERR_USAGE, 0,
			"'%s' is a range: name the one commit to compare with, or BASE...HEAD",
			shown.buf);
	if (strchr(base, ':'))
		return err_set(e, ERR_USAGE, 0, "'%s' names something in a commit: name the commit",
			shown.buf);
	*ret = take_ptr(&base);
	return 0;
}

/* Branches and tags, as they are typed. */
static void
list_refs(const struct git_repo *r, struct strvec *ret)
{
	const char *const args[] = {"for-each-ref", "--format=%(refname:strip=2)", "refs/heads",
		"refs/remotes", "refs/tags", NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	struct err none = ERR_INIT;
	char *save = NULL;

	if (git_ask(r, args, &said, &none) != 1)
		return;
	for (char *s = strtok_r(said.buf, "\n", &save); s; s = strtok_r(NULL, "\n", &save))
		strvec_push(ret, s);
}

/* The nearest name, or the same branch of a remote, which is all that a clone of CI may have. */
static const char *
near_ref(const struct strvec *refs, const char *ref)
{
	for (size_t i = 0; i < refs->n; i++) {
		const char *slash = strchr(refs->v[i], '/');

		if (slash && !strcmp(slash + 1, ref))
			return refs->v[i];
	}
	return nearest_name(ref, (const char *const *)refs->v, refs->n);
}

static int
refuse_unknown(const struct git_repo *r, const char *ref, struct err *e)
{
	cleanup_strvec struct strvec refs = STRVEC_INIT;
	cleanup_strbuf struct strbuf hint = STRBUF_INIT, shown = STRBUF_INIT;
	cleanup_free char *advice = NULL;
	const char *near;
	bool is_bare = !ref[strcspn(ref, "/~^@")] && ref[strspn(ref, "0123456789abcdef")];

	list_refs(r, &refs);
	near = near_ref(&refs, ref);
	advice = near ? xstrdup("") : shallow_advice(r, BRANCHES, is_bare ? ref : NULL);
	if (near) {
		strbuf_addf(&hint, "; did you mean '%s'?", near);
	} else if (refs.n) {
		strbuf_adds(&hint, refs.n == 1 ? "; there is " : "; there are ");
		for (size_t i = 0; i < refs.n && i < REFS_SHOWN; i++)
			strbuf_addf(&hint, "%s%s", i ? ", " : "", refs.v[i]);
		if (refs.n > REFS_SHOWN)
			strbuf_addf(&hint, " and %zu more", refs.n - REFS_SHOWN);
	}
	strbuf_add_sanitised(&shown, ref, strlen(ref));
	return err_set(
		e, ERR_USAGE, 0, "git knows no commit '%s'%s%s", shown.buf, hint.buf, advice);
}

/* `has_any`: one of the usual names is there, and it is HEAD. */
static int
refuse_default(const struct git_repo *r, bool has_any, struct err *e)
{
	cleanup_free char *advice = shallow_advice(r, has_any ? HISTORY : BRANCHES, NULL);

	return err_set(e, ERR_USAGE, 0,
		"there is nothing to compare with: no origin/HEAD, origin/main, origin/master, "
		"main or master that is not where HEAD is, and nothing before HEAD%s",
		*advice ? advice
			: "; name a commit (--affected=REF, or \"affectedBase\" in "
			  "vx.workspace.json)");
}

/* Full names, as a tag or a branch may be called "origin/main". 0 or -1; *ret NULL: none will do. */
static int
find_default(const struct git_repo *r, const char *head, char **ret_name, char **ret, struct err *e)
{
	static const char *const refs[] = {"refs/remotes/origin/HEAD", "refs/remotes/origin/main",
		"refs/remotes/origin/master", "refs/heads/main", "refs/heads/master"};
	bool has_any = false;
	int found;

	for (size_t i = 0; i < array_len(refs); i++) {
		char *id = NULL;

		found = resolve(r, refs[i], &id, e);
		has_any |= found > 0;
		if (found > 0 && strcmp(id, head) != 0) {
			*ret = id;
			*ret_name = xstrdup(strchr(refs[i] + strlen("refs/"), '/') + 1);
			return 0;
		}
		free(id);
		if (found < 0)
			return -1;
	}
	found = resolve(r, "HEAD~1", ret, e);
	if (found > 0)
		*ret_name = xstrdup("HEAD~1");
	return found < 0 ? -1 : found ? 0 : refuse_default(r, has_any, e);
}

/* Where HEAD left the base: *ret, owned. */
static int
find_merge_base(const struct git_repo *r, const char *base, const char *head, const char *name,
	char **ret, struct err *e)
{
	const char *const args[] = {"merge-base", base, head, NULL};
	cleanup_strbuf struct strbuf said = STRBUF_INIT, shown = STRBUF_INIT;
	cleanup_free char *advice = NULL;
	struct err none = ERR_INIT;
	int found = git_ask(r, args, &said, &none);

	if (found < 0 || (!found && err_is_set(&none) && strstr(none.text, "git: "))) {
		*e = none;
		return -1;
	}
	strbuf_add_sanitised(&shown, name, strlen(name));
	if (!found) {
		advice = shallow_advice(r, HISTORY, NULL);
		return err_set(e, ERR_USAGE, 0, "'%s' and HEAD have no commit in common%s",
			shown.buf, advice);
	}
	*ret = xmemdupz(said.buf, strcspn(said.buf, "\n"));
	return 0;
}

/* The commit to compare with. */
static int
find_base(const struct git_repo *r, const char *ref, struct changes *c, char **ret, struct err *e)
{
	cleanup_free char *head = NULL, *base = NULL, *checked = NULL;
	int found;

	if (ref && check_ref(ref, &checked, e))
		return -1;
	found = resolve(r, "HEAD", &head, e);
	if (!found)
		return err_set(e, ERR_USAGE, 0,
			"HEAD has no commit yet, so there is nothing to compare with");
	if (found < 0 || (!ref && find_default(r, head, &c->since, &base, e)))
		return -1;
	if (ref) {
		found = resolve(r, checked, &base, e);
		if (found <= 0)
			return found ? -1 : refuse_unknown(r, checked, e);
		c->since = take_ptr(&checked);
	}
	if (find_merge_base(r, base, head, c->since, ret, e))
		return -1;
	c->is_head = !strcmp(*ret, head);
	return 0;
}

/* ------------------------------------------------------------------ files */

struct found {
	struct strvec paths; /* in any order */
	struct htab repos;   /* those of them that are repositories */
};

static void
found_release(struct found *f)
{
	strvec_release(&f->paths);
	htab_release(&f->repos);
}
#define cleanup_found __attribute__((cleanup(found_release)))

static void
found_add(struct found *f, const char *path, bool is_repo)
{
	strvec_push(&f->paths, path);
	if (is_repo)
		htab_putn_copy(&f->repos, path, strlen(path), f);
}

/* Names, each with its NUL. With `base`: of the index against that commit; else of the work tree against the
 * index. Neither writes the index, and of submodules both look at no more than which commit is out. */
static int
ask_diff(const struct git_repo *r, const char *base, struct strbuf *ret, struct err *e)
{
	const char *const args[] = {base ? "diff-index" : "diff-files", "-z", "--name-only",
		"--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty",
		"--relative", base ? "--cached" : "--", base, base ? "--" : NULL, NULL};

	return git_ask(r, args, ret, e) == 1 ? 0 : -1;
}

/* In the index, though perhaps not in the work tree; then what is there and not in the index. A submodule's own
 * ignore files do not count, as they do not for keys (files.c). */
static int
ask_list(const struct git_repo *r, bool nested, struct strbuf *ret, struct err *e)
{
	const char *const args[] = {"ls-files", "-z", "-t", "-v", "-s", "--cached", "--others",
		nested ? "--" : "--exclude-standard", nested ? NULL : "--", NULL};

	return git_ask(r, args, ret, e) == 1 ? 0 : -1;
}

static int repo_changed(
	const struct git_repo *outer, const char *dir, unsigned depth, struct err *e);

/* By git, by time alone: in the index against the base, and in the work tree against the index. */
struct suspects {
	struct htab committed, touched; /* the text is another's */
};

static int
take_record(const struct git_repo *r, const struct git_record *rec, const struct suspects *sus,
	unsigned depth, struct found *f, struct err *e)
{
	cleanup_free char *path = xmemdupz(rec->path, rec->len);
	bool touched = htab_findn(&sus->touched, path, rec->len), changed;
	struct stat st;
	int sub;

	if (files_is_never_listed(path, rec->tracked))
		return 0;
	if (!rec->tracked) {
		found_add(f, path, rec->is_repo);
		return 0;
	}
	if (rec->is_repo) {
		sub = touched || htab_findn(&sus->committed, path, rec->len)
			      ? 1
			      : repo_changed(r, path, depth, e);
		if (sub > 0)
			found_add(f, path, true);
		return sub < 0 ? -1 : 0;
	}
	/* Where it was told so git does not even look at times. Whether the content is the same is seen here,
	 * where nothing is started for it. */
	changed = rec->is_skipped ? !fs_stat_beneath(r->dirfd, path, &st)
				  : touched || rec->is_assumed;
	if (changed && !precious_is_held(r->dirfd, path, rec))
		found_add(f, path, false);
	return 0;
}

static void
put_names(struct htab *t, const struct strbuf *names)
{
	for (const char *p = names->buf; p < names->buf + names->len; p += strlen(p) + 1)
		htab_put(t, p, t);
}

static int
take_all(const struct git_repo *r, const struct strbuf *list, const struct suspects *sus,
	unsigned depth, struct found *f, struct err *e)
{
	struct git_record rec;
	size_t at = 0;
	int more;

	for (size_t i = 0; i < sus->committed.n; i++)
		if (!files_is_never_listed(sus->committed.entries[i].key, true))
			found_add(f, sus->committed.entries[i].key, false);
	while ((more = git_next_record(list, &at, &rec, e)) > 0) {
		if (stop_is_asked_by_now())
			return err_set(e, ERR_IO, ECANCELED, "compare files");
		if (take_record(r, &rec, sus, depth, f, e))
			return -1;
	}
	return more;
}

/* What is other in the repository than it was in `base`, a commit's id. */
static int
find_changed(
	const struct git_repo *r, const char *base, unsigned depth, struct found *f, struct err *e)
{
	cleanup_strbuf struct strbuf committed = STRBUF_INIT, touched = STRBUF_INIT,
				     list = STRBUF_INIT;
	cleanup_strvec struct strvec filters = STRVEC_INIT;
	struct git_repo blind = *r;
	struct suspects sus;
	int ret;

	/* A file that was written as late as the index is read again by git, through its filters. */
	if (git_find_filters(r, &filters, e))
		return -1;
	blind.filters = &filters;
	if (ask_diff(&blind, base, &committed, e) || ask_diff(&blind, NULL, &touched, e) ||
		ask_list(&blind, depth > 0, &list, e))
		return -1;
	htab_init(&sus.committed);
	htab_init(&sus.touched);
	put_names(&sus.committed, &committed);
	put_names(&sus.touched, &touched);
	ret = take_all(r, &list, &sus, depth, f, e);
	htab_release(&sus.committed);
	htab_release(&sus.touched);
	return ret;
}

/* Whether a submodule that git takes for unchanged has anything in it that its commit does not have. In doubt it
 * has. Asked the same way as the outer one: its config may be anybody's. 1, 0, -1. */
static int
repo_changed(const struct git_repo *outer, const char *dir, unsigned depth, struct err *e)
{
	cleanup_close int fd = fs_open_beneath(outer->dirfd, dir, O_RDONLY | O_DIRECTORY, 0);
	struct git_repo r = {outer->git, fd, ".git", ".", NULL};
	cleanup_found struct found f = {.paths = STRVEC_INIT};
	cleanup_free char *head = NULL;
	struct err why = ERR_INIT;
	struct stat st;
	int is;

	if (fd < 0)
		return errno != ENOENT;
	if (fstatat(fd, ".git", &st, 0)) {
		/* not checked out: then it is empty */
		cleanup_close int listed = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *d = listed < 0 ? NULL : fdopendir(listed);
		size_t n = 0;

		if (!d)
			return 1;
		take_fd(&listed);
		while (n < 3 && readdir(d))
			n++;
		closedir(d);
		return n > 2;
	}
	if (depth >= DEPTH_MAX)
		return 1;
	htab_init(&f.repos);
	is = resolve(&r, "HEAD", &head, &why);
	if (is > 0)
		is = find_changed(&r, head, depth + 1, &f, &why) ? -1 : 1;
	if (is < 0 && why.num == ECANCELED) {
		*e = why;
		return -1;
	}
	return is <= 0 || f.paths.n > 0;
}

/* ------------------------------------------------------------------ the whole */

/* The text of a file as it was. 1, 0: it was not there, or git does not have it here; -1. */
static int
read_base(const struct git_repo *r, const char *base, const char *path, struct strbuf *ret,
	struct err *e)
{
	cleanup_free char *name = xasprintf("%s:./%s", base, path);
	const char *const args[] = {"cat-file", "blob", name, NULL};
	struct err none = ERR_INIT;
	int found = git_ask(r, args, ret, &none);

	if (found < 0)
		*e = none;
	return found;
}

/* What a manifest says of others than itself. */
static const char *const list_fields[] = {"workspaces", "catalog", "catalogs", NULL};
/* What decides how a script below it is taken, and what the name of a package leads to: all that node, bun, deno and
 * helpers/config.mjs look at. */
static const char *const module_fields[] = {
	"name", "type", "main", "module", "exports", "imports", NULL};

/* What the text says in these fields. NULL: there is none, which is other than to say nothing where `alone`, as then the
 * next one above is asked. What cannot be read is the same while its text is. */
static void
add_fields(const struct strbuf *text, const char *const *fields, bool alone, struct strbuf *out)
{
	struct err none = ERR_INIT;
	struct json_doc doc;

	if (alone)
		strbuf_addf(out, "%s\n", text ? "there" : "absent");
	if (text && json_parse(text->buf, text->len, "package.json", JSON_PACKAGE, &doc, &none)) {
		strbuf_add(out, text->buf, text->len);
		return;
	}
	for (size_t i = 0; fields[i]; i++) {
		const struct json *v = text ? json_object_get(doc.root, fields[i]) : NULL;

		if (v)
			json_canonical(v, out);
		strbuf_addch(out, '\n');
	}
	if (text)
		json_doc_release(&doc);
}

static bool
says_the_same(
	const struct strbuf *was, const struct strbuf *is, const char *const *fields, bool alone)
{
	cleanup_strbuf struct strbuf then = STRBUF_INIT, now = STRBUF_INIT;

	add_fields(was, fields, alone, &then);
	add_fields(is, fields, alone, &now);
	return then.len == now.len && !memcmp(then.buf, now.buf, now.len);
}

static int
compare_manifest(
	const struct git_repo *r, const char *base, size_t at, struct changes *c, struct err *e)
{
	cleanup_strbuf struct strbuf was = STRBUF_INIT, is = STRBUF_INIT;
	const char *path = c->paths.v[at];
	struct err none = ERR_INIT;
	struct stat st;
	int found = read_base(r, base, path, &was, e);
	bool there = !json_read(r->dirfd, path, path, &is, &st, &none);

	if (found < 0)
		return -1;
	if (!strcmp(path, "package.json"))
		c->members_moved =
			!says_the_same(found ? &was : NULL, there ? &is : NULL, list_fields, false);
	c->same_modules[at] =
		says_the_same(found ? &was : NULL, there ? &is : NULL, module_fields, true);
	return 0;
}

static int
compare_manifests(const struct git_repo *r, const char *base, const struct htab *manifests,
	struct changes *c, struct err *e)
{
	c->same_modules = xcalloc(c->paths.n + 1, sizeof(*c->same_modules));
	for (size_t i = 0; i < c->paths.n; i++) {
		const char *path = c->paths.v[i];

		if ((!strcmp(path, "package.json") || htab_get(manifests, path)) &&
			compare_manifest(r, base, i, c, e))
			return -1;
	}
	return 0;
}

static void
store(struct found *f, struct changes *c)
{
	size_t n = 0;

	strvec_sort(&f->paths);
	c->is_repo = xcalloc(f->paths.n + 1, sizeof(*c->is_repo));
	for (size_t i = 0; i < f->paths.n; i++) {
		const char *path = f->paths.v[i];

		if ((n && !strcmp(c->paths.v[n - 1], path)) || inputs_is_never(path))
			continue;
		strvec_push(&c->paths, path);
		c->is_repo[n++] = htab_get(&f->repos, path);
	}
}

int
changes_find(int rootfd, const char *root_path, const char *ref, const char *configured,
	const struct htab *manifests, struct changes *ret, struct err *e)
{
	cleanup_free char *git = git_find(root_path), *top = NULL, *git_dir = NULL, *base = NULL;
	cleanup_found struct found f = {.paths = STRVEC_INIT};
	struct changes c = {.paths = STRVEC_INIT};
	struct git_repo r = {git, rootfd, NULL, NULL, NULL};

	htab_init(&f.repos);
	if (!git)
		return err_set(e, ERR_USAGE, 0,
			"there is no git program on PATH outside the workspace to ask what has "
			"changed");
	if (!git_find_work_tree(root_path, &top, &git_dir))
		return err_set(e, ERR_USAGE, 0,
			"%s is in no git work tree, so what has changed is not known", root_path);
	r.git_dir = git_dir;
	r.top = top;
	if (find_base(&r, ref ? ref : configured, &c, &base, e)) {
		changes_release(&c);
		return !ref && configured ? err_wrap(e, "vx.workspace.json: affectedBase") : -1;
	}
	if (find_changed(&r, base, 0, &f, e)) {
		changes_release(&c);
		return err_wrap(e, "what has changed since %s", base);
	}
	store(&f, &c);
	if (compare_manifests(&r, base, manifests, &c, e)) {
		changes_release(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void
changes_release(struct changes *c)
{
	free(c->since);
	free(c->is_repo);
	free(c->same_modules);
	strvec_release(&c->paths);
	*c = (struct changes){0};
}
