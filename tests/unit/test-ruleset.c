/* SPDX-License-Identifier: MIT */
#include "proto/ruleset.h"
#include "tests/tap.h"

/* Rules as words: "read src", "deny-read-glob **", as a spec has them. */
static struct ruleset *
rules(struct spec *s, const char *const *words, size_t n)
{
	static const struct {
		const char *word;
		enum spec_rule_kind kind;
	} kinds[] = {
		{"read", SPEC_READ},
		{"write", SPEC_WRITE},
		{"deny-read", SPEC_DENY_READ},
		{"deny-write", SPEC_DENY_WRITE},
		{"output", SPEC_OUTPUT},
		{"quiet", SPEC_QUIET},
	};
	struct err e = ERR_INIT;
	struct ruleset *rs;

	*s = (struct spec)SPEC_INIT;
	for (size_t i = 0; i < n; i++) {
		const char *value = strchr(words[i], ' ');
		size_t len = (size_t)(value - words[i]);
		bool is_glob = len > 5 && !memcmp(value - 5, "-glob", 5);

		for (size_t k = 0; k < array_len(kinds); k++)
			if (!strncmp(words[i], kinds[k].word, len - (is_glob ? 5 : 0)) &&
				kinds[k].word[len - (is_glob ? 5 : 0)] == '\0')
				spec_add_rule(s, kinds[k].kind, is_glob, value + 1);
	}
	if (s->nrules != n || ruleset_new(s->rules, s->nrules, NULL, &rs, &e)) {
		diag("rules: %s", e.text);
		exit(1);
	}
	return rs;
}
#define RULES(s, ...)                                                                              \
	rules((s), (const char *const[]){__VA_ARGS__},                                             \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static const char *const verdict_names[] = {"pass", "traverse", "hide", "quiet"};

static void
check(const struct ruleset *rs, const char *path, enum host_kind host, enum verdict want)
{
	ok_str(verdict_names[ruleset_verdict(rs, path, host)], verdict_names[want], path);
}
#define DIR_IS(path, want) check(rs, path, HOST_DIR, VERDICT_##want)
#define FILE_IS(path, want) check(rs, path, HOST_FILE, VERDICT_##want)
#define ABSENT_IS(path, want) check(rs, path, HOST_ABSENT, VERDICT_##want)

static void
done(struct spec *s, struct ruleset *rs)
{
	ruleset_free(rs);
	spec_release(s);
}

static void
test_literals(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "read packages/app/src", "write packages/app/out/x",
		"read /usr/x", "deny-write packages/app/src/gen");

	DIR_IS("", TRAVERSE);
	DIR_IS("packages", TRAVERSE);
	DIR_IS("packages/app", TRAVERSE);
	DIR_IS("packages/app/src", PASS);
	FILE_IS("packages/app/src/deep/file", PASS);
	DIR_IS("packages/app/srcs", HIDE);
	DIR_IS("packages/lib", HIDE);
	FILE_IS("packages", HIDE);
	FILE_IS("packages/app/README", HIDE);
	DIR_IS("packages/app/out", TRAVERSE);
	FILE_IS("packages/app/out/x", PASS);
	FILE_IS("packages/app/out/y", HIDE);
	ABSENT_IS("packages/app/src/none", PASS);
	ABSENT_IS("packages/app/none", HIDE);
	ABSENT_IS("packages/app/out", HIDE);
	check(rs, "packages/app/src/link", HOST_LINK, VERDICT_PASS);
	check(rs, "packages/app/link", HOST_LINK, VERDICT_HIDE);
	ok(ruleset_is_written(rs, "packages/app/out/x/y"), "written below a write grant");
	ok(ruleset_is_written(rs, "packages"), "and on the way to it");
	ok(!ruleset_is_written(rs, "packages/app/src"), "not below a read grant");
	done(&s, rs);
}

static void
test_nothing(void)
{
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	struct ruleset *rs;

	ok_int(ruleset_new(NULL, 0, NULL, &rs, &e), 0, "no rules");
	DIR_IS("", HIDE);
	DIR_IS("a", HIDE);
	FILE_IS("a", HIDE);
	ok(!ruleset_may_write(rs, "") && !ruleset_may_write_below(rs, ""), "nothing is written");
	done(&s, rs);

	ok_int(ruleset_new(NULL, 0, "a/b", &rs, &e), 0, "only a place to start");
	DIR_IS("", TRAVERSE);
	DIR_IS("a/b", TRAVERSE);
	DIR_IS("a/b/c", HIDE);
	FILE_IS("a/x", HIDE);
	done(&s, rs);

	spec_add_rule(&s, SPEC_READ, true, "a/{b,c");
	ok_int(ruleset_new(s.rules, s.nrules, NULL, &rs, &e), -1, "a pattern that is none");
	ok_err(&e, "rule \"a/{b,c\"", "is named");
	spec_release(&s);
}

