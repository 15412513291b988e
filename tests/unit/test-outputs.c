/* SPDX-License-Identifier: MIT */
#include "cache/outputs.h"
#include "tests/unit/globs.h"
#include "tests/unit/ws.h"
#include "util/strbuf.h"
#include <sys/stat.h>

static struct arena arena;
static const char *const no_nested[] = {NULL};

static void
set_mode(const char *path, mode_t mode)
{
	if (fchmodat(ws_fd, path, mode, 0))
		bug("chmod %s", path);
}

/* "d a 755|f a/b 644|l a/c ->t|" */
static void
check_scan_in(const struct globset *set, const char *const *nested, size_t n, const char *want,
	const char *name)
{
	static const char letter[] = {'f', 'd', 'l', 's'};
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	struct outputs o = {0};
	struct err e = ERR_INIT;

	if (outputs_scan(ws_fd, set, nested, n, &o, &e))
		strbuf_adds(&got, e.text);
	for (size_t i = 0; i < o.n; i++) {
		strbuf_addf(&got, "%c %s ", letter[o.v[i].type], o.v[i].path);
		if (o.v[i].target)
			strbuf_addf(&got, "->%s|", o.v[i].target);
		else
			strbuf_addf(&got, "%o|", o.v[i].mode);
	}
	ok_str(got.buf, want, name);
	outputs_release(&o);
}

static void
check_scan(const struct globset *set, const char *want, const char *name)
{
	check_scan_in(set, no_nested, 0, want, name);
}

static void
check_clean(const struct globset *set, const char *name)
{
	struct err e = ERR_INIT;

	ok(!outputs_clean(ws_fd, set, no_nested, 0, NULL, &e), "%s", name);
	if (err_is_set(&e))
		diag("%s", e.text);
}

/* One of them is listed, refused and left out. */
static void
check_special(const struct globset *set, const char *path)
{
	struct outputs o = {0};
	struct err e = ERR_INIT;
	size_t n;

	ok(!outputs_scan(ws_fd, set, no_nested, 0, &o, &e), "a scan lists what cannot be saved");
	n = o.n;
	ok(outputs_find(&o, path) && outputs_find(&o, path)->type == OUTPUT_SPECIAL, "%s", path);
	ok(outputs_check_types(&o, &e) && strstr(e.text, path) && strstr(e.text, "is a fifo"),
		"it is refused by name");
	outputs_drop_special(&o);
	err_clear(&e);
	ok(o.n == n - 1 && !outputs_check_types(&o, &e), "or left out");
	outputs_release(&o);
}

static bool
there(const char *path)
{
	struct stat st;

	return !fstatat(ws_fd, path, &st, AT_SYMLINK_NOFOLLOW);
}

static void
test_order(void)
{
	static const char *const sorted[] = {
		"a", "a/\x01", "a/b", "a\x01", "a-b", "a.c", "aa", "b"};
	bool good = true;

	for (size_t i = 0; i < array_len(sorted); i++)
		for (size_t k = 0; k < array_len(sorted); k++) {
			int c = outputs_cmp(sorted[i], sorted[k]);

			good &= i < k ? c < 0 : i > k ? c > 0 : c == 0;
		}
	ok(good, "a directory right before what is in it");
}

