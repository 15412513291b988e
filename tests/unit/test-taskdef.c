/* SPDX-License-Identifier: MIT */
#include "config/json.h"
#include "config/taskdef.h"
#include "config/upstream.h"
#include "tests/tap.h"
#include "tests/unit/corpus.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/strbuf.h"

static struct arena arena;

static int
parse(const char *text, struct projectdef *ret, struct err *e)
{
	struct json_doc d = {0};
	int r = -1;

	corpus_add("project", text);
	*e = (struct err)ERR_INIT;
	if (json_parse(text, strlen(text), "p/vx.config.json", JSON_OURS, &d, e) == 0)
		r = projectdef_parse(&d, "p", &arena, ret, e);
	json_doc_release(&d);
	return r;
}

static struct projectdef
accept(const char *text)
{
	struct projectdef p = {0};
	struct err e;

	if (parse(text, &p, &e) < 0) {
		ok(false, "accepted");
		diag("%s", e.text);
	}
	return p;
}

/* The text is accepted. */
static void
check_accepted(const char *text)
{
	struct projectdef p = {0};
	struct err e;

	ok(parse(text, &p, &e) == 0, "accepted: %s", text);
	if (err_is_set(&e))
		diag("%s", e.text);
}

/* The text is refused with this message. */
static void
check_refused(const char *text, const char *want)
{
	struct projectdef p = {0};
	struct err e;

	ok(parse(text, &p, &e) < 0 && !p.tasks, "refused: %.60s", text[1] == '\n' ? "…" : text);
	ok_err(&e, want, want);
	ok(!strncmp(e.text, "p/vx.config.json:", 17), "with its place");
}

#define TASK(body) "{\"tasks\":{\"t\":{" body "}}}"
#define EXEC(body) TASK("\"exec\":{\"command\":\"true\"," body "}")
#define CACHE(body) TASK("\"exec\":{\"command\":\"true\"},\"cache\":{" body "}")
#define INPUTS(body) CACHE("\"inputs\":{" body "},\"outputs\":{\"files\":[\"dist/**\"]}")
#define FILES(list) INPUTS("\"files\":" list)
#define OUTSIDE(files, workspace)                                                                  \
	CACHE("\"inputs\":{\"files\":[\"src/**\"]},\"outputs\":{\"files\":" files                  \
	      ",\"workspaceFiles\":" workspace "}")
#define OUTPUTS(list) CACHE("\"inputs\":{\"files\":[\"src/**\"]},\"outputs\":{\"files\":" list "}")
#define SANDBOX(body) EXEC("\"sandbox\":{" body "}")
#define READ(list) SANDBOX("\"allow\":{\"read\":" list "}")
#define DEPENDS(list) TASK("\"dependsOn\":" list)

static void
test_whole(void)
{
	static const char text[] =
		"{\n"
		"  \"$schema\": \"x\", // the schema\n"
		"  \"name\": \"app\",\n"
		"  \"dependencies\": [\"lib\", \"@s/util\"],\n"
		"  \"tags\": [\"web\"],\n"
		"  \"tasks\": {\n"
		"    \"build\": {\n"
		"      \"description\": \"makes it\",\n"
		"      \"exec\": {\n"
		"        \"command\": \"make\",\n"
		"        \"env\": { \"passThrough\": [\"HOME\"], \"define\": { \"A\": \"1\", "
		"\"B\": \"\" }, \"secret\": [\"S\"] },\n"
		"        \"timeout\": 60000, \"retries\": 2,\n"
		"        \"sandbox\": {\n"
		"          \"allow\": { \"read\": [\"src\", \"../lib/dist/**\", \"/opt/x//y/**\", "
		"\"~/.c\"],\n"
		"                     \"write\": [\"dist\"], \"systemInfo\": [\"hw\"], "
		"\"localBinding\": true },\n"
		"          \"deny\": { \"read\": [\"src/secret\"], \"write\": [] },\n"
		"        },\n"
		"      },\n"
		"      \"dependsOn\": [\"gen\", \"^build\", \"lib#build\", \"//#x\", \"gen.*\", "
		"\"^gen.*\"],\n"
		"      \"cache\": {\n"
		"        \"inputs\": { \"files\": [\"src/**\", \"!src/*.md\"], \"workspaceFiles\": "
		"[\"tsconfig.json\"],\n"
		"                    \"env\": [\"Z\", \"A\", \"Z\"] },\n"
		"        \"outputs\": { \"files\": [\"dist\"] },\n"
		"      },\n"
		"    },\n"
		"    \"all\": { \"dependsOn\": [] },\n"
		"  },\n"
		"}\n";
	struct projectdef p = accept(text);
	struct taskdef *t = p.tasks;

	ok_str(p.name, "app", "name");
	ok(p.ndependencies == 2 && !strcmp(p.dependencies[1], "@s/util"), "dependencies");
	ok(p.ntags == 1 && !strcmp(p.tags[0], "web"), "tags");
	ok_int((long long)p.ntasks, 2, "tasks, in the order of the file");
	ok_str(t->name, "build", "the first");
	ok_str(p.tasks[1].name, "all", "the second");
	ok_str(t->place, "p/vx.config.json:7:5", "its place");
	ok_str(p.tasks[1].place, "p/vx.config.json:26:5", "and that of the second");
	ok_str(t->description, "makes it", "description");
	ok_str(t->command, "make", "command");
	ok(t->npass_through == 1 && !strcmp(t->pass_through[0], "HOME"), "passThrough");
	ok(t->ndefine == 2 && !strcmp(t->define[0].name, "A") && !strcmp(t->define[0].value, "1") &&
			!*t->define[1].value,
		"define");
	ok_int((long long)t->timeout_ms, 60000, "timeout");
	ok(t->has_retries && t->retries == 2, "retries");
	ok(t->nsecret == 1 && !strcmp(t->secret[0], "S"), "secret");
	ok(t->sandbox && t->sandbox->nallow_read == 4 && t->sandbox->nallow_write == 1 &&
			t->sandbox->ndeny_read == 1 && t->sandbox->ndeny_write == 0,
		"grants");
	ok(glob_match(t->sandbox->allow_read[0].glob, "p/src/x"),
		"a grant is relative to the project");
	ok(glob_match(t->sandbox->allow_read[1].glob, "lib/dist/x"), "and may leave it");
	ok_str(t->sandbox->allow_read[1].text, "../lib/dist/**", "as written");
	ok_str(t->sandbox->allow_read[2].absolute, "/opt/x/y", "an absolute one");
	ok(!t->sandbox->allow_read[2].glob, "has no glob");
	ok_str(t->sandbox->allow_read[3].absolute, "~/.c", "one below the home");
	ok_int((long long)t->ndepends_on, 6, "dependsOn");
	ok(t->depends_on[0].form == DEP_SELF && !strcmp(t->depends_on[0].task, "gen"), "name");
	ok(t->depends_on[1].form == DEP_UPSTREAM && !strcmp(t->depends_on[1].task, "build"),
		"^name");
	ok(t->depends_on[2].form == DEP_PROJECT && !strcmp(t->depends_on[2].project, "lib") &&
			!strcmp(t->depends_on[2].task, "build"),
		"pkg#name");
	ok_str(t->depends_on[3].project, "//", "//#name");
	ok(t->depends_on[4].form == DEP_SELF && !strcmp(t->depends_on[4].task, "gen.*"), "name.*");
	ok(t->depends_on[5].form == DEP_UPSTREAM && !strcmp(t->depends_on[5].task, "gen.*"),
		"^name.*");
	ok(t->cache && globset_match(&t->cache->files, "p/src/a.c") &&
			!globset_match(&t->cache->files, "p/src/a.md"),
		"input files");
	ok(globset_match(&t->cache->workspace_files, "tsconfig.json"), "workspace files");
	ok(t->cache->nenv == 2 && !strcmp(t->cache->env[0], "A") && !strcmp(t->cache->env[1], "Z"),
		"env is sorted and unique");
	ok(globset_match(&t->cache->outputs, "p/dist/x"), "outputs");
	ok(!taskdef_leaves_project(t), "all in its project");
	ok(!p.tasks[1].command && !p.tasks[1].cache && p.tasks[1].ndepends_on == 0,
		"an empty group");
	ok_str(p.tasks[1].canonical, "{\"dependsOn\":[]}", "its canonical text");
}

