/* SPDX-License-Identifier: MIT */
#include "exec/denials.h"
#include "proto/status.h"
#include "run/report-private.h"
#include "util/columns.h"
#include "util/path.h"
#include "util/proc.h"
#include <sys/random.h>

enum {
	BAR_WIDTH = 24,
	RULE_WIDTH = 60,
	STATUS_WIDTH = 15, /* "failed (exit 1)" */
	CACHE_WIDTH = 8,   /* "no-cache" */
	FINDINGS_SHOWN = 30,
	MANY_SHOWN = 3,
};

static const char *const colour_codes[] = {"0", "1", "2", "31", "32", "33", "36"};

void
report_add_coloured(const struct report *r, struct strbuf *sb, enum colour c, const char *text)
{
	if (r->colour && c != PLAIN)
		strbuf_addf(sb, "\033[%sm%s\033[0m", colour_codes[c], text);
	else
		strbuf_adds(sb, text);
}

void
report_pad(struct strbuf *out, const char *text, size_t columns)
{
	for (size_t n = columns_of(text); n < columns; n++)
		strbuf_addch(out, ' ');
}

void
report_duration(uint64_t ns, char *buf, size_t n)
{
	uint64_t ms = (ns + 500000) / 1000000;

	if (ms < 1000)
		snprintf(buf, n, "%llums", (unsigned long long)ms);
	else if (ms < 60000)
		snprintf(buf, n, "%llu.%llus", (unsigned long long)ms / 1000,
			(unsigned long long)(ms % 1000) / 100);
	else
		snprintf(buf, n, "%llum %02llus", (unsigned long long)ms / 60000,
			(unsigned long long)(ms % 60000) / 1000);
}

void
report_add_content(const struct report *r, struct strbuf *out, struct escape_state *st,
	const char *p, size_t n)
{
	if (r->colour)
		escape_strip_but_colours(st, p, n, out);
	else
		escape_strip(st, p, n, out);
}

void
report_add_streamed(
	struct report *r, struct strbuf *out, struct escape_state *st, const char *p, size_t n)
{
	size_t begin = out->len;

	if (r->colour)
		strbuf_add(out, p, n);
	else
		escape_strip(st, p, n, out);
	escape_watch(&r->screen, out->buf + begin, out->len - begin);
}

void
report_add_bar(struct strbuf *out, uint64_t part, uint64_t whole)
{
	uint64_t full = whole ? part * BAR_WIDTH / whole : 0;

	for (uint64_t i = 0; i < BAR_WIDTH; i++)
		strbuf_adds(out, i < full ? "━" : "╌");
}

void
report_add_rule(const struct report *r, struct strbuf *out, size_t used)
{
	size_t width = report_columns(r);

	width = width < RULE_WIDTH ? width : RULE_WIDTH;
	strbuf_addch(out, ' ');
	for (size_t i = used + 1; i < width; i++)
		strbuf_adds(out, "─");
}

/* Which limit it was: one of its own, or one that somebody set for all. */
static void
add_timeout(struct strbuf *out, const struct task *t)
{
	unsigned long long ms = t->timeout_ms;

	if (ms % 1000)
		strbuf_addf(out, "timed out after %llums (%s), ", ms, t->timeout_by);
	else
		strbuf_addf(out, "timed out after %llus (%s), ", ms / 1000, t->timeout_by);
}

void
report_add_outcome(struct strbuf *out, const struct task *t, const struct exec_result *res)
{
	switch (t->status) {
	case TASK_SUCCESS:
		strbuf_adds(out, task_is_serving(t) ? "ready" : "success");
		break;
	case TASK_NOOP:
		strbuf_adds(out, "@noop");
		break;
	case TASK_UNNEEDED:
		strbuf_adds(out, "not needed");
		break;
	case TASK_HIT:
		strbuf_adds(out, t->cache == CACHE_UP_TO_DATE ? "up-to-date" : "restored-local");
		break;
	case TASK_SKIPPED:
		strbuf_adds(out, "skipped");
		if (t->blocked_by)
			strbuf_addf(out, " • blocked by %s", t->blocked_by->id);
		break;
	case TASK_ABORTED:
		strbuf_adds(out, "aborted");
		break;
	case TASK_NOT_RUN:
		strbuf_adds(out, "not run");
		break;
	case TASK_FAILED:
		strbuf_adds(out, "failed (");
		if (t->never_ready)
			strbuf_adds(out, "never ready: ");
		if (t->never_ready && res && res->outcome == EXEC_NOT_STARTED) {
			/* It had no exit. */
			strbuf_adds(out, "could not be started)");
			break;
		}
		if (t->timed_out)
			add_timeout(out, t);
		strbuf_addf(out, "exit %d", t->exit_code);
		if (t->exit_code > 128 && !t->timed_out) {
			const char *name =
				proc_signal_name(t->signal ? t->signal : t->exit_code - 128);

			if (name)
				strbuf_addf(out, ", 128 + %s", name);
		}
		if (res && res->nfindings)
			strbuf_addf(out, ", %llu sandbox violation%s",
				(unsigned long long)res->nfindings, res->nfindings == 1 ? "" : "s");
		strbuf_addch(out, ')');
		break;
	}
}

