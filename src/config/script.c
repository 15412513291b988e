/* SPDX-License-Identifier: MIT */
#include "config/script.h"
#include "config/json.h"
#include "config/script-text.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/keeper.h"
#include "util/log.h"
#include "util/num.h"
#include "util/proc.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include "util/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

extern char **environ;

enum {
	TIMEOUT_MS = 30000, /* VX_CONFIG_WORKER_TIMEOUT_MS */
	TIMEOUT_MAX_MS = 2147483647,
	LOOK_MS = 50, /* between two looks whether to stop */
	/* What a config yields is at most JSON_FILE_MAX, with escapes and files around it. */
	LINE_MAX_BYTES = 8 * JSON_FILE_MAX,
};

const char *const script_endings[6] = {"ts", "mts", "js", "mjs", "cts", "cjs"};
const char *const script_unread_endings[5] = {"jsonc", "json5", "yaml", "yml", "toml"};

void
script_release(struct script *s)
{
	free(s->json);
	free(s->why);
	strvec_release(&s->needs);
	strvec_release(&s->manifests);
	*s = (struct script){0};
}

/* ------------------------------------------------------------------ which runtime */

/* In the order in which they are tried. Each reads its program from standard input. */
static const struct runtime {
	const char *name;
	const char *args[6];
} runtimes[] = {
	/* It would fetch what is not installed. */
	{"bun", {"run", "--no-install", "-"}},
	{"node", {"--input-type=module", "-"}},
	{"deno", {"run", "-A", "--no-lock", "--node-modules-dir=manual", "-"}},
};

/* Not out of the workspace, which a package could have put one into (node_modules/.bin is on the PATH of what npm
 * starts). Owned, or NULL. */
static char *
find_runtime(const struct runtime *r, const char *root_path)
{
	const char *path = getenv("PATH");

	return proc_find_outside(r->name, path ? path : "/usr/local/bin:/usr/bin:/bin", root_path);
}

