/* SPDX-License-Identifier: MIT */
/* The run layer over a fake executor: order, limits, hits, failures, stops. */
#include "cache/history.h"
#include "cache/store.h"
#include "graph/order.h"
#include "graph/select.h"
#include "run/report.h"
#include "run/sched.h"
#include "tests/fake/fake-exec.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/fs.h"
#include "util/loop.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include "workspace/root.h"
#include "workspace/workspace.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void
put(const char *path, const char *text)
{
	cleanup_strbuf struct strbuf full = STRBUF_INIT;
	char *slash;
	FILE *f;

	strbuf_addf(&full, "%s/%s", dir, path);
	for (slash = full.buf + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full.buf, 0755);
		*slash = '/';
	}
	f = fopen(full.buf, "w");
	fputs(text, f);
	fclose(f);
}

static bool
has(const char *path)
{
	cleanup_strbuf struct strbuf full = STRBUF_INIT;

	strbuf_addf(&full, "%s/%s", dir, path);
	return !access(full.buf, F_OK);
}

static void
drop(const char *path)
{
	cleanup_strbuf struct strbuf full = STRBUF_INIT;

	strbuf_addf(&full, "%s/%s", dir, path);
	unlink(full.buf);
}

/* a <- b <- c, and x alone: build makes dist/out, test needs build. */
static void
make_workspace(void)
{
	static const char *const names[] = {"a", "b", "c", "x"};

	snprintf(dir, sizeof(dir), "/var/tmp/vx-test-sched.XXXXXX");
	if (!mkdtemp(dir))
		abort();
	put("vx.workspace.json", "{\"projects\": [\"packages/*\"]}\n");
	for (size_t i = 0; i < array_len(names); i++) {
		cleanup_strbuf struct strbuf p = STRBUF_INIT, text = STRBUF_INIT;

		strbuf_addf(&p, "packages/%s/vx.config.json", names[i]);
		strbuf_addf(&text,
			"{\"name\": \"%s\", \"dependencies\": [%s%s%s],\n"
			"\"tasks\": {\"build\": {\"exec\": {\"command\": \"make\"},\n"
			" \"dependsOn\": [\"^build\"],\n"
			" \"cache\": {\"inputs\": {\"files\": [\"src/**\"]},\n"
			"  \"outputs\": {\"files\": [\"dist/**\"]}}},\n"
			"\"db\": {\"exec\": {\"command\": \"db\", \"persistent\": {}}},\n"
			"\"api\": {\"exec\": {\"command\": \"api\", \"persistent\": {}}, "
			"\"dependsOn\": [\"db\"]},\n"
			"\"dev\": {\"exec\": {\"command\": \"dev\", \"persistent\": {}}, "
			"\"dependsOn\": [\"prep\"]},\n"
			"\"prep\": {\"exec\": {\"command\": \"prep\"}, \"dependsOn\": "
			"[\"api\"]},\n"
			"\"up\": {\"dependsOn\": [\"api\"]},\n"
			"\"e2e\": {\"exec\": {\"command\": \"e2e\"}, \"dependsOn\": [\"up\"],\n"
			" \"cache\": {\"inputs\": {\"files\": [\"src/**\"]},\n"
			"  \"outputs\": {\"files\": [\"e2e/**\"]}}},\n"
			"\"test\": {\"exec\": {\"command\": \"check\"}, \"dependsOn\": "
			"[\"build\"]},\n"
			"\"all\": {\"dependsOn\": [\"build\"]},\n"
			"\"free\": {\"exec\": {\"command\": \"free\"}, \"dependsOn\": "
			"[\"build\"],\n"
			" \"cache\": {\"inputs\": {\"files\": [\"free/**\"], \"tasks\": []},\n"
			"  \"outputs\": {\"files\": [\"out/**\"]}}},\n"
			"\"flaky\": {\"exec\": {\"command\": \"flaky\", \"retries\": 3}},\n"
			"\"bad\": {\"exec\": {\"command\": \"bad\", \"retries\": 0}},\n"
			"\"ask\": {\"exec\": {\"command\": \"ask\"},\n"
			" \"cache\": {\"inputs\": {\"files\": [],\n"
			"  \"runtime\": [\"p1\", \"p2\"], \"workspaceRuntime\": [\"w\"]},\n"
			"  \"outputs\": {\"files\": []}}},\n"
			"\"mid\": {\"exec\": {\"command\": \"mid\"}, \"dependsOn\": [\"build\"],\n"
			" \"cache\": {\"inputs\": {\"files\": [], \"runtime\": [\"m\"]},\n"
			"  \"outputs\": {\"files\": []}}},\n"
			"\"end\": {\"exec\": {\"command\": \"end\"}, \"dependsOn\": [\"mid\"]},\n"
			"\"late\": {\"exec\": {\"command\": \"late\"}, \"dependsOn\": "
			"[\"build\"],\n"
			" \"cache\": {\"inputs\": {\"files\": [], \"tasks\": [], \"runtime\": "
			"[\"p1\"]},\n"
			"  \"outputs\": {\"files\": []}}}}}\n",
			names[i], i && i < 3 ? "\"" : "", i && i < 3 ? names[i - 1] : "",
			i && i < 3 ? "\"" : "");
		put(p.buf, text.buf);
		strbuf_reset(&p);
		strbuf_addf(&p, "packages/%s/src/in.txt", names[i]);
		put(p.buf, "1\n");
	}
}