void
report_outcome(struct strbuf *out, const struct task *t)
{
	report_add_outcome(out, t, NULL);
}

static enum colour
outcome_colour(const struct task *t)
{
	switch (t->status) {
	case TASK_FAILED:
		return RED;
	case TASK_SKIPPED:
	case TASK_ABORTED:
	case TASK_NOT_RUN:
	case TASK_NOOP:
	case TASK_UNNEEDED:
		return YELLOW;
	case TASK_HIT:
		return CYAN;
	case TASK_SUCCESS:
		break;
	}
	return GREEN;
}

void
report_add_frame_open(
	const struct report *r, struct strbuf *out, const struct task *t, const char *outcome)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;

	strbuf_addf(&head, "┌─ %s", t->node->id);
	if (outcome)
		strbuf_addf(&head, " > %s", outcome);
	report_add_coloured(r, out, outcome ? outcome_colour(t) : BOLD, head.buf);
	strbuf_addch(out, '\n');
	if (!t->why)
		return;
	strbuf_reset(&head);
	strbuf_addf(&head, "miss: %s", t->why);
	report_add_coloured(r, out, DIM, head.buf);
	strbuf_addch(out, '\n');
}

void
report_add_command(const struct report *r, struct strbuf *out, const char *command)
{
	const char *sign = "$ ";

	/* Of several lines each is one, behind the sign. */
	do {
		cleanup_strbuf struct strbuf line = STRBUF_INIT;
		size_t n = strcspn(command, "\n");

		strbuf_adds(&line, sign);
		strbuf_add_sanitised(&line, command, n);
		report_add_coloured(r, out, DIM, line.buf);
		strbuf_addch(out, '\n');
		sign = "  ";
		command += n;
		command += strspn(command, "\n");
	} while (*command);
}

static void
add_section(const struct report *r, struct strbuf *out, const char *title)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	strbuf_addf(&line, "├─ %s", title);
	report_add_rule(r, &line, 3 + strlen(title));
	report_add_coloured(r, out, DIM, line.buf);
	strbuf_addch(out, '\n');
}

struct content {
	const struct report *r;
	struct strbuf *out;
	struct escape_state strip[3];
	unsigned streams;
};

static void
note_stream(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	(void)p;
	if (n)
		((struct content *)ctx)->streams |= (unsigned)stream;
}

static void
add_piece(void *ctx, enum exec_stream stream, const char *p, size_t n)
{
	struct content *c = ctx;

	report_add_content(c->r, c->out, &c->strip[stream], p, n);
}

/* Both streams in the order they were read, under one heading that says which there are. */
void
report_add_captured(const struct report *r, struct strbuf *out, const struct captured *output)
{
	static const char *const titles[] = {NULL, "STDOUT", "STDERR", "STDOUT, STDERR"};
	struct content c = {.r = r, .out = out};
	struct escape_screen screen = {0};
	size_t begin;

	if (!output || captured_is_empty(output))
		return;
	captured_each(output, note_stream, &c);
	if (!c.streams)
		return;
	add_section(r, out, titles[c.streams & 3]);
	begin = out->len;
	captured_each(output, add_piece, &c);
	/* A colour that it did not take back would be that of all that follows. */
	escape_watch(&screen, out->buf + begin, out->len - begin);
	escape_put_back(&screen, out);
}

void
report_add_access(struct strbuf *out, const struct exec_denial *d)
{
	strbuf_addf(out, "%s ", denial_op_name((enum denial_op)d->op));
	strbuf_add_sanitised(out, d->path, strlen(d->path));
	if (d->target) {
		strbuf_adds(out, " -> ");
		strbuf_add_sanitised(out, d->target, strlen(d->target));
	}
	if (d->program && *d->program) {
		strbuf_adds(out, "  by ");
		strbuf_add_sanitised(out, d->program, strlen(d->program));
		if (d->pid)
			strbuf_addf(out, " (pid %u)", d->pid);
	}
}

void
report_add_denial(struct strbuf *out, const struct exec_denial *d)
{
	report_add_access(out, d);
	strbuf_addch(out, '\n');
	if (d->grant && *d->grant) {
		strbuf_adds(out, "    to allow it: ");
		strbuf_add_sanitised(out, d->grant, strlen(d->grant));
		strbuf_addch(out, '\n');
	}
}

