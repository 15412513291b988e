/* SPDX-License-Identifier: MIT */
#include "exec/readiness.h"
#include "util/regex.h"

void
readiness_init(struct readiness *r, const struct regex *when)
{
	*r = (struct readiness){.when = when};
	for (size_t i = 0; i < array_len(r->streams); i++)
		strbuf_init(&r->streams[i].line);
}

void
readiness_release(struct readiness *r)
{
	for (size_t i = 0; i < array_len(r->streams); i++)
		strbuf_release(&r->streams[i].line);
}

static bool
is_it(const struct readiness *r, const char *line, size_t n)
{
	if (n && line[n - 1] == '\r')
		n--;
	if (n > READINESS_LINE_MAX) {
		line += n - READINESS_LINE_MAX;
		n = READINESS_LINE_MAX;
	}
	return regex_finds(r->when, line, n);
}

bool
readiness_sees(struct readiness *r, enum exec_stream stream, const char *p, size_t n)
{
	struct strbuf *line = &r->streams[stream == EXEC_STDERR].line;
	size_t at = 0, end;

	escape_strip(&r->streams[stream == EXEC_STDERR].strip, p, n, line);
	for (const char *nl; (nl = memchr(line->buf + at, '\n', line->len - at)); at = end + 1) {
		end = (size_t)(nl - line->buf);
		if (is_it(r, line->buf + at, end - at))
			return true;
	}
	if (line->len - at > READINESS_LINE_MAX)
		at = line->len - READINESS_LINE_MAX;
	memmove(line->buf, line->buf + at, line->len - at);
	strbuf_truncate(line, line->len - at);
	return line->len && is_it(r, line->buf, line->len);
}