/* C13: any order of these lines is the same policy. */
static void
test_deny_inside_allow(void)
{
	static const char *const lines[] = {"read ", "deny-read d", "read d/e", "deny-read d/no"};
	int order[4];

	for (int p = 0; p < 256; p++) {
		const char *words[4];
		unsigned used = 0;
		struct spec s;
		struct ruleset *rs;

		for (int i = 0; i < 4; i++) {
			order[i] = p >> (2 * i) & 3;
			used |= 1U << order[i];
			words[i] = lines[order[i]];
		}
		if (used != 15)
			continue;
		rs = rules(&s, words, 4);
		ok(ruleset_verdict(rs, "", HOST_DIR) == VERDICT_TRAVERSE &&
				ruleset_verdict(rs, "d", HOST_DIR) == VERDICT_TRAVERSE &&
				ruleset_verdict(rs, "d/ok", HOST_FILE) == VERDICT_HIDE &&
				ruleset_verdict(rs, "d/no", HOST_FILE) == VERDICT_HIDE &&
				ruleset_verdict(rs, "d/e", HOST_DIR) == VERDICT_PASS &&
				ruleset_verdict(rs, "x", HOST_DIR) == VERDICT_PASS,
			"order %d%d%d%d", order[0], order[1], order[2], order[3]);
		done(&s, rs);
	}
}

static void
test_denies(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "write ", "deny-read secret", "deny-read-glob **/key?",
		"read-glob **/*.pub", "deny-read same", "read same", "deny-read conf/local.json");

	DIR_IS("secret", HIDE);
	FILE_IS("secret/a.pub", HIDE);
	DIR_IS("keys", HIDE);
	FILE_IS("keys/a", HIDE);
	FILE_IS("keys/a.pub", HIDE);
	FILE_IS("a.pub", PASS);
	DIR_IS("x", TRAVERSE);
	FILE_IS("x/key1", HIDE);
	FILE_IS("same", HIDE);
	DIR_IS("conf", TRAVERSE);
	FILE_IS("conf/other", PASS);
	FILE_IS("conf/local.json", HIDE);
	ABSENT_IS("conf/local.json", HIDE);
	ABSENT_IS("conf/new", PASS);
	done(&s, rs);

	rs = RULES(&s, "read ", "deny-read-glob a/*", "read a/b/c");
	DIR_IS("a", TRAVERSE);
	DIR_IS("a/x", HIDE);
	DIR_IS("a/b", TRAVERSE);
	FILE_IS("a/b/d", HIDE);
	DIR_IS("a/b/c", PASS);
	done(&s, rs);
}

static void
test_globs(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "read-glob src/**/*.ts", "read-glob {lib,include/x}/*.h",
		"read-glob all/**", "deny-read-glob src/**/*.test.ts", "deny-read src/gen");

	DIR_IS("src", TRAVERSE);
	DIR_IS("src/a/b", TRAVERSE);
	FILE_IS("src/a/b/x.ts", PASS);
	FILE_IS("src/a/b/x.md", HIDE);
	FILE_IS("src/a/b/x.test.ts", HIDE);
	DIR_IS("src/gen", HIDE);
	DIR_IS("src/dir.ts", TRAVERSE);
	DIR_IS("lib", TRAVERSE);
	DIR_IS("lib/sub", HIDE);
	DIR_IS("lib/sub.h", TRAVERSE);
	FILE_IS("lib/sub.h/x", HIDE);
	DIR_IS("include", TRAVERSE);
	FILE_IS("include/x/a.h", PASS);
	FILE_IS("include/a.h", HIDE);
	DIR_IS("all", PASS);
	DIR_IS("all/below", PASS);
	done(&s, rs);
}

static void
test_silent(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "read ", "write-glob pkg/dist/**", "output-glob pkg/dist/**",
		"output-glob pkg/gen/*.o", "quiet .vx", "read .vx/x", "quiet-glob **/.env*",
		"read pkg/dist/keep", "output out.txt");

	DIR_IS("pkg/dist", QUIET);
	ABSENT_IS("pkg/dist", QUIET);
	FILE_IS("pkg/dist/keep", QUIET);
	FILE_IS("out.txt", QUIET);
	DIR_IS("pkg", TRAVERSE);
	DIR_IS("pkg/gen", TRAVERSE);
	FILE_IS("pkg/gen/a.o", QUIET);
	DIR_IS("pkg/gen/dir.o", TRAVERSE);
	FILE_IS("pkg/gen/dir.o/x", PASS);
	FILE_IS("pkg/gen/a.c", PASS);
	DIR_IS(".vx", QUIET);
	FILE_IS(".vx/x", QUIET);
	DIR_IS("pkg/.env.d", QUIET);
	FILE_IS("pkg/.env.d/x", QUIET);
	DIR_IS("other", TRAVERSE); /* an .env may be below */
	FILE_IS("other/x", PASS);
	done(&s, rs);
}

