/* SPDX-License-Identifier: MIT */
/*
 * The rules of a spec (proto/ruleset.h), what the helper and what the core asks of them, against a
 * slow reference: a plain list of rules, each asked about every path. The input is text, one line
 * each:
 *
 *	r w d e o q PATH	a literal rule: read, write, deny-read, deny-write, output, quiet
 *	R W D E O Q PATTERN	the same with a pattern
 *	c PATH			where the command starts; the last one counts
 *	? PATH			a question
 *
 * Claims: every answer is the reference's; the order of the rules changes none; what passes whole, and
 * where a rule could hide nothing, no rule hides below; what is hidden whole has nothing granted below; nothing may be written
 * below where the core says so, and nothing that is quiet to the task may be written.
 */
#include "proto/ruleset.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/err.h"
#include "util/glob.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/strvec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	RULES_MAX = 16,
	QUESTIONS_MAX = 32,
	PATH_BYTES_MAX = 200
};

static void
must(bool claim, const char *what, const char *path)
{
	if (!claim)
		bug("%s: \"%s\"", what, path);
}

/* One alternative of one rule. */
struct ref_rule {
	enum spec_rule_kind kind;
	const char *literal; /* or NULL and */
	struct glob *glob;
	int len;
};

struct ref {
	struct arena arena;
	struct ref_rule *v;
	size_t n, cap;
	const char *cwd;
};

/* A family of rules: of reads, or of writes. */
static const unsigned grants_of[] = {1 << SPEC_READ | 1 << SPEC_WRITE, 1 << SPEC_WRITE};
static const unsigned denies_of[] = {1 << SPEC_DENY_READ, 1 << SPEC_DENY_WRITE};
enum {
	READS,
	WRITES
};

static void
ref_add(struct ref *ref, enum spec_rule_kind kind, const char *literal, struct glob *glob)
{
	const char *head = glob ? glob_literal_head(glob, 0) : literal;

	GROW(ref->v, ref->n + 1, ref->cap);
	ref->v[ref->n++] = (struct ref_rule){kind, literal, glob, (int)strlen(head)};
}

static bool
hides(const struct ref_rule *r)
{
	return r->kind == SPEC_DENY_READ || r->kind == SPEC_DENY_WRITE || r->kind == SPEC_QUIET ||
	       r->kind == SPEC_IGNORE_READ || r->kind == SPEC_IGNORE_WRITE;
}

/* An output that does not enter node_modules: it does not name it, and takes none of the directories
 * around it whole. */
static bool
stays_out(const struct ref_rule *r, const char *path)
{
	char at[PATH_BYTES_MAX + 1] = "";
	size_t n = 0;

	if (r->kind != SPEC_OUTPUT || strstr(glob_text(r->glob), "node_modules"))
		return false;
	for (;;) {
		size_t len = strcspn(path + n, "/");

		if (glob_matches_all_below(r->glob, at))
			return false;
		if (len == 12 && !memcmp(path + n, "node_modules", len))
			return true;
		n += len;
		if (!path[n])
			return false;
		memcpy(at, path, n);
		at[n++] = '\0';
	}
}

/* Whether the rule selects the path. What hides takes with a directory all that is in it. */
static bool
selects(const struct ref_rule *r, const char *path)
{
	char above[PATH_BYTES_MAX + 1];

	if (r->literal)
		return path_is_within(path, r->literal);
	if (stays_out(r, path))
		return false;
	if (glob_match(r->glob, path))
		return true;
	if (!hides(r))
		return false;
	snprintf(above, sizeof(above), "%s", path);
	while (*above) {
		above[path_parent_len(above)] = '\0';
		if (glob_match(r->glob, above))
			return true;
	}
	return false;
}

static bool
selects_all_below(const struct ref_rule *r, const char *dir)
{
	if (r->literal)
		return path_is_within(dir, r->literal);
	if (stays_out(r, dir))
		return false;
	return glob_matches_all_below(r->glob, dir) || (hides(r) && selects(r, dir));
}

static bool
may_select_below(const struct ref_rule *r, const char *dir)
{
	if (selects_all_below(r, dir))
		return true;
	if (r->literal)
		return path_is_within(r->literal, dir);
	return glob_may_match_below(r->glob, dir) && !stays_out(r, dir);
}

