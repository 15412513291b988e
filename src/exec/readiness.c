/* SPDX-License-Identifier: MIT */
#include "exec/readiness.h"
#include "util/regex.h"

void
readiness_init(struct readiness *r, const struct regex *when)
{
	*r = (struct readiness){.when = when};
	strbuf_init(&r->plain);
}

void
readiness_release(struct readiness *r)
{
	for (size_t i = 0; i < array_len(r->streams); i++)
		regex_search_free(r->streams[i].search);
	strbuf_release(&r->plain);
}

/* A piece of one line, without its break. A carriage return belongs to the line only if more of it follows. */
static bool
sees_part(struct readiness_line *l, const char *p, size_t n)
{
	bool ends_in_cr = n && p[n - 1] == '\r', found = false;

	if (n && l->has_cr)
		found = regex_search_feed(l->search, "\r", 1);
	if (n)
		l->has_cr = ends_in_cr;
	return found || regex_search_feed(l->search, p, n - ends_in_cr);
}

bool
readiness_sees(struct readiness *r, enum exec_stream stream, const char *p, size_t n)
{
	struct readiness_line *l = &r->streams[stream == EXEC_STDERR];
	size_t at = 0;

	if (!l->search)
		l->search = regex_search_new(r->when);
	strbuf_reset(&r->plain);
	escape_strip(&l->strip, p, n, &r->plain);
	for (const char *nl; (nl = memchr(r->plain.buf + at, '\n', r->plain.len - at));) {
		size_t end = (size_t)(nl - r->plain.buf);

		if (sees_part(l, r->plain.buf + at, end - at) || regex_search_ends(l->search))
			return true;
		regex_search_restart(l->search);
		l->has_cr = l->has_begun = false;
		at = end + 1;
	}
	l->has_begun |= r->plain.len > at;
	return sees_part(l, r->plain.buf + at, r->plain.len - at) ||
	       (l->has_begun && regex_search_could_end(l->search));
}
