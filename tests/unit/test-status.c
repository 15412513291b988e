/* SPDX-License-Identifier: MIT */
#include "proto/status.h"
#include "tests/tap.h"

/* Through the wire and back; the second encoding must be the first. */
static void
round_trip(const struct status *s, struct status *ret, const char *name)
{
	cleanup_strbuf struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
	struct frame_reader r = FRAME_READER_INIT;
	struct err e = ERR_INIT;
	struct frame f;

	frame_hello(&first);
	frame_hello(&second);
	status_encode(s, &first);
	frame_reader_feed(&r, first.buf, first.len);
	if (!ok(frame_reader_next(&r, &f, &e) == 1, "%s: framed", name))
		exit(1);
	ok_int(status_decode(&f, ret, &e), 0, name);
	if (err_is_set(&e))
		diag("%s", e.text);
	status_encode(ret, &second);
	ok(first.len == second.len && !memcmp(first.buf, second.buf, first.len), "%s: the same",
		name);
	frame_reader_release(&r);
}

static void
test_all_types(void)
{
	struct status s, b;

	status_init(&s, STATUS_VIEW);
	s.u.view.detached = s.u.view.weaker = true;
	round_trip(&s, &b, "view");
	ok(!b.u.view.reports && b.u.view.detached && b.u.view.weaker, "view: fields");

	status_init(&s, STATUS_STARTED);
	s.u.started.init_pid = 4711;
	round_trip(&s, &b, "started");
	ok_int(b.u.started.init_pid, 4711, "started: pid");

	status_init(&s, STATUS_DENIAL);
	s.u.denial.op = DENIAL_SOCKET;
	s.u.denial.pid = 9;
	strbuf_adds(&s.u.denial.path, "priv/key");
	strbuf_adds(&s.u.denial.program, "cat");
	strbuf_adds(&s.u.denial.exe, "/usr/bin/cat");
	strbuf_adds(&s.u.denial.cmdline, "cat priv/key");
	round_trip(&s, &b, "denial");
	ok(b.u.denial.op == DENIAL_SOCKET && b.u.denial.pid == 9, "denial: numbers");
	ok_str(b.u.denial.path.buf, "priv/key", "denial: path");
	ok_str(b.u.denial.program.buf, "cat", "denial: program");
	ok_str(b.u.denial.exe.buf, "/usr/bin/cat", "denial: exe");
	ok_str(b.u.denial.cmdline.buf, "cat priv/key", "denial: command line");
	status_release(&b);
	status_release(&s);

	status_init(&s, STATUS_NOTE);
	strbuf_adds(&s.u.note.text, "a note");
	round_trip(&s, &b, "note");
	ok_str(b.u.note.text.buf, "a note", "note: text");
	status_release(&s);
	status_release(&b);
	status_init(&s, STATUS_NOTICE);
	strbuf_adds(&s.u.note.text, "a notice");
	round_trip(&s, &b, "notice");
	ok_str(b.u.note.text.buf, "a notice", "notice: text");
	status_release(&b);
	status_release(&s);

	status_init(&s, STATUS_EXIT);
	s.u.exit = (struct status_exit){0x100, 1, (uint64_t)1 << 40, 3, 4};
	round_trip(&s, &b, "exit");
	ok(!memcmp(&b.u.exit, &s.u.exit, sizeof(s.u.exit)), "exit: fields");

	status_init(&s, STATUS_ENTRY);
	s.u.entry.type = ENTRY_DIR;
	s.u.entry.opaque = true;
	s.u.entry.mode = 07755;
	s.u.entry.size = 4096;
	s.u.entry.mtime_ns = -1;
	strbuf_adds(&s.u.entry.path, "dist/a");
	round_trip(&s, &b, "entry");
	ok(b.u.entry.type == ENTRY_DIR && b.u.entry.opaque && !b.u.entry.merge, "entry: marks");
	ok(b.u.entry.mode == 07755 && b.u.entry.size == 4096, "entry: mode and size");
	ok_int(b.u.entry.mtime_ns, -1, "entry: a time before 1970");
	ok_str(b.u.entry.path.buf, "dist/a", "entry: path");
	status_release(&b);
	status_release(&s);

	status_init(&s, STATUS_DONE);
	s.u.done = (struct status_done){
		.denials = 3, .elsewhere = 1, .entries = 2, .pure_changed = true};
	round_trip(&s, &b, "done");
	ok(b.u.done.denials == 3 && b.u.done.elsewhere == 1 && b.u.done.entries == 2 &&
			b.u.done.pure_changed,
		"done: fields");

	status_init(&s, STATUS_PLANTED);
	strbuf_adds(&s.u.planted.path, "out/.husky");
	strbuf_adds(&s.u.planted.moved, "/scratch/out/0-.husky");
	round_trip(&s, &b, "planted");
	ok_str(b.u.planted.path.buf, "out/.husky", "planted: path");
	ok_str(b.u.planted.moved.buf, "/scratch/out/0-.husky", "planted: where it is");
	status_release(&b);
	strbuf_reset(&s.u.planted.path);
	strbuf_adds(&s.u.planted.path, "/srv/.husky");
	round_trip(&s, &b, "planted outside");
	ok_str(b.u.planted.path.buf, "/srv/.husky", "planted: a path outside of the workspace");
	status_release(&b);
	status_release(&s);

	status_init(&s, STATUS_LATE);
	strbuf_adds(&s.u.late.path, "src/gen.js");
	round_trip(&s, &b, "late");
	ok_str(b.u.late.path.buf, "src/gen.js", "late: path");
	status_release(&b);
	status_release(&s);

	status_init(&s, STATUS_SETUP_ERROR);
	strbuf_adds(&s.u.setup_error.cause, "user namespaces are off");
	round_trip(&s, &b, "setup error");
	ok_str(b.u.setup_error.cause.buf, "user namespaces are off", "setup error: cause");
	ok_str(b.u.setup_error.remedy.buf, "", "setup error: an empty remedy");
	status_release(&b);
	status_release(&s);
}