static bool
grants(const struct ref_rule *r, int family)
{
	return grants_of[family] >> r->kind & 1;
}

static bool
denies(const struct ref_rule *r, int family)
{
	return denies_of[family] >> r->kind & 1;
}

/* The most specific rule of the family for the path: 1 granted, -1 denied by a rule, 0 by none. */
static int
ref_decides(const struct ref *ref, int family, const char *path)
{
	int best = -1, said = 0;

	for (size_t i = 0; i < ref->n; i++) {
		const struct ref_rule *r = &ref->v[i];

		if ((!grants(r, family) && !denies(r, family)) || !selects(r, path))
			continue;
		if (r->len > best || (r->len == best && denies(r, family))) {
			best = r->len;
			said = grants(r, family) ? 1 : -1;
		}
	}
	return said;
}

static bool
ref_ignores(const struct ref *ref, enum spec_rule_kind kind, const char *path)
{
	for (size_t i = 0; i < ref->n; i++)
		if (ref->v[i].kind == kind && selects(&ref->v[i], path))
			return true;
	return false;
}

static bool
ref_quiet(const struct ref *ref, const char *path)
{
	return ref_ignores(ref, SPEC_QUIET, path);
}

static bool
ref_silent(const struct ref *ref, const char *path, enum host_kind host)
{
	for (size_t i = 0; i < ref->n; i++) {
		const struct ref_rule *r = &ref->v[i];

		if (r->kind == SPEC_OUTPUT && selects(r, path) &&
			(host != HOST_DIR || selects_all_below(r, path)))
			return true;
	}
	return ref_quiet(ref, path);
}

struct ref_below {
	int grant_all, grant_some, deny_all, deny_some;
	bool silent;
};

static void
raise_to(int *len, bool holds, int to)
{
	if (holds && *len < to)
		*len = to;
}

static struct ref_below
ref_below(const struct ref *ref, int family, const char *dir)
{
	struct ref_below b = {-1, -1, -1, -1, false};

	for (size_t i = 0; i < ref->n; i++) {
		const struct ref_rule *r = &ref->v[i];
		bool all = selects_all_below(r, dir), some = may_select_below(r, dir);

		raise_to(&b.grant_all, grants(r, family) && all, r->len);
		raise_to(&b.grant_some, grants(r, family) && some, r->len);
		raise_to(&b.deny_all, denies(r, family) && all, r->len);
		raise_to(&b.deny_some, denies(r, family) && some, r->len);
		if (r->kind == SPEC_QUIET || r->kind == SPEC_OUTPUT)
			b.silent |= some;
	}
	return b;
}

static enum verdict
ref_dir(const struct ref *ref, const char *dir, bool granted)
{
	struct ref_below b = ref_below(ref, READS, dir);

	if (granted)
		return b.grant_all > b.deny_some && !b.silent ? VERDICT_PASS : VERDICT_TRAVERSE;
	if (ref->cwd && path_is_within(ref->cwd, dir))
		return VERDICT_TRAVERSE;
	return b.grant_some > b.deny_all ? VERDICT_TRAVERSE : VERDICT_HIDE;
}

static enum verdict
ref_verdict(const struct ref *ref, const char *path, enum host_kind host)
{
	bool granted = ref_decides(ref, READS, path) > 0;

	if (ref_silent(ref, path, host))
		return VERDICT_QUIET;
	if (host == HOST_DIR)
		return ref_dir(ref, path, granted);
	return granted ? VERDICT_PASS : VERDICT_HIDE;
}

static bool
ref_may_write(const struct ref *ref, const char *path)
{
	return ref_decides(ref, WRITES, path) > 0 && !ref_quiet(ref, path);
}

static bool
ref_may_write_below(const struct ref *ref, const char *dir)
{
	struct ref_below b = ref_below(ref, WRITES, dir);

	return b.grant_some > b.deny_all && !ref_quiet(ref, dir);
}

static bool
ref_grants_whole(const struct ref *ref, const char *dir)
{
	struct ref_below b = ref_below(ref, WRITES, dir);

	return ref_verdict(ref, dir, HOST_DIR) == VERDICT_PASS &&
	       ref_decides(ref, WRITES, dir) > 0 && b.grant_all > b.deny_some;
}