/* One run; what happened is left in these. */
static struct fake fake, far, near;
static struct sched_result result;
static size_t nhits, nskipped;
static struct strbuf blocked_by = STRBUF_INIT; /* who was skipped, by what */

struct run_with {
	const char *tasks[3];
	const struct fake_script *scripts;
	unsigned concurrency;
	enum continue_mode cont;
	void (*in_foreground)(void *ctx, const struct sched_result *res);
	void (*on_start)(struct fake *f, const char *id);
	/* Executors of others: the first is remote; NULL: there are none. */
	const char *far_takes, *near_takes;
	unsigned far_capacity;
	void (*on_ask)(struct fake *f, const char *id);
};

/* They stand for programs, which have names of their own. */
static struct executor **
make_others(const struct run_with *with, struct loop *loop)
{
	static struct executor *others[] = {&far.ex, &near.ex};

	fake_init(&far, loop, with->scripts, NULL);
	fake_init(&near, loop, with->scripts, NULL);
	far.ex.name = "far";
	far.ex.remote = true;
	far.ex.capacity = with->far_capacity;
	far.takes = with->far_takes;
	far.on_ask = with->on_ask;
	far.on_start = with->on_start;
	near.ex.name = "near";
	near.takes = with->near_takes;
	return others;
}

static void
run(const struct run_with *with)
{
	struct err e = ERR_INIT;
	struct root root = {0};
	struct workspace w = {0};
	struct graph g = {0};
	struct plan plan;
	struct files files = {0};
	struct files_request frq;
	struct filehash *fh = NULL;
	struct index *ix = NULL;
	struct store *store = NULL;
	struct selected rq = {0};
	struct loop *loop = NULL;
	struct report *report;
	cleanup_strbuf struct strbuf state = STRBUF_INIT, cache = STRBUF_INIT;
	char *note = NULL;
	sigset_t sigs;
	size_t ntasks = 0;
	int statefd, cachefd, r = -1;

	strbuf_addf(&state, "%s/.vx", dir);
	strbuf_addf(&cache, "%s/.vx/cache", dir);
	mkdir(state.buf, 0755);
	mkdir(cache.buf, 0755);
	statefd = open(state.buf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cachefd = open(cache.buf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (ntasks < 3 && with->tasks[ntasks])
		ntasks++;
	sigemptyset(&sigs);
	sigaddset(&sigs, SIGINT);
	sched_result_release(&result);
	nhits = nskipped = 0;
	strbuf_reset(&blocked_by);
	if (!root_find(dir, ROOT_EVALUATE, &root, &e) && !workspace_load(&root, -1, &w, &e) &&
		!select_requests(&w,
			&(struct selection){
				.tasks = with->tasks, .ntasks = ntasks, .all = true, .cwd = ""},
			&rq, &e) &&
		!graph_build(&w, rq.v, rq.n, &g, &e) && !order_sort(&g, &e) &&
		!files_start(root.fd, root.path, &frq, &e) &&
		!files_finish(&frq, root.fd, &files, &e) && !filehash_open(statefd, &fh, &e) &&
		!index_open(cache.buf, state.buf, false, &ix, &note, &e) &&
		!store_open(cachefd, &store, &e) &&
		!plan_init(&plan, &w, &g, &files, fh, SANDBOX_AS_DECLARED, NULL, 0, &e) &&
		!loop_new(&sigs, &loop, &e)) {
		order_priorities(&g);
		report =
			report_new(&(struct report_options){.logs = LOGS_NONE, .flow = FLOW_BROAD});
		fake_init(&fake, loop, with->scripts, NULL);
		fake.on_start = with->on_start;
		r = sched_run(
			&(struct sched_options){
				.plan = &plan,
				.loop = loop,
				.report = report,
				.index = ix,
				.stamps = ix,
				.store = store,
				.read_cache = true,
				.write_cache = true,
				.cont = with->cont,
				.concurrency = with->concurrency ? with->concurrency : 4,
				.grace_ms = 10,
				.guard_pidfd = -1,
				.cache_dir = cache.buf,
				.in_foreground = with->in_foreground,
				.ctx = loop,
				.fake = &fake.ex,
				.fake_others = make_others(with, loop),
				.nfake_others = with->far_takes ? 2 : 0,
			},
			&result, &e);
		for (size_t i = 0; i < g.n; i++) {
			const struct task *t = &plan.tasks[i];

			nhits += t->status == TASK_HIT;
			nskipped += t->status == TASK_SKIPPED;
			if (t->status != TASK_SKIPPED)
				continue;
			strbuf_addf(&blocked_by, "%s by %s ", t->node->id,
				t->blocked_by ? t->blocked_by->id : "nobody");
		}
		report_free(report);
		plan_release(&plan);
	}
	if (r)
		diag("run: %s", e.text);
	if (loop)
		loop_free(loop);
	if (ix)
		index_close(ix);
	if (store)
		store_close(store);
	if (fh)
		filehash_close(fh, false);
	selected_release(&rq);
	free(note);
	graph_release(&g);
	workspace_release(&w);
	root_release(&root);
	close(statefd);
	close(cachefd);
}

static enum fs_visit
damage(void *ctx, const struct fs_entry *en)
{
	(void)ctx;
	if (S_ISREG(en->st->st_mode) && unlinkat(en->parent, en->name, 0))
		abort();
	return FS_VISIT_CONTINUE;
}

static void
damage_blobs(void)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fs_walk(fd, ".vx/cache/blobs", damage, NULL))
		abort();
	close(fd);
}

