/* SPDX-License-Identifier: MIT */
/*
 * The state that the phases share. main.c runs them in order; two processes are at work:
 *
 *	helper	outside the namespaces: reads the spec, serves the policy layer, tells the core,
 *		scans what was written. Never touches the overlay.
 *	init	pid 1 inside: builds the view, gives up its rights, starts the command, reaps.
 *
 * init tells the helper by records on a socket (struct report), the helper tells init by single bytes
 * on a pipe. A phase that fails does not return: setup_die says the cause and the remedy.
 */
#ifndef SANDBOX_SETUP_H
#define SANDBOX_SETUP_H

#include "proto/spec.h"
#include "sandbox/host.h"
#include "sandbox/liveplan.h"
#include "sandbox/outside.h"
#include "sandbox/preload.h"
#include "util/strbuf.h"
#include <sys/stat.h>
#include <sys/types.h>

enum {
	EXIT_SETUP = 125,
	EXIT_CANNOT_EXEC = 126,
	EXIT_NOT_FOUND = 127,
};

struct ruleset;

/* Of maps_all. */
struct ids {
	unsigned unnamed; /* see host.h: struct owner */
	struct strbuf map;
};

struct setup {
	struct spec spec;
	struct ruleset *rules; /* of the spec */
	struct preload preload;
	char *foreign;         /* see foreign_find */
	struct liverules live; /* of a live view */
	struct liveplan plan;
	struct outside outside;
	uid_t uid;
	gid_t gid;
	mode_t umask;  /* the caller's, for the command */
	bool maps_all; /* root with the right to map: all ids of this namespace are mapped to
			* themselves, so that other users' files stay what they are */
	struct ids uids, gids;
	int proc; /* the caller's procfs, O_PATH, checked to be one */
	int host; /* the workspace, O_PATH, in the caller's mount namespace */
	struct stat host_st, scratch_st;
	int home;            /* the home that gets an overlay, O_PATH, as host; -1: none does */
	char *home_path;     /* canonical */
	bool own_home;       /* hermetic: an empty one, in the scratch */
	struct strvec bound; /* where Unix sockets of the host are bound, when others are granted */
	struct strvec home_stores; /* paths of the credential stores that it hides by name */
	int null;
	int lock;       /* live: the scratch, locked until the helper ends */
	int self;       /* pidfd of the helper */
	int report[2];  /* init to helper */
	int control[2]; /* helper to init: CONTROL_GO once for maps_all, then signal numbers */
	pid_t init;
	int init_pidfd;
};

enum {
	CONTROL_GO = 0xff
};

enum report_type {
	REPORT_FAILED,
	REPORT_LAYERS, /* the fds that the helper needs stand in the common table */
	REPORT_NOTE,
	REPORT_NOTICE,
	REPORT_STARTED,
	REPORT_EXIT, /* every process but init is gone */
};

/* One message. */
struct report {
	enum report_type type;
	union {
		struct {
			char cause[1400];
			char remedy[1000];
		} failed;
		struct {
			int fuse; /* the device, or -1: no policy layer */
			int fuse_mnt;
			int live; /* the device of the live view, or -1: there is none */
			int live_mnt;
			int outside; /* of what is served outside of the workspace, likewise */
			int outside_mnt;
			int wall;
			int proc;
		} layers;
		char note[1400];
		struct {
			bool detached;
			struct timespec at; /* by the clock that files are stamped with */
		} started;
		struct {
			int wstatus;
			uint64_t user_us, sys_us, max_rss_kb;
			uint32_t nkilled;
		} exit;
	} u;
};

/* setup.c */

/* From here on setup_die and setup_note go to the helper through this fd. */
void setup_report_to(int fd);
void setup_report(const struct report *r);
/* With a file that the helper is to have; -1: none. It stays open here. */
void setup_report_fd(const struct report *r, int fd);
/* The next one, or -1 with errno, EPIPE at the end; ret_fd: a file that came with it, or -1. */
int setup_take_report(int from, struct report *ret, int *ret_fd);
/* Ends this process: in init by a report, in the helper by a frame or a line. num: errno or 0. */
attr_noreturn void setup_die(int num, const char *remedy, const char *fmt, ...) attr_printf(3, 4);
void setup_note(const char *fmt, ...) attr_printf(1, 2);
/* Of what is so for all commands here, or many: said once a run. What it is stands before the first ": ". */
void setup_notice(const char *fmt, ...) attr_printf(1, 2);
struct owner setup_owner(const struct setup *s);
/* The canonical path of an open fd, owned. */
char *setup_path_of(const struct setup *s, int fd);
/* Closes every fd above 2 but these. */
void setup_keep_only(int *fds, size_t n);

/* ns.c */

/* Sets maps_all, and what there is that is not mapped. */
void ns_find_ids(struct setup *s);
/* Makes the namespaces. Returns in the helper; in init it runs `inside`, which does not return. */
void ns_start(struct setup *s, attr_noreturn void (*inside)(struct setup *s));

/* Says why namespaces are refused: the call, and its errno. */
attr_noreturn void ns_refused(const struct setup *s, const char *call, int num);

/* home.c */

/* Decides what becomes of the home directory, before there are two processes. */
void home_find(struct setup *s);

/* sockets.c */

/* Finds those that are bound, before there are two processes. */
void sockets_find(struct setup *s);

/* folds.c */

/* No workspace, and no directory that a rule names, that folds case. */
void folds_check(const struct setup *s);

/* caps.c */

/* Gives up capabilities for good: all, or for maps_all all but those that make root root over files
 * and processes. Sets no_new_privs. */
void caps_drop(const struct setup *s);

/* init.c */

/* Gives up everything, starts the command in the directory cwd, ends when it has ended. */
attr_noreturn void init_run(struct setup *s, int cwd, bool detached);

/* serve.c */

struct serve_result {
	bool ended; /* the command ran to its end: false when the namespace was killed */
	int wstatus;
	uint64_t denials, elsewhere; /* as in proto/status.h */
	struct strvec manifests;     /* of a live view: written by name, to be looked at */
	bool pure_changed;
};
/* Serves and forwards until the last process of the sandbox but init is gone. sigfd: -1 for none.
 */
void serve(struct setup *s, int sigfd, struct serve_result *ret);

/* foreign.c */

/* Once what is copied at start is known: the path of a file that the mirror is needed for; NULL: none was found.
 * Owned. */
char *foreign_find(const struct setup *s);

/* live.c */

/* Before there are two processes. */
void live_prepare(struct setup *s);
/* The last process is gone: tells what was planted, once all of it is moved out. */
void live_finish(const struct setup *s, const struct strvec *manifests, bool is_told);

/* scan.c */

/* Tells every name in the upper directory `u` of the scratch but what was copied there and is as it
 * was; returns how many. */
uint64_t scan_upper(const struct preload *p);

#endif