static bool
ref_hides_below(const struct ref *ref, const char *dir)
{
	struct ref_below b = ref_below(ref, READS, dir);

	return b.silent || (b.deny_some >= 0 && b.deny_some >= b.grant_all);
}

static bool
ref_is_written(const struct ref *ref, const char *path)
{
	for (size_t i = 0; i < ref->n; i++)
		if (ref->v[i].kind == SPEC_WRITE &&
			(selects(&ref->v[i], path) || may_select_below(&ref->v[i], path)))
			return true;
	return false;
}

static bool
ref_names_write(const struct ref *ref, const char *name, const char *path)
{
	for (size_t i = 0; i < ref->n; i++) {
		const struct ref_rule *r = &ref->v[i];

		if (r->kind == SPEC_WRITE && r->literal && path_is_within(r->literal, name) &&
			(path_is_within(path, r->literal) || path_is_within(r->literal, path)))
			return true;
	}
	return false;
}

/* Adds a rule to the spec and to the reference, unless it is none. */
static void
add_rule(struct spec *s, struct ref *ref, enum spec_rule_kind kind, bool is_glob, const char *text)
{
	struct err e = ERR_INIT;
	struct glob *all, *one;

	if (!is_glob) {
		if (!path_is_normal(text))
			return;
		spec_add_rule(s, kind, false, text);
		ref_add(ref, kind, arena_strdup(&ref->arena, text), NULL);
		return;
	}
	if (!*text || *text == '/' || glob_parse(&ref->arena, "", text, GLOB_GRANT, &all, &e))
		return;
	spec_add_rule(s, kind, true, text);
	for (size_t i = 0; i < glob_nalternatives(all); i++) {
		struct strbuf sb = STRBUF_INIT;

		glob_add_text(all, i, &sb);
		must(!glob_parse(&ref->arena, "", sb.buf, GLOB_GRANT, &one, &e), "no pattern",
			text);
		strbuf_release(&sb);
		if (glob_is_literal(one))
			ref_add(ref, kind, glob_literal_head(one, 0), NULL);
		else
			ref_add(ref, kind, NULL, one);
	}
}

static void
read_line(char *line, struct spec *s, struct ref *ref, struct strvec *asked)
{
	static const struct {
		char letter;
		enum spec_rule_kind kind;
		bool is_glob;
	} rules[] = {
		{'r', SPEC_READ, false},
		{'R', SPEC_READ, true},
		{'w', SPEC_WRITE, false},
		{'W', SPEC_WRITE, true},
		{'d', SPEC_DENY_READ, false},
		{'D', SPEC_DENY_READ, true},
		{'e', SPEC_DENY_WRITE, false},
		{'E', SPEC_DENY_WRITE, true},
		{'o', SPEC_OUTPUT, false},
		{'O', SPEC_OUTPUT, true},
		{'q', SPEC_QUIET, false},
		{'Q', SPEC_QUIET, true},
		{'i', SPEC_IGNORE_READ, false},
		{'I', SPEC_IGNORE_READ, true},
		{'j', SPEC_IGNORE_WRITE, false},
		{'J', SPEC_IGNORE_WRITE, true},
	};
	const char *text = line + 2;

	if (!line[0] || line[1] != ' ' || strlen(line) > PATH_BYTES_MAX)
		return;
	if (line[0] == '?' && asked->n < QUESTIONS_MAX && path_is_normal(text))
		strvec_push(asked, text);
	if (line[0] == 'c' && path_is_normal(text))
		ref->cwd = arena_strdup(&ref->arena, text);
	for (size_t i = 0; i < array_len(rules); i++)
		if (line[0] == rules[i].letter && s->nrules < RULES_MAX)
			add_rule(s, ref, rules[i].kind, rules[i].is_glob, text);
}

static struct ruleset *
compile(const struct spec *s, const char *cwd)
{
	struct err e = ERR_INIT;
	struct ruleset *rs = NULL;

	must(!ruleset_new(s->rules, s->nrules, cwd, &rs, &e), "rules do not compile", e.text);
	return rs;
}

