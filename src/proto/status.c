/* SPDX-License-Identifier: MIT */
/*
 * Encoders and decoders stand side by side, type by type, so that the order of the fields can be
 * compared by eye. docs/PROTOCOL.md repeats it for those who write the other end.
 */
#include "proto/status.h"
#include "util/err.h"
#include "util/path.h"

const char *
denial_op_name(enum denial_op op)
{
	static const char *const names[] = {
		[DENIAL_READ] = "read",
		[DENIAL_WRITE] = "write",
		[DENIAL_DELETE] = "delete",
		[DENIAL_LIST] = "list",
		[DENIAL_PROBE] = "probe",
		[DENIAL_CONNECT] = "connect",
		[DENIAL_SOCKET] = "socket",
		[DENIAL_CHOWN] = "chown",
	};

	if ((size_t)op >= array_len(names))
		bug("denial operation %d", op);
	return names[op];
}

/* The strings of a status, in wire order. */
enum {
	MAX_STRINGS = 4
};

static size_t
strings_of(const struct status *cs, struct strbuf *ret[MAX_STRINGS])
{
	struct status *s = (struct status *)(uintptr_t)cs;

	switch (s->type) {
	case STATUS_DENIAL:
		ret[0] = &s->u.denial.path;
		ret[1] = &s->u.denial.program;
		ret[2] = &s->u.denial.exe;
		ret[3] = &s->u.denial.cmdline;
		return 4;
	case STATUS_NOTE:
	case STATUS_NOTICE:
		ret[0] = &s->u.note.text;
		return 1;
	case STATUS_ENTRY:
		ret[0] = &s->u.entry.path;
		ret[1] = &s->u.entry.target;
		return 2;
	case STATUS_SETUP_ERROR:
		ret[0] = &s->u.setup_error.cause;
		ret[1] = &s->u.setup_error.remedy;
		return 2;
	case STATUS_LATE:
		ret[0] = &s->u.late.path;
		return 1;
	case STATUS_PLANTED:
		ret[0] = &s->u.planted.path;
		ret[1] = &s->u.planted.moved;
		return 2;
	case STATUS_VIEW:
	case STATUS_STARTED:
	case STATUS_EXIT:
	case STATUS_DONE:
		return 0;
	}
	bug("status type %d", s->type);
}

void
status_init(struct status *s, enum status_type type)
{
	struct strbuf *strings[MAX_STRINGS];
	size_t n;

	*s = (struct status){.type = type};
	n = strings_of(s, strings);
	for (size_t i = 0; i < n; i++)
		strbuf_init(strings[i]);
}

void
status_release(struct status *s)
{
	struct strbuf *strings[MAX_STRINGS];
	size_t n = strings_of(s, strings);

	for (size_t i = 0; i < n; i++)
		strbuf_release(strings[i]);
}

enum {
	ENTRY_MERGE = 1,
	ENTRY_OPAQUE = 2
};

static void
put_strings(const struct status *s, struct strbuf *out)
{
	struct strbuf *strings[MAX_STRINGS];
	size_t n = strings_of(s, strings);

	for (size_t i = 0; i < n; i++) {
		if (strings[i]->len > STATUS_STRING_MAX)
			bug("a status string of %zu bytes", strings[i]->len);
		frame_put_str(out, strings[i]->buf);
	}
}

static void
get_strings(struct frame *f, struct status *s)
{
	struct strbuf *strings[MAX_STRINGS];
	size_t n = strings_of(s, strings);

	for (size_t i = 0; i < n; i++)
		if (frame_get_str(f, strings[i]) && strings[i]->len > STATUS_STRING_MAX)
			f->bad = true;
}

static bool
get_bool(struct frame *f)
{
	uint8_t v = frame_get_u8(f);

	if (v > 1)
		f->bad = true;
	return v == 1;
}

/* An enum's value, below `end`. */
static uint8_t
get_enum(struct frame *f, unsigned end)
{
	uint8_t v = frame_get_u8(f);

	if (v < end)
		return v;
	f->bad = true;
	return 0;
}

static void
put_exit(const struct status_exit *x, struct strbuf *out)
{
	frame_put_u32(out, x->wstatus);
	frame_put_u64(out, x->user_us);
	frame_put_u64(out, x->sys_us);
	frame_put_u64(out, x->max_rss_kb);
	frame_put_u32(out, x->nkilled);
}

static void
get_exit(struct frame *f, struct status_exit *x)
{
	x->wstatus = frame_get_u32(f);
	x->user_us = frame_get_u64(f);
	x->sys_us = frame_get_u64(f);
	x->max_rss_kb = frame_get_u64(f);
	x->nkilled = frame_get_u32(f);
}

