/* SPDX-License-Identifier: MIT */
#include "run/report-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/columns.h"
#include "util/err.h"
#include "util/stop.h"
#include <errno.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	REDRAW_NS = 30 * 1000 * 1000, /* at most one redraw in this time */
	TICK_NS = 200 * 1000 * 1000,  /* the times of running tasks go on */
	PENDING_MAX = 64 * 1024,
	NEAR_LINES = 20, /* so few lines later a frame is still in view */
	/* What may wait for a slow reader: before a task that streams has to wait with it; before nothing more
	 * is started; and at all. */
	STREAM_MAX = 1 << 20,
	BEHIND_MAX = 16 << 20,
	WAITING_MAX = 64 << 20,
};

struct screen {
	size_t columns, rows;
};

static struct screen
screen(void)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_col || !ws.ws_row)
		return (struct screen){80, 24};
	return (struct screen){ws.ws_col, ws.ws_row};
}

size_t
report_columns(const struct report *r)
{
	return r->tty ? screen().columns : SIZE_MAX;
}

/* To where the region begins. */
static void
add_home(struct report *r, struct strbuf *out)
{
	size_t up = 0, width = screen().columns;

	/* Where the terminal has become narrower since, it has wrapped them. */
	for (unsigned i = 0; i < r->drawn; i++)
		up += r->widths[i] > width ? (r->widths[i] + width - 1) / width : 1;
	strbuf_addf(out, "\r\033[%zuA", up);
	r->drawn = 0;
}

static void
add_erase(struct report *r, struct strbuf *out)
{
	if (!r->drawn)
		return;
	add_home(r, out);
	/* From its second line, since the first is empty: what is erased from the top of the screen, tmux takes for
	 * something that was cleared away, and keeps in what can be scrolled back to. */
	strbuf_adds(out, "\n\033[J\033[A");
}

static void
touch(struct report *r)
{
	uint64_t at;

	if (!r->tty)
		return;
	at = clock_monotonic_ns() + REDRAW_NS;
	/* It may wait for the next tick, which is later. */
	if (!r->dirty_at || at < r->dirty_at)
		r->dirty_at = at;
}

/* A task that streams makes as much as it likes, and goes at its reader's pace as it would without vx. */
static void
pace(struct report *r)
{
	bool hold = (r->live || report_is_kept(r)) && outlet_waiting(&r->out) > STREAM_MAX;

	if (r->o.loop && hold != r->holding)
		loop_hold(r->o.loop, hold);
	r->holding = hold;
	outlet_wait(&r->out, WAITING_MAX);
}

static void
out_drained(struct outlet *o)
{
	struct report *r = container_of(o, struct report, out);

	if (r->holding)
		loop_hold(r->o.loop, false);
	r->holding = false;
	touch(r);
}

void
report_flush(struct report *r)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	add_erase(r, &out);
	strbuf_add(&out, r->pending.buf, r->pending.len);
	strbuf_reset(&r->pending);
	outlet_add(&r->out, out.buf, out.len);
	pace(r);
}

void
report_emit(struct report *r, const struct strbuf *text)
{
	if (!text->len)
		return;
	strbuf_add(&r->pending, text->buf, text->len);
	for (const char *p = text->buf; r->nreplays && (p = strchr(p, '\n')); p++)
		r->lines++;
	/* Under a region text waits for the next redraw, so that both change in one write. */
	if (!r->tty || r->live || report_is_kept(r) || r->pending.len > PENDING_MAX)
		report_flush(r);
	touch(r);
}

/* One line, made safe: it may hold a file's name. */
static void add_warning(struct strbuf *out, const char *fmt, va_list ap) attr_printf(2, 0);

static void
add_warning(struct strbuf *out, const char *fmt, va_list ap)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_vaddf(&text, fmt, ap);
	strbuf_adds(out, "vx: ");
	strbuf_add_sanitised(out, text.buf, text.len);
	strbuf_addch(out, '\n');
}

void
report_warn(const char *fmt, ...)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	add_warning(&line, fmt, ap);
	va_end(ap);
	(void)!write(STDERR_FILENO, line.buf, line.len);
}

void
report_notice(struct report *r, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	va_list ap;

	report_flush(r);
	va_start(ap, fmt);
	add_warning(&line, fmt, ap);
	va_end(ap);
	outlet_add(r->err, line.buf, line.len);
	touch(r);
}

enum form {
	FORM_NOTHING,
	FORM_LINE,
	FORM_FRAME
};