static void
test_canonical(void)
{
	struct projectdef a =
		accept(TASK("\"exec\": {\"command\": \"\\u0061\", \"timeout\": 5}, /**/ "
			    "\"description\": \"\xc3\xa9\""));
	struct projectdef b = accept(
		TASK("\"description\":\"\\u00e9\",\"exec\":{\"timeout\":5,\"command\":\"a\"}"));

	ok_str(a.tasks[0].canonical,
		"{\"description\":\"\xc3\xa9\",\"exec\":{\"command\":\"a\",\"timeout\":5}}",
		"sorted");
	ok_str(b.tasks[0].canonical, a.tasks[0].canonical, "whatever the spelling");
}

static void
test_fields(void)
{
	check_refused("{\n \"tsks\": {}}",
		"p/vx.config.json:2:2: tsks: unknown field, did you mean "
		"'tasks'? allowed here: $schema, dependencies, name, tags, tasks");
	check_refused("{\"zzz\": 1}", "zzz: unknown field; allowed here: $schema,");
	check_refused("{\"TASKS\": {}}", "TASKS: unknown field, did you mean 'tasks'?");
	check_refused(TASK("\"DependsOn\":[]"), "did you mean 'dependsOn'?");
	check_refused(TASK("\"service\":true"), "tasks.t.service: write exec.persistent: {}");
	check_refused(TASK("\"continuous\":true"), "continuous: write exec.persistent: {}");
	check_refused(TASK("\"needs\":[\"a\"]"), "tasks.t.needs: write 'dependsOn'");
	check_refused(TASK("\"files\":[]"), "write cache.inputs: { \"files\": [ … ] }");
	check_refused(TASK("\"output\":[]"), "write cache.outputs: { \"files\": [ … ] }");
	check_refused(EXEC("\"retry\":1"), "exec.retry: write 'retries': how many times");
	check_refused(TASK("\"retry\":1"), "tasks.t.retry: write exec.retries: how many times");
	check_refused(
		TASK("\"retries\":1"), "tasks.t.retries: belongs in 'exec': write exec.retries");
	check_refused(TASK("\"secret\":[]"), "belongs in exec.env: write exec.env.secret");
	check_refused(EXEC("\"secret\":[]"), "belongs in 'env': write env.secret");
	check_refused(EXEC("\"sandbox\":[]"),
		"is an array: write an object with the fields allow, "
		"deny, hermetic, ignore, nested, view, weakerWhenNested");
	check_refused(SANDBOX("\"allow\":[]"), "the fields gitConfig, read, unixSockets, write");
	check_refused("[]", "p/vx.config.json:1:1: is an array: write an object with the fields");
	check_refused("{\"pipeline\": {}}", "pipeline: write 'tasks'");
	check_refused("{\"plugins\": []}", "plugins: is not in this vx");
	check_refused("{\"concurrency\": 1}", "belongs in vx.workspace.json");
	check_refused("{\"$schema\": 1}", "$schema: is a number: write a string");
	check_refused("{\"name\": 1}", "name: is a number: write a string");
	check_refused("{\"name\": \"\"}", "name: is empty");
	check_refused("{\"name\": \" a\"}", "name: begins or ends in a blank");
	check_refused("{\"name\": \"a#b\"}", "'#'");
	check_refused("{\"name\": \"//\"}", "stands for the root project");
	check_refused(
		"{\"dependencies\": {}}", "dependencies: is an object: write an array of strings");
	check_refused("{\"dependencies\": [\"a#b\"]}", "dependencies[0]: ");
	check_refused("{\"dependencies\": [1]}", "dependencies[0]: is a number");
	check_refused("{\"tags\": [\"a*\"]}", "tags[0]: a tag may hold no '*'");
	check_refused("{\"tags\": [\" a\"]}", "begins or ends in a blank");
	check_refused("{\"tags\": [\"a...\"]}", "'...'");
	check_refused("{\"tags\": [\"a[main]\"]}", "'[…]'");
	check_refused("{\"tags\": [\"a\\u0000b\"]}", "tags[0]: holds a NUL");
	check_refused("{\"tasks\": []}", "tasks: is an array: write an object { NAME: { … } }");
	check_refused(TASK("\"exec\":{\"command\":\"x\"},\"outputs\":[\"dist\"]"),
		"tasks.t.outputs: write cache.outputs: { \"files\": [ … ] }");
	check_refused(TASK("\"cmd\":\"x\""), "tasks.t.cmd: write exec: { \"command\"");
	check_refused(TASK("\"env\":[]"), "exec.env.passThrough");
	check_refused(TASK("\"interactive\":true"), "tasks.t.interactive: is not in this vx");
	check_accepted(EXEC("\"remote\":true"));
	check_refused(EXEC("\"remote\":1"),
		"tasks.t.exec.remote: is a number: write true, false or \"only\"");
	check_refused(EXEC("\"remote\":\"always\""),
		"tasks.t.exec.remote: is another string: write true, false or \"only\"");
	check_refused(EXEC("\"remote\":\"only\""),
		"tasks.t.exec.remote: \"only\" is for a task with results: write 'cache'");
	check_refused(EXEC("\"sandbox\":{},\"remote\":\"only\""),
		"tasks.t.exec.remote: a sandboxed task is executed by this machine");
	check_refused(TASK("\"remote\":true"), "tasks.t.remote: belongs in 'exec'");
	check_refused(EXEC("\"resources\":1"), "not in this vx: 'concurrency'");
	check_accepted(EXEC("\"retries\":0"));
	check_accepted(EXEC("\"retries\":1000"));
	check_refused(EXEC("\"retries\":1001"), "retries: write a whole number from 0 to 1000");
	check_refused(EXEC("\"retries\":-1"), "a whole number from 0");
	check_refused(EXEC("\"retries\":\"1\""), "a whole number from 0");
	check_accepted(EXEC("\"persistent\":{}"));
	check_accepted(EXEC("\"persistent\":{\"readyWhen\":\"on port \\\\d+\"}"));
	check_refused(EXEC("\"persistent\":true"),
		"tasks.t.exec.persistent: is true: write {}, or { \"readyWhen\": \"…\" }");
	check_refused(EXEC("\"persistent\":{\"ready\":\"x\"}"), "allowed here: readyWhen");
	check_refused(EXEC("\"persistent\":{\"readyWhen\":1}"), "readyWhen: is a number");
	check_refused(EXEC("\"persistent\":{\"readyWhen\":\"\"}"), "readyWhen: is empty");
	check_refused(EXEC("\"persistent\":{\"readyWhen\":\"up (now\"}"),
		"readyWhen: is no regular expression: at character 4: this parenthesis");
	check_refused(EXEC("\"persistent\":{\"readyWhen\":\"/up/i\"}"),
		"readyWhen: a regular expression is written without slashes around it and flags");
	check_refused(EXEC("\"persistent\":{\"readyWhen\":\"/up/\"}"), "write [/]");
	check_accepted(EXEC("\"persistent\":{\"readyWhen\":\"/bin/server is up\"}"));
	check_accepted(EXEC("\"persistent\":{\"readyWhen\":\"up|/health/\"}"));
	check_accepted(EXEC("\"persistent\":{\"readyWhen\":\"//\"}"));
	check_refused(
		TASK("\"exec\":{\"command\":\"x\",\"persistent\":{}},\"cache\":{\"inputs\":{},"
		     "\"outputs\":{\"files\":[]}}"),
		"tasks.t.cache: a persistent task has no result");
	check_refused(TASK("\"persistent\":{}"), "write exec.persistent: {}");
	check_refused(EXEC("\"readyWhen\":\"x\""), "write persistent.readyWhen");
	check_refused(EXEC("\"persistent\":{},\"retries\":0"),
		"tasks.t.exec.retries: a persistent task goes on until it is ended");
	check_refused(EXEC("\"timeot\":1"), "did you mean 'timeout'? allowed here: command, env, "
					    "persistent, remote, retries, sandbox, timeout");
	check_refused(EXEC("\"xx\":1"), "unknown field; allowed here: command");
	check_accepted(SANDBOX("\"hermetic\":true"));
	check_refused(SANDBOX("\"hermetic\":\"no\""), "hermetic: is a string: write true or false");
	check_accepted(SANDBOX("\"ignore\":{}"));
	check_accepted(SANDBOX("\"ignore\":{\"read\":[\"~/.ssh\",\"/x/y\",\"a/*.{b,c}\"],"
			       "\"systemInfo\":[\"x\"],\"network\":[\"h:80\"]}"));
	check_refused(SANDBOX("\"ignore\":[]"), "ignore: is an array: write an object with the "
						"fields read, write");
	check_refused(SANDBOX("\"ignore\":{\"reed\":[]}"), "did you mean 'read'?");
	check_refused(SANDBOX("\"ignore\":{\"write\":\"x\"}"), "write: is a string");
	check_refused(SANDBOX("\"ignore\":{\"write\":[\"!x\"]}"), "ignore.write[0]: '!x'");
	check_refused(SANDBOX("\"ignore\":{\"network\":true}"), "network: is true");
	check_refused(SANDBOX("\"ignore\":{\"systemInfo\":[1]}"), "systemInfo[0]: is a number");
	check_refused(SANDBOX("\"ignoer\":{}"), "did you mean 'ignore'?");
	check_refused(SANDBOX("\"read\":[]"), "write allow.read");
	check_refused(SANDBOX("\"gitConfig\":true"), "write allow.gitConfig");
	check_refused(SANDBOX("\"unixSockets\":true"), "write allow.unixSockets");
	check_refused(SANDBOX("\"allow\":{\"network\":true}"), "network: is not in this vx yet");
	check_refused(SANDBOX("\"allow\":{\"localBinding\":[80]}"), "ports is not in this vx yet");
	check_refused(SANDBOX("\"deny\":{\"network\":[]}"), "is not in this vx yet");
	check_refused(EXEC("\"sandbox\":true"), "is true: write {}");
	check_accepted(SANDBOX("\"allow\":{\"gitConfig\":true,\"pty\":true,\"localBinding\":true,"
			       "\"systemInfo\":[\"kern.x\"]}"));
	check_refused(SANDBOX("\"allow\":{\"gitConfig\":\"yes\"}"),
		"allow.gitConfig: is a string: write true or false");
	check_refused(SANDBOX("\"allow\":{\"gitconfig\":true}"), "did you mean 'gitConfig'?");
	check_refused(SANDBOX("\"allow\":{\"pty\":1}"), "allow.pty: is a number");
	check_refused(SANDBOX("\"allow\":{\"machLookup\":true}"), "allow.machLookup: is true");
	check_refused(SANDBOX("\"allow\":{\"systemInfo\":{}}"), "allow.systemInfo: is an object");
	check_refused(SANDBOX("\"allow\":{\"localBinding\":\"x\"}"), "localBinding: is a string");
	check_refused(SANDBOX("\"weakerNetworkIsolation\":0"), "Isolation: is a number");
	check_accepted(SANDBOX("\"allow\":{\"unixSockets\":true}"));
	check_accepted(SANDBOX("\"allow\":{\"unixSockets\":[\"/run/x\",\"~/y\",\"z\"]}"));
	check_refused(SANDBOX("\"allow\":{\"unixSockets\":\"x\"}"),
		"unixSockets: is a string: write true, or the paths");
	check_refused(SANDBOX("\"allow\":{\"unixSockets\":[\"*.sock\"]}"),
		"unixSockets: '*.sock': write the path of each socket");
	check_refused(SANDBOX("\"allow\":{\"unixSockets\":[1]}"), "unixSockets[0]: is a number");
	check_refused(SANDBOX("\"allow\":{\"unixsockets\":1}"), "did you mean 'unixSockets'?");
	check_accepted(SANDBOX("\"nested\":true,\"weakerWhenNested\":false"));
	check_refused(SANDBOX("\"nested\":[]"), "nested: is an array: write true or false");
	check_refused(
		SANDBOX("\"weakerWhenNested\":1"), "Nested: is a number: write true or false");
	check_accepted(SANDBOX("\"view\":\"transaction\""));
	check_accepted(SANDBOX("\"view\":\"live\""));
	check_accepted(EXEC("\"sandbox\":{\"view\":\"live\"},\"persistent\":{}"));
	check_refused(EXEC("\"sandbox\":{\"view\":\"transaction\"},\"persistent\":{}"),
		"exec.sandbox.view: a persistent task has no end");
	check_refused(SANDBOX("\"view\":\"live\\u0000\""), "view: is a string");
	check_refused(SANDBOX("\"view\":\"lvie\""), "view: 'lvie': write \"transaction\" or "
						    "\"live\", did you mean 'live'?");
	check_refused(SANDBOX("\"view\":true"), "view: is true: write \"transaction\"");
	check_refused(
		TASK("\"exec\":{\"command\":\"x\",\"sandbox\":{\"view\":\"live\"}},\"cache\":{"
		     "\"inputs\":{\"files\":[]},\"outputs\":{\"files\":[]}}"),
		"tasks.t.cache: a task with the live view");
	check_accepted(
		SANDBOX("\"weakerNetworkIsolation\":true,\"allow\":{\"machLookup\":[\"x\"]}"));
	check_accepted(SANDBOX(""));
}

