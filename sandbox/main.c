/* SPDX-License-Identifier: MIT */
/*
 * vx-sandbox SPECFD STATUSFD: one sandboxed command. The spec is read from one fd, frames go to the
 * other, fd 3 brings the core's signals, 0, 1 and 2 are the command's.
 *
 * vx-sandbox --spec FILE: the same by hand. What was denied and written is printed, the scratch is
 * left as it is, nothing is committed. fd 3 is then somebody else's, signals are what the process itself is sent.
 */
#include "proto/ruleset.h"
#include "sandbox/setup.h"
#include "sandbox/tell.h"
#include "sandbox/view.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/num.h"
#include "util/path.h"
#include "util/proc.h"
#include "util/strbuf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	SIGNAL_FD = 3
};

extern char **environ;

struct arguments {
	const char *spec_file;     /* by hand */
	int spec, status, signals; /* -1: none */
};

/* Where words for the command come from when they come from no core. */
static int by_hand[2] = {-1, -1};

static void
print_usage(FILE *to)
{
	fputs("usage: vx-sandbox --spec FILE\n"
	      "       vx-sandbox SPECFD STATUSFD\n"
	      "Runs the command of a spec in a view of the spec's workspace: vx-sandbox(1).\n",
		to);
	fflush(to);
}

attr_noreturn static void
usage(void)
{
	print_usage(stderr);
	_exit(EXIT_SETUP);
}

static void
answer(const char *word)
{
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		print_usage(stdout);
	else if (!strcmp(word, "--version"))
		puts(PACKAGE_VERSION);
	else
		return;
	_exit(fflush(stdout) ? EXIT_SETUP : 0);
}

static int
parse_fd(const char *word)
{
	struct err e = ERR_INIT;
	uint64_t n;

	if (num_parse_u64(word, SIGNAL_FD + 1, 1 << 20, &n, "fd", &e) || fcntl((int)n, F_GETFD) < 0)
		usage();
	return (int)n;
}

static void
parse(int argc, char **argv, struct arguments *a)
{
	struct stat st;

	*a = (struct arguments){NULL, -1, -1, -1};
	if (argc == 2)
		answer(argv[1]);
	if (argc != 3)
		usage();
	if (!strcmp(argv[1], "--spec")) {
		a->spec_file = argv[2];
	} else {
		a->spec = parse_fd(argv[1]);
		a->status = parse_fd(argv[2]);
		if (a->spec == a->status)
			usage();
		if (!fstat(SIGNAL_FD, &st) && S_ISFIFO(st.st_mode))
			a->signals = SIGNAL_FD;
	}
}

/* What somebody who started us by hand had this process ignore: nohup, a shell's "&". The command has the
 * default back all the same. */
static bool
is_kept_ignored(int sig)
{
	struct sigaction was;

	return (sig == SIGHUP || sig == SIGINT || sig == SIGQUIT) && !sigaction(sig, NULL, &was) &&
	       was.sa_handler == SIG_IGN;
}

/*
 * First phase: nothing that we inherited may matter. The caller's environment holds secrets and
 * switches for programs; its fds could reach the command; a signal that it ignores would be ignored
 * by the command; a core dump would write the task's memory to a place that nobody granted.
 */
static void
sanitise(struct setup *s, struct arguments *a)
{
	struct sigaction def = {.sa_handler = SIG_DFL}, ign = {.sa_handler = SIG_IGN};
	struct rlimit none = {0, 0};
	int keep[3];
	sigset_t empty;

	for (char **p = environ; *p; p++)
		explicit_bzero(*p, strlen(*p));
	clearenv();
	fd_open_standard();
	/* Before the others are closed: its name may be that of one, as <(…) of a shell is. */
	if (a->spec_file && (a->spec = open(a->spec_file, O_RDONLY | O_CLOEXEC | O_NOCTTY)) < 0)
		setup_die(errno, "", "cannot open %s", a->spec_file);
	keep[0] = a->spec;
	keep[1] = a->status;
	keep[2] = a->signals;
	setup_keep_only(keep, array_len(keep));
	for (size_t i = 0; i < array_len(keep); i++)
		if (keep[i] >= 0 && fcntl(keep[i], F_SETFD, FD_CLOEXEC))
			setup_die(errno, "see the cause", "cannot use fd %d", keep[i]);
	for (int sig = 1; sig < NSIG; sig++)
		if (!a->spec_file || !is_kept_ignored(sig))
			sigaction(sig, &def, NULL);
	/* What cannot be written is an error like another. */
	sigaction(SIGPIPE, &ign, NULL);
	sigaction(SIGXFSZ, &ign, NULL);
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	if (setrlimit(RLIMIT_CORE, &none))
		setup_die(errno, "see the cause", "cannot forbid core dumps");
	s->umask = umask(0);
}