/* The table of spec/cli.md §1: outcome by flow. */
static enum form
form_of(const struct report *r, const struct task *t, bool has_output)
{
	bool requested = t->surfaced;
	bool full = r->o.logs == LOGS_FULL || (r->o.logs == LOGS_BY_FLOW && r->o.flow == FLOW_CI);
	bool focused = r->o.flow == FLOW_FOCUSED && r->o.logs == LOGS_BY_FLOW;

	if (r->o.logs == LOGS_NONE || r->o.logs == LOGS_HASH)
		return FORM_NOTHING;
	if (t->status == TASK_SKIPPED)
		return FORM_LINE;
	/* Why it took so long that it was stopped may be there. */
	if (t->status == TASK_ABORTED)
		return has_output && (full || (focused && requested)) ? FORM_FRAME : FORM_LINE;
	if (t->status == TASK_UNNEEDED)
		return full ? FORM_LINE : FORM_NOTHING;
	/* That it succeeds without having done anything should not be missed. */
	if (t->status == TASK_NOOP)
		return r->o.logs == LOGS_ERRORS ? FORM_NOTHING : FORM_LINE;
	if (t->status == TASK_FAILED)
		return full || (focused && requested) ? FORM_FRAME : FORM_LINE;
	if (r->o.logs == LOGS_ERRORS)
		return FORM_NOTHING;
	if (t->status == TASK_SUCCESS) {
		if (full || (focused && requested))
			return FORM_FRAME;
		return focused ? FORM_NOTHING : FORM_LINE;
	}
	if (full)
		return has_output ? FORM_FRAME : FORM_LINE;
	return focused && requested ? FORM_FRAME : FORM_NOTHING;
}

bool
report_shows_hit(const struct report *r, const struct task *t, bool current)
{
	struct task as = *t;

	as.status = TASK_HIT;
	as.cache = current ? CACHE_UP_TO_DATE : CACHE_RESTORED;
	return form_of(r, &as, true) == FORM_FRAME;
}

static void
add_row(struct report *r, const struct task *t)
{
	GROW(r->rows, r->nrows + 1, r->rows_cap);
	r->rows[r->nrows++] = (struct row){t, clock_monotonic_ns()};
}

static void
drop_row(struct report *r, const struct task *t)
{
	for (size_t i = 0; i < r->nrows; i++) {
		if (r->rows[i].task != t)
			continue;
		memmove(&r->rows[i], &r->rows[i + 1], (r->nrows - i - 1) * sizeof(*r->rows));
		r->nrows--;
		return;
	}
}

void
report_started(struct report *r, const struct task *t, const char *command)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	add_row(r, t);
	if (r->o.flow == FLOW_FOCUSED && r->o.logs == LOGS_BY_FLOW && r->o.nrequested == 1 &&
		t->surfaced) {
		r->live = t;
		report_add_distance(r, &out);
		report_add_frame_open(r, &out, t, NULL);
		report_add_command(r, &out, command);
		report_emit(r, &out);
	}
	touch(r);
}

void
report_add_distance(struct report *r, struct strbuf *out)
{
	if (r->after_line)
		strbuf_addch(out, '\n');
	r->after_line = false;
}

static void
add_line(struct report *r, struct strbuf *out, const struct report_end *end)
{
	report_add_line(r, out, end);
	r->after_line = true;
}

static void
add_hash(struct report *r, struct strbuf *out, const struct task *t,
	const struct exec_result *result)
{
	char hex[DIGEST_HEX];

	digest_hex(&t->key, hex);
	r->after_line = true;
	report_add_outcome(out, t, result);
	strbuf_addf(out, " %s %s\n", t->node->id, t->has_key ? hex : "-");
}

void
report_ready(struct report *r, const struct task *t)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	r->done++;
	/* A frame would have no end. */
	if (r->live != t && form_of(r, t, true) != FORM_NOTHING)
		add_line(r, &out, &(struct report_end){.task = t});
	if (r->o.logs == LOGS_HASH)
		add_hash(r, &out, t, NULL);
	report_emit(r, &out);
	touch(r);
}

void
report_output(
	struct report *r, const struct task *t, enum exec_stream stream, const char *p, size_t n)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!n || report_keep_output(r, t, stream, p, n) || r->live != t)
		return;
	report_add_streamed(r, &out, &r->strip[stream], p, n);
	report_emit(r, &out);
}

void
report_denied(struct report *r, const struct task *t, const struct exec_denial *d)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (report_keep_denied(r, t, d))
		return;
	if (r->live != t) {
		report_add_access(&out, d);
		report_notice(r, "%s: denied %s%s%s", t->node->id, out.buf,
			*d->grant ? "; to allow it: " : "", d->grant);
		return;
	}
	strbuf_adds(&out, escape_is_mid_line(&r->screen) ? "\nvx: denied " : "vx: denied ");
	report_add_denial(&out, d);
	escape_watch(&r->screen, out.buf, out.len);
	report_emit(r, &out);
}