static void
test_scan(void)
{
	struct globset all = GLOBS(&arena, "p", "dist/**", "!dist/x/cache/**");
	struct globset some = GLOBS(&arena, "p", "*.log", "gen/**/*.js", "one", "tree");
	struct globset modules = GLOBS(&arena, "p", "**/*.js");
	struct globset named = GLOBS(&arena, "p", "**/*.js", "node_modules/.made/**");
	const char *nested[] = {"p/sub"};

	ws_begin();
	ws_write("p/dist/x/o", "o");
	ws_write("p/dist/x/cache/big", "b");
	ws_write("p/dist/.git/config", "");
	ws_write("p/dist/.vx/lock", "");
	ws_link("p/dist/l", "../nowhere");
	fs_mkdirs(ws_fd, "p/dist/empty");
	set_mode("p/dist/x/o", 06755);
	check_scan(&all,
		"d p/dist 755|d p/dist/empty 755|l p/dist/l ->../nowhere|d p/dist/x 755|"
		"f p/dist/x/o 755|",
		"all below dist, less what is taken back, .git and .vx");

	check_scan(&some, "", "what is not there is no output");
	ws_write("p/a.log", "");
	ws_write("p/deep/b.log", "");
	ws_write("p/gen/g.js", "");
	ws_write("p/gen/deep/h.js", "");
	ws_write("p/gen/deep/h.ts", "");
	ws_write("p/one", "");
	ws_write("p/tree/a/b", "");
	check_scan(&some,
		"f p/a.log 644|f p/gen/deep/h.js 644|f p/gen/g.js 644|f p/one 644|"
		"d p/tree 755|d p/tree/a 755|f p/tree/a/b 644|",
		"wildcards and literals");

	ws_write("p/node_modules/m/i.js", "");
	ws_write("p/node_modules/.made/x", "");
	ws_write("p/sub/s.js", "");
	check_scan_in(&modules, nested, 1, "f p/gen/deep/h.js 644|f p/gen/g.js 644|",
		"not in node_modules, not in nested projects");
	check_scan_in(&named, nested, 1,
		"f p/gen/deep/h.js 644|f p/gen/g.js 644|"
		"d p/node_modules/.made 755|f p/node_modules/.made/x 644|",
		"but where a glob names it");
	mknodat(ws_fd, "p/dist/fifo", S_IFIFO | 0644, 0);
	check_special(&all, "p/dist/fifo");
	check_clean(&all, "clean what cannot be saved");
	ok(!there("p/dist/fifo"), "a fifo is removed");
	ws_end();
}

static void
test_own_directory(void)
{
	struct globset in_p = GLOBS(&arena, "p", "**", "!package.json");
	struct globset in_root = GLOBS(&arena, "", "**/*.o");

	ws_begin();
	ws_write("p/package.json", "{}");
	ws_write("p/o", "");
	ws_write("q/x.o", "");
	check_scan(&in_p, "f p/o 644|", "the project's own directory is no output");
	check_scan(&in_root, "f q/x.o 644|", "globs from the root");
	check_clean(&in_p, "clean all");
	ok(there("p/package.json") && !there("p/o"), "what is taken back stays");
	ws_end();
}

static void
test_modes(void)
{
	struct globset all = GLOBS(&arena, "p", "out/**");

	ws_begin();
	ws_write("p/out/a/b/f", "");
	ws_write("p/out/shut/in/f", "");
	fs_mkdirs(ws_fd, "p/out/z");
	set_mode("p/out/z", 0);
	set_mode("p/out/a/b/f", 0);
	set_mode("p/out/a/b", 0555);
	set_mode("p/out/a", 0555);
	set_mode("p/out/shut/in", 0);
	set_mode("p/out/shut", 0);
	check_scan(&all,
		"d p/out 755|d p/out/a 555|d p/out/a/b 555|f p/out/a/b/f 0|d p/out/shut 0|"
		"d p/out/shut/in 0|f p/out/shut/in/f 644|d p/out/z 0|",
		"modes that keep out");
	check_scan(&all,
		"d p/out 755|d p/out/a 555|d p/out/a/b 555|f p/out/a/b/f 0|d p/out/shut 0|"
		"d p/out/shut/in 0|f p/out/shut/in/f 644|d p/out/z 0|",
		"are still there after a scan");
	check_clean(&all, "clean them");
	check_scan(&all, "d p/out 755|", "all gone but the wildcard's directory");
	ws_end();
}

static void
test_clean(void)
{
	struct globset set = GLOBS(&arena, "p", "dist/**", "gen/**/*.js", "tree", "one");

	ws_begin();
	ws_write("p/src/s", "");
	ws_write("p/dist/a/b", "");
	ws_link("p/dist/out", "../src");
	ws_write("p/gen/deep/er/h.js", "");
	ws_write("p/gen/mixed/h.js", "");
	ws_write("p/gen/mixed/h.ts", "");
	fs_mkdirs(ws_fd, "p/gen/was-empty");
	ws_write("p/tree/x/y", "");
	ws_write("p/one", "");
	check_clean(&set, "clean");
	ok(there("p/dist") && there("p/gen"), "the wildcard's own directories stay");
	ok(!there("p/dist/a") && !there("p/dist/out") && !there("p/tree") && !there("p/one"),
		"the outputs are gone");
	ok(!there("p/gen/deep"), "so are directories left empty");
	ok(there("p/gen/mixed/h.ts") && !there("p/gen/mixed/h.js"), "what is no output stays");
	ok(there("p/gen/was-empty"), "and what was empty before");
	ok(there("p/src/s"), "links are not followed");
	ws_end();
}

