/* SPDX-License-Identifier: MIT */
/* The memory of what configs yielded: it holds exactly while what they rest on does. */
#include "config/evaluated.h"
#include "config/script.h"
#include "tests/unit/ws.h"
#include "util/clock.h"
#include "util/strbuf.h"
#include <sys/stat.h>

static int state_fd;

/* Until nothing that was changed up to now is near any more: ctime cannot be set. */
static void
settle(void)
{
	uint64_t now = clock_wall_ns();

	while (clock_files_ns() < now + 60 * 1000000u)
		;
}

/* What it yields for each, "-" for what has to be evaluated: "a=… b=… ". */
static char *
recall(bool keep)
{
	static const char *const paths[] = {"a/vx.config.ts", "b/vx.config.ts", "c/vx.config.ts"};
	struct evaluated *ev = evaluated_open(state_fd, ws_fd, ws_path);
	char *all = xstrdup("");

	for (size_t i = 0; i < array_len(paths); i++) {
		size_t len = 0;
		const char *json = evaluated_get(ev, paths[i], &len);
		char *more = xasprintf("%s%.*s ", all, json ? (int)len : 1, json ? json : "-");

		free(all);
		all = more;
	}
	evaluated_close(ev, keep);
	return all;
}

static void
recalls(const char *want, const char *name)
{
	cleanup_free char *got = recall(false);

	ok_str(got, want, name);
}

static void
put(struct evaluated *ev, const char *path, const char *json, const char *need, const char *other,
	int64_t learned_ns)
{
	struct script s = {.path = path, .len = strlen(json), .learned_ns = learned_ns};

	s.json = xstrdup(json);
	s.why = xstrdup("");
	strvec_push(&s.needs, path);
	strvec_push(&s.needs, need);
	strvec_push(strstr(other, "package.json") ? &s.manifests : &s.needs, other);
	evaluated_put(ev, &s);
	script_release(&s);
}

/* What the config rests on: files, then manifests. */
static void
rests(const char *path, const char *want, const char *name)
{
	struct evaluated *ev = evaluated_open(state_fd, ws_fd, ws_path);
	cleanup_strvec struct strvec needs = STRVEC_INIT, manifests = STRVEC_INIT;
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	size_t len;

	if (evaluated_get(ev, path, &len))
		evaluated_needs(ev, path, &needs, &manifests);
	for (size_t i = 0; i < needs.n; i++)
		strbuf_addf(&got, "%s ", needs.v[i]);
	for (size_t i = 0; i < manifests.n; i++)
		strbuf_addf(&got, "(%s) ", manifests.v[i]);
	ok_str(got.buf, want, name);
	evaluated_close(ev, false);
}

static void
remember(int64_t learned_ns)
{
	struct evaluated *ev = evaluated_open(state_fd, ws_fd, ws_path);

	put(ev, "b/vx.config.ts", "{\"b\":1}", "preset.ts", "absent.ts", learned_ns);
	put(ev, "a/vx.config.ts", "{\"a\":1}", "preset.ts", "a/package.json", learned_ns);
	put(ev, "c/vx.config.ts", "{\"c\":1}", "other.ts", "absent.ts", learned_ns);
	evaluated_close(ev, true);
}

static void
begin(void)
{
	ws_write("a/vx.config.ts", "1");
	ws_write("b/vx.config.ts", "2");
	ws_write("c/vx.config.ts", "3");
	ws_write("preset.ts", "4");
	ws_write("other.ts", "5");
	settle();
	remember((int64_t)clock_files_ns());
	recalls("{\"a\":1} {\"b\":1} {\"c\":1} ", "all of them are remembered");
}

static void
test_changes(void)
{
	begin();
	rests("a/vx.config.ts", "a/vx.config.ts preset.ts (a/package.json) ",
		"by which of its words");
	rests("b/vx.config.ts", "b/vx.config.ts preset.ts absent.ts ", "by the whole of each");
	ws_write("preset.ts", "44");
	recalls("- - {\"c\":1} ", "what two rest on has changed");
	ws_write("preset.ts", "4");
	recalls("{\"a\":1} {\"b\":1} {\"c\":1} ", "and says again what it said");
	settle();
	free(recall(true));
	recalls("{\"a\":1} {\"b\":1} {\"c\":1} ", "which is remembered, too");
	rests("a/vx.config.ts", "a/vx.config.ts preset.ts (a/package.json) ", "in its order");
	ws_write("absent.ts", "");
	recalls("{\"a\":1} - - ", "what was not there is");
	ws_remove("absent.ts");
	ws_write("a/package.json", "{}");
	recalls("- {\"b\":1} {\"c\":1} ", "the same of a manifest");
	ws_remove("a/package.json");
	ws_remove("other.ts");
	recalls("{\"a\":1} {\"b\":1} - ", "what was there is not");
	ws_write("elsewhere.ts", "5");
	ws_link("other.ts", "elsewhere.ts");
	recalls("{\"a\":1} {\"b\":1} - ", "a link is not the file");
	ws_remove("other.ts");
	ws_write("b/vx.config.ts", "22");
	recalls("{\"a\":1} - - ", "its own edit counts");
	free(recall(true));
	ws_write("b/vx.config.ts", "2");
	recalls("{\"a\":1} - - ", "what was no use to a run is forgotten");
	setenv("PATH", ws_path, 1);
	recalls("- - - ", "other runtimes leave nothing");
	setenv("PATH", "/usr/bin:/bin", 1);
}

