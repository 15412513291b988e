/* SPDX-License-Identifier: MIT */
#include "workspace/members.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <fnmatch.h>

enum {
	MEMBERS_BRACES_MAX = 1024
};

void
members_init(struct members *m)
{
	*m = (struct members){0};
}

void
members_release(struct members *m)
{
	free(m->pos);
	free(m->neg);
	members_init(m);
}

/* The end of a [class], or s itself where the bracket opens none. */
static const char *
skip_class(const char *s)
{
	const char *p = s + 1;

	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	while (*p && *p != ']' && *p != '/')
		p += *p == '\\' && p[1] ? 2 : 1;
	return *p == ']' ? p : s;
}

/* The first "X(" with X one of ! @ + ? *, outside classes and escapes. */
static const char *
find_extglob(const char *s)
{
	for (; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '[')
			s = skip_class(s);
		else if (strchr("!@+?*", *s) && s[1] == '(')
			return s;
	}
	return NULL;
}

/* What is being read: an entry of the list `source`, for the root `root_path`. */
struct reading {
	struct members m;
	const char *source, *root_path;
	struct arena *arena;
	size_t entry;
	bool negative;
};

static int
refuse_extglob(const char *glob, const char *at, const char *source, struct err *e)
{
	cleanup_strbuf struct strbuf rewrite = STRBUF_INIT;
	const char *close = strchr(at, ')'), *word = at + 2;
	bool whole = close && (at == glob || at[-1] == '/') && (!close[1] || close[1] == '/') &&
		     !memchr(word, '(', (size_t)(close - word)) &&
		     !memchr(word, '/', (size_t)(close - word));
	size_t headlen = (size_t)(at - glob);

	if (whole && *at == '!' && (*glob != '!' || at == glob)) {
		strbuf_addf(&rewrite, "\"%.*s*%s\"", (int)headlen, glob, close + 1);
		while (word <= close) {
			size_t n = strcspn(word, "|)");

			strbuf_addf(&rewrite, " and \"!%.*s%.*s%s\"", (int)headlen, glob, (int)n,
				word, close + 1);
			word += n + 1;
		}
	} else if (whole && *at == '@') {
		strbuf_addf(&rewrite, "\"%.*s{", (int)headlen, glob);
		for (; word < close; word++)
			strbuf_addch(&rewrite, *word == '|' ? ',' : *word);
		strbuf_addf(&rewrite, "}%s\"", close + 1);
	} else {
		strbuf_adds(&rewrite, "the directories themselves, or \"*\" and \"!\" entries");
	}
	return err_set(e, ERR_CONFIG, 0,
		"%s: member glob \"%s\": \"%.2s…)\" is extglob, which vx does "
		"not read; write %s",
		source, glob, at, rewrite.buf);
}

static int
refuse_outside(const struct reading *r, const char *pattern, struct err *e)
{
	cleanup_free char *joined =
		*pattern == '/' ? xstrdup(pattern) : path_join(r->root_path, pattern);
	cleanup_free char *absolute = path_normalise(joined);

	if (path_is_within(absolute, r->root_path) && strcmp(r->root_path, "/") != 0)
		return err_set(e, ERR_CONFIG, 0,
			"%s: member glob \"%s\": write it from the workspace root: \"%s\"",
			r->source, pattern,
			strcmp(absolute, r->root_path) ? path_below(absolute, r->root_path) : ".");
	return err_set(e, ERR_CONFIG, 0,
		"%s: member \"%s\" (%s) is outside the workspace root %s: move %s up to a "
		"directory "
		"that holds all members, or leave the entry out",
		r->source, pattern, absolute, r->root_path, r->source);
}

/* Splits a pattern without braces and adds it. */
static int
add_glob(struct reading *r, const char *pattern, struct err *e)
{
	struct member_glob g = {.text = arena_strdup(r->arena, pattern), .entry = r->entry};
	struct members *m = &r->m;
	const char *s = g.text;

	g.parts = arena_array(r->arena, strlen(s) / 2 + 2, const char *);
	while (*s) {
		size_t n = strcspn(s, "/");
		const char *part = arena_memdupz(r->arena, s, n);

		s += n + (s[n] == '/');
		if (!*part || !strcmp(part, "."))
			continue;
		if (!strcmp(part, "**") && g.nparts && !strcmp(g.parts[g.nparts - 1], "**"))
			continue;
		g.parts[g.nparts++] = part;
	}
	if (*g.text == '/' || (g.nparts && !strcmp(g.parts[0], "..")))
		return r->negative ? 0 : refuse_outside(r, pattern, e);
	for (size_t i = 0; i < g.nparts; i++)
		if (!strcmp(g.parts[i], ".."))
			return err_set(e, ERR_CONFIG, 0,
				"%s: member glob \"%s\" holds \"..\": write the path without it",
				r->source, pattern);
	if (r->negative) {
		GROW(m->neg, m->nneg + 1, m->neg_cap);
		m->neg[m->nneg++] = g;
	} else {
		GROW(m->pos, m->npos + 1, m->pos_cap);
		m->pos[m->npos++] = g;
	}
	return 0;
}