/* outputs.h says of the same patterns what an output is. */
static void
test_output_in_node_modules(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "read ", "output-glob **/dist/**", "output-glob **/*.o",
		"output-glob node_modules/.vite/**");

	FILE_IS("a/dist/x", QUIET);
	FILE_IS("a/x.o", QUIET);
	DIR_IS("node_modules", TRAVERSE); /* .vite */
	DIR_IS("node_modules/lib", PASS);
	FILE_IS("node_modules/lib/dist/x", PASS);
	FILE_IS("a/node_modules/lib/dist/x.o", PASS);
	DIR_IS("a/node_modules/dist", PASS);
	DIR_IS("node_modules/.vite", QUIET);
	FILE_IS("node_modules/.vite/x", QUIET);
	DIR_IS("a/dist", QUIET);
	FILE_IS("a/dist/node_modules/x", QUIET); /* hidden with all of dist */
	done(&s, rs);
}

#define MAY_WRITE(path) ok(ruleset_may_write(rs, path), "%s may be written", path)
#define NO_WRITE(path) ok(!ruleset_may_write(rs, path), "%s may not", path)

static void
test_writes(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "write src", "deny-write src/gen", "write src/gen/ok",
		"deny-write-glob src/*.lock", "write src/b.lock/x", "deny-write same", "write same",
		"write-glob log/**/*.log", "deny-write-glob log/?ld", "quiet-glob src/.cach?",
		"read lib", "write key", "deny-read key");

	MAY_WRITE("src");
	MAY_WRITE("src/a");
	NO_WRITE("src/gen");
	NO_WRITE("src/gen/x");
	MAY_WRITE("src/gen/ok/x");
	NO_WRITE("src/a.lock");
	NO_WRITE("src/a.lock/x"); /* a directory that a deny matches, and all that is in it */
	NO_WRITE("src/b.lock/y");
	MAY_WRITE("src/b.lock/x/y");
	NO_WRITE("same");
	MAY_WRITE("log/a/b.log");
	NO_WRITE("log/a");
	NO_WRITE("log/old/b.log");
	NO_WRITE("src/.cache");
	NO_WRITE("src/.cache/x");
	NO_WRITE("lib/x");
	MAY_WRITE("key");
	FILE_IS("key", HIDE); /* each family of rules decides alone */
	FILE_IS("src/gen", PASS);
	ok(ruleset_is_quiet(rs, "src/.cache/x") && !ruleset_is_quiet(rs, "src/x"), "quiet");
	ok(ruleset_may_write_below(rs, "") && ruleset_may_write_below(rs, "src/gen") &&
			ruleset_may_write_below(rs, "src/b.lock") &&
			ruleset_may_write_below(rs, "log/a"),
		"on the way to a grant");
	ok(!ruleset_may_write_below(rs, "src/gen/x") &&
			!ruleset_may_write_below(rs, "src/a.lock") &&
			!ruleset_may_write_below(rs, "log/old/a") &&
			!ruleset_may_write_below(rs, "src/.cache") &&
			!ruleset_may_write_below(rs, "lib"),
		"not on the way to one");
	done(&s, rs);
}

static void
test_names_write(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "write ", "write .github/workflows/ci.yml", "write a/.git",
		"write-glob .husky/*", "write-glob .vscode/x/*.json", "write-glob **/.npmrc",
		"read .idea");

	ok(ruleset_names_write(rs, ".github", ".github") &&
			ruleset_names_write(rs, ".github", ".github/workflows") &&
			ruleset_names_write(rs, ".github", ".github/workflows/ci.yml"),
		"what a rule names, and the way to it");
	ok(!ruleset_names_write(rs, ".github", ".github/x") &&
			!ruleset_names_write(rs, ".github", ".github/workflows/other.yml"),
		"nothing beside it");
	ok(ruleset_names_write(rs, "a/.git", "a/.git/hooks/x"), "all that is in what it names");
	ok(!ruleset_names_write(rs, ".git", ".git") && !ruleset_names_write(rs, "b/.git", "b/.git"),
		"a rule of a directory above names nothing in it");
	ok(!ruleset_names_write(rs, ".husky", ".husky") &&
			!ruleset_names_write(rs, ".husky", ".husky/x") &&
			!ruleset_names_write(rs, ".vscode", ".vscode/x") &&
			!ruleset_names_write(rs, ".npmrc", ".npmrc") &&
			!ruleset_names_write(rs, "c/.npmrc", "c/.npmrc"),
		"nor does a pattern");
	ok(!ruleset_names_write(rs, ".idea", ".idea"), "nor a read rule");
	done(&s, rs);
}

