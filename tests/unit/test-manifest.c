/* SPDX-License-Identifier: MIT */
#include "tests/unit/ws.h"
#include "util/arena.h"
#include "workspace/manifest.h"
#include "workspace/pnpm.h"
#include <sys/stat.h>

static struct arena arena;

static int
load(const char *text, struct manifest *ret, struct err *e)
{
	ws_write("package.json", text);
	err_clear(e);
	return manifest_load(ws_fd, "package.json", "a/package.json", &arena, ret, e);
}

/* Whether the quick way understands it. Where it does, the parser must see the same: padded beyond
 * what is read in one go, the same text takes the other way. */
static void
scans(const char *text, bool want)
{
	static char padded[32768];
	size_t n = strlen(text);
	struct manifest quick = {0}, slow = {0};
	struct err e = ERR_INIT;
	bool same;

	for (size_t i = 0; i < sizeof(padded) - 1; i++)
		padded[i] = i < n ? (char)(text[i] == '\'' ? '"' : text[i]) : ' ';
	ws_write("package.json", padded);
	padded[n] = '\0';
	ok(manifest_scan(padded, n, &arena, &quick) == want, "%s %s", text,
		want ? "is understood" : "is left to the parser");
	if (!want)
		return;
	same = manifest_load(ws_fd, "package.json", "package.json", &arena, &slow, &e) == 1 &&
	       !strcmp(quick.name ? quick.name : "", slow.name ? slow.name : "") &&
	       !strcmp(quick.version ? quick.version : "", slow.version ? slow.version : "") &&
	       quick.ndeps == slow.ndeps;
	for (size_t i = 0; same && i < quick.ndeps; i++) {
		size_t j = 0; /* the parser goes by bucket, the quick way as they stand */

		while (j < slow.ndeps && (quick.deps[i].bucket != slow.deps[j].bucket ||
						 strcmp(quick.deps[i].name, slow.deps[j].name) ||
						 strcmp(quick.deps[i].spec, slow.deps[j].spec)))
			j++;
		same = j < slow.ndeps;
	}
	if (!ok(same, "and the parser sees the same"))
		diag("%s", e.text);
}

static void
test_scan(void)
{
	scans("{}", true);
	scans(" { 'name' : 'a' , 'version':'1.0.0' }\n", true);
	scans("{'peerDependencies': {'x': '*'}, 'dependencies': {'y': '1', 'z': ''}, 'name': 'n', "
	      "'devDependencies': {}}",
		true);
	scans("{'scripts': {'a': 'echo \\\\ \\n \\/', 'b': [1, -2.5, 0, true, false, null, {}, "
	      "[], [[{'k': [{}]}]]]}, 'private': true}",
		true);
	scans("", false);
	scans("[]", false);
	scans("{} x", false);
	scans("{'name': 'a',}", false);
	scans("{'name': 'a' 'b': 1}", false);
	scans("{'a': [1,]}", false);
	scans("{'a': {'b'}}", false);
	scans("{'a': {'b': 1,}}", false);
	scans("{'a': [1}}", false);
	scans("{'a': 01}", false);
	scans("{'a': 1.}", false);
	scans("{'a': 1e400}", false);
	scans("{'a': 99999999999999999999}", false);
	scans("{'a': truth}", false);
	scans("{'a': 'x\ty'}", false);
	scans("{'a': '\\x'}", false);
	scans("{'a': '\\u0041'}", false);
	scans("{'a': '\xc3\xa9'}", false);
	scans("{'a': 'x", false);
	scans("{'a': [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", false);
	scans("{'name': ''}", false);
	scans("{'name': 'a', 'name': 'b'}", false);
	scans("{'dependencies': {'a': '1', 'b': '1', 'a': '2'}}", false);
	scans("{'dependencies': {'b': '1', 'a': '1', 'c': '2'}}", true);
	scans("{'dependencies': {'b': '1', 'a': '1', 'c': '2', 'c': '3'}}", false);
	scans("{'dependencies': {'a': '1'}, 'peerDependencies': {'a': '2'}}", true);
	scans("{'workspaces': []}", false);
	scans("{'dependencies': []}", false);
	scans("{'dependencies': {'a': 1}}", false);
	scans("// c\n{}", false);
}