#define NEEDS(deps, list)                                                                          \
	TASK("\"exec\":{\"command\":\"true\"},\"dependsOn\":" deps                                 \
	     ",\"cache\":{\"inputs\":{\"files\":[],\"tasks\":" list                                \
	     "},\"outputs\":{\"files\":[]}}")

/* Which of "own", "^other", "lib#x" … a list folds. */
static bool
folds(const char *list, bool own, const char *project, const char *task)
{
	cleanup_free char *text = xasprintf(
		NEEDS("[\"gen\",\"gen.*\",\"^build\",\"lib#x\",\"//#setup\"]", "%s"), list);
	struct projectdef p = accept(text);
	const struct cachedef *c = p.ntasks ? p.tasks[0].cache : NULL;

	return c &&
	       upstream_folds(c->tasks, c->ntasks, own, !strcmp(project, "root"), project, task);
}

/* What other runners call it, or where else it stands. */
static void
test_foreign(void)
{
	check_refused("{\"env\": []}", "env: belongs to a task: write tasks.NAME.exec.env");
	check_refused(
		"{\"inputs\": []}", "inputs: belongs to a task: write tasks.NAME.cache.inputs");
	check_refused(
		"{\"outputs\": []}", "outputs: belongs to a task: write tasks.NAME.cache.outputs");
	check_refused("{\"exec\": {}}", "exec: belongs to a task: write it in tasks.NAME");
	check_refused(TASK("\"args\": []"), "tasks.t.args: write them into exec.command");
	check_refused(
		TASK("\"configurations\": {}"), "tasks.t.configurations: write one task for each");
	check_refused(TASK("\"dependencies\": []"), "tasks.t.dependencies: write 'dependsOn'");
	check_refused(TASK("\"deps\": []"), "tasks.t.deps: write 'dependsOn'");
	check_refused(
		TASK("\"sandbox\": {}"), "tasks.t.sandbox: belongs in 'exec': write exec.sandbox");
	check_refused(
		TASK("\"timeout\": 1"), "tasks.t.timeout: belongs in 'exec': write exec.timeout");
	check_refused(EXEC("\"args\": []"), "tasks.t.exec.args: write them into 'command'");
	check_refused(EXEC("\"cache\": {}"), "tasks.t.exec.cache: belongs beside 'exec'");
	check_refused(EXEC("\"dependsOn\": []"), "tasks.t.exec.dependsOn: belongs beside 'exec'");
	check_refused(EXEC("\"cmd\": \"\""), "tasks.t.exec.cmd: write 'command'");
	check_refused(
		EXEC("\"define\": {}"), "tasks.t.exec.define: belongs in 'env': write env.define");
	check_refused(EXEC("\"passThrough\": []"),
		"tasks.t.exec.passThrough: belongs in 'env': write env.passThrough");
	check_refused(
		EXEC("\"shell\": \"bash\""), "tasks.t.exec.shell: commands are run by 'sh -c'");
	check_refused(EXEC("\"sandbox\": {\"network\": true}"),
		"sandbox.network: belongs in 'allow': write allow.network");
	check_refused(EXEC("\"sandbox\": {\"read\": []}"),
		"sandbox.read: belongs in 'allow': write allow.read");
	check_refused(EXEC("\"sandbox\": {\"write\": []}"),
		"sandbox.write: belongs in 'allow': write allow.write");
	check_refused(EXEC("\"sandbox\": {\"pty\": true}"),
		"sandbox.pty: belongs in 'allow': write allow.pty");
	check_refused(EXEC("\"sandbox\": {\"gitConfig\": true}"),
		"sandbox.gitConfig: belongs in 'allow': write allow.gitConfig");
	check_refused(EXEC("\"sandbox\": {\"unixSockets\": true}"),
		"sandbox.unixSockets: belongs in 'allow': write allow.unixSockets");
	check_refused(
		CACHE("\"env\": []"), "tasks.t.cache.env: belongs in 'inputs': write inputs.env");
	check_refused(INPUTS("\"globs\": []"), "tasks.t.cache.inputs.globs: write 'files'");
	check_refused(CACHE("\"inputs\":{\"files\":[]},\"outputs\":{\"globs\":[]}"),
		"tasks.t.cache.outputs.globs: write 'files'");
	check_refused(CACHE("\"inputs\":{\"files\":[]},\"outputs\":{\"logs\":true}"),
		"tasks.t.cache.outputs.logs: what a task prints is always stored: leave it out");
}