static void
make_a(void *ctx)
{
	(void)ctx;
	put("packages/a/dist/out", "a\n");
}

static void
edit_own_input(void *ctx)
{
	(void)ctx;
	put("packages/x/src/in.txt", "moved\n");
	put("packages/x/dist/out", "x\n");
}

static void
interrupt_probe(struct fake *f, const char *id)
{
	(void)f;
	if (!strcmp(id, "w"))
		raise(SIGINT);
}

static void
interrupt_test(struct fake *f, const char *id)
{
	(void)f;
	if (!strcmp(id, "b#test"))
		raise(SIGINT);
}

static void
interrupt_question(struct fake *f, const char *id)
{
	(void)f;
	(void)id;
	raise(SIGINT);
}

static size_t
count(const char *word)
{
	size_t n = 0;

	for (const char *s = fake.order; (s = strstr(s, word)); s++)
		n++;
	return n;
}

static void
test_probes(void)
{
	static const struct fake_script says[] = {{.id = "p2", .prints = "2"}, {0}};
	static const struct fake_script fails[] = {{.id = "w", .exit_code = 1}, {0}};
	static const struct fake_script mid[] = {{.id = "m", .exit_code = 1}, {0}};
	static const struct fake_script holds[] = {{.id = "w", .holds = true}, {0}};

	run(&(struct run_with){.tasks = {"ask"}, .concurrency = 2});
	ok(result.ok, "tasks with probes");
	ok(count("p1 ") == 4 && count("p2 ") == 4 && count("w ") == 1,
		"each once in its project, one once in all: %s", fake.order);
	ok_int(fake.most, 2, "no more at a time than tasks");
	ok_str(strstr(fake.order, "a#ask") ? strstr(fake.order, "a#ask") : "",
		"a#ask b#ask c#ask x#ask ", "all of them before the first task");
	run(&(struct run_with){.tasks = {"ask"}, .concurrency = 1});
	ok(nhits == 4 && count(" ") == 9, "they are asked again, and say the same");
	run(&(struct run_with){.tasks = {"ask"}, .scripts = says});
	ok_int((long long)count("#ask"), 4, "something else: all run");
	run(&(struct run_with){.tasks = {"ask"}, .scripts = fails});
	ok(!result.ok && count("#ask") == 0, "a probe that fails: nothing that asks runs");
	put("packages/a/src/in.txt", "asked\n");
	run(&(struct run_with){
		.tasks = {"end"}, .scripts = mid, .concurrency = 8, .cont = CONTINUE_ALWAYS});
	ok(!result.ok && count("#end") == 4 && count("#mid") == 0 &&
			strstr(fake.order, "c#build") &&
			strstr(fake.order, "c#build") < strstr(fake.order, "c#end"),
		"what needs it runs all the same, after what it needs: %s", fake.order);
	run(&(struct run_with){.tasks = {"ask"}, .scripts = holds, .on_start = interrupt_probe});
	ok_int(result.stopped_by, SIGINT, "a signal among probes");
	ok(fake.cancels && !fake.running && count("#ask") == 0, "ends them, and no task runs");

	put("packages/a/src/in.txt", "7\n");
	run(&(struct run_with){.tasks = {"late"}, .concurrency = 1});
	ok(result.ok && count("p1 ") == 4, "each has its own where it waits for a task");
	ok(strstr(fake.order, "c#build") && strstr(fake.order, "p1") < strstr(fake.order, "a#late"),
		"before it");
	put("packages/a/src/in.txt", "8\n");
	run(&(struct run_with){.tasks = {"late", "build"}, .concurrency = 4});
	ok(count("a#late") == 0 && count("p1 ") == 4 && nhits > 3,
		"that one runs again, what asks the same does not: %s", fake.order);
}