/* What a rule could hide in a directory, whether the host has it or not. */
static void
test_hides_below(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "read-glob a/**/*.c", "deny-read-glob a/**/.env", "read b",
		"read-glob c/*.c", "deny-read c/sub/x", "read-glob d/*", "output-glob d/*.o",
		"read-glob e/**/*", "quiet e/x/y", "read-glob f/*.c", "deny-read-glob f*/?ey",
		"write g/h", "deny-read g", "deny-write b/x", "read-glob i/*.c");

	ok(ruleset_hides_below(rs, "a") && ruleset_hides_below(rs, "a/deep"),
		"by a pattern, at any depth");
	ok(ruleset_hides_below(rs, "c") && ruleset_hides_below(rs, "c/sub"), "by name");
	ok(!ruleset_hides_below(rs, "c/other"), "but not beside it");
	ok(ruleset_hides_below(rs, "d") && !ruleset_hides_below(rs, "d/sub"), "an output");
	ok(ruleset_hides_below(rs, "e") && !ruleset_hides_below(rs, "e/z"), "quiet");
	ok(ruleset_hides_below(rs, "f"), "by a pattern less specific than the grant of some names");
	ok(ruleset_hides_below(rs, "g") && !ruleset_hides_below(rs, "g/h"),
		"not where a more specific grant takes all");
	ok(!ruleset_hides_below(rs, "b"), "a deny of writes hides nothing");
	done(&s, rs);

	rs = RULES(&s, "read-glob i/*.c", "read j/k", "write-glob l/**");
	ok(!ruleset_hides_below(rs, "") && !ruleset_hides_below(rs, "i") &&
			!ruleset_hides_below(rs, "j") && !ruleset_hides_below(rs, "l"),
		"nor does what is only not granted");
	done(&s, rs);
}

/* One rule for each of many files: C16, and what a derived policy looks like. */
static void
test_many(void)
{
	struct spec s = SPEC_INIT;
	struct err e = ERR_INIT;
	struct ruleset *rs;
	char path[64];
	int wrong = 0;

	for (int i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "packages/p%d/src/f%d.c", i % 50, i);
		spec_add_rule(&s, i % 2 ? SPEC_READ : SPEC_DENY_READ, false, path);
	}
	ok_int(ruleset_new(s.rules, s.nrules, NULL, &rs, &e), 0, "5000 rules");
	for (int i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "packages/p%d/src/f%d.c", i % 50, i);
		wrong += ruleset_verdict(rs, path, HOST_FILE) !=
			 (i % 2 ? VERDICT_PASS : VERDICT_HIDE);
		wrong += ruleset_verdict(rs, path, HOST_DIR) !=
			 (i % 2 ? VERDICT_PASS : VERDICT_HIDE);
	}
	ok_int(wrong, 0, "each with its answer");
	DIR_IS("packages/p1/src", TRAVERSE);
	DIR_IS("packages/p0/src", HIDE);
	DIR_IS("packages/p50", HIDE);
	done(&s, rs);
}

static void
test_grants_whole(void)
{
	struct spec s;
	struct ruleset *rs = RULES(&s, "write a", "write b", "deny-write b/x", "write c",
		"deny-read-glob c/**/key", "write d", "output-glob d/*.js", "write e", "quiet e/x",
		"write-glob f/**", "write-glob g/*", "read h", "deny-read ab", "write ab/c");

	ok(ruleset_grants_whole(rs, "a"), "a directory that a rule names");
	ok(ruleset_grants_whole(rs, "a/deep/in/it"), "what is in it");
	ok(ruleset_grants_whole(rs, "f/deep"), "what a pattern takes with all that is in it");
	ok(ruleset_grants_whole(rs, "ab/c"), "a grant within a deny");
	ok(!ruleset_grants_whole(rs, "ab"), "not what is above");
	ok(!ruleset_grants_whole(rs, "b"), "not where a name may not be written");
	ok(ruleset_grants_whole(rs, "b/y"), "but beside that");
	ok(!ruleset_grants_whole(rs, "c"), "nor where one may not be read");
	ok(!ruleset_grants_whole(rs, "d"), "nor where there may be outputs");
	ok(ruleset_grants_whole(rs, "d/sub"), "but where there are none");
	ok(!ruleset_grants_whole(rs, "e"), "nor where something is quiet");
	ok(!ruleset_grants_whole(rs, "g"), "nor what a pattern takes in part");
	ok(!ruleset_grants_whole(rs, "h"), "nor what may only be read");
	ok(!ruleset_grants_whole(rs, "z"), "nor what no rule names");
	done(&s, rs);
}

int
main(void)
{
	test_literals();
	test_nothing();
	test_deny_inside_allow();
	test_denies();
	test_globs();
	test_silent();
	test_output_in_node_modules();
	test_writes();
	test_names_write();
	test_grants_whole();
	test_hides_below();
	test_many();
	return tap_done();
}