/* What is not there, and what no text may hold. */
static void
test_absent(void)
{
	check_refused(INPUTS("\"env\": []"),
		"tasks.t.cache.inputs.files: is missing: write the patterns, or an empty list");
	check_refused(CACHE("\"inputs\":{\"files\":[]},\"outputs\":{}"),
		"tasks.t.cache.outputs.files: is missing: write the patterns, or an empty list");
	check_refused(TASK("\"exec\": {}"),
		"tasks.t.exec.command: is missing: write what 'sh -c' is to run");
	check_refused(TASK("\"description\": \"\\u0000\", \"dependsOn\": []"),
		"tasks.t.description: holds a NUL (\\u0000): leave it out");
	check_refused(EXEC("\"env\": {\"define\": {\"A\": \"\\u0000\"}}"),
		"tasks.t.exec.env.define.A: holds a NUL (\\u0000): leave it out");
	check_refused("{\"name\": \"a\\u0000\"}", "name: holds a NUL (\\u0000): leave it out");
	check_refused(INPUTS("\"files\":[],\"tasks\":[\"!!x\"]"),
		"tasks.t.cache.inputs.tasks[0]: '!!x': write one '!', or none");
	check_refused(EXEC("\"sandbox\": {\"allow\": {\"unixSockets\": 1}}"),
		"unixSockets: is a number: write true, or the paths of the sockets");
	check_refused(EXEC("\"sandbox\": {\"allow\": {\"unixSockets\": [\"a*\"]}}"),
		"'a*': write the path of each socket, no pattern");
}