static void
add_live_close(struct report *r, struct strbuf *out, const struct report_end *end)
{
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT;

	escape_put_back(&r->screen, out);
	report_add_outcome(&outcome, end->task, end->result);
	report_add_error(r, out, end);
	report_add_denials(r, out, end->result);
	report_add_notes(r, out, end);
	report_add_frame_close(r, out, end->task, outcome.buf);
	r->live = NULL;
}

/* A failure's frame comes again above the footer, where nobody has to look for it: report_add_replays. */
static void
keep_replay(struct report *r, const struct report_end *end, bool framed)
{
	if (end->task->status != TASK_FAILED || r->o.logs == LOGS_NONE || r->o.logs == LOGS_HASH)
		return;
	GROW(r->replays, r->nreplays + 1, r->replays_cap);
	r->replays[r->nreplays] = (struct replay){STRBUF_INIT, framed, r->lines};
	report_add_frame_again(r, &r->replays[r->nreplays++].text, end);
}

/* But not what has just been printed. */
void
report_add_replays(const struct report *r, struct strbuf *out)
{
	bool said = false;

	for (size_t i = 0; i < r->nreplays; i++) {
		const struct replay *p = &r->replays[i];

		if (p->framed && r->lines - p->lines <= NEAR_LINES)
			continue;
		if (p->framed && !said) {
			cleanup_strbuf struct strbuf head = STRBUF_INIT;

			strbuf_adds(&head, "─ once more, what failed");
			report_add_rule(r, &head, strlen("- once more, what failed"));
			report_add_coloured(r, out, DIM, head.buf);
			strbuf_addch(out, '\n');
			said = true;
		}
		strbuf_add(out, p->text.buf, p->text.len);
	}
}

void
report_ended(struct report *r, const struct report_end *end)
{
	const struct task *t = end->task;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	bool has_output = end->output && !captured_is_empty(end->output);
	bool live = r->live == t;
	enum form form = form_of(r, t, has_output);

	drop_row(r, t);
	r->ncached += t->status == TASK_HIT;
	r->nfailed += t->status == TASK_FAILED;
	if (!t->is_ready)
		r->done++;
	/* It had its line when it was ready. */
	else if (form == FORM_LINE && t->status == TASK_SUCCESS)
		form = FORM_NOTHING;
	if (report_is_kept(r)) {
		report_keep_ended(r, end);
		/* Below the footer only what they print; but this mode shows what failed, and when. */
		if (t->status == TASK_FAILED && r->o.logs == LOGS_ERRORS)
			report_add_frame(r, &out, end);
		report_emit(r, &out);
		return;
	}
	if (live) {
		add_live_close(r, &out, end);
	} else {
		switch (form) {
		case FORM_FRAME:
			report_add_distance(r, &out);
			report_add_frame(r, &out, end);
			break;
		case FORM_LINE:
			add_line(r, &out, end);
			break;
		case FORM_NOTHING:
			break;
		}
	}
	if (r->o.logs == LOGS_HASH && (!t->is_ready || t->status != TASK_SUCCESS))
		add_hash(r, &out, t, end->result);
	report_emit(r, &out);
	keep_replay(r, end, live || form == FORM_FRAME);
	touch(r);
}

bool
report_attempt(struct report *r, const struct report_end *end, unsigned most)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (r->live == end->task || form_of(r, end->task, true) != FORM_FRAME)
		return false;
	report_add_distance(r, &out);
	report_add_attempt(r, &out, end, most);
	report_emit(r, &out);
	return true;
}

/* The region while it is drawn. */
struct drawing {
	struct report *r;
	struct strbuf *out;
	size_t columns;
	bool over; /* the one before, which is not erased: that would flicker */
};

static void
end_region_line(struct drawing *d, size_t width)
{
	d->r->widths[d->r->drawn++] = width;
	strbuf_adds(d->out, d->over ? "\033[K\n" : "\n");
}

/* Cut to what fits, so that it takes one line. */
static void
add_region_line(struct drawing *d, enum colour colour, const char *head, const char *rest)
{
	size_t width = columns_of(head), room = d->columns - 1, n;

	if (width >= room) {
		strbuf_add(d->out, head, columns_fit(head, room));
		end_region_line(d, room);
		return;
	}
	report_add_coloured(d->r, d->out, colour, head);
	n = columns_of(rest);
	if (n <= room - width) {
		strbuf_adds(d->out, rest);
		width += n;
	} else {
		cleanup_free char *fits = xmemdupz(rest, columns_fit(rest, room - width - 1));

		strbuf_addf(d->out, "%s…", fits);
		width += columns_of(fits) + 1;
	}
	end_region_line(d, width);
}

int
report_write_error(const struct report *r)
{
	/* A reader that went away knows what it missed. */
	return r->out.error == EPIPE ? 0 : r->out.error;
}

bool
report_is_behind(const struct report *r)
{
	return outlet_waiting(&r->out) > BEHIND_MAX;
}

