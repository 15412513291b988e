/* SPDX-License-Identifier: MIT */
#include "util/escape.h"
#include "util/strbuf.h"

/* States of the parser: ground, after ESC, in CSI, in a string ended by BEL or ST, after ESC in such a string, after
 * ESC and an intermediate byte. */
enum {
	GROUND,
	ESCAPE,
	CSI,
	STRING,
	STRING_ESC,
	CHARSET
};

enum piece {
	PIECE_NONE,
	PIECE_TEXT,
	PIECE_SEQUENCE /* whole: escape_state.seq */
};

static void
keep(struct escape_state *st, unsigned char c)
{
	if (st->len < sizeof(st->seq))
		st->seq[st->len] = (char)c;
	if (st->len <= sizeof(st->seq))
		st->len++;
}

static unsigned char
after(const struct escape_state *st, unsigned char c)
{
	switch (st->state) {
	case ESCAPE:
		if (c == '[')
			return CSI;
		if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
			return STRING;
		return c >= 0x20 && c <= 0x2f ? CHARSET : GROUND;
	case CSI:
		return c >= 0x40 && c <= 0x7e ? GROUND : CSI;
	case STRING:
		return c == 0x07 ? GROUND : c == 0x1b ? STRING_ESC : STRING;
	case STRING_ESC:
		return c == '\\' ? GROUND : c == 0x1b ? STRING_ESC : STRING;
	default:
		return GROUND;
	}
}

/* Takes the next piece off *p; *ret_text, *ret_n: where it is text. */
static enum piece
next_piece(struct escape_state *st, const char **p, const char *end, const char **ret_text,
	size_t *ret_n)
{
	while (*p < end) {
		unsigned char c = (unsigned char)**p;

		if (st->state != GROUND && c == '\n')
			st->state = GROUND;
		if (st->state == GROUND && c != 0x1b) {
			const char *esc = memchr(*p, 0x1b, (size_t)(end - *p));

			*ret_text = *p;
			*p = esc ? esc : end;
			*ret_n = (size_t)(*p - *ret_text);
			return PIECE_TEXT;
		}
		++*p;
		if (c == 0x1b && st->state != STRING && st->state != STRING_ESC) {
			st->state = ESCAPE;
			st->len = 0;
			keep(st, c);
			continue;
		}
		keep(st, c);
		st->state = after(st, c);
		if (st->state == GROUND)
			return PIECE_SEQUENCE;
	}
	return PIECE_NONE;
}

/* Of a whole one, "\033[…" and this at its end. */
static bool
is_csi(const struct escape_state *st, char last)
{
	return st->len > 2 && st->len <= sizeof(st->seq) && st->seq[1] == '[' &&
	       st->seq[st->len - 1] == last;
}

static bool
is_colour(const struct escape_state *st)
{
	/* Without a "<=>?" in front, with which it is something else. */
	return is_csi(st, 'm') && !strchr("<=>?", st->seq[2]);
}

static void
strip(struct escape_state *st, const char *p, size_t n, bool colours, struct strbuf *out)
{
	const char *end = p + n, *text = NULL;
	enum piece piece;
	size_t len = 0;

	while ((piece = next_piece(st, &p, end, &text, &len)) != PIECE_NONE) {
		if (piece == PIECE_TEXT)
			strbuf_add(out, text, len);
		else if (colours && is_colour(st))
			strbuf_add(out, st->seq, st->len);
	}
}

void
escape_strip(struct escape_state *st, const char *p, size_t n, struct strbuf *out)
{
	strip(st, p, n, false, out);
}

void
escape_strip_but_colours(struct escape_state *st, const char *p, size_t n, struct strbuf *out)
{
	strip(st, p, n, true, out);
}

/* ------------------------------------------------------------------ what is left of them */

/* Modes of the terminal, and whether each is on when nobody has touched it. */
static const struct mode {
	unsigned number;
	bool on;
} modes[] = {
	{1049, false}, /* another screen: first, as it puts back the cursor */
	{1047, false}, {47, false}, {1, false}, /* keys */
	{7, true},                              /* lines are wrapped */
	{25, true},                             /* the cursor is seen */
	{1000, false},                          /* the mouse */
	{1002, false}, {1003, false}, {1004, false}, {1006, false},
	{2004, false}, /* what is pasted is marked */
	{2026, false}, /* nothing is drawn until it is off */
};