static void
refused(const char *text, const char *why)
{
	struct err e = ERR_INIT;
	struct manifest m;

	ok_int(load(text, &m, &e), -1, text);
	ok_err(&e, why, why);
	ok_err(&e, "a/package.json", "and the file is named");
	ok_int(e.kind, ERR_CONFIG, "as an error of the file");
}

static void
test_reading(void)
{
	struct err e = ERR_INIT;
	struct manifest m;

	ok_int(manifest_load(ws_fd, "none.json", "none.json", &arena, &m, &e), 0,
		"no file is no error");
	ok_int(load("{'name': '@s/a', 'version': '1.2.3', 'dependencies': {'b': '^1'}, "
		    "'devDependencies': {'c': '*'}, 'peerDependencies': {'d': ''}, "
		    "'optionalDependencies': [], 'workspaces': ['x/*', '!x/y']}",
		       &m, &e),
		1, "a manifest is read");
	ok_str(m.name, "@s/a", "its name");
	ok_str(m.version, "1.2.3", "its version");
	ok_int((long long)m.ndeps, 3, "all buckets");
	ok_str(m.deps[0].spec, "^1", "what is asked for");
	ok_int(m.deps[2].bucket, MANIFEST_PEER, "the bucket is kept");
	ok_int((long long)m.nworkspaces, 2, "member globs");
	ok(m.has_workspaces, "it declares members");

	ok_int(load("{'workspaces': {'packages': ['p/*'], 'catalog': {'react': '^18'}}, "
		    "'catalogs': {'old': {'react': '^17'}}}",
		       &m, &e),
		1, "workspaces as an object");
	ok_str(m.workspaces[0], "p/*", "the globs inside");
	ok_int((long long)m.ncatalogs, 2, "catalogs");
	ok(!m.name, "no name");
	ok_int(load("\xef\xbb\xbf{'name': 'marked'}\r\n", &m, &e), 1, "a mark in front");
	ok_str(m.name, "marked", "is read over");
	ok_int(load("{'name': 'a', 'dependencies': {'x': '1', 'y': '1', 'x': '2'}, 'name': 'b'}",
		       &m, &e),
		1, "names that are there twice");
	ok_str(m.name, "b", "the last one counts");
	ok_int(load("{'dependencies': {'x': '1', 'y': '1', 'x': '2'}}", &m, &e), 1,
		"a dependency that is there twice");
	ok_int((long long)m.ndeps, 2, "is one");
	ok_str(m.deps[1].spec, "2", "as the last one says");
	ok_int(load("{'dependencies': {'x': '1'}, 'dependencies': {'y': '2'}}", &m, &e), 1,
		"a bucket that is there twice");
	ok(m.ndeps == 1 && !strcmp(m.deps[0].name, "y"), "is the last one");
	ok_int(load("{'name': ''}", &m, &e), 1, "an empty name");
	ok(!m.name, "is none");
}

static void
test_refusals(void)
{
	refused("[]", "is not a JSON object");
	refused("{'name': 7}", "name: is not a string");
	refused("{'name': ' a'}", "blanks around it");
	refused("{'name': 'a#b'}", "separates project and task");
	refused("{'name': '//'}", "root project");
	refused("{'name': 'a\\nb'}", "name \"a\\x0ab\" holds a control character");
	refused("{'name': 'a\\u007f'}", "holds a control character");
	refused("{'name': 'a\\u009b'}", "name \"a\\xc2\\x9b\" holds a control character");
	refused("\xff\xfe{", "a/package.json:1:1: ");
	refused("{'workspaces': 'x'}", "workspaces: is not an array of strings");
	refused("{'workspaces': ['x', 1]}", "workspaces");
	refused("{'workspaces': {'packages': 'x'}}",
		"workspaces.packages: is not an array of strings");
	refused("{'dependencies': ['x']}", "dependencies: is not an object");
	refused("{'dependencies': {'x': 1}}", "is not a string");
	refused("{'name': }", "");
}