static void
check_path(const struct ruleset *rs, const struct ref *ref, const char *path)
{
	for (int host = HOST_ABSENT; host <= HOST_LINK; host++)
		must(ruleset_verdict(rs, path, host) == ref_verdict(ref, path, host),
			"not the reference's verdict", path);
	if (!ref_silent(ref, path, HOST_DIR))
		must(ruleset_hides_below(rs, path) == ref_hides_below(ref, path), "hides_below",
			path);
	must(ruleset_is_quiet(rs, path) == ref_quiet(ref, path), "is_quiet", path);
	for (enum spec_rule_kind k = SPEC_IGNORE_READ; k <= SPEC_IGNORE_WRITE; k++)
		must(ruleset_ignores(rs, k, path) == ref_ignores(ref, k, path), "ignores", path);
	must(ruleset_is_written(rs, path) == ref_is_written(ref, path), "is_written", path);
	must(ruleset_may_write(rs, path) == ref_may_write(ref, path), "may_write", path);
	must(ruleset_may_write_below(rs, path) == ref_may_write_below(ref, path), "may_write_below",
		path);
	must(ruleset_grants_whole(rs, path) == ref_grants_whole(ref, path), "grants_whole", path);
	if (ruleset_may_write(rs, path))
		must(ruleset_is_written(rs, path), "granted though no rule is there", path);
}

/* What the layer relies on: after such an answer it is never asked below. And the core: a directory
 * is made only on the way to what may be written. */
static void
check_below(const struct ruleset *rs, const struct ref *ref, const char *dir, const char *path)
{
	enum verdict whole = ruleset_verdict(rs, dir, HOST_DIR);
	enum verdict one = ruleset_verdict(rs, path, HOST_FILE);

	if (!path_is_within(path, dir))
		return;
	must(ruleset_names_write(rs, dir, path) == ref_names_write(ref, dir, path), "names_write",
		path);
	if (!strcmp(dir, path))
		return;
	if (whole == VERDICT_PASS)
		must(one == VERDICT_PASS, "hidden below what passes whole", path);
	if (whole != VERDICT_QUIET && !ruleset_hides_below(rs, dir))
		must(one != VERDICT_QUIET && ref_decides(ref, READS, path) >= 0,
			"hidden by a rule where none could", path);
	if (whole == VERDICT_HIDE || whole == VERDICT_QUIET)
		must(one != VERDICT_PASS, "granted below what is hidden whole", path);
	if (whole == VERDICT_PASS)
		must(ruleset_verdict(rs, path, HOST_DIR) == VERDICT_PASS, "not whole below", path);
	if (ruleset_may_write(rs, path))
		must(ruleset_may_write_below(rs, dir), "granted where nothing below may be", path);
	if (ruleset_grants_whole(rs, dir))
		must(one == VERDICT_PASS && ruleset_may_write(rs, path) &&
				ruleset_grants_whole(rs, path),
			"not granted below what is granted whole", path);
}

static void
reverse(struct spec *s)
{
	for (size_t i = 0; i < s->nrules / 2; i++) {
		struct spec_rule r = s->rules[i];

		s->rules[i] = s->rules[s->nrules - 1 - i];
		s->rules[s->nrules - 1 - i] = r;
	}
}

static void
check_all(struct spec *s, struct ref *ref, const struct strvec *asked)
{
	struct ruleset *rs = compile(s, ref->cwd), *turned;

	reverse(s);
	turned = compile(s, ref->cwd);
	for (size_t i = 0; i < asked->n; i++) {
		const char *path = asked->v[i];

		check_path(rs, ref, path);
		check_path(turned, ref, path);
		for (size_t k = 0; k < asked->n; k++)
			check_below(rs, ref, path, asked->v[k]);
	}
	ruleset_free(rs);
	ruleset_free(turned);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strvec asked = STRVEC_INIT;
	struct spec s = SPEC_INIT;
	struct ref ref = {.n = 0};
	char *text = xmemdupz(data, size);

	arena_init(&ref.arena);
	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		read_line(line, &s, &ref, &asked);
	}
	check_all(&s, &ref, &asked);
	free(text);
	free(ref.v);
	arena_release(&ref.arena);
	spec_release(&s);
	strvec_release(&asked);
	return 0;
}