/* The first brace group with a comma at its own level: its '{' and its '}'. Others are literal. */
static bool
find_braces(const char *s, const char **ret_open, const char **ret_close)
{
	for (; *s; s++) {
		unsigned depth = 0;
		bool comma = false;

		if (*s == '\\' && s[1]) {
			s++;
			continue;
		}
		if (*s == '[')
			s = skip_class(s);
		if (*s != '{')
			continue;
		for (const char *p = s; *p; p++) {
			if (*p == '\\' && p[1]) {
				p++;
			} else if (*p == '{') {
				depth++;
			} else if (*p == ',' && depth == 1) {
				comma = true;
			} else if (*p == '}' && !--depth) {
				if (comma) {
					*ret_open = s;
					*ret_close = p;
					return true;
				}
				break;
			}
		}
	}
	return false;
}

/* Replaces the first brace group of the last pending pattern by each of its alternatives. */
static void
split_braces(struct strvec *pending, const char *text, const char *open, const char *close)
{
	const char *from = open + 1;
	unsigned depth = 0;

	for (const char *p = from; p <= close; p++) {
		if (*p == '\\' && p < close) {
			p++;
		} else if (*p == '{') {
			depth++;
		} else if (*p == '}' && p < close) {
			depth--;
		} else if (p == close || (*p == ',' && !depth)) {
			strvec_pushf(pending, "%.*s%.*s%s", (int)(open - text), text,
				(int)(p - from), from, close + 1);
			from = p + 1;
		}
	}
}

static int
expand_braces(struct reading *r, const char *pattern, struct err *e)
{
	cleanup_strvec struct strvec pending = STRVEC_INIT;

	strvec_push(&pending, pattern);
	for (size_t i = 0; i < pending.n; i++) {
		const char *open, *close;

		if (i > MEMBERS_BRACES_MAX)
			return err_set(e, ERR_CONFIG, 0,
				"%s: member glob \"%s\" stands for more than %d patterns",
				r->source, pattern, MEMBERS_BRACES_MAX);
		if (find_braces(pending.v[i], &open, &close))
			split_braces(&pending, pending.v[i], open, close);
		else if (add_glob(r, pending.v[i], e) < 0)
			return -1;
	}
	return 0;
}

int
members_parse(const struct strvec *globs, const char *source, const char *root_path,
	struct arena *a, struct members *ret, struct err *e)
{
	struct reading r = {.source = source, .root_path = root_path, .arena = a};

	for (; r.entry < globs->n; r.entry++) {
		const char *glob = globs->v[r.entry], *extglob = find_extglob(glob);

		r.negative = *glob == '!';
		if (extglob ? refuse_extglob(glob, extglob, source, e) < 0
			    : expand_braces(&r, glob + r.negative, e) < 0) {
			members_release(&r.m);
			return -1;
		}
	}
	*ret = r.m;
	return 0;
}

static bool
is_globstar(const char *part)
{
	return part[0] == '*' && part[1] == '*' && !part[2];
}

static bool
is_literal(const char *part)
{
	return !strpbrk(part, "*?[\\");
}

/* What wildcards pass over. */
static bool
is_hidden(const char *name)
{
	return *name == '.' || !strcmp(name, "node_modules");
}

static bool
part_matches(const char *part, const char *name)
{
	if (is_literal(part))
		return !strcmp(part, name);
	if (!strcmp(name, "node_modules"))
		return false;
	return !fnmatch(part, name, FNM_PERIOD);
}

/* Components against parts, with the one-star backtracking of a string match: linear in practice.
 */
static bool
glob_matches(const struct member_glob *g, char *const *names, size_t n)
{
	size_t p = 0, i = 0, star = SIZE_MAX, resume = 0;

	while (i < n) {
		if (p < g->nparts && is_globstar(g->parts[p])) {
			star = p++;
			resume = i;
		} else if (p < g->nparts && part_matches(g->parts[p], names[i])) {
			p++;
			i++;
		} else if (star != SIZE_MAX && !is_hidden(names[resume])) {
			p = star + 1;
			i = ++resume;
		} else {
			return false;
		}
	}
	while (p < g->nparts && is_globstar(g->parts[p]))
		p++;
	return p == g->nparts;
}

static bool
matches_any(const struct member_glob *globs, size_t nglobs, char *const *names, size_t n)
{
	for (size_t i = 0; i < nglobs; i++)
		if (glob_matches(&globs[i], names, n))
			return true;
	return false;
}

static void
split_path(const char *path, struct strvec *ret)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		strvec_push_take(ret, xmemdupz(path, n));
		path += n + (path[n] == '/');
	}
}