static void
pnpm_refused(const char *text, const char *why)
{
	struct err e = ERR_INIT;
	struct pnpm p;

	ws_write("pnpm-workspace.yaml", text);
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), -1, text);
	ok_err(&e, why, why);
	ok_err(&e, "pnpm-workspace.yaml", "and the file is named");
}

static void
test_pnpm(void)
{
	struct err e = ERR_INIT;
	struct pnpm p = {0};

	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), 0, "no pnpm file");
	ws_write("pnpm-workspace.yaml",
		"# members\npackages:\n  - packages/*\n  - '!packages/old'\n"
		"catalog:\n  react: ^18.0.0\ncatalogs:\n  next:\n    react: ^19.0.0\n");
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), 1, "a pnpm file");
	ok_int((long long)p.npackages, 2, "its globs");
	ok_str(p.packages[1], "!packages/old", "with their negations");
	ok_int((long long)p.ncatalogs, 2, "its catalogs");
	ok_str(p.catalogs[1].catalog, "next", "by name");
	ws_write("pnpm-workspace.yaml", "onlyBuiltDependencies: [x]\npackages:\n");
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), 1, "settings alone");
	ok_int((long long)p.npackages, 0, "declare no members");
	ws_write("pnpm-workspace.yaml", "");
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), 1, "an empty file too");
	ws_write("pnpm-workspace.yaml", "packages:\n  - .\n  - packages/*\n");
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), 1, "the root by its dot");
	ok_str(p.npackages == 2 ? p.packages[0] : "", ".", "which is no number");
	pnpm_refused("- packages/*\n", "is not a mapping");
	pnpm_refused("packages\n", "is not a mapping");
	pnpm_refused("packages: x\n", "1:11: packages: is not an array of strings");
	pnpm_refused("packages: [1]\n", "not a string");
	pnpm_refused("packages: [.5]\n", "not a string");
	pnpm_refused("packages:\n  -\n", "not a string");
	pnpm_refused("packages: [a\n", "pnpm-workspace.yaml:2:1");
	pnpm_refused("packages: [a]\nx: 1\npackages: [b]\n", ":3:1: packages: a second time");
	pnpm_refused("catalog: {}\ncatalog: {}\n", ":2:1: catalog: a second time");
	pnpm_refused("packages: [a]\n---\n", "holds more than one document");
	pnpm_refused("packages: [a]\n---\n{\n", ":4:1: ");
	pnpm_refused("base: &b {packages: [a]}\n<<: *b\n", ":2:1: <<: ");
	pnpm_refused("packages: [\"a\\0b\"]\n", ":1:12: packages: holds what is not a string");
	pnpm_refused("packages:\n\t- a\n", ":2:1: ");
	pnpm_refused("packages: [a]\nx: *none\n", ":2:4: ");
	pnpm_refused("packages: &a [*a]\n", "");

	ws_write("pnpm-workspace.yaml",
		"\xef\xbb\xbf%YAML 1.1\r\n---\r\nlists:\r\n  - &one [a/*]\r\n"
		"packages: *one\r\n...\r\n");
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), 1,
		"a mark in front, ends of lines of another system, a directive");
	ok_int((long long)p.npackages, 1, "and an anchor");
	ok_str(p.packages[0], "a/*", "are read as they are meant");

	ws_remove("pnpm-workspace.yaml");
	if (mkfifoat(ws_fd, "pnpm-workspace.yaml", 0600) < 0)
		bug("mkfifo: %s", strerror(errno));
	ok_int(pnpm_load(ws_fd, "pnpm-workspace.yaml", &arena, &p, &e), -1, "a FIFO holds nobody");
	ok_err(&e, "pnpm-workspace.yaml: is not a regular file", "and is refused");
	ws_remove("pnpm-workspace.yaml");
}

int
main(void)
{
	arena_init(&arena);
	ws_begin();
	test_reading();
	test_refusals();
	test_scan();
	test_pnpm();
	ws_end();
	arena_release(&arena);
	return tap_done();
}
