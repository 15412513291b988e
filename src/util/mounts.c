/* SPDX-License-Identifier: MIT */
#include "util/mounts.h"
#include "util/alloc.h"
#include "util/err.h"
#include "util/fd.h"
#include <stdio.h>

enum {
	MOUNTINFO_MAX = 16 << 20,
	FIELDS = 5,
};

/* Blanks, newlines and backslashes in names are octal. */
static void
unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned octal;

		if (*s == '\\' && sscanf(s + 1, "%3o", &octal) == 1) {
			*to++ = (char)octal;
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT POINT ... */
static void
add_row(struct mounts *m, char *line)
{
	char *field[FIELDS];
	unsigned long long id;

	for (size_t i = 0; i < FIELDS; i++) {
		size_t n = strcspn(line, " ");

		if (!n)
			return;
		field[i] = line;
		line += n;
		if (*line)
			*line++ = '\0';
	}
	if (sscanf(field[0], "%llu", &id) != 1)
		return;
	unescape(field[3]);
	unescape(field[4]);
	GROW(m->v, m->n + 1, m->cap);
	m->v[m->n++] = (struct mount_row){id, field[2], field[3], field[4]};
}

int
mounts_read(struct mounts *m, int procfd, const char *path, struct err *e)
{
	char *at;

	strbuf_reset(&m->text);
	m->n = 0;
	if (fd_read_file(procfd, path, MOUNTINFO_MAX, &m->text, e))
		return -1;
	for (at = m->text.buf; *at;) {
		char *end = at + strcspn(at, "\n");
		bool is_last = !*end;

		*end = '\0';
		add_row(m, at);
		at = is_last ? end : end + 1;
	}
	return 0;
}

void
mounts_release(struct mounts *m)
{
	strbuf_release(&m->text);
	free(m->v);
	m->v = NULL;
	m->n = m->cap = 0;
}

const struct mount_row *
mounts_find(const struct mounts *m, uint64_t id)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].id == id)
			return &m->v[i];
	return NULL;
}