static void
refused(uint8_t type, const void *p, size_t n, const char *name)
{
	struct frame f = {type, p, n, false};
	struct err e = ERR_INIT;
	struct status s;

	ok_int(status_decode(&f, &s, &e), -1, name);
	ok_err(&e, "a ", name);
	status_release(&s);
}
#define REFUSED(type, bytes, name) refused(type, bytes, sizeof(bytes) - 1, name)
#define REST                                                                                       \
	"\0\0\0\0"                                                                                 \
	"\0\0\0\0\0\0\0\0"                                                                         \
	"\0\0\0\0\0\0\0\0"

static void
accepted(const void *p, size_t n, const char *name)
{
	struct frame f = {STATUS_ENTRY, p, n, false};
	struct err e = ERR_INIT;
	struct status s;

	ok_int(status_decode(&f, &s, &e), 0, name);
	status_release(&s);
}
#define ACCEPTED(bytes, name) accepted(bytes, sizeof(bytes) - 1, name)

static void
test_refusals(void)
{
	REFUSED(0, "", "type 0");
	REFUSED(11, "", "an unknown type");
	REFUSED(STATUS_PLANTED, "\0\0\0\0\0\0\0\0", "a planted name that is none");
	REFUSED(STATUS_PLANTED, "\4\0\0\0../a\0\0\0\0", "one that climbs");
	REFUSED(STATUS_PLANTED, "\5\0\0\0/../a\0\0\0\0", "one that climbs from the root");
	REFUSED(STATUS_PLANTED, "\1\0\0\0/\0\0\0\0", "the root");
	REFUSED(STATUS_PLANTED, "\1\0\0\0a\1\0\0\0b", "one that was moved who knows where");
	REFUSED(STATUS_VIEW, "\1\1", "a short record");
	REFUSED(STATUS_VIEW, "\1\1\1\1", "a long record");
	REFUSED(STATUS_VIEW, "\1\1\2", "a bool of 2");
	REFUSED(STATUS_DENIAL, "\7\0\0\0\0" REST, "an unknown operation");
	REFUSED(STATUS_NOTE, "\1\0\0\0\0", "a NUL in a text");
	ACCEPTED("\0\0" REST "\1\0\0\0a\0\0\0\0", "an entry that can be");
	ACCEPTED("\2\0" REST "\1\0\0\0a\1\0\0\0b", "a link");
	ACCEPTED("\1\2" REST "\1\0\0\0a\0\0\0\0", "an opaque directory");
	REFUSED(STATUS_ENTRY, "\5\0" REST "\1\0\0\0a\0\0\0\0", "an unknown entry type");
	REFUSED(STATUS_ENTRY, "\1\3" REST "\1\0\0\0a\0\0\0\0", "merge and opaque at once");
	REFUSED(STATUS_ENTRY, "\0\1" REST "\1\0\0\0a\0\0\0\0", "a file to merge");
	REFUSED(STATUS_ENTRY, "\0\0" REST "\1\0\0\0a\1\0\0\0b", "a file with a target");
	REFUSED(STATUS_ENTRY, "\2\0" REST "\1\0\0\0a\0\0\0\0", "a link without one");
	REFUSED(STATUS_ENTRY, "\0\0" REST "\0\0\0\0\0\0\0\0", "no path");
	REFUSED(STATUS_ENTRY, "\0\0" REST "\4\0\0\0../a\0\0\0\0", "a path that climbs");
	REFUSED(STATUS_ENTRY, "\0\0" REST "\2\0\0\0/a\0\0\0\0", "an absolute path");
	REFUSED(STATUS_ENTRY,
		"\0\0"
		"\0\x10\0\0"
		"\0\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0"
		"\1\0\0\0a\0\0\0\0",
		"a file type in the mode");
}

/* A record that fits the frame but whose text is longer than any status may have. */
static void
test_long_text(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT, wire = STRBUF_INIT;
	struct frame f = {STATUS_NOTE, NULL, 0, false};
	struct err e = ERR_INIT;
	struct status s;

	for (size_t i = 0; i <= STATUS_STRING_MAX; i++)
		strbuf_addch(&text, 'x');
	frame_put_str(&wire, text.buf);
	f.p = (const uint8_t *)wire.buf;
	f.n = wire.len;
	ok_int(status_decode(&f, &s, &e), -1, "a text over the limit");
	status_release(&s);
}

int
main(void)
{
	test_all_types();
	test_refusals();
	test_long_text();
	ok_str(denial_op_name(DENIAL_READ), "read", "names of operations");
	ok_str(denial_op_name(DENIAL_CHOWN), "chown", "to the last");
	return tap_done();
}