static void
put_entry(const struct status_entry *t, struct strbuf *out)
{
	frame_put_u8(out, (uint8_t)t->type);
	frame_put_u8(out, (uint8_t)((t->merge ? ENTRY_MERGE : 0) | (t->opaque ? ENTRY_OPAQUE : 0)));
	frame_put_u32(out, t->mode);
	frame_put_u64(out, t->size);
	frame_put_u64(out, (uint64_t)t->mtime_ns);
}

static void
get_entry(struct frame *f, struct status_entry *t)
{
	uint8_t flags;

	t->type = get_enum(f, ENTRY_OTHER + 1);
	flags = get_enum(f, ENTRY_OPAQUE + 1);
	t->merge = flags & ENTRY_MERGE;
	t->opaque = flags & ENTRY_OPAQUE;
	t->mode = frame_get_u32(f);
	t->size = frame_get_u64(f);
	t->mtime_ns = (int64_t)frame_get_u64(f);
}

static bool
entry_is_sound(const struct status_entry *t)
{
	if (!t->path.len || !path_is_normal(t->path.buf) || t->mode > 07777)
		return false;
	if ((t->merge || t->opaque) && t->type != ENTRY_DIR)
		return false;
	return (t->target.len > 0) == (t->type == ENTRY_LINK);
}

static bool
planted_is_sound(const struct status_planted *t)
{
	/* Absolute: outside of the workspace. */
	const char *path = t->path.buf + (t->path.len && *t->path.buf == '/');

	return *path && path_is_normal(path) && (!t->moved.len || *t->moved.buf == '/');
}

void
status_encode(const struct status *s, struct strbuf *out)
{
	size_t mark = frame_begin(out, (uint8_t)s->type);

	switch (s->type) {
	case STATUS_VIEW:
		frame_put_u8(out, s->u.view.reports);
		frame_put_u8(out, s->u.view.detached);
		frame_put_u8(out, s->u.view.weaker);
		break;
	case STATUS_STARTED:
		frame_put_u32(out, s->u.started.init_pid);
		break;
	case STATUS_DENIAL:
		frame_put_u8(out, (uint8_t)s->u.denial.op);
		frame_put_u32(out, s->u.denial.pid);
		break;
	case STATUS_EXIT:
		put_exit(&s->u.exit, out);
		break;
	case STATUS_ENTRY:
		put_entry(&s->u.entry, out);
		break;
	case STATUS_DONE:
		frame_put_u64(out, s->u.done.denials);
		frame_put_u64(out, s->u.done.entries);
		frame_put_u64(out, s->u.done.elsewhere);
		frame_put_u8(out, s->u.done.pure_changed);
		break;
	case STATUS_NOTE:
	case STATUS_NOTICE:
	case STATUS_SETUP_ERROR:
	case STATUS_LATE:
	case STATUS_PLANTED:
		break; /* strings only */
	}
	put_strings(s, out);
	frame_end(out, mark);
}

int
status_decode(struct frame *f, struct status *ret, struct err *e)
{
	if (f->type < STATUS_VIEW || f->type > STATUS_NOTICE) {
		status_init(ret, STATUS_VIEW);
		return err_set(e, ERR_IO, 0, "a record of unknown type %u", f->type);
	}
	status_init(ret, (enum status_type)f->type);
	switch (ret->type) {
	case STATUS_VIEW:
		ret->u.view.reports = get_bool(f);
		ret->u.view.detached = get_bool(f);
		ret->u.view.weaker = get_bool(f);
		break;
	case STATUS_STARTED:
		ret->u.started.init_pid = frame_get_u32(f);
		break;
	case STATUS_DENIAL:
		ret->u.denial.op = get_enum(f, DENIAL_CHOWN + 1);
		ret->u.denial.pid = frame_get_u32(f);
		break;
	case STATUS_EXIT:
		get_exit(f, &ret->u.exit);
		break;
	case STATUS_ENTRY:
		get_entry(f, &ret->u.entry);
		break;
	case STATUS_DONE:
		ret->u.done.denials = frame_get_u64(f);
		ret->u.done.entries = frame_get_u64(f);
		ret->u.done.elsewhere = frame_get_u64(f);
		ret->u.done.pure_changed = get_bool(f);
		break;
	case STATUS_NOTE:
	case STATUS_NOTICE:
	case STATUS_SETUP_ERROR:
	case STATUS_LATE:
	case STATUS_PLANTED:
		break; /* strings only */
	}
	get_strings(f, ret);
	if (!frame_is_done(f))
		return err_set(e, ERR_IO, 0, "a malformed record of type %u", f->type);
	if (ret->type == STATUS_ENTRY && !entry_is_sound(&ret->u.entry))
		return err_set(e, ERR_IO, 0, "a record of an entry that cannot be");
	if (ret->type == STATUS_PLANTED && !planted_is_sound(&ret->u.planted))
		return err_set(e, ERR_IO, 0, "a record of a planted name that cannot be");
	return 0;
}