static bool restored_first;

static void
look_for_restored(struct fake *f, const char *id)
{
	(void)f;
	if (!strcmp(id, "a#build"))
		restored_first = has("packages/c/out/free");
}

static void
make_free(void *ctx)
{
	(void)ctx;
	put("packages/c/out/free", "free\n");
}

/* Results that do not hang on what runs before them. */
static void
test_restores(void)
{
	static const struct fake_script makes[] = {
		{.id = "a#build", .work = make_a}, {.id = "c#free", .work = make_free}, {0}};
	static const struct fake_script fails[] = {{.id = "a#build", .exit_code = 3}, {0}};

	run(&(struct run_with){.tasks = {"free"}, .scripts = makes});
	ok(result.ok && has("packages/c/out/free"), "made");

	put("packages/a/src/in.txt", "20\n");
	drop("packages/c/out/free");
	run(&(struct run_with){.tasks = {"free"}, .scripts = fails});
	ok(!result.ok && has("packages/c/out/free") && nhits == 5,
		"what the cache has is restored though what it needs has failed");
	drop("packages/c/out/free");
	run(&(struct run_with){
		.tasks = {"free"}, .scripts = fails, .cont = CONTINUE_NEVER, .concurrency = 1});
	ok(!result.ok && has("packages/c/out/free"), "also when nothing is started any more");

	for (unsigned concurrency = 1; concurrency <= 2; concurrency++) {
		put("packages/a/src/in.txt", concurrency == 1 ? "21\n" : "22\n");
		drop("packages/c/out/free");
		restored_first = concurrency != 1;
		run(&(struct run_with){.tasks = {"free"},
			.scripts = makes,
			.concurrency = concurrency,
			.on_start = look_for_restored});
		ok(result.ok && restored_first == (concurrency == 1), "%u at a time: restored %s",
			concurrency,
			concurrency == 1 ? "before a command takes the one place"
					 : "beside the commands");
	}

	put("packages/a/src/in.txt", "23\n");
	drop("packages/c/out/free");
	damage_blobs();
	run(&(struct run_with){.tasks = {"free"}, .scripts = makes});
	ok(result.ok && has("packages/c/out/free"), "a damaged entry");
	ok(strstr(fake.order, "c#build ") &&
			strstr(fake.order, "c#free ") > strstr(fake.order, "c#build "),
		"runs in its turn: %s", fake.order);
	put("packages/a/src/in.txt", "24\n");
	drop("packages/c/out/free");
	damage_blobs();
	run(&(struct run_with){.tasks = {"free"}, .scripts = fails});
	ok(!result.ok && !has("packages/c/out/free") && !count("c#free"),
		"and does not when what it needs has failed");
}