/* Everything that is later written to or read from /proc goes through this fd, which is a procfs and
 * not what somebody put in its place (security: S02). */
static void
open_proc(struct setup *s)
{
	struct statfs st;

	s->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->proc < 0 || fstatfs(s->proc, &st))
		setup_die(errno, "mount a procfs there", "cannot open /proc");
	if (st.f_type != PROC_SUPER_MAGIC)
		setup_die(0, "mount a procfs there", "/proc is no procfs");
}

/* The command sees what it writes, but not from behind. vx has its own in what it hides. */
static void
hide_scratch(struct spec *s)
{
	const char *below;

	if (!path_is_within(s->scratch, s->workspace))
		return;
	below = path_below(s->scratch, s->workspace);
	for (size_t i = 0; i < s->nrules; i++)
		if (s->rules[i].kind == SPEC_QUIET && !s->rules[i].is_glob &&
			path_is_within(below, s->rules[i].path))
			return;
	spec_add_rule(s, SPEC_QUIET, false, below);
}

static void
read_spec(struct setup *s, struct arguments *a)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err e = ERR_INIT;

	if (fd_read_all(a->spec, &text, SPEC_MAX))
		setup_die(errno, "", "cannot read the spec");
	fd_close(&a->spec);
	if (spec_decode(text.buf, text.len, &s->spec, &e))
		setup_die(0, "", "%s", e.text);
	hide_scratch(&s->spec);
	if (ruleset_new(s->spec.rules, s->spec.nrules, s->spec.cwd, &s->rules, &e))
		setup_die(0, "", "%s", e.text);
}

/* Nothing is made in what is no scratch. */
static void
check_scratch(const struct setup *s, bool is_by_hand)
{
	cleanup_dir DIR *d = opendir(".");
	const struct dirent *de;
	bool used = s->scratch_st.st_dev == s->host_st.st_dev &&
		    s->scratch_st.st_ino == s->host_st.st_ino;

	if (!d)
		setup_die(errno, "see the cause", "cannot read the scratch %s", s->spec.scratch);
	while (!used && (de = readdir(d)))
		used = strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
	if (used)
		setup_die(0, "give an empty directory, another for each command",
			"the scratch %s is in use", s->spec.scratch);
	/* overlayfs keeps its marks in these; without them it would go on, and tell less. The core has looked. */
	if (is_by_hand && setxattr(".", "user.vx.probe", "", 0, 0))
		setup_die(errno, "give one on a disk: ext4, xfs, btrfs",
			"the scratch %s cannot hold what is written", s->spec.scratch);
	if (is_by_hand)
		removexattr(".", "user.vx.probe");
}

/* The overlay's root shows the attributes of its upper directory: they are those of what it covers. */
static void
make_upper(const char *name, const struct stat *like)
{
	struct timespec times[2] = {like->st_atim, like->st_mtim};

	if (mkdir(name, 0700))
		setup_die(errno, "see the cause", "cannot make %s in the scratch", name);
	/* Only root can, and only for root does it matter: others see their own id either way. EINVAL:
	 * an id that this user namespace has no name for, which nobody in it can be given. */
	if (!geteuid() && lchown(name, like->st_uid, like->st_gid) && errno != EINVAL)
		setup_die(errno, "see the cause", "cannot give %s in the scratch its owner", name);
	if (chmod(name, like->st_mode & 07777) || utimensat(AT_FDCWD, name, times, 0))
		setup_die(errno, "see the cause", "cannot set up %s in the scratch", name);
}

static void
enter_scratch(struct setup *s)
{
	cleanup_strbuf struct strbuf remedy = STRBUF_INIT;
	int num;

	if (!chdir(s->spec.scratch) && !stat(".", &s->scratch_st))
		return;
	num = errno;
	if (num == ENOENT)
		strbuf_addf(&remedy, "make it: mkdir -p %s", s->spec.scratch);
	setup_die(num, remedy.len ? remedy.buf : "see the cause", "cannot enter the scratch %s",
		s->spec.scratch);
}

/*
 * The scratch becomes the working directory: it is the one place that both processes name their
 * files in, and the kernel carries it over into the new mount namespace, which an open fd is not.
 */
