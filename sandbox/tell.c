/* SPDX-License-Identifier: MIT */
#include "sandbox/tell.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <errno.h>
#include <unistd.h>

enum {
	GATHER = 64 << 10
};

static int core = -1;
static struct strbuf out = STRBUF_INIT;

void
tell_init(int fd)
{
	core = fd;
	if (core >= 0)
		frame_hello(&out);
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
	case STATUS_DENIAL:
		strbuf_addf(&out, "vx-sandbox: denied %s ", denial_op_name(d->op));
		add_name(d->path.buf, d->path.len);
		strbuf_adds(&out, " by ");
		add_name(d->program.len ? d->program.buf : "unknown",
			d->program.len ? d->program.len : strlen("unknown"));
		strbuf_addf(&out, " (pid %u)\n", (unsigned)d->pid);
		break;
	case STATUS_NOTE:
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
	case STATUS_SETUP_ERROR:
		strbuf_adds(&out, "vx-sandbox: ");
		add_name(s->u.setup_error.cause.buf, s->u.setup_error.cause.len);
		if (s->u.setup_error.remedy.len) {
			strbuf_adds(&out, "; ");
			add_name(s->u.setup_error.remedy.buf, s->u.setup_error.remedy.len);
		}
		strbuf_addch(&out, '\n');
		break;
	case STATUS_VIEW:
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
	if (fd_write_all(core >= 0 ? core : STDERR_FILENO, out.buf, out.len) && core >= 0)
		_exit(125);
	strbuf_reset(&out);
}

void
tell_note(const char *text)
{
	struct status s;

	status_init(&s, STATUS_NOTE);
	strbuf_adds(&s.u.note.text, text);
	tell(&s);
	status_release(&s);
}

void
tell_setup_error(const char *cause, const char *remedy)
{
	struct status s;

	status_init(&s, STATUS_SETUP_ERROR);
	strbuf_adds(&s.u.setup_error.cause, cause);
	strbuf_adds(&s.u.setup_error.remedy, remedy);
	tell(&s);
	status_release(&s);
}