/* Servers. */

static size_t nforeground;
static bool ok_in_foreground;
static char ended_before[sizeof(fake.ends)];

/* The graph is over: one of those that stay ends now. */
static void
interrupt_foreground(void *ctx, const struct sched_result *res)
{
	(void)ctx;
	nforeground++;
	ok_in_foreground = res->ok;
	snprintf(ended_before, sizeof(ended_before), "%s", fake.ends);
	raise(SIGINT);
}

static void
make_e2e(void *ctx)
{
	(void)ctx;
	put("packages/a/e2e/out", "e\n");
}

static void
db_is_ready(struct fake *f, const char *id)
{
	/* Two others have begun by then: what needs it has not. */
	if (!strcmp(id, "b#db"))
		fake_ready(f, "a#db");
}

static void
test_servers(void)
{
	static const struct fake_script plain[] = {{.id = "a#e2e", .work = make_e2e}, {0}};
	static const struct fake_script slow[] = {{.id = "a#db", .starts = true}, {0}};
	static const struct fake_script fails[] = {
		{.id = "a#db", .starts = true, .exit_code = 3, .ended_by = "b#db"}, {0}};
	static const struct fake_script dies[] = {
		{.id = "a#api", .exit_code = 3, .ended_by = "a#prep"}, {0}};
	static const struct fake_script dies_early[] = {{.id = "a#e2e", .work = make_e2e},
		{.id = "a#db", .exit_code = 3, .ended_by = "a#api"}, {0}};
	static const struct fake_script leaves[] = {{.id = "a#api", .ended_by = "a#prep"}, {0}};
	static const struct fake_script soon[] = {
		{.id = "a#db", .starts = true, .ended_by = "b#db"}, {0}};
	static const struct fake_script bad_and_slow[] = {
		{.id = "x#test", .exit_code = 1}, {.id = "a#db", .starts = true}, {0}};
	static const struct fake_script bad[] = {{.id = "x#test", .exit_code = 1}, {0}};

	nforeground = 0;
	run(&(struct run_with){.tasks = {"a#prep"},
		.scripts = plain,
		.concurrency = 1,
		.in_foreground = interrupt_foreground});
	ok(result.ok && !nforeground, "servers that a command needs");
	ok_str(fake.order, "a#db a#api a#prep ", "run beside it, one place or not");
	ok_str(fake.ends, "a#api a#db ", "and are ended, dependants first");
	ok_int(fake.most, 3, "they take no place");

	run(&(struct run_with){.tasks = {"a#e2e"}, .scripts = plain});
	ok_str(fake.order, "a#db a#api a#e2e ", "one with a cache, beyond a group");
	/* Without git the new output is in the key of the servers: every file of their project is. */
	run(&(struct run_with){.tasks = {"a#e2e"}, .scripts = plain});
	run(&(struct run_with){.tasks = {"a#e2e"}, .scripts = plain});
	ok(result.ok && nhits == 1 && !*fake.order, "a hit needs no server: %s", fake.order);
	drop("packages/a/e2e/out");
	run(&(struct run_with){.tasks = {"a#e2e"}, .scripts = plain});
	ok(result.ok && !*fake.order && has("packages/a/e2e/out"), "neither does a restored one");
	run(&(struct run_with){.tasks = {"a#e2e", "a#prep"}, .scripts = plain});
	ok_str(fake.order, "a#db a#api a#prep ", "but what runs does");

	run(&(struct run_with){.tasks = {"a#api", "b#db"},
		.scripts = slow,
		.concurrency = 1,
		.on_start = db_is_ready,
		.in_foreground = interrupt_foreground});
	ok_str(fake.order, "a#db b#db a#api ",
		"what needs it waits until it is ready, nobody else does");
	ok(nforeground == 1 && ok_in_foreground && !*ended_before,
		"requested ones stay, and theirs");
	ok_int(result.stopped_by, SIGINT, "until a signal comes");
	ok(!fake.running, "which ends them");

	run(&(struct run_with){
		.tasks = {"a#dev"}, .scripts = plain, .in_foreground = interrupt_foreground});
	ok_str(ended_before, "a#api a#db ", "what only a command of theirs needs does not stay");
	run(&(struct run_with){.tasks = {"a#up"}, .in_foreground = interrupt_foreground});
	ok(nforeground == 3 && !*ended_before, "those of a requested group do");

	run(&(struct run_with){.tasks = {"a#api", "b#db"},
		.scripts = fails,
		.in_foreground = interrupt_foreground});
	ok(!result.ok && nforeground == 3 && nskipped == 1,
		"one that never was ready fails the run, and none stays");
	ok_str(fake.order, "a#db b#db ", "what needs it is not started");
	run(&(struct run_with){.tasks = {"a#api", "b#db"},
		.scripts = fails,
		.cont = CONTINUE_ALWAYS,
		.in_foreground = interrupt_foreground});
	ok(nforeground == 3, "not even so: it was one of those that stay");
	run(&(struct run_with){.tasks = {"a#api", "b#db"},
		.scripts = soon,
		.in_foreground = interrupt_foreground});
	ok(result.ok && count("a#api") == 1,
		"one that ends well before it is ready counts as ready");

	run(&(struct run_with){.tasks = {"a#prep", "b#db"},
		.scripts = dies,
		.in_foreground = interrupt_foreground});
	ok(!result.ok && nforeground == 3, "one that dies later fails the run");
	ok(count("a#prep") == 1, "though what needed it has begun");
	run(&(struct run_with){.tasks = {"a#prep"}, .scripts = leaves});
	ok(result.ok, "one that ends well does not");
	put("packages/a/src/in.txt", "served\n");
	run(&(struct run_with){.tasks = {"a#e2e"}, .scripts = dies_early});
	ok(!result.ok && count("a#e2e") == 1, "what began before it died goes on");
	run(&(struct run_with){.tasks = {"a#e2e"}, .scripts = plain});
	ok(result.ok && count("a#e2e") == 1 && !nhits, "but is not saved: %s", fake.order);

	run(&(struct run_with){.tasks = {"a#api", "x#test"},
		.scripts = bad,
		.in_foreground = interrupt_foreground});
	ok(!result.ok && nforeground == 3, "a failure of anything: none stays");
	ok_str(fake.ends, "a#api a#db ", "they are ended in their order");
	run(&(struct run_with){.tasks = {"a#api", "x#test"},
		.scripts = bad,
		.cont = CONTINUE_ALWAYS,
		.in_foreground = interrupt_foreground});
	ok(!ok_in_foreground && nforeground == 4, "but under --continue=always");
	run(&(struct run_with){.tasks = {"a#api", "x#test"},
		.scripts = bad_and_slow,
		.in_foreground = interrupt_foreground});
	ok(!result.ok && nforeground == 4 && !fake.running,
		"one that is not ready is not waited for when nothing needs it any more");
	run(&(struct run_with){.tasks = {"a#prep", "x#test"},
		.scripts = bad_and_slow,
		.cont = CONTINUE_NEVER,
		.concurrency = 2});
	ok(!result.ok && !fake.running, "nor when nothing is started any more");
	run(&(struct run_with){.tasks = {"x#test", "a#prep"},
		.scripts = bad,
		.cont = CONTINUE_NEVER,
		.concurrency = 1});
	ok(!result.ok && !fake.running, "--continue=never");
}