static void
test_links(void)
{
	struct globset set = GLOBS(&arena, "p", "dist/**");
	struct globset literal = GLOBS(&arena, "p", "dist");
	struct globset both = GLOBS(&arena, "p", "**/*.x", "dist/**");
	const char *nested[] = {"p/sub"};

	ws_begin();
	ws_write("p/store/deep/f", "");
	ws_write("p/store/g", "");
	ws_link("p/dist", "store");
	check_scan(&set, "d p/dist 755|d p/dist/deep 755|f p/dist/deep/f 644|f p/dist/g 644|",
		"a link on the way is followed");
	check_scan(&both, "d p/dist 755|d p/dist/deep 755|f p/dist/deep/f 644|f p/dist/g 644|",
		"and is no output of another glob");
	check_scan(&literal, "d p/dist 755|d p/dist/deep 755|f p/dist/deep/f 644|f p/dist/g 644|",
		"also in the place of a literal");
	check_clean(&literal, "clean behind it");
	ok(there("p/dist") && there("p/store") && !there("p/store/g"), "the link stays");

	ws_remove("p/dist");
	ws_link("p/dist", "../p/./two");
	ws_link("p/two", "store");
	ws_write("p/store/g", "");
	check_scan(&set, "d p/dist 755|f p/dist/g 644|", "over two links");
	ws_remove("p/two");
	check_scan(&set, "", "a link to a directory that is not there yet");
	check_scan(&literal, "l p/dist ->../p/./two|", "is an output where it is named itself");
	ws_link("p/two", "two");
	check_scan(&set, "output p/dist: Too many levels of symbolic links", "a link in a circle");

	ws_remove("p/dist");
	ws_write("q/src", "");
	ws_link("p/dist", "../q");
	check_scan(&set,
		"the output directory p/dist is a link (-> q) that leads out of its project: "
		"remove "
		"the link, or declare the outputs where they are",
		"a link that leaves the project is refused");
	check_scan(&literal,
		"the output directory p/dist is a link (-> q) that leads out of its project: "
		"remove "
		"the link, or declare the outputs where they are",
		"by a literal too");
	ok(there("q/src"), "nothing behind it was touched");
	ws_remove("p/dist");
	ws_link("p/dist", "/usr");
	check_scan(&set,
		"the output directory p/dist is a link (-> /usr) that leads out of its project: "
		"remove the link, or declare the outputs where they are",
		"an absolute one");
	ws_remove("p/dist");
	ws_link("p/dist", "../../../../../../usr");
	check_scan(&set,
		"the output directory p/dist is a link (-> ../../../../../../usr) that leads out "
		"of "
		"its project: remove the link, or declare the outputs where they are",
		"one that climbs");
	ws_remove("p/dist");
	ws_write("p/sub/x", "");
	ws_link("p/dist", "sub");
	check_scan_in(&set, nested, 1,
		"the output directory p/dist is a link (-> p/sub) that leads into a nested "
		"project: "
		"remove the link, or declare the outputs where they are",
		"one into a nested project");
	ws_remove("p/dist");
	ws_write("p/.git/x", "");
	ws_link("p/dist", ".git");
	check_scan(&set,
		"the output directory p/dist is a link (-> p/.git) that leads into .git or .vx: "
		"remove the link, or declare the outputs where they are",
		"one into .git");
	ws_end();
}

static void
test_linked_project(void)
{
	struct globset set = GLOBS(&arena, "p", "dist/**");

	ws_begin();
	ws_write("real/p/dist/f", "");
	ws_link("p", "real/p");
	check_scan(&set, "d p/dist 755|f p/dist/f 644|", "a project reached through a link");
	ws_end();
}

int
main(void)
{
	umask(022);
	arena_init(&arena);
	test_order();
	test_scan();
	test_own_directory();
	test_modes();
	test_clean();
	test_links();
	test_linked_project();
	arena_release(&arena);
	return tap_done();
}