/* Of a directory that has more than are listed a few are shown, and one grant for all. */
struct many {
	size_t rank;   /* of the one that was asked about */
	uint64_t more; /* beyond those that are shown; 0: it is none of many */
	const char *grant;
};

static struct many
find_many(const struct exec_result *res, size_t i)
{
	struct many m = {0};
	uint64_t listed = 0, counted = 0;

	for (size_t k = 0; k < res->ndenials; k++) {
		const struct exec_denial *d = &res->denials[k];

		if (!denials_are_beside(&res->denials[i], d))
			continue;
		listed++;
		m.rank += k < i;
		counted += d->nmore;
		if (d->nmore)
			m.grant = d->more_grant;
	}
	if (counted)
		m.more = listed + counted - MANY_SHOWN;
	return m;
}

static void
add_more(struct strbuf *out, const struct exec_denial *d, const struct many *m)
{
	size_t n = path_parent_len(d->path);

	strbuf_addf(out, "… and %llu more to %s in ", (unsigned long long)m->more,
		denial_op_name((enum denial_op)d->op));
	strbuf_add_sanitised(out, n ? d->path : ".", n ? n : 1);
	if (m->grant && *m->grant) {
		strbuf_adds(out, "\n    to allow all of it: ");
		strbuf_add_sanitised(out, m->grant, strlen(m->grant));
	}
	strbuf_addch(out, '\n');
}

/* Returns for how many it stands. */
static uint64_t
add_finding(struct strbuf *out, const struct exec_result *res, size_t i)
{
	const struct exec_denial *d = &res->denials[i];
	struct many m = find_many(res, i);

	if (!m.more) {
		report_add_denial(out, d);
		return 1;
	}
	if (m.rank >= MANY_SHOWN)
		return 0;
	report_add_access(out, d);
	strbuf_addch(out, '\n');
	if (m.rank + 1 < MANY_SHOWN)
		return 1;
	add_more(out, d, &m);
	return 1 + m.more;
}

void
report_add_error(const struct report *r, struct strbuf *out, const struct report_end *end)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	if (!end->error)
		return;
	strbuf_adds(&line, "vx: ");
	strbuf_add_sanitised(&line, end->error, strlen(end->error));
	report_add_coloured(r, out, RED, line.buf);
	strbuf_addch(out, '\n');
}

void
report_add_denials(const struct report *r, struct strbuf *out, const struct exec_result *res)
{
	char title[64];
	uint64_t shown = 0;
	unsigned lines = 0;

	if (!res || !res->nfindings)
		return;
	snprintf(title, sizeof(title), "SANDBOX VIOLATIONS (%llu)",
		(unsigned long long)res->nfindings);
	add_section(r, out, title);
	for (size_t i = 0; i < res->ndenials && lines < FINDINGS_SHOWN; i++) {
		uint64_t n = 0;

		if (res->denials[i].class == DENIAL_FINDING)
			n = add_finding(out, res, i);
		shown += n;
		lines += n > 0;
	}
	if (res->nfindings > shown)
		strbuf_addf(out, "… and %llu more\n", (unsigned long long)(res->nfindings - shown));
}

void
report_add_notes(const struct report *r, struct strbuf *out, const struct report_end *end)
{
	for (size_t i = 0; i < end->nnotes; i++) {
		cleanup_strbuf struct strbuf line = STRBUF_INIT;

		strbuf_adds(&line, "note: ");
		strbuf_add_sanitised(&line, end->notes[i], strlen(end->notes[i]));
		report_add_coloured(r, out, YELLOW, line.buf);
		strbuf_addch(out, '\n');
	}
}

void
report_add_frame_close(
	const struct report *r, struct strbuf *out, const struct task *t, const char *outcome)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	char time[32];

	report_duration(t->duration_ns, time, sizeof(time));
	strbuf_addf(&line, "└─ %s ── (%s) %s", t->node->id, time, outcome);
	report_add_coloured(r, out, outcome_colour(t), line.buf);
	strbuf_adds(out, "\n\n");
}

/* Of a command of GitHub Actions; `property`: one in front of the second "::". */
static void
add_escaped(struct strbuf *out, const char *s, bool property)
{
	for (; *s; s++) {
		if (strchr(property ? "%\r\n:," : "%\r\n", *s))
			strbuf_addf(out, "%%%02X", (unsigned char)*s);
		else
			strbuf_addch(out, *s);
	}
}

/* Another one each time: a task that runs may have read those that stand in the log. */
void
report_add_fence(struct report *r, struct strbuf *out)
{
	unsigned char b[16];

	if (!r->o.github)
		return;
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		bug("getrandom");
	for (size_t i = 0; i < sizeof(b); i++)
		snprintf(r->fence + 2 * i, 3, "%02x", b[i]);
	strbuf_addf(out, "::stop-commands::%s\n", r->fence);
}