static unsigned nfail;

static void
interrupt_third(struct fake *f, const char *id)
{
	(void)f;
	if (!strcmp(id, "x#flaky") && ++nfail == 3)
		raise(SIGINT);
}

static void
test_attempts(void)
{
	static const struct fake_script fail[] = {
		{.id = "x#flaky", .exit_code = 1}, {.id = "x#bad", .exit_code = 1}, {0}};
	static const struct fake_script finds[] = {{.id = "x#flaky", .finds = true}, {0}};

	run(&(struct run_with){.tasks = {"x#flaky"}, .scripts = fail});
	ok_str(fake.order, "x#flaky x#flaky x#flaky x#flaky ", "3 retries are 4 attempts");
	ok(!result.ok && result.nhistory == 1 && result.history[0].attempts == 4,
		"of which one row tells");
	run(&(struct run_with){.tasks = {"x#flaky"}});
	ok(result.ok && result.history[0].attempts == 1, "one that is good is one");
	run(&(struct run_with){.tasks = {"x#flaky"}, .scripts = finds});
	ok_str(fake.order, "x#flaky x#flaky x#flaky x#flaky ", "a finding is a failure");
	run(&(struct run_with){.tasks = {"x#flaky"}, .scripts = fail, .cont = CONTINUE_NEVER});
	ok_str(fake.order, "x#flaky x#flaky x#flaky x#flaky ",
		"--continue=never lets a task have its attempts");
	run(&(struct run_with){.tasks = {"x#flaky", "x#bad"},
		.scripts = fail,
		.cont = CONTINUE_NEVER,
		.concurrency = 2});
	ok(!result.ok && strlen(fake.order) <= strlen("x#flaky x#bad x#flaky "),
		"but not once another has failed: %s", fake.order);
	run(&(struct run_with){.tasks = {"x#flaky"}, .scripts = fail, .on_start = interrupt_third});
	ok_str(fake.order, "x#flaky x#flaky x#flaky ", "nor when the run is being stopped");
	ok(result.stopped_by == SIGINT && !result.nhistory, "which records nothing");
}

