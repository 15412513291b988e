/* SPDX-License-Identifier: MIT */
#include "exec/explain.h"
#include "exec/command.h"
#include "proto/status.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/path.h"
#include "util/proc.h"
#include "util/strbuf.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	CANNOT_EXECUTE = 126,
	NOT_FOUND = 127,
	HEAD_SIZE = 4096, /* of a file: its #! line, or what an ELF file says of its interpreter */
};

static const char bin[] = "node_modules/.bin";

const char *
explain_signal(int sig)
{
	/* Not SIGINT and SIGTERM: whoever sent these knows. */
	static const char *const texts[] = {
		[SIGHUP] = "SIGHUP: its terminal was closed, or somebody sent it",
		[SIGQUIT] = "SIGQUIT: sent by Ctrl-\\ or a tool that wants a dump",
		[SIGILL] = "SIGILL: an instruction that this CPU does not have, or a trap that the "
			   "program was compiled with",
		[SIGTRAP] = "SIGTRAP: a trap in the program, as fatal errors of JavaScript engines "
			    "are",
		[SIGABRT] = "SIGABRT: the program gave up itself: a failed assertion, or, in Node, "
			    "no memory left (NODE_OPTIONS=--max-old-space-size=MB)",
		[SIGBUS] = "SIGBUS: a mapped file became shorter, or there was no room left "
			   "(/dev/shm, a disk)",
		[SIGFPE] = "SIGFPE: most often a division by zero",
		[SIGKILL] = "SIGKILL: sent by the kernel when memory ran out (dmesg says so), or "
			    "by somebody (kill -9)",
		[SIGUSR1] = "SIGUSR1: sent by a program to which it means something",
		[SIGSEGV] = "SIGSEGV: the program used memory that it does not have: a fault in "
			    "it, or its stack was full (ulimit -s)",
		[SIGUSR2] = "SIGUSR2: sent by a program to which it means something",
		[SIGPIPE] = "SIGPIPE: who read what it wrote has ended",
		[SIGALRM] = "SIGALRM: a timer of its own (timeout, alarm) was over",
		[SIGXCPU] = "SIGXCPU: it used more CPU time than it may (ulimit -t)",
		[SIGXFSZ] = "SIGXFSZ: it wrote a larger file than it may (ulimit -f)",
		[SIGSYS] = "SIGSYS: a system call that a filter (seccomp) forbids",
	};

	return sig > 0 && (size_t)sig < array_len(texts) ? texts[sig] : NULL;
}

/* Where programs are looked for before all else. */
static void
add_bins(const struct exit_facts *f, struct strbuf *out)
{
	cleanup_free char *own = path_join(f->dir, bin);

	/* As PATH has it (exec/env.c). */
	if (strchr(f->root_path, ':')) {
		strbuf_addf(out, "no %s is on its PATH, as the workspace's path holds a ':'", bin);
		return;
	}
	if (strchr(f->dir, ':'))
		strbuf_addf(out, "its PATH begins with %s, without %s, whose name holds a ':'", bin,
			own);
	else
		strbuf_addf(out, "its PATH begins with %s%s%s", own, *f->dir ? " and " : "",
			*f->dir ? bin : "");
	strbuf_adds(out, ", and what other projects install is not on it");
}

/* Of a denied name that this path is, or lies below, what would allow it; NULL. */
static const struct exec_denial *
find_denial(const struct exit_facts *f, const char *path)
{
	const struct exec_result *r = f->result;

	if (path_is_within(path, f->root_path))
		path = path_below(path, f->root_path);
	for (size_t i = 0; i < r->ndenials; i++) {
		const struct exec_denial *d = &r->denials[i];

		if ((d->op == DENIAL_READ || d->op == DENIAL_LIST) && *d->path &&
			(d->class == DENIAL_FINDING || d->class == DENIAL_WALLED ||
				d->class == DENIAL_IGNORED) &&
			path_is_within(path, d->path))
			return d;
	}
	return NULL;
}

