/* SPDX-License-Identifier: MIT */
#include "sandbox/tell.h"
#include "sandbox/setup.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

enum {
	GATHER = 64 << 10
};

static int core = -1;
static struct strbuf out = STRBUF_INIT;
static size_t sent; /* of out */
static bool queueing;

void
tell_init(int fd)
{
	core = fd;
	if (core >= 0)
		frame_hello(&out);
}

static void
write_rest(void)
{
	if (fd_write_all(core >= 0 ? core : STDERR_FILENO, out.buf + sent, out.len - sent) &&
		core >= 0)
		_exit(EXIT_SETUP);
	strbuf_reset(&out);
	sent = 0;
}

static const char *
entry_word(const struct status_entry *en)
{
	switch (en->type) {
	case ENTRY_FILE:
		return "file";
	case ENTRY_DIR:
		return en->merge ? "dir (merged)" : en->opaque ? "dir (replaces)" : "dir (new)";
	case ENTRY_LINK:
		return "link";
	case ENTRY_WHITEOUT:
		return "deleted";
	case ENTRY_OTHER:
		break;
	}
	return "special";
}

static void
add_name(const char *s, size_t n)
{
	strbuf_add_sanitised(&out, s, n);
}

/* One line for a person. */
static void
put_line(const struct status *s)
{
	const struct status_denial *d = &s->u.denial;
	const struct status_entry *en = &s->u.entry;

	switch (s->type) {
	case STATUS_VIEW:
		if (!s->u.view.reports)
			strbuf_adds(&out, "vx-sandbox: note: /dev/fuse cannot be used: what is not "
					  "granted is denied all "
					  "the same, but denied reads are not printed\n");
		break;
	case STATUS_DENIAL:
		strbuf_addf(&out, "vx-sandbox: denied %s ", denial_op_name(d->op));
		add_name(d->path.buf, d->path.len);
		strbuf_adds(&out, " by ");
		add_name(d->program.len ? d->program.buf : "unknown",
			d->program.len ? d->program.len : strlen("unknown"));
		strbuf_addf(&out, " (pid %u)\n", (unsigned)d->pid);
		break;
	case STATUS_NOTE:
	case STATUS_NOTICE:
		strbuf_adds(&out, "vx-sandbox: note: ");
		add_name(s->u.note.text.buf, s->u.note.text.len);
		strbuf_addch(&out, '\n');
		break;
	case STATUS_EXIT:
		if (s->u.exit.nkilled)
			strbuf_addf(&out, "vx-sandbox: %u background process%s ended\n",
				(unsigned)s->u.exit.nkilled, s->u.exit.nkilled == 1 ? "" : "es");
		break;
	case STATUS_ENTRY:
		strbuf_addf(&out, "vx-sandbox: %s %04o ", entry_word(en), (unsigned)en->mode);
		add_name(en->path.buf, en->path.len);
		if (en->target.len) {
			strbuf_adds(&out, " -> ");
			add_name(en->target.buf, en->target.len);
		}
		strbuf_addch(&out, '\n');
		break;
	case STATUS_LATE:
		strbuf_adds(&out, "vx-sandbox: came meanwhile, not granted ");
		add_name(s->u.late.path.buf, s->u.late.path.len);
		strbuf_addch(&out, '\n');
		break;
	case STATUS_PLANTED:
		strbuf_adds(&out, "vx-sandbox: planted ");
		add_name(s->u.planted.path.buf, s->u.planted.path.len);
		strbuf_adds(&out, s->u.planted.moved.len ? ", now at " : ", which stands");
		add_name(s->u.planted.moved.buf, s->u.planted.moved.len);
		strbuf_addch(&out, '\n');
		break;
	case STATUS_SETUP_ERROR:
		strbuf_adds(&out, "vx-sandbox: ");
		add_name(s->u.setup_error.cause.buf, s->u.setup_error.cause.len);
		if (s->u.setup_error.remedy.len) {
			strbuf_adds(&out, "; ");
			add_name(s->u.setup_error.remedy.buf, s->u.setup_error.remedy.len);
		}
		strbuf_addch(&out, '\n');
		break;
	case STATUS_STARTED:
	case STATUS_DONE:
		break;
	}
}

void
tell(const struct status *s)
{
	if (core >= 0)
		status_encode(s, &out);
	else
		put_line(s);
	if (s->type == STATUS_ENTRY && out.len < GATHER)
		return;
	/* Queued, it goes out when the loop polls next, and in larger pieces: who asks much at once is denied much
	 * at once. */
	if (!queueing || core < 0)
		write_rest();
	else if (tell_queued() >= GATHER)
		tell_more();
}

int
tell_fd(void)
{
	return out.len > sent ? core : -1;
}

size_t
tell_queued(void)
{
	return out.len - sent;
}

/* A pipe that is ready takes PIPE_BUF bytes without a wait. */
void
tell_more(void)
{
	struct pollfd p = {core, POLLOUT, 0};

	while (out.len > sent && poll(&p, 1, 0) > 0) {
		size_t n = out.len - sent < PIPE_BUF ? out.len - sent : PIPE_BUF;
		ssize_t done = write(core, out.buf + sent, n);

		if (done < 0 && errno != EINTR)
			_exit(EXIT_SETUP);
		sent += done > 0 ? (size_t)done : 0;
	}
	/* A queue that is never empty must not grow by what has left it. */
	if (sent && sent >= out.len - sent) {
		memmove(out.buf, out.buf + sent, out.len - sent);
		strbuf_truncate(&out, out.len - sent);
		sent = 0;
	}
}

void
tell_queue(bool on)
{
	queueing = on;
	if (!on)
		write_rest();
}

void
tell_note(enum status_type type, const char *text)
{
	struct status s;

	status_init(&s, type);
	strbuf_adds(&s.u.note.text, text);
	tell(&s);
	status_release(&s);
}

void
tell_setup_error(const char *cause, const char *remedy)
{
	struct status s;

	tell_queue(false);
	status_init(&s, STATUS_SETUP_ERROR);
	strbuf_adds(&s.u.setup_error.cause, cause);
	strbuf_adds(&s.u.setup_error.remedy, remedy);
	tell(&s);
	status_release(&s);
}