static void
interrupt(struct fake *f, const char *id)
{
	(void)f;
	if (!strcmp(id, "x#build"))
		raise(SIGINT);
}

static size_t
words(const char *s)
{
	size_t n = 0;

	for (; (s = strchr(s, ' ')); s++)
		n++;
	return n;
}

/* Builds are in place, so that all tests are ready at once. */
static void
test_places(void)
{
	static const char tests[] = "a#test b#test c#test x#test ";
	static const struct fake_script fails[] = {{.id = "b#test", .exit_code = 1}, {0}};
	static const struct fake_script holds[] = {
		{.id = "a#test", .holds = true}, {.id = "b#test", .holds = true}, {0}};

	run(&(struct run_with){.tasks = {"build"}});
	run(&(struct run_with){
		.tasks = {"test"}, .concurrency = 1, .far_takes = tests, .far_capacity = 3});
	ok(result.ok && words(far.order) == 4 && !*fake.order, "one takes all: %s", far.order);
	ok_int(far.most, 3, "and as many at a time as it can, whatever may run here");
	ok(words(far.asked) == 4 && !*near.asked,
		"what is up to date, or taken, is asked about by nobody");
	run(&(struct run_with){.tasks = {"test"},
		.concurrency = 1,
		.far_takes = "b#test ",
		.far_capacity = 3,
		.near_takes = "a#test x#test "});
	ok_str(far.order, "b#test ", "each gets what it takes");
	ok(words(near.order) == 2 && strstr(near.order, "a#test ") && strstr(near.order, "x#test "),
		"in the order of the executors: %s", near.order);
	ok_str(fake.order, "c#test ", "and what is left is executed here");
	ok_int(near.most, 1, "without a capacity it takes a place here");
	run(&(struct run_with){
		.tasks = {"test"}, .scripts = fails, .far_takes = tests, .far_capacity = 9});
	ok(!result.ok && words(far.order) == 4, "one that fails there fails the run");
	run(&(struct run_with){.tasks = {"e2e", "prep"}, .far_takes = "", .near_takes = ""});
	ok(!strstr(near.asked, "#db") && !strstr(near.asked, "#api"),
		"nobody is asked about a persistent task");
	ok(strstr(near.asked, "a#e2e- ") && strstr(near.asked, "a#prep- ") &&
			!strstr(far.asked, "e2e"),
		"what needs one is pinned");
	ok(strstr(near.asked, "a#") && !strstr(near.asked, "#up"), "a group is nobody's");
	run(&(struct run_with){
		.tasks = {"test"}, .far_takes = tests, .on_ask = interrupt_question});
	ok(result.stopped_by == SIGINT && !*far.order && !*fake.order,
		"a signal while answers are waited for: nothing is started");
	run(&(struct run_with){.tasks = {"test"},
		.scripts = holds,
		.far_takes = tests,
		.far_capacity = 2,
		.on_start = interrupt_test});
	ok(result.stopped_by == SIGINT && far.cancels == 2 && !far.running,
		"a signal reaches those that run there");
	put("packages/a/src/in.txt", "placed\n");
	run(&(struct run_with){
		.tasks = {"build"}, .far_takes = "a#build b#build c#build x#build "});
	ok(result.ok && strstr(far.order, "a#build") && !*fake.order,
		"a cached task runs there, too");
	run(&(struct run_with){.tasks = {"build"}, .far_takes = "a#build "});
	ok(!*far.order && !*far.asked, "and its result is kept");
}