void
report_add_fence_end(const struct report *r, struct strbuf *out)
{
	if (r->o.github)
		strbuf_addf(out, "::%s::\n", r->fence);
}

static void
add_frame(struct report *r, struct strbuf *out, const struct report_end *end, const char *outcome)
{
	report_add_fence(r, out);
	report_add_frame_open(r, out, end->task, outcome);
	if (end->command)
		report_add_command(r, out, end->command);
	report_add_captured(r, out, end->output);
	report_add_error(r, out, end);
	report_add_denials(r, out, end->result);
	report_add_notes(r, out, end);
	report_add_frame_close(r, out, end->task, outcome);
	report_add_fence_end(r, out);
}

void
report_add_frame_again(struct report *r, struct strbuf *out, const struct report_end *end)
{
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT;

	report_add_outcome(&outcome, end->task, end->result);
	add_frame(r, out, end, outcome.buf);
}

static void
add_folded(struct report *r, struct strbuf *out, const struct report_end *end, const char *outcome)
{
	if (r->o.github) {
		strbuf_adds(out, "::group::");
		add_escaped(out, end->task->node->id, false);
		strbuf_addf(out, " > %s\n", outcome);
	}
	add_frame(r, out, end, outcome);
	if (r->o.github)
		strbuf_adds(out, "::endgroup::\n");
}

void
report_add_attempt(
	struct report *r, struct strbuf *out, const struct report_end *end, unsigned most)
{
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT;

	report_add_outcome(&outcome, end->task, end->result);
	strbuf_addf(&outcome, ", attempt %u/%u", end->task->attempts, most);
	add_folded(r, out, end, outcome.buf);
}

/* GitHub Actions folds it, but for a failure, which is an annotation, too. */
void
report_add_frame(struct report *r, struct strbuf *out, const struct report_end *end)
{
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT;

	report_add_outcome(&outcome, end->task, end->result);
	if (!r->o.github || end->task->status != TASK_FAILED) {
		add_folded(r, out, end, outcome.buf);
		return;
	}
	strbuf_adds(out, "::error title=");
	add_escaped(out, end->task->node->id, true);
	strbuf_adds(out, "::");
	add_escaped(out, end->task->node->id, false);
	strbuf_addch(out, ' ');
	add_escaped(out, outcome.buf, false);
	strbuf_addch(out, '\n');
	add_frame(r, out, end, outcome.buf);
}

void
report_add_line(const struct report *r, struct strbuf *out, const struct report_end *end)
{
	const struct task *t = end->task;
	cleanup_strbuf struct strbuf outcome = STRBUF_INIT, left = STRBUF_INIT;
	cleanup_strbuf struct strbuf status = STRBUF_INIT, word = STRBUF_INIT;
	bool executed = t->status != TASK_SKIPPED && t->status != TASK_ABORTED &&
			t->status != TASK_NOOP && t->status != TASK_UNNEEDED;
	static const char *const words[] = {"no-cache", "miss", "fresh", "local"};
	const char *glyph = "⏺";
	char time[32];

	switch (t->status) {
	case TASK_SUCCESS:
		glyph = task_is_serving(t) ? "▸" : glyph;
		break;
	case TASK_HIT:
		glyph = t->cache == CACHE_UP_TO_DATE ? "►" : "⇢";
		break;
	case TASK_FAILED:
		glyph = "◼";
		break;
	case TASK_SKIPPED:
		glyph = "⊘";
		break;
	case TASK_ABORTED:
		glyph = "✗";
		break;
	case TASK_NOT_RUN:
		glyph = "◌";
		break;
	case TASK_NOOP:
		glyph = "∅";
		break;
	case TASK_UNNEEDED:
		glyph = "−";
		break;
	}
	report_duration(t->duration_ns, time, sizeof(time));
	report_add_outcome(&outcome, t, end->result);
	strbuf_addf(&left, "%s %7s  ", glyph, time);
	report_add_coloured(r, out, outcome_colour(t), left.buf);
	strbuf_adds(&status, outcome.buf);
	report_pad(&status, outcome.buf, STATUS_WIDTH);
	report_add_coloured(r, out, outcome_colour(t), status.buf);
	strbuf_addf(&word, "  %-*s  ", CACHE_WIDTH, executed ? words[t->cache] : "");
	report_add_coloured(r, out, DIM, word.buf);
	strbuf_adds(out, t->node->id);
	if (t->why) {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;

		strbuf_addf(&why, " · %s", t->why);
		report_add_coloured(r, out, DIM, why.buf);
	}
	strbuf_addch(out, '\n');
	report_add_notes(r, out, end);
}