enum {
	SCREENS = 3 /* of them are other screens */
};

static void
set_mode(struct escape_screen *s, unsigned number, bool on)
{
	for (size_t i = 0; i < array_len(modes); i++) {
		if (modes[i].number != number)
			continue;
		s->modes &= ~(1u << i);
		if (on != modes[i].on)
			s->modes |= 1u << i;
		/* Who goes to another one begins a line there. */
		if (i < SCREENS)
			s->text = s->column = false;
	}
}

/* "\033[?1;25l" */
static void
set_modes(struct escape_screen *s, bool on)
{
	unsigned number = 0;

	for (size_t i = 3; i < s->st.len; i++) {
		char c = s->st.seq[i];

		if (c >= '0' && c <= '9') {
			number = number > 9999 ? number : number * 10 + (unsigned)(c - '0');
			continue;
		}
		set_mode(s, number, on);
		number = 0;
	}
}

static bool
is_param(const struct escape_state *st, const char *param)
{
	return (size_t)st->len - 3 == strlen(param) && !memcmp(st->seq + 2, param, strlen(param));
}

static void
note_sequence(struct escape_screen *s)
{
	const struct escape_state *st = &s->st;

	if (st->len > sizeof(st->seq))
		return;
	if (st->len == 2 && st->seq[1] == 'c') {
		*s = (struct escape_screen){0};
	} else if (st->len == 3 && st->seq[1] == '(') {
		s->charset = st->seq[2] != 'B';
	} else if (is_csi(st, 'h') || is_csi(st, 'l')) {
		if (st->seq[2] == '?')
			set_modes(s, st->seq[st->len - 1] == 'h');
	} else if (is_colour(st)) {
		s->coloured = !is_param(st, "") && !is_param(st, "0");
	} else if (is_csi(st, 'r')) {
		s->scrolls = !is_param(st, "");
	} else if (is_csi(st, 'K')) {
		if (is_param(st, "2") || (!s->column && (is_param(st, "") || is_param(st, "0"))))
			s->text = false;
	} else if (is_csi(st, 'G')) {
		s->column = !is_param(st, "") && !is_param(st, "0") && !is_param(st, "1");
	}
}

static void
note_text(struct escape_screen *s, const char *p, size_t n)
{
	const char *nl = memrchr(p, '\n', n), *cr;

	if (nl) {
		s->text = s->column = false;
		n -= (size_t)(nl + 1 - p);
		p = nl + 1;
	}
	if (!n)
		return;
	cr = memrchr(p, '\r', n);
	s->text |= !cr || n > 1;
	s->column = !cr || cr + 1 < p + n;
}

void
escape_watch(struct escape_screen *s, const char *p, size_t n)
{
	const char *end = p + n, *text = NULL;
	enum piece piece;
	size_t len = 0;

	while ((piece = next_piece(&s->st, &p, end, &text, &len)) != PIECE_NONE) {
		if (piece == PIECE_TEXT)
			note_text(s, text, len);
		else
			note_sequence(s);
	}
}

bool
escape_is_mid_line(const struct escape_screen *s)
{
	return s->text || s->column;
}

void
escape_put_back(struct escape_screen *s, struct strbuf *out)
{
	/* What has no end would take what comes next as its own: CAN breaks it off. */
	if (s->st.state != GROUND)
		strbuf_addch(out, 0x18);
	if (s->coloured)
		strbuf_adds(out, "\033[0m");
	if (s->charset)
		strbuf_adds(out, "\033(B");
	/* This moves the cursor. */
	if (s->scrolls)
		strbuf_adds(out, "\0337\033[r\0338");
	for (size_t i = 0; i < array_len(modes); i++)
		if (s->modes & 1u << i)
			strbuf_addf(out, "\033[?%u%c", modes[i].number, modes[i].on ? 'h' : 'l');
	/* The cursor is again where it was when it was left, at the start of a line. */
	if (s->modes & ((1u << SCREENS) - 1))
		s->text = s->column = false;
	if (escape_is_mid_line(s))
		strbuf_addch(out, '\n');
	*s = (struct escape_screen){0};
}