int
main(void)
{
	static const struct fake_script makes[] = {{.id = "a#build", .work = make_a}, {0}};
	static const struct fake_script fails[] = {{.id = "a#build", .exit_code = 3}, {0}};
	static const struct fake_script finds[] = {{.id = "a#build", .finds = true}, {0}};
	static const struct fake_script edits[] = {{.id = "x#build", .work = edit_own_input}, {0}};
	static const struct fake_script holds[] = {{.id = "x#build", .holds = true}, {0}};

	make_workspace();
	run(&(struct run_with){.tasks = {"build"}, .scripts = makes, .concurrency = 1});
	ok(result.ok, "a cold run succeeds");
	ok_str(fake.order, "a#build b#build x#build c#build ", "what most depends on comes first");
	ok_int(fake.most, 1, "one at a time");

	run(&(struct run_with){.tasks = {"build"}, .scripts = makes});
	ok(result.ok && nhits == 4, "then all are hits");
	ok_str(fake.order, "", "and nothing is executed");

	drop("packages/a/dist/out");
	run(&(struct run_with){.tasks = {"build"}, .scripts = makes});
	ok(!*fake.order && has("packages/a/dist/out"), "a deleted output is restored");

	run(&(struct run_with){.tasks = {"test", "build"}});
	ok_str(fake.order, "a#test b#test c#test x#test ", "an uncached task always runs");

	put("packages/a/src/in.txt", "2\n");
	run(&(struct run_with){.tasks = {"build"}, .scripts = makes});
	ok_str(fake.order, "a#build b#build c#build ",
		"an edit reruns what depends on it, no more");

	put("packages/a/src/in.txt", "3\n");
	run(&(struct run_with){.tasks = {"build"}, .scripts = fails});
	ok(!result.ok && nskipped == 2, "a failure skips what needs it");
	ok_str(blocked_by.buf, "b#build by a#build c#build by a#build ", "and names the root");
	run(&(struct run_with){.tasks = {"build"}, .scripts = fails, .cont = CONTINUE_ALWAYS});
	ok_str(fake.order, "a#build b#build c#build ", "--continue=always runs them");
	run(&(struct run_with){.tasks = {"build"}, .scripts = makes});
	ok_str(fake.order, "a#build b#build c#build ",
		"but neither the failure nor they were saved");

	put("packages/a/src/in.txt", "4\n");
	put("packages/x/src/in.txt", "4\n");
	run(&(struct run_with){
		.tasks = {"build"}, .scripts = fails, .cont = CONTINUE_NEVER, .concurrency = 1});
	ok_str(fake.order, "a#build ", "--continue=never starts nothing more");

	run(&(struct run_with){.tasks = {"build"}, .scripts = finds});
	ok(!result.ok && nskipped == 2, "a finding fails a task whose own exit was 0");

	put("packages/x/src/in.txt", "5\n");
	run(&(struct run_with){.tasks = {"build"}, .scripts = edits});
	ok(result.ok, "a task that writes its own input succeeds");
	put("packages/x/src/in.txt", "5\n");
	run(&(struct run_with){.tasks = {"build"}, .scripts = edits});
	ok_str(fake.order, "x#build ", "but was not saved");

	put("packages/x/src/in.txt", "6\n");
	run(&(struct run_with){.tasks = {"build"}, .scripts = holds, .on_start = interrupt});
	ok_int(result.stopped_by, SIGINT, "a signal ends the run");
	ok(fake.cancels == 1 && !fake.running, "after asking the job to end");

	run(&(struct run_with){.tasks = {"all"}, .scripts = makes});
	ok(result.ok && nhits == 3, "a group stands for what it needs");
	test_restores();
	test_servers();
	test_probes();
	test_attempts();
	test_places();
	fs_remove_tree(AT_FDCWD, dir);
	sched_result_release(&result);
	strbuf_release(&blocked_by);
	return tap_done();
}