static void
open_places(struct setup *s, bool is_by_hand)
{
	struct stat st;

	s->host = open(s->spec.workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->host < 0 || fstat(s->host, &s->host_st))
		setup_die(errno, "name a directory that is there, by its path without links",
			"cannot open the workspace %s", s->spec.workspace);
	enter_scratch(s);
	check_scratch(s, is_by_hand);
	/* When the core is gone, another run may find the scratch before we have put the last into it. Not so of
	 * a transaction: there it shall be found, since a list of moves in it has to be finished. */
	if (s->spec.live)
		s->lock = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->spec.live && (s->lock < 0 || flock(s->lock, LOCK_SH | LOCK_NB)))
		setup_die(errno, "lock it shared, or not at all", "cannot lock the scratch %s",
			s->spec.scratch);
	make_upper("u", &s->host_st);
	if (mkdir("w", 0700) || mkdir("tmp", 01777))
		setup_die(errno, "see the cause", "cannot make directories in the scratch");
	home_find(s);
	if (s->home >= 0 && !fstat(s->home, &st)) {
		make_upper("hu", &st);
		if (mkdir("hw", 0700))
			setup_die(errno, "see the cause", "cannot make directories in the scratch");
	}
	s->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	s->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	/* Sockets: the listener of the filter (init.c) is handed over on it. */
	if (s->null < 0 || s->self < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->report) ||
		fd_pipe(s->control))
		setup_die(errno, "see the cause", "cannot open what the set-up needs");
}

static void
on_signal(int sig)
{
	const char *word = sig == SIGINT ? "INT\n" : sig == SIGQUIT ? "KILL\n" : "TERM\n";
	int num = errno;

	(void)!write(by_hand[1], word, strlen(word));
	errno = num;
}

static void
handle_signals(void (*fn)(int sig))
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	/* What the helper does meanwhile is not to end half done. */
	struct sigaction take = {.sa_handler = fn, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < array_len(sigs); i++)
		if (!is_kept_ignored(sigs[i]))
			sigaction(sigs[i], &take, NULL);
}

/* By hand: what a terminal, or who started it, sends to this process is for the command, which is in another
 * session. Not before there are two processes, or init would take it. */
static int
take_signals(void)
{
	if (fd_pipe(by_hand) || fd_set_nonblock(by_hand[1]))
		setup_die(errno, "see the cause", "cannot make a pipe");
	handle_signals(on_signal);
	return by_hand[0];
}

/* overlayfs leaves what it made of its own with mode 000. vx opens them when it removes a scratch; a person's `rm -r` does
 * not. The command has never seen what is in w and hw. */
static void
open_work(const struct setup *s)
{
	static const char *const names[] = {"w/work", "w/work/incompat", "w/work/incompat/volatile",
		"hw/work", "hw/work/incompat", "hw/work/incompat/volatile"};

	for (size_t i = 0; i < array_len(names); i++) {
		cleanup_close int fd =
			open(names[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		char path[32];

		snprintf(path, sizeof(path), "self/fd/%d", fd);
		if (fd >= 0)
			fchmodat(s->proc, path, 0700, 0);
	}
}

static void
tell_done(const struct serve_result *r, uint64_t entries)
{
	struct status st;

	status_init(&st, STATUS_DONE);
	st.u.done.denials = r->denials;
	st.u.done.entries = entries;
	st.u.done.elsewhere = r->elsewhere;
	st.u.done.pure_changed = r->pure_changed;
	tell(&st);
}

int
main(int argc, char **argv)
{
	/* Never released: one task's, and the kernel is faster at it. */
	static struct setup s;
	static struct serve_result result;
	struct arguments a;

	s.uid = geteuid();
	s.gid = getegid();
	strvec_init(&result.manifests);
	parse(argc, argv, &a);
	sanitise(&s, &a);
	tell_init(a.status);
	open_proc(&s);
	read_spec(&s, &a);
	ns_find_ids(&s);
	open_places(&s, a.spec_file != NULL);
	sockets_find(&s);
	outside_prepare(&s);
	folds_check(&s);
	if (s.spec.live) {
		live_prepare(&s);
	} else {
		preload(&s.preload, &s);
		s.foreign = foreign_find(&s);
	}

	ns_start(&s, view_build);
	if (a.spec_file)
		a.signals = take_signals();
	serve(&s, a.signals, &result);
	/* The command is gone. What it has planted where nothing is committed is looked for all the same. */
	if (a.spec_file && !s.spec.live && !s.outside.tops.n)
		handle_signals(SIG_DFL);
	live_finish(&s, &result.manifests, result.ended);
	if (!result.ended)
		return 128 + SIGKILL; /* no DONE: nothing of it counts */
	tell_done(&result, s.spec.live ? 0 : scan_upper(&s.preload));
	while (waitpid(s.init, NULL, 0) < 0 && errno == EINTR)
		;
	/* Not before the overlays are gone: they are theirs. */
	if (a.spec_file)
		open_work(&s);
	return proc_exit_code(result.wstatus);
}