bool
report_finish(struct report *r)
{
	report_flush(r);
	return (outlet_wait(&r->out, 0) && outlet_wait(r->err, 0)) || !stop_is_asked();
}

void
report_hurry(struct report *r, uint64_t ms)
{
	r->out.until_ns = r->err_out.until_ns = clock_monotonic_ns() + ms * 1000000u;
}

void
report_page(struct report *r, const struct strbuf *text)
{
	report_emit(r, text);
	r->dirty_at = 0;
}

uint64_t
report_redraw_at(const struct report *r)
{
	return r->live || report_is_kept(r) ? 0 : r->dirty_at;
}

static void
add_region_row(struct drawing *d, const struct row *row)
{
	cleanup_strbuf struct strbuf rest = STRBUF_INIT;
	char time[32], head[48];

	report_duration(clock_monotonic_ns() - row->since_ns, time, sizeof(time));
	snprintf(head, sizeof(head), "▸ %7s  ", time);
	strbuf_adds(&rest, row->task->node->id);
	if (row->task->is_ready)
		strbuf_adds(&rest, " · ready");
	add_region_line(d, CYAN, head, rest.buf);
}

static void
add_region_meter(struct drawing *d, size_t rows)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT, line = STRBUF_INIT;
	const struct report *r = d->r;

	strbuf_adds(&head, " ");
	/* The numbers say more. */
	if (d->columns >= BAR_FROM) {
		strbuf_adds(&head, " ");
		report_add_bar(&head, r->done, r->o.ntasks);
	}
	strbuf_addf(&line, " %zu/%zu tasks", r->done, r->o.ntasks);
	if (r->nfailed)
		strbuf_addf(&line, " · %zu failed", r->nfailed);
	if (r->ncached)
		strbuf_addf(&line, " · %zu cached", r->ncached);
	if (r->nrows > rows)
		strbuf_addf(&line, " · %zu more running", r->nrows - rows);
	add_region_line(d, r->nfailed ? RED : GREEN, head.buf, line.buf);
}

void
report_let_go(struct report *r)
{
	r->drawn = 0;
	touch(r);
}

void
report_redraw(struct report *r)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct screen sc = screen();
	struct drawing d;
	size_t rows = r->nrows < ROWS_MAX ? r->nrows : ROWS_MAX;

	r->dirty_at = 0;
	/* What waits is drawn no sooner by more of it: out_drained. */
	if (!r->tty || r->live || report_is_kept(r) || outlet_waiting(&r->out))
		return;
	d = (struct drawing){r, &out, sc.columns, r->drawn && !r->pending.len};
	if (d.over)
		add_home(r, &out);
	else
		add_erase(r, &out);
	strbuf_add(&out, r->pending.buf, r->pending.len);
	strbuf_reset(&r->pending);
	/* What scrolls away cannot be drawn again. */
	if (rows + 3 > sc.rows)
		rows = sc.rows > 3 ? sc.rows - 3 : 0;
	end_region_line(&d, 0);
	for (size_t i = 0; i < rows; i++)
		add_region_row(&d, &r->rows[i]);
	add_region_meter(&d, rows);
	if (d.over)
		strbuf_adds(&out, "\033[J");
	outlet_add(&r->out, out.buf, out.len);
	/* The times of the rows go on by themselves. */
	if (r->nrows)
		r->dirty_at = clock_monotonic_ns() + TICK_NS;
}

static bool
wants_colour(bool tty)
{
	const char *no = getenv("NO_COLOR"), *force = getenv("FORCE_COLOR");

	if (no && *no)
		return false;
	if (force)
		return strcmp(force, "0") && strcmp(force, "false");
	return tty;
}

static bool
is_one_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct report *
report_new(const struct report_options *o)
{
	struct report *r = xcalloc(1, sizeof(*r));
	const char *term = getenv("TERM");
	bool smart = isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;

	r->o = *o;
	r->tty = smart && o->flow != FLOW_CI && o->logs != LOGS_NONE;
	r->colour = wants_colour(smart);
	strbuf_init(&r->pending);
	outlet_init(&r->out, STDOUT_FILENO, o->loop);
	outlet_init(&r->err_out, STDERR_FILENO, o->loop);
	r->out.drained = out_drained;
	r->err = is_one_file(STDOUT_FILENO, STDERR_FILENO) ? &r->out : &r->err_out;
	touch(r);
	return r;
}

void
report_free(struct report *r)
{
	report_keep_release(r);
	report_finish(r);
	outlet_release(&r->out);
	outlet_release(&r->err_out);
	strbuf_release(&r->pending);
	for (size_t i = 0; i < r->nreplays; i++)
		strbuf_release(&r->replays[i].text);
	free(r->replays);
	free(r->rows);
	free(r);
}