static void
test_young(void)
{
	int64_t before;

	begin();
	before = (int64_t)clock_files_ns();
	settle();
	ws_write("preset.ts", "4");
	remember(before);
	recalls("- - {\"c\":1} ", "what was written since it was evaluated is not remembered");
}

/* What a run does not ask for goes on as it is, unless something that it rests on is another by then. */
static void
test_unasked(void)
{
	struct evaluated *ev;
	int64_t before;
	size_t len;

	begin();
	ev = evaluated_open(state_fd, ws_fd, ws_path);
	ok(evaluated_get(ev, "a/vx.config.ts", &len), "one is asked for");
	evaluated_keep(ev, "b/vx.config.ts");
	evaluated_close(ev, true);
	recalls("{\"a\":1} {\"b\":1} - ", "another is kept, a third forgotten");
	begin();
	ws_write("preset.ts", "44");
	settle();
	before = (int64_t)clock_files_ns();
	ev = evaluated_open(state_fd, ws_fd, ws_path);
	ok(!evaluated_get(ev, "a/vx.config.ts", &len), "one whose preset was edited");
	put(ev, "a/vx.config.ts", "{\"a\":2}", "preset.ts", "a/package.json", before);
	ok(evaluated_get(ev, "a/vx.config.ts", &len), "is there when it was put");
	evaluated_keep(ev, "b/vx.config.ts");
	evaluated_keep(ev, "c/vx.config.ts");
	evaluated_close(ev, true);
	recalls("{\"a\":2} - {\"c\":1} ", "what rests on the preset as it was is not kept");
	ws_write("preset.ts", "4");
	recalls("- - {\"c\":1} ", "nor is it there when the preset is as it was");
}

static void
test_damage(void)
{
	cleanup_close int fd = -1;
	struct stat st;

	begin();
	fd = openat(state_fd, "configs", O_RDWR | O_CLOEXEC);
	ok(fd >= 0 && !fstat(fd, &st) && st.st_size > 100, "there is a file");
	for (off_t at = 0; at < st.st_size; at += st.st_size / 40) {
		char c;

		if (pread(fd, &c, 1, at) != 1)
			bug("read");
		c ^= 0x40;
		if (pwrite(fd, &c, 1, at) != 1)
			bug("write");
		recalls("- - - ", "a byte of it is another");
		c ^= 0x40;
		if (pwrite(fd, &c, 1, at) != 1)
			bug("write");
	}
	recalls("{\"a\":1} {\"b\":1} {\"c\":1} ", "and as it was");
	if (ftruncate(fd, st.st_size / 2))
		bug("truncate");
	recalls("- - - ", "half of it is missing");
}

/* The link of a package in node_modules: where it leads to. */
static void
test_links(void)
{
	struct evaluated *ev;

	ws_write("a/vx.config.ts", "1");
	ws_write("new/x.ts", "1");
	ws_link("modules", "old");
	settle();
	ev = evaluated_open(state_fd, ws_fd, ws_path);
	put(ev, "a/vx.config.ts", "{\"a\":1}", "modules", "absent.ts", (int64_t)clock_files_ns());
	evaluated_close(ev, true);
	recalls("{\"a\":1} - - ", "a link is remembered");
	ws_remove("modules");
	ws_link("modules", "new");
	recalls("- - - ", "it leads elsewhere");
	ws_remove("modules");
	ws_write("modules", "old");
	recalls("- - - ", "a file that says what it said is not the link");
	ws_remove("modules");
	ws_link("modules", "old");
	recalls("{\"a\":1} - - ", "made anew as it was");
}

int
main(void)
{
	setenv("PATH", "/usr/bin:/bin", 1);
	ws_begin();
	fs_mkdirs(ws_fd, "state");
	state_fd = openat(ws_fd, "state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_changes();
	test_young();
	test_unasked();
	test_damage();
	test_links();
	close(state_fd);
	ws_end();
	return tap_done();
}