bool
members_claim(const struct members *m, const char *path)
{
	cleanup_strvec struct strvec names = STRVEC_INIT;

	split_path(path, &names);
	for (size_t n = 1; n <= names.n; n++)
		if (matches_any(m->pos, m->npos, names.v, n) &&
			!matches_any(m->neg, m->nneg, names.v, n))
			return true;
	return false;
}

bool
members_name(const struct members *m, const char *dir)
{
	cleanup_strvec struct strvec names = STRVEC_INIT;

	split_path(dir, &names);
	return names.n && matches_any(m->pos, m->npos, names.v, names.n) &&
	       !matches_any(m->neg, m->nneg, names.v, names.n);
}

void
members_mark(const struct members *m, const char *dir, bool *ret)
{
	cleanup_strvec struct strvec names = STRVEC_INIT;

	split_path(dir, &names);
	for (size_t i = 0; i < m->npos; i++)
		if (glob_matches(&m->pos[i], names.v, names.n))
			ret[m->pos[i].entry] = true;
}

int
members_scan(int fd, void (*entry)(void *ctx, const char *name, unsigned char type), void *ctx)
{
	_Alignas(struct dirent64) attr_not_zeroed char buf[16384];

	for (;;) {
		ssize_t n = getdents64(fd, buf, sizeof(buf));

		if (n <= 0)
			return (int)n;
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);
			unsigned char type = d->d_type;
			struct stat st;

			at += d->d_reclen;
			if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
				continue;
			if (type == DT_UNKNOWN) {
				if (fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
					continue; /* gone since */
				type = IFTODT(st.st_mode);
			}
			entry(ctx, d->d_name, type);
		}
	}
}

int
members_open(int rootfd, const char *dir)
{
	int fd = fs_open_beneath(rootfd, dir, O_RDONLY | O_DIRECTORY, 0);

	/* A member may be reached through a link that the user made; whether it ends inside the
	 * root is for the caller to see. */
	if (fd < 0 && errno == ELOOP)
		fd = openat(rootfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

/* A directory to look at, and the part of the glob that its names are to match. */
struct todo {
	char *dir;
	size_t part;
};

struct expansion {
	const struct member_glob *glob;
	struct todo *todo;
	size_t n, cap;
	struct todo now;
};

static void
push(struct expansion *x, const char *name, size_t part)
{
	GROW(x->todo, x->n + 1, x->cap);
	x->todo[x->n++] = (struct todo){path_join(x->now.dir, name), part};
}

static void
visit_name(void *ctx, const char *name, unsigned char type)
{
	struct expansion *x = ctx;
	const char *part = x->glob->parts[x->now.part];

	if (type != DT_DIR && type != DT_LNK)
		return;
	if (!is_globstar(part)) {
		if (part_matches(part, name))
			push(x, name, x->now.part + 1);
		return;
	}
	if (is_hidden(name))
		return;
	if (type == DT_DIR)
		push(x, name, x->now.part);
	else if (x->now.part + 1 == x->glob->nparts)
		push(x, name, x->glob->nparts); /* a member, but not a way to walk: it may loop */
}

static int
expand_one(
	struct expansion *x, const struct members *m, int rootfd, struct strvec *ret, struct err *e)
{
	cleanup_strvec struct strvec names = STRVEC_INIT;
	cleanup_close int fd = -1;
	const char *part;

	if (x->now.part == x->glob->nparts) {
		split_path(x->now.dir, &names);
		if (!matches_any(m->neg, m->nneg, names.v, names.n))
			strvec_push(ret, x->now.dir);
		return 0;
	}
	part = x->glob->parts[x->now.part];
	if (is_literal(part)) {
		push(x, part, x->now.part + 1);
		return 0;
	}
	if (is_globstar(part))
		push(x, "", x->now.part + 1);
	fd = members_open(rootfd, x->now.dir);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || members_scan(fd, visit_name, x) < 0)
		return err_set(e, ERR_IO, errno, "list %s for the member glob \"%s\"",
			*x->now.dir ? x->now.dir : "the workspace root", x->glob->text);
	return 0;
}

int
members_expand(const struct members *m, int rootfd, struct strvec *ret, struct err *e)
{
	cleanup_strvec struct strvec found = STRVEC_INIT;
	struct expansion x = {0};
	int r = 0;

	for (size_t i = 0; i < m->npos && !r; i++) {
		x.glob = &m->pos[i];
		x.now = (struct todo){xstrdup(""), 0};
		for (;;) {
			r = expand_one(&x, m, rootfd, &found, e);
			free(x.now.dir);
			if (r < 0 || !x.n)
				break;
			x.now = x.todo[--x.n];
		}
	}
	while (x.n)
		free(x.todo[--x.n].dir);
	free(x.todo);
	if (r < 0)
		return -1;
	strvec_sort(&found);
	for (size_t i = 0; i < found.n; i++)
		if (!i || strcmp(found.v[i], found.v[i - 1]))
			strvec_push(ret, found.v[i]);
	return 0;
}