void
script_identity(const char *root_path, struct digest *ret)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	strbuf_adds(&sb, PACKAGE_VERSION);
	for (size_t i = 0; i < array_len(runtimes); i++) {
		cleanup_free char *file = find_runtime(&runtimes[i], root_path);
		struct stat st;

		if (!file || stat(file, &st))
			continue;
		strbuf_addf(&sb, "\n%s %ju %ju %jd %jd.%ld %jd.%ld", file, (uintmax_t)st.st_dev,
			(uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
			st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	}
	strbuf_addch(&sb, '\n');
	strbuf_add(&sb, script_text, sizeof(script_text) - 1);
	digest_bytes(sb.buf, sb.len, ret);
}

/* ------------------------------------------------------------------ its process */

struct script_runtime {
	const char *root_path;
	const struct runtime *runtime;
	char *file;
	uint64_t timeout_ms;
	/* What is asked of it now. */
	struct script *v;
	size_t n;
	/* It is at v[next - 1]: 0 before the first. */
	size_t next, nvalues;
	bool done;
	struct proc proc;     /* pidfd -1: none runs */
	struct keeper keeper; /* or it has one: pidfd -1 else */
	int request;          /* a file that holds all that it was ever asked */
	int bell[2];          /* a byte: there is more in it */
	int from;             /* what it says */
	struct strbuf said;
	size_t seen; /* of `said`, without the end of a line */
	uint64_t deadline_ns;
	char *old; /* its version, if that is too old */
};

/* An unnamed file to be read from its begin; errno on -1. */
static int
make_file(const char *name, const void *p, size_t n)
{
	cleanup_close int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || fd_write_all(fd, p, n) || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return take_fd(&fd);
}

/* The user's environment, but for what would have a runtime load more than it is told to. The workspace is
 * named, as to a task; an empty name of a task says that it is none (refuse_within, run/run.c: refuse_nested). */
static void
make_env(const struct script_runtime *w, struct strvec *env)
{
	static const char *const left_out[] = {"NODE_OPTIONS=", "BUN_OPTIONS=",
		/* what config.mjs tells of packages would not be so */
		"NODE_PRESERVE_SYMLINKS="};

	for (char **v = environ; *v; v++) {
		bool out = false;

		for (size_t i = 0; i < array_len(left_out); i++)
			out = out || !strncmp(*v, left_out[i], strlen(left_out[i]));
		if (!out)
			strvec_push(env, *v);
	}
	strvec_setenv(env, "VX_RUN_WORKSPACE", w->root_path);
	strvec_setenv(env, "VX_RUN_TASK", "");
}

static int
begin(struct script_runtime *w, const struct proc_spec *spec, struct err *e)
{
	return keeper_is_needed() ? keeper_start(spec, &w->keeper, e)
				  : proc_start(spec, &w->proc, e);
}

static int
start(struct script_runtime *w, struct err *e)
{
	cleanup_strvec struct strvec argv = STRVEC_INIT, env = STRVEC_INIT;
	/* Where no bunfig.toml, .env or deno.json lies that it would load; it goes to the root by itself. */
	cleanup_close int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int text = make_file("vx-config", script_text, sizeof(script_text) - 1);
	cleanup_close int says = -1;
	int up[2];

	w->request = make_file("vx-config-want", w->root_path, strlen(w->root_path) + 1);
	if (top < 0 || text < 0 || w->request < 0 || fd_pipe(up))
		return err_set(e, ERR_IO, errno, "start %s", w->file);
	w->from = up[0];
	says = up[1];
	if (fd_pipe(w->bell))
		return err_set(e, ERR_IO, errno, "start %s", w->file);
	strvec_push(&argv, w->runtime->name);
	for (size_t i = 0; w->runtime->args[i]; i++)
		strvec_push(&argv, w->runtime->args[i]);
	make_env(w, &env);
	/* Standard output is for what vx says: a config's own words go where warnings go. */
	const struct proc_fd fds[] = {{text, 0}, {STDERR_FILENO, 1}, {STDERR_FILENO, 2}, {says, 3},
		{w->request, 4}, {w->bell[0], 5}};

	return fd_set_nonblock(w->from) ? err_set(e, ERR_IO, errno, "start %s", w->file)
					: begin(w,
						  &(struct proc_spec){.file = w->file,
							  .argv = strvec_argv(&argv),
							  .env = strvec_argv(&env),
							  .cwd = top,
							  .fds = fds,
							  .nfds = array_len(fds),
							  .new_session = true},
						  e);
}

static int
pidfd_of(const struct script_runtime *w)
{
	return w->keeper.pidfd >= 0 ? w->keeper.pidfd : w->proc.pidfd;
}

/* Its whole session goes, and with a keeper all that it has started. */
static int
end(struct script_runtime *w, int *ret_status)
{
	if (w->keeper.pidfd >= 0)
		return keeper_end(&w->keeper, ret_status);
	if (w->proc.pidfd < 0)
		return 0;
	/* not reaped yet, so the number still is this child's, and the group's */
	kill(-w->proc.pid, SIGKILL);
	return proc_wait(&w->proc, ret_status);
}

static void
forget(struct script_runtime *w)
{
	int status;

	end(w, &status);
	fd_close(&w->request);
	fd_close(&w->bell[0]);
	fd_close(&w->bell[1]);
	fd_close(&w->from);
	strbuf_reset(&w->said);
	w->seen = 0;
	free(w->file);
	free(w->old);
	w->file = w->old = NULL;
}

/* The paths at the end of the file, and a word that they are there: a runtime that hears nothing must not keep us. */
static int
ask(struct script_runtime *w, struct err *e)
{
	cleanup_strbuf struct strbuf paths = STRBUF_INIT;
	struct stat st;

	for (size_t i = 0; i < w->n; i++)
		strbuf_add(&paths, w->v[i].path, strlen(w->v[i].path) + 1);
	if (fstat(w->request, &st) ||
		pwrite(w->request, paths.buf, paths.len, st.st_size) != (ssize_t)paths.len)
		return err_set(e, ERR_IO, errno, "ask %s", w->file);
	/* Its other end is held here, too: whether the runtime has ended is heard elsewhere. */
	return fd_write_all(w->bell[1], "", 1) ? err_set(e, ERR_IO, errno, "ask %s", w->file) : 0;
}

/* ------------------------------------------------------------------ what it says */

static const char *
current(const struct script_runtime *w)
{
	return w->v[w->next - 1].path;
}

static int
refuse(const struct script_runtime *w, struct err *e, const char *text)
{
	return w->next ? err_set(e, ERR_CONFIG, 0, "%s: %s", current(w), text)
		       : err_set(e, ERR_CONFIG, 0, "%s, which is to evaluate %s: %s", w->file,
				 w->v[0].path, text);
}

static int
refuse_words(const struct script_runtime *w, struct err *e)
{
	return refuse(w, e,
		"what came from the runtime is no message of vx's: a config must not write to file "
		"descriptors that it has not opened");
}

static bool
take_names(const struct json *from, struct strvec *ret)
{
	for (size_t i = 0; i < json_array_size(from); i++) {
		const char *name = json_c_string(json_array_get(from, i));

		if (!name)
			return false;
		strvec_push(ret, name);
	}
	return json_is_array(from);
}

static int
take_value(struct script_runtime *w, const struct json *message, struct err *e)
{
	const struct json *json = json_array_get(message, 2);
	const char *why = json_c_string(json_array_get(message, 3));
	struct script *s = &w->v[w->next - 1];

	if (!json_is_string(json) || !why || w->nvalues >= w->next ||
		!take_names(json_array_get(message, 4), &s->needs) ||
		!take_names(json_array_get(message, 5), &s->manifests))
		return refuse_words(w, e);
	w->nvalues++;
	s->json = xmemdupz(json->text, json->len);
	s->len = json->len;
	s->why = xstrdup(why);
	s->reads_any = !json_is_false(json_array_get(message, 6));
	log_debug("config", "%s: evaluated%s%s", s->path, *why ? ", as in each run: " : "", why);
	return 0;
}

static int
take_message(struct script_runtime *w, const struct json *message, struct err *e)
{
	const char *kind = json_c_string(json_array_get(message, 0));
	const struct json *second = json_array_get(message, 1);
	const char *word = json_c_string(second);
	bool is_current = json_is_integer(second) && second->integer + 1 == (int64_t)w->next;

	if (!kind || w->done || w->old)
		return refuse_words(w, e);
	if (!strcmp(kind, "old") && word && !w->next) {
		w->old = xstrdup(word);
		return 0;
	}
	if (!strcmp(kind, "runtime") && word && !w->next) {
		log_debug("config", "%s is %s", w->file, word);
		return 0;
	}
	if (!strcmp(kind, "begin") && json_is_integer(second) && w->nvalues == w->next &&
		second->integer == (int64_t)w->next && w->next < w->n) {
		w->next++;
		w->deadline_ns = clock_monotonic_ns() + w->timeout_ms * 1000000;
		return 0;
	}
	if (!strcmp(kind, "value") && is_current && w->next)
		return take_value(w, message, e);
	if (!strcmp(kind, "fail") && json_c_string(json_array_get(message, 2)))
		return refuse(w, e, json_c_string(json_array_get(message, 2)));
	if (!strcmp(kind, "done") && w->nvalues == w->n) {
		w->done = true;
		return 0;
	}
	return refuse_words(w, e);
}

/* Each whole line of what was said. */
static int
take_lines(struct script_runtime *w, struct err *e)
{
	size_t start = 0;
	char *end;

	while ((end = memchr(w->said.buf + w->seen, '\n', w->said.len - w->seen))) {
		struct json_doc doc = {0};
		struct err why = ERR_INIT;
		int r;

		*end = '\0';
		r = json_parse(w->said.buf + start, (size_t)(end - w->said.buf) - start, w->file,
			JSON_OURS, &doc, &why);
		r = r ? refuse_words(w, e) : take_message(w, doc.root, e);
		json_doc_release(&doc);
		if (r)
			return -1;
		start = w->seen = (size_t)(end - w->said.buf) + 1;
	}
	w->seen = w->said.len - start;
	memmove(w->said.buf, w->said.buf + start, w->seen + 1);
	w->said.len = w->seen;
	if (w->said.len > LINE_MAX_BYTES)
		return refuse(w, e, "yields more than vx takes");
	return 0;
}

/* All that waits. 1: there may come more; 0: there will not; -1. */
static int
read_words(struct script_runtime *w, struct err *e)
{
	enum {
		PIECE = 64 << 10
	};

	for (;;) {
		ssize_t n;

		strbuf_grow(&w->said, PIECE);
		n = read(w->from, w->said.buf + w->said.len, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 1;
		if (n < 0)
			return err_set(e, ERR_IO, errno, "read from %s", w->file);
		if (!n)
			return 0;
		w->said.len += (size_t)n;
		w->said.buf[w->said.len] = '\0';
		if (take_lines(w, e))
			return -1;
		if (w->done || w->old)
			return 0;
	}
}

static int
refuse_end(struct script_runtime *w, struct err *e)
{
	int status = 0;
	const char *name;
	char how[64];

	if (end(w, &status)) {
		if (errno == ECHILD && w->next)
			return err_set(e, ERR_CONFIG, 0,
				"%s: the process that watches over its evaluation was killed: a "
				"config must not end what it has not started",
				current(w));
		return err_set(e, ERR_IO, errno, "wait for %s", w->file);
	}
	name = WIFSIGNALED(status) ? proc_signal_name(WTERMSIG(status)) : NULL;
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "by signal %d%s%s", WTERMSIG(status), name ? " " : "",
			name ? name : "");
	else
		snprintf(how, sizeof(how), "with exit code %d", WEXITSTATUS(status));
	if (!w->next)
		return err_set(e, ERR_CONFIG, 0,
			"%s, which is to evaluate %s, ended %s before it began: what it said is "
			"above; bun, node 22.18 or later, or deno is needed",
			w->file, w->v[0].path, how);
	return err_set(e, ERR_CONFIG, 0,
		"%s: the %s that evaluated it ended %s: a config must not end its process "
		"(process.exit)",
		current(w), w->runtime->name, how);
}

static int
refuse_time(const struct script_runtime *w, struct err *e)
{
	char text[200];

	snprintf(text, sizeof(text),
		"has not come to an end within %llu ms (VX_CONFIG_WORKER_TIMEOUT_MS): it loops, or "
		"waits for something",
		(unsigned long long)w->timeout_ms);
	return refuse(w, e, w->next ? text : "has not begun in time (VX_CONFIG_WORKER_TIMEOUT_MS)");
}

/* Until it is done, or has gone wrong. */
static int
listen_to(struct script_runtime *w, struct err *e)
{
	struct pollfd fds[] = {{w->from, POLLIN, 0}, {pidfd_of(w), POLLIN, 0}};
	bool open = true;

	for (;;) {
		uint64_t now = clock_monotonic_ns(), left;
		bool ended;
		int r = 1;

		if (now >= w->deadline_ns)
			return refuse_time(w, e);
		left = (w->deadline_ns - now) / 1000000 + 1;
		/* The signals that stop us are blocked: they wake no poll. */
		if (poll(fds, array_len(fds), left < LOOK_MS ? (int)left : LOOK_MS) < 0 &&
			errno != EINTR)
			return err_set(e, ERR_IO, errno, "poll");
		if (stop_is_asked())
			return err_set(e, ERR_IO, ECANCELED, "evaluate configs");
		/* Asked before the last words are read. */
		ended = fds[1].revents;
		if (open)
			r = read_words(w, e);
		if (r < 0 || w->done || w->old)
			return r < 0 ? -1 : 0;
		if (!r) {
			/* It has closed its end and may go on; what is over shows at the pidfd. */
			open = false;
			fds[0].fd = -1;
		}
		if (ended)
			return refuse_end(w, e);
	}
}

static int
turn(struct script_runtime *w, struct err *e)
{
	w->next = w->nvalues = 0;
	w->done = false;
	w->deadline_ns = clock_monotonic_ns() + w->timeout_ms * 1000000;
	/* Before any of them reads a file that it shares with others. */
	for (size_t i = 0; i < w->n; i++)
		w->v[i].learned_ns = (int64_t)clock_files_ns();
	return ask(w, e) || listen_to(w, e) ? -1 : 0;
}

/* ------------------------------------------------------------------ evaluating */

static int
take_timeout(uint64_t *ret, struct err *e)
{
	static const char name[] = "VX_CONFIG_WORKER_TIMEOUT_MS";
	const char *text = getenv(name);

	*ret = TIMEOUT_MS;
	return text && *text ? num_parse_u64(text, 1, TIMEOUT_MAX_MS, ret, name, e) : 0;
}

static int
check_paths(const char *root_path, const struct script *v, size_t n, struct err *e)
{
	if (!utf8_is_valid(root_path, strlen(root_path)))
		return err_set(e, ERR_CONFIG, 0,
			"%s: the path of the workspace is not UTF-8, which runtimes of JavaScript "
			"want: write vx.config.json",
			v[0].path);
	for (size_t i = 0; i < n; i++)
		if (!utf8_is_valid(v[i].path, strlen(v[i].path)))
			return err_set(e, ERR_CONFIG, 0,
				"%s: its path is not UTF-8, which runtimes of JavaScript want: "
				"write vx.config.json",
				v[i].path);
	return 0;
}

/* With the one that runs, else the first that can. */
static int
evaluate(struct script_runtime *w, struct err *e)
{
	cleanup_strbuf struct strbuf old = STRBUF_INIT;

	if (pidfd_of(w) >= 0)
		return turn(w, e);
	for (size_t i = 0; i < array_len(runtimes); i++) {
		w->runtime = &runtimes[i];
		w->file = find_runtime(&runtimes[i], w->root_path);
		if (!w->file)
			continue;
		if (start(w, e) || turn(w, e))
			return -1;
		if (!w->old)
			return 0;
		strbuf_addf(&old, "%s is version %s, too old", w->file, w->old);
		forget(w);
	}
	return err_set(e, ERR_CONFIG, 0,
		"%s: %s; install bun, node 22.18 or later, or deno, or write %s.json", w->v[0].path,
		old.len ? old.buf
			: "no runtime of JavaScript is on the PATH (outside of the workspace)",
		strstr(w->v[0].path, "vx.workspace.") ? "vx.workspace" : "vx.config");
}

struct script_runtime *
script_open(const char *root_path)
{
	struct script_runtime *w = xcalloc(1, sizeof(*w));

	*w = (struct script_runtime){
		.root_path = root_path,
		.proc = {.pidfd = -1},
		.keeper = {.pidfd = -1},
		.request = -1,
		.bell = {-1, -1},
		.from = -1,
		.said = STRBUF_INIT,
	};
	return w;
}

/* Each of them would start the next. */
static int
refuse_within(const char *root_path, const struct script *v, struct err *e)
{
	const char *outer = getenv("VX_RUN_WORKSPACE"), *task = getenv("VX_RUN_TASK");

	if (!outer || strcmp(outer, root_path) != 0 || !task || *task)
		return 0;
	return err_set(e, ERR_CONFIG, 0,
		"%s: vx inside a config of the same workspace would evaluate that config again",
		v[0].path);
}

int
script_evaluate(struct script_runtime *w, struct script *v, size_t n, struct err *e)
{
	sigset_t signals, before;
	int r;

	if (!n)
		return 0;
	if (refuse_within(w->root_path, v, e) || take_timeout(&w->timeout_ms, e) ||
		check_paths(w->root_path, v, n, e))
		return -1;
	/* Blocked, they can be asked for: whoever stops us must not leave a config behind that loops. */
	stop_signals(&signals);
	if (sigprocmask(SIG_BLOCK, &signals, &before))
		return err_set(e, ERR_IO, errno, "block signals");
	w->v = v;
	w->n = n;
	r = evaluate(w, e);
	if (r)
		forget(w);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

void
script_close(struct script_runtime *w)
{
	forget(w);
	strbuf_release(&w->said);
	free(w);
}
