/* SPDX-License-Identifier: MIT */
/*
 * What vx-sandbox tells the core: one struct per frame type, an encoder and a decoder for each.
 * Order on the wire: VIEW, STARTED, EXIT once, LATE, PLANTED and ENTRY in any number, DONE once, end of file;
 * DENIAL in any number before EXIT, NOTE in any number before DONE. Or SETUP_ERROR once and end of file,
 * with exit code 125. A stream that ends without DONE or SETUP_ERROR means that the helper died:
 * nothing of it may be committed. docs/PROTOCOL.md has the fields.
 */
#ifndef PROTO_STATUS_H
#define PROTO_STATUS_H

#include "proto/frame.h"

struct err;

enum status_type {
	STATUS_VIEW = 1,
	STATUS_STARTED,
	STATUS_DENIAL,
	STATUS_NOTE,
	STATUS_EXIT,
	STATUS_ENTRY,
	STATUS_DONE,
	STATUS_SETUP_ERROR,
	STATUS_LATE,
	STATUS_PLANTED,
	STATUS_NOTICE, /* a NOTE that is not of the command: true of all, or many, that run here */
};

/* How the view was built: what an entry may claim about its making (design §4). */
struct status_view {
	bool reports;  /* a policy layer serves look-ups: denials are reported */
	bool detached; /* the newer start path */
	bool weaker;   /* there is no /proc (weaker-when-nested) */
};

struct status_started {
	uint32_t init_pid; /* as the helper sees it */
};

enum denial_op {
	DENIAL_READ, /* every look-up, whatever the call was */
	DENIAL_WRITE,
	DENIAL_DELETE,
	DENIAL_LIST,
	DENIAL_PROBE, /* the host has no such name */
	DENIAL_CONNECT,
	DENIAL_SOCKET,
	DENIAL_CHOWN,
};

/* The longest string of a status. Encoding a longer one is the caller's bug: a task can make paths
 * of any length and chooses its own command line, so who fills a status looks first. */
enum {
	STATUS_STRING_MAX = 128 << 10
};

const char *denial_op_name(enum denial_op op); /* "read", … */

/* A finding as the helper saw it. pid 0: not known. Strings may be empty. */
struct status_denial {
	enum denial_op op;
	uint32_t pid; /* in the sandbox's pid namespace */
	struct strbuf
		path; /* from the workspace; connect: "ADDRESS:PORT"; socket: "unix"; chown: "UID:GID" */
	struct strbuf program; /* comm */
	struct strbuf exe;
	struct strbuf cmdline; /* words joined by blanks, bounded */
};

struct status_note {
	struct strbuf text; /* one line for the user */
};

struct status_exit {
	uint32_t wstatus;         /* of the command, as wait() gave it to init */
	uint64_t user_us, sys_us; /* of all processes of the sandbox */
	uint64_t max_rss_kb;
	uint32_t nkilled; /* background processes that were still there */
};

enum entry_type {
	ENTRY_FILE,
	ENTRY_DIR,
	ENTRY_LINK,
	ENTRY_WHITEOUT,
	ENTRY_OTHER
};

/* One name that the command made, changed or removed; parents come before what is in them. In the upper
 * directory there may be more: in a directory marked `merge`, names that are as they were, which are not
 * told; and less: a whiteout is told of names that left none. */
struct status_entry {
	enum entry_type type;
	bool merge;    /* a directory that lies over one of the workspace: its other names remain */
	bool opaque;   /* a directory that replaces one of the workspace */
	uint32_t mode; /* permission bits, 07777 */
	uint64_t size;
	int64_t mtime_ns;
	struct strbuf path;   /* from the workspace */
	struct strbuf target; /* of a link */
};

/* A name that nothing grants and that came to be, while the command ran, in a directory that had been
 * granted as a whole because all names in it were: the command may have read it. A few are told. */
struct status_late {
	struct strbuf path; /* from the workspace */
};

/*
 * Of a live view, at its end: a name that is never committed (proto/never.h), or a package.json, which is
 * one or not by what it says, that came to be in a directory that the command could write in as it liked.
 */
struct status_planted {
	struct strbuf path;  /* from the workspace; outside of it: absolute */
	struct strbuf moved; /* absolute: where it is now; empty: it still stands */
};

struct status_done {
	uint64_t denials;   /* exact totals, beyond what the list was cut to */
	uint64_t elsewhere; /* of those: not told, and in no place that matters (spec.h: reports) */
	uint64_t entries;
	bool pure_changed; /* a directory taken as wholly granted changed meanwhile: not proven */
};

/* One line each. cause: what the system said and where; remedy: what to do. */
struct status_setup_error {
	struct strbuf cause;
	struct strbuf remedy;
};

struct status {
	enum status_type type;
	union {
		struct status_view view;
		struct status_started started;
		struct status_denial denial;
		struct status_note note;
		struct status_exit exit;
		struct status_entry entry;
		struct status_done done;
		struct status_late late;
		struct status_planted planted;
		struct status_setup_error setup_error;
	} u;
};

/* Zeroes and sets the type, with every strbuf of it ready. */
void status_init(struct status *s, enum status_type type);
void status_release(struct status *s);
void status_encode(const struct status *s, struct strbuf *out);
/* An unknown type, a short or over-long payload, a value outside its enum, an entry that cannot be
 * (path empty or not normal, mark of a directory on another type, target without a link): -1. ret
 * is initialised either way and the caller releases it. */
int status_decode(struct frame *f, struct status *ret, struct err *e);

#endif