static bool
says_hidden(const struct exit_facts *f, const char *file, const char *what, struct strbuf *out)
{
	cleanup_free char *target = realpath(file, NULL);
	const struct exec_denial *d;

	if (!f->result->sandboxed)
		return false;
	d = find_denial(f, file);
	if (!d && target)
		d = find_denial(f, target);
	if (d) {
		strbuf_addf(out, "%s is hidden from it by the sandbox (%s)", what, d->path);
		if (d->grant && *d->grant)
			strbuf_addf(out, "; to allow it: %s", d->grant);
		return true;
	}
	if (path_is_within(file, "/tmp") && !path_is_within(f->root_path, "/tmp")) {
		strbuf_addf(out, "%s is hidden from it: a sandbox has a /tmp of its own", what);
		return true;
	}
	if (f->result->unreported && f->result->exit_code == NOT_FOUND) {
		strbuf_addf(out,
			"%s may be hidden from it by the sandbox, which cannot tell here "
			"(/dev/fuse)",
			what);
		return true;
	}
	return false;
}

/* The program that `env` is to look for: behind options and assignments. */
static char *
word_after_env(const char *p)
{
	for (;;) {
		size_t n;

		p += strspn(p, " \t");
		n = strcspn(p, " \t");
		if (!n)
			return NULL;
		if (*p != '-' && !memchr(p, '=', n))
			return xmemdupz(p, n);
		p += n;
	}
}

/* line: what follows "#!", ended. */
static bool
says_script(const struct exit_facts *f, const char *what, const char *line, struct strbuf *out)
{
	const char *start = line + strspn(line, " \t");
	cleanup_free char *interpreter = xmemdupz(start, strcspn(start, " \t")), *word = NULL,
			  *found = NULL;

	if (*start && start[strlen(start) - 1] == '\r') {
		strbuf_addf(out,
			"%s has lines that end in CR LF, and no interpreter is called \"%.*s\\r\": "
			"write it with LF",
			what, (int)strlen(start) - 1, start);
		return true;
	}
	if (faccessat(f->cwd, interpreter, X_OK, AT_EACCESS)) {
		strbuf_addf(out, "%s wants to be run by %s, which %s", what, interpreter,
			errno == EACCES ? "may not be executed" : "does not exist");
		return true;
	}
	if (says_hidden(f, interpreter, interpreter, out))
		return true;
	if (strcmp(path_base(interpreter), "env") != 0)
		return false;
	word = word_after_env(start + strlen(interpreter));
	found = word ? proc_find(word, f->path) : NULL;
	if (!word || found)
		return false;
	strbuf_addf(out, "%s wants to be run by %s, which is not on its PATH", what, word);
	return true;
}

/* A dynamic program whose loader is not there is "not found" itself. */
static bool
says_elf(const struct exit_facts *f, const char *what, const char *head, size_t n,
	struct strbuf *out)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (n < sizeof(eh) || head[EI_CLASS] != ELFCLASS64)
		return false;
	memcpy(&eh, head, sizeof(eh));
	for (size_t i = 0; i < eh.e_phnum; i++) {
		uint64_t at = eh.e_phoff + i * sizeof(ph);

		if (eh.e_phoff > n || at + sizeof(ph) > n)
			return false;
		memcpy(&ph, head + at, sizeof(ph));
		if (ph.p_type != PT_INTERP || ph.p_offset >= n ||
			!memchr(head + ph.p_offset, '\0', n - ph.p_offset))
			continue;
		if (!faccessat(f->cwd, head + ph.p_offset, F_OK, 0))
			return false;
		strbuf_addf(out,
			"%s needs the loader %s, which does not exist: it was made for "
			"another system",
			what, head + ph.p_offset);
		return true;
	}
	return false;
}