static void
test_upstream(void)
{
	struct projectdef p = accept(FILES("[]"));

	ok(p.ntasks && !p.tasks[0].cache->tasks, "not written");
	ok(!folds("[]", true, "me", "gen") && !folds("[]", false, "lib", "build"),
		"an empty list folds nothing");
	ok(folds("[\"*\"]", true, "me", "gen") && !folds("[\"*\"]", false, "lib", "build"),
		"* is all of this project");
	ok(folds("[\"^*\"]", false, "lib", "build") && folds("[\"^*\"]", false, "lib", "x") &&
			!folds("[\"^*\"]", true, "me", "gen"),
		"^* is all of others");
	ok(folds("[\"gen\"]", true, "me", "gen") && !folds("[\"gen\"]", true, "me", "gen.a") &&
			!folds("[\"gen\"]", false, "lib", "gen"),
		"a name");
	ok(folds("[\"gen.a\"]", true, "me", "gen.a"), "one that a pattern of dependsOn means");
	ok(folds("[\"^b*d\"]", false, "lib", "build") && !folds("[\"^b*d\"]", false, "lib", "x"),
		"a pattern");
	ok(folds("[\"lib#x\"]", false, "lib", "x") && !folds("[\"lib#x\"]", false, "util", "x"),
		"a task of a project");
	ok(folds("[\"lib#build\"]", false, "lib", "build") &&
			!folds("[\"lib#build\"]", false, "util", "build"),
		"one of those that ^build means");
	ok(folds("[\"l*#*\"]", false, "lib", "x") && !folds("[\"l*#*\"]", false, "util", "x"),
		"patterns in both halves");
	ok(folds("[\"//#setup\"]", false, "root", "setup") &&
			folds("[\"r*#setup\"]", false, "root", "setup"),
		"the root project by either name");
	ok(!folds("[\"*\",\"^*\",\"!lib#x\"]", false, "lib", "x") &&
			folds("[\"*\",\"^*\",\"!lib#x\"]", false, "lib", "build"),
		"an exception");
	ok(folds("[\"^*\",\"!lib#*\",\"lib#x\"]", false, "lib", "x"), "the last one decides");

	check_refused(NEEDS("[\"gen\"]", "{}"), "tasks: is an object: write an array");
	check_refused(NEEDS("[\"gen\"]", "[\"build\"]"),
		"cache.inputs.tasks[0]: 'build' names nothing in 'dependsOn'");
	check_refused(NEEDS("[\"gen\"]", "[\"*\",\"!build\"]"), "tasks[1]: '!build' names nothing");
	check_refused(NEEDS("[\"build\"]", "[\"^build\"]"), "'^build' names nothing");
	check_refused(NEEDS("[\"^build\"]", "[\"build\"]"), "'build' names nothing");
	check_refused(NEEDS("[\"lib#build\"]", "[\"^build\"]"), "'^build' names nothing");
	check_refused(NEEDS("[\"lib#build\"]", "[\"app#build\"]"), "'app#build' names nothing");
	check_refused(NEEDS("[]", "[\"build\"]"), "'build' names nothing");
	check_refused(NEEDS("[\"gen\"]", "[\"!*\"]"), "holds only '!' entries");
	check_refused(NEEDS("[\"gen\"]", "[\"!!gen\"]"), "write one '!'");
	check_refused(NEEDS("[\"gen\"]", "[\"^\"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(NEEDS("[\"gen\"]", "[\"!\"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(NEEDS("[\"gen\"]", "[\"#gen\"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(NEEDS("[\"gen\"]", "[\"a#\"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(NEEDS("[\"gen\"]", "[\"a#b#c\"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(NEEDS("[\"gen\"]", "[\"gen \"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(NEEDS("[\"gen\"]", "[\"^a#gen\"]"), "write 'a#gen' for one project");
	check_refused(NEEDS("[\"gen\"]", "[\"$MODE\"]"), "belongs in cache.inputs.env");
	check_accepted(NEEDS("[]", "[\"*\",\"^*\",\"none.*\"]"));
}

static void
test_runtime(void)
{
	struct projectdef p = accept(INPUTS("\"files\":[],\"runtime\":[\"b\",\"a  x\",\"b\"],"
					    "\"workspaceRuntime\":[\"b\"]"));
	const struct cachedef *c = p.ntasks ? p.tasks[0].cache : NULL;

	ok(c && c->nruntime == 2 && c->nworkspace_runtime == 1, "commands, each once");
	ok_str(c ? c->runtime[0] : "", "a  x", "sorted, as they are written");
	check_refused(
		INPUTS("\"files\":[],\"runtime\":\"a\""), "runtime: is a string: write an array");
	check_refused(INPUTS("\"files\":[],\"runtime\":[\" \"]"), "runtime[0]: is only blanks");
	check_refused(INPUTS("\"files\":[],\"workspaceRuntime\":[\"a\\u0000b\"]"),
		"workspaceRuntime[0]: holds a NUL");
	check_refused(INPUTS("\"files\":[],\"runtime\":[1]"), "runtime[0]: is a number");
	check_accepted(INPUTS("\"files\":[],\"runtime\":[],\"workspaceRuntime\":[]"));
}

static void
test_task(void)
{
	check_refused("{\"tasks\":{\"\":{}}}",
		"p/vx.config.json:1:11: tasks[\"\"]: a task's name is empty");
	check_refused("{\"tasks\":{\" a\":{}}}", "begin or end in a blank");
	check_refused("{\"tasks\":{\"a#b\":{}}}", "no '#'");
	check_refused("{\"tasks\":{\"a*\":{}}}", "no '*'");
	check_refused("{\"tasks\":{\"^a\":{}}}", "'^' or '!'");
	check_refused("{\"tasks\":{\"!a\":{}}}", "'^' or '!'");
	check_refused("{\"tasks\":{\"a\\nb\":{}}}", "no control character");
	check_refused("{\"tasks\":{\"a\\u009b\":{}}}", "no control character");
	check_refused("{\"tasks\":{\"a\":\"make\"}}", "tasks.a: is a string: write { \"exec\": {");
	check_refused("{\"tasks\":{\"a\":[]}}",
		"tasks.a: is an array: write an object with the fields "
		"cache, dependsOn, description, exec");
	check_refused(TASK(""), "tasks.t: has neither 'exec' nor 'dependsOn'");
	check_refused(TASK("\"dependsOn\":[],\"cache\":{}"), "tasks.t.cache: a group runs nothing");
	check_refused(TASK("\"dependsOn\":[],\"description\":1"), "description: is a number");
	check_refused(
		TASK("\"dependsOn\":[],\"description\":\"\\u0000\""), "description: holds a NUL");
	check_refused(TASK("\"exec\":\"make\""), "is a string: write { \"command\": \"…\" }");
	check_refused(TASK("\"exec\":{}"), "tasks.t.exec.command: is missing");
	check_refused(TASK("\"exec\":{\"command\":[\"a\"]}"),
		"exec.command: is an array: write a string");
	check_refused(TASK("\"exec\":{\"command\":\" \\n\"}"), "exec.command: is only blanks");
	check_refused(TASK("\"exec\":{\"command\":\"a\\u0000\"}"), "exec.command: holds a NUL");
	check_refused(EXEC("\"timeout\":0"), "from 1 to 2147483647");
	check_refused(EXEC("\"timeout\":2147483648"), "from 1 to 2147483647");
	check_refused(EXEC("\"timeout\":1.5"), "a whole number of milliseconds");
	check_refused(EXEC("\"timeout\":\"5s\""), "a whole number of milliseconds");
	check_accepted(EXEC("\"timeout\":2147483647"));
	check_refused(EXEC("\"env\":[\"A\"]"), "is an array: write { \"passThrough\": [ … ] }");
	check_refused(EXEC("\"env\":{\"FOO\":\"1\"}"), "write \"define\": { \"FOO\": … }");
	check_refused(EXEC("\"env\":{\"FOO\":1}"), "unknown field");
	check_refused(EXEC("\"env\":{\"passThrough\":[\"A*\"]}"), "wildcards are not allowed");
	check_refused(EXEC("\"env\":{\"passThrough\":[\"!A\"]}"), "'!A': leave it out");
	check_refused(EXEC("\"env\":{\"passThrough\":[\"A=1\"]}"), "write values in 'define'");
	check_refused(EXEC("\"env\":{\"passThrough\":[\"1A\"]}"), "is no variable name");
	check_accepted(EXEC("\"env\":{\"secret\":[\"npm_config_//r/:_auth\"]}"));
	check_refused(EXEC("\"env\":{\"secret\":[\"A*\"]}"), "wildcards are not allowed");
	check_refused(EXEC("\"env\":{\"secret\":[\"!A\"]}"), "wildcards are not allowed");
	check_refused(EXEC("\"env\":{\"secret\":[\"A=1\"]}"), "'A=1': write the name alone");
	check_refused(EXEC("\"env\":{\"secret\":\"A\"}"), "secret: is a string");
	check_refused(EXEC("\"env\":{\"define\":[]}"), "define: is an array: write an object");
	check_refused(EXEC("\"env\":{\"define\":{\"A B\":\"1\"}}"),
		"define[\"A B\"]: is no variable name");
	check_refused(
		EXEC("\"env\":{\"define\":{\"A\":1}}"), "define.A: is a number: write a string");
	check_refused(EXEC("\"env\":{\"define\":{\"A\":\"\\u0000\"}}"), "define.A: holds a NUL");
}

static void
test_depends_on(void)
{
	check_refused(DEPENDS("\"build\""), "dependsOn: is a string: write an array");
	check_refused(
		DEPENDS("[{\"target\":\"x\"}]"), "dependsOn[0]: is an object: write \"NAME\"");
	check_refused(DEPENDS("[\"a\",1]"), "dependsOn[1]: is a number");
	check_refused(DEPENDS("[\"\"]"), "dependsOn[0]: is empty");
	check_refused(DEPENDS("[\" a\"]"), "a blank");
	check_refused(DEPENDS("[\"*\"]"), "'*' is every task");
	check_refused(DEPENDS("[\"^*\"]"), "'^*' is every task");
	check_refused(DEPENDS("[\"^\"]"), "'^' alone names no task");
	check_refused(DEPENDS("[\"^^a\"]"), "may not begin with");
	check_refused(DEPENDS("[\"^!a*\"]"), "write NAME, ^NAME or PROJECT#NAME");
	check_refused(DEPENDS("[\"!a\"]"), "exceptions exist only in filters");
	check_refused(DEPENDS("[\"$HOME\"]"), "cache.inputs.env");
	check_refused(DEPENDS("[\"^a#b\"]"), "write 'a#b' for one project, '^b'");
	check_refused(DEPENDS("[\"#b\"]"), "write 'b' for a task of this project");
	check_refused(DEPENDS("[\"a#\"]"), "'a#': a task's name is empty");
	check_refused(DEPENDS("[\"a#b#c\"]"), "no '#'");
	check_refused(DEPENDS("[\"a#b.*\"]"), "patterns are allowed without a project only");
	check_refused(DEPENDS("[\"*#b\"]"), "patterns are allowed without a project only");
	check_accepted(DEPENDS("[\"a:b\", \"@s/p#t\", \"gen*x\", \"^*x\"]"));
}

#define BOTH(inputs, outputs) CACHE("\"inputs\":{" inputs "},\"outputs\":{\"files\":[" outputs "]}")
#define ALL "\"**\",\"!package.json\",\"!vx.config.*\""

/* Outputs that take in what the task declares to read. */
static void
test_swallowed(void)
{
	check_refused(OUTPUTS("[\"**\"]"),
		"'**' selects the project's own package.json: write a narrower pattern, or add "
		"'!package.json' (everything that outputs select is deleted before the task runs)");
	check_refused(OUTPUTS("[" ALL "]"),
		"tasks.t.cache.inputs.files[0]: 'src/**' selects nothing but the task's own "
		"outputs "
		"('**'), which are never inputs and are deleted before it runs: if the task makes "
		"these files, leave it out here; if they are sources, name the outputs more "
		"narrowly, or take them back there ('!…')");
	check_refused(BOTH("\"files\":[\"**\"]", ALL), "files[0]: '**' selects nothing but");
	check_refused(BOTH("\"files\":[\"in.txt\"]", ALL), "'in.txt' selects nothing but");
	check_refused(BOTH("\"files\":[\"*.c\"]", ALL), "'*.c' selects nothing but");
	check_refused(BOTH("\"files\":[\"a/*.c\"]", "\"**/*.c\""), "'a/*.c' selects nothing but");
	check_refused(BOTH("\"files\":[\"{a,b}/*.c\"]", "\"a\",\"b\""), "selects nothing but");
	check_refused(
		BOTH("\"files\":[\"src/**\"]", ALL ",\"!doc/**\""), "'src/**' selects nothing but");
	check_refused(BOTH("\"files\":[],\"workspaceFiles\":[\"gen/a\"]",
			      "],\"workspaceFiles\":[\"gen/**\""),
		"inputs.workspaceFiles[0]: 'gen/a' selects nothing but the task's own outputs");
	check_refused(BOTH("\"files\":[\"gen/a\"]", "],\"workspaceFiles\":[\"p/gen/**\""),
		"inputs.files[0]: 'gen/a' selects nothing but the task's own outputs");
	/* Whether a project inside holds it is not known here. */
	check_accepted(BOTH("\"files\":[],\"workspaceFiles\":[\"p/lib/a\"]", ALL));
	check_accepted(BOTH("\"files\":[\"src/**\",\"package.json\"]", ALL ",\"!src/**\""));
	check_accepted(BOTH("\"files\":[\"**\"]", ALL ",\"!src/**\""));
	check_accepted(BOTH("\"files\":[\"**\"]", "\"dist/**\",\"**/*.gen.ts\""));
	check_accepted(BOTH("\"files\":[\"{src,dist}/**\"]", "\"dist/**\""));
}

static void
test_cache(void)
{
	check_refused(TASK("\"exec\":{\"command\":\"x\"},\"cache\":false"),
		"is false: leave 'cache' out");
	check_refused(
		TASK("\"exec\":{\"command\":\"x\"},\"cache\":true"), "is true: write { \"inputs\"");
	check_refused(CACHE("\"outputs\":{\"files\":[]}"), "tasks.t.cache.inputs: is missing");
	check_refused(CACHE("\"inputs\":{\"files\":[]}"), "tasks.t.cache.outputs: is missing");
	check_refused(
		CACHE("\"inputs\":{},\"outputs\":{\"files\":[]}"), "inputs.files: is missing");
	check_refused(
		CACHE("\"inputs\":{\"files\":[]},\"outputs\":{}"), "outputs.files: is missing");
	check_refused(CACHE("\"inputs\":{\"files\":[]},\"outputs\":[\"dist/**\"]"),
		"cache.outputs: is an array: write { \"files\": [ … ] }");
	check_refused(CACHE("\"files\":[]"), "write inputs.files for what the task reads");
	check_refused(FILES("\"src\""), "inputs.files: is a string: write an array of patterns");
	check_refused(FILES("[\"a\",{}]"), "inputs.files[1]: is an object");
	check_refused(FILES("[\"../x\"]"), "inputs.files[0]: '../x': '..' leaves the project");
	check_refused(FILES("[\"!a\"]"), "inputs.files: holds only '!' entries");
	check_refused(FILES("[\"a\",\"!!b\"]"), "inputs.files[1]: '!b': only one '!'");
	check_refused(FILES("[\"a\",\"!\"]"), "a pattern is empty");
	check_refused(FILES("[\"!(a)\"]"), "extended globs");
	check_refused(FILES("[\"!src/**\",\"b/**\",\"src/a.c\"]"),
		"inputs.files[2]: 'src/a.c': a '!' entry of this list takes it back");
	check_refused(INPUTS("\"files\":[],\"workspaceFiles\":[\"a.json\",\"!*.json\"]"),
		"inputs.workspaceFiles[0]: 'a.json'");
	check_refused(INPUTS("\"files\":[],\"workspaceFiles\":[\"../a\"]"), "leaves the workspace");
	check_refused(OUTPUTS("[\"../b/out\"]"),
		"outputs.files[0]: '../b/out': '..' leaves the project: list it in workspaceFiles");
	check_refused(OUTPUTS("[\"$TURBO_ROOT$/out\"]"), "list it in workspaceFiles");
	check_refused(FILES("[\"src/**\",\"dist/*.js\"]"),
		"inputs.files[1]: 'dist/*.js' selects nothing but the task's own outputs");
	check_accepted(FILES("[\"**\",\"src\",\"!src/gen/**\"]"));
	check_accepted(OUTPUTS("[\"dist/**\",\"!dist/cache/**\"]"));
	check_refused(OUTPUTS("[\"dist\",\"**\"]"),
		"outputs.files[1]: '**' selects the project's own package.json");
	check_refused(OUTPUTS("[\"**\",\"!package.json\"]"), "own vx.config.json");
	check_refused(OUTPUTS("[\"vx.config.{ts,js}\"]"), "own vx.config.ts");
	check_accepted(OUTSIDE("[\"dist/**\"]", "[\"gen/p/**\",\"!gen/p/x\",\"q/dist\"]"));
	check_refused(OUTSIDE("[]", "[\"../x\"]"),
		"outputs.workspaceFiles[0]: '../x': '..' leaves the workspace");
	check_refused(OUTSIDE("[]", "[\"!x\"]"), "outputs.workspaceFiles: holds only '!' entries");
	check_refused(OUTSIDE("[]", "[\"gen\",\"p\"]"),
		"outputs.workspaceFiles[1]: 'p' selects the project's own package.json");
	check_refused(OUTSIDE("[]", "[\"**/*.json\",\"!**/package.json\"]"),
		"outputs.workspaceFiles[0]: '**/*.json' selects the project's own vx.config.json");
	check_refused(OUTSIDE("[]", "[\"*.json\"]"),
		"'*.json' selects the workspace's own vx.workspace.json");
	check_refused(OUTSIDE("[]", "[\"vx.c*.json\"]"),
		"selects the workspace's own vx.config.json: write a narrower pattern, or add");
	check_refused(OUTSIDE("[]", "[\"vx.w*.json\"]"), "the workspace's own vx.workspace.json");
	check_refused(OUTSIDE("[\"**\",\"!package.json\",\"!vx.config.*\",\"!vx.workspace.*\"]",
			      "[\"p/*.json\"]"),
		"outputs.workspaceFiles[0]: 'p/*.json' selects the project's own");
	check_refused(INPUTS("\"files\":[],\"env\":[\"A=1\"]"),
		"inputs.env[0]: 'A=1': write the name alone");
	check_refused(INPUTS("\"files\":[],\"env\":[\"A_*\"]"), "wildcards are not allowed");
	check_refused(INPUTS("\"files\":[],\"env\":[\"\"]"), "is empty");
}

static void
test_grants(void)
{
	struct projectdef p =
		accept(READ("[\"/opt/{a,b}\", \"~\", \"/\", \"~/**\", \"\\\\[id\\\\]\", \".\"]"));
	struct grant *g = p.tasks[0].sandbox->allow_read;

	ok_int((long long)p.tasks[0].sandbox->nallow_read, 7,
		"a grant for each alternative outside");
	ok_str(g[0].absolute, "/opt/a", "the first");
	ok_str(g[1].absolute, "/opt/b", "the second");
	ok_str(g[1].text, "/opt/{a,b}", "as written");
	ok_str(g[2].absolute, "~", "the home");
	ok_str(g[3].absolute, "/", "the root");
	ok_str(g[4].absolute, "~", "the home with all below");
	ok(glob_match(g[5].glob, "p/[id]/x"), "escapes");
	ok(glob_match(g[6].glob, "p/x") && !glob_match(g[6].glob, "q"), "the project");
	p = accept(READ("[\"~/$x\", \"/^x\", \"./$x\"]"));
	g = p.tasks[0].sandbox->allow_read;
	ok_str(g[0].absolute, "~/$x", "below the home a name may begin with anything");
	ok_str(g[1].absolute, "/^x", "and at the root");
	ok(glob_match(g[2].glob, "p/$x"), "in the project behind ./");
	check_refused(READ("[\"$HOME/x\"]"),
		"allow.read[0]: '$HOME/x': no variables are put in: write the path itself");
	check_refused(READ("\"src\""), "allow.read: is a string: write an array");
	check_refused(READ("[\"\"]"), "allow.read[0]: is empty");
	check_refused(READ("[\"!x\"]"), "grants have no '!' entries: write it in 'deny'");
	check_refused(READ("[\"../../x\"]"),
		"allow.read[0]: '../../x': leaves the workspace: write its "
		"absolute path");
	check_refused(READ("[\"/opt/*\"]"), "wildcards in absolute paths are not in this vx yet");
	check_refused(
		READ("[\"/opt/../x\"]"), "allow.read[0]: '/opt/../x': write the path without '..'");
	check_refused(READ("[\"~user/x\"]"), "write '~/…' for the home directory");
	check_refused(READ("[\"{a}\"]"), "one alternative");
}

static void
test_nearest(void)
{
	static const char *const names[] = {"command", "env", "timeout"};
	const char *const likely[] = {"tags", "tasks", "name"};

	ok_str(nearest_name("comand", names, 3), "command", "one letter is missing");
	ok_str(nearest_name("timeuot", names, 3), "timeout", "two letters are swapped");
	ok_str(nearest_name("cmmnd", names, 3), "command", "two edits");
	ok(!nearest_name("cmmn", names, 3), "three are too many");
	ok(!nearest_name("xy", names, 3), "a short word is like nothing");
	ok_str(nearest_name("evn", names, 3), "env", "but for a swap");
	ok_str(nearest_name("TIMEOUT", names, 3), "timeout", "the case of letters does not matter");
	ok_str(nearest_name("taks", likely, 3), "tasks",
		"of two equals the one that lacks a letter");
}

int
main(void)
{
	arena_init(&arena);
	test_whole();
	test_canonical();
	test_fields();
	test_foreign();
	test_absent();
	test_upstream();
	test_runtime();
	test_task();
	test_depends_on();
	test_cache();
	test_swallowed();
	test_grants();
	test_nearest();
	arena_release(&arena);
	return tap_done();
}