/* A file that is there, and is a program by its mode. */
static bool
says_file(const struct exit_facts *f, const char *what, int fd, struct strbuf *out)
{
	char head[HEAD_SIZE + 1];
	ssize_t n = read(fd, head, HEAD_SIZE);
	struct statvfs fs;

	if (!fstatvfs(fd, &fs) && (fs.f_flag & ST_NOEXEC)) {
		strbuf_addf(out, "%s lies on a file system that is mounted noexec", what);
		return true;
	}
	if (n < 0)
		return false;
	head[n] = '\0';
	if (n >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG)) {
		if (says_elf(f, what, head, (size_t)n, out))
			return true;
		if (f->result->exit_code == CANNOT_EXECUTE)
			strbuf_addf(out, "%s is no program that this machine can run", what);
		return out->len > 0;
	}
	if (n >= 2 && head[0] == '#' && head[1] == '!') {
		head[strcspn(head, "\n")] = '\0';
		return says_script(f, what, head + 2, out);
	}
	strbuf_addf(out, "%s has no #! line, so the shell took it for a script of its own", what);
	return true;
}

/* `file`: absolute; `what`: what to call it. */
static bool
says_path(const struct exit_facts *f, const char *file, const char *what, struct strbuf *out)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (stat(file, &st)) {
		strbuf_addf(out,
			errno == ENOENT || errno == ENOTDIR ? "%s does not exist%s%s"
							    : "%s cannot be looked at%s%s",
			what, *what == '/' ? "" : " in ",
			*what == '/' ? ""
			: *f->dir    ? f->dir
				     : ".");
		return true;
	}
	if (S_ISDIR(st.st_mode)) {
		strbuf_addf(out, "%s is a directory", what);
		return true;
	}
	if (says_hidden(f, file, what, out))
		return true;
	if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, file, X_OK, AT_EACCESS)) {
		strbuf_addf(out, "%s may not be executed: chmod +x", what);
		return true;
	}
	/* It may be a FIFO by now. */
	fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 && says_file(f, what, fd, out);
}

/* The first of that name on PATH, whatever it is; or where it cannot be told whether there is one. */
static char *
first_on_path(const struct exit_facts *f, const char *word, bool *ret_closed)
{
	const char *path = f->path;

	for (;;) {
		size_t n = strcspn(path, ":");
		cleanup_free char *entry = xmemdupz(path, n), *file = path_join(entry, word);
		struct stat st;
		int r = n ? stat(file, &st) : -1;

		*ret_closed = n && r && errno == EACCES;
		if (*ret_closed)
			return take_ptr(&entry);
		if (!r && !S_ISDIR(st.st_mode))
			return take_ptr(&file);
		if (!path[n])
			return NULL;
		path += n + 1;
	}
}

static void
explain_program(const struct exit_facts *f, const char *word, struct strbuf *out)
{
	cleanup_free char *file = NULL;
	bool closed = false;

	if (*word == '/') {
		says_path(f, word, word, out);
	} else if (strchr(word, '/')) {
		cleanup_free char *dir = path_join(f->root_path, f->dir),
				  *full = path_join(dir, word);

		file = path_normalise(full);
		says_path(f, file, word, out);
	} else if ((file = proc_find(word, f->path)) ||
		   ((file = first_on_path(f, word, &closed)) && !closed)) {
		says_path(f, file,
			path_is_within(file, f->root_path) ? path_below(file, f->root_path) : file,
			out);
	} else {
		strbuf_addf(out, "%s was not found: ", word);
		/* Then the shell says 126. */
		if (closed)
			strbuf_addf(out, "%s, on its PATH, may not be looked into; ", file);
		add_bins(f, out);
	}
}

char *
explain_exit(const struct exit_facts *f)
{
	const struct exec_result *r = f->result;
	struct strbuf out = STRBUF_INIT;
	const char *word, *text;
	size_t n;

	if (r->outcome != EXEC_EXITED)
		return NULL;
	if (r->exit_code > 128) {
		text = explain_signal(r->signal ? r->signal : r->exit_code - 128);
		return text ? xstrdup(text) : NULL;
	}
	if (r->exit_code != CANNOT_EXECUTE && r->exit_code != NOT_FOUND)
		return NULL;
	word = command_program(f->command, &n);
	if (word) {
		cleanup_free char *name = xmemdupz(word, n);

		explain_program(f, name, &out);
	} else if (r->exit_code == NOT_FOUND) {
		strbuf_adds(&out, "127 usually says that a program was not found: ");
		add_bins(f, &out);
	}
	return out.len ? strbuf_take(&out) : NULL;
}
