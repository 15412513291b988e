/* SPDX-License-Identifier: MIT */
#include "util/path.h"
#include "util/alloc.h"
#include "util/strbuf.h"

void
path_append(struct strbuf *sb, const char *name)
{
	if (!*name)
		return;
	if (sb->len && sb->buf[sb->len - 1] != '/')
		strbuf_addch(sb, '/');
	strbuf_adds(sb, name);
}

char *
path_join(const char *dir, const char *name)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_adds(&sb, dir);
	path_append(&sb, name);
	return strbuf_take(&sb);
}

size_t
path_parent_len(const char *path)
{
	const char *s = strrchr(path, '/');

	return s ? (size_t)(s - path) : 0;
}

const char *
path_base(const char *path)
{
	const char *s = strrchr(path, '/');

	return s ? s + 1 : path;
}

const char *
path_find(const char *path, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = path; (p = strstr(p, name)); p++)
		if ((p == path || p[-1] == '/') && (!p[n] || p[n] == '/'))
			return p;
	return NULL;
}

/* Drops the last component of a relative result; false when there is none to drop. */
static bool
drop_last(struct strbuf *out, size_t root)
{
	size_t n = out->len;

	if (n == root)
		return false;
	while (n > root && out->buf[n - 1] != '/')
		n--;
	if (!strcmp(out->buf + n, ".."))
		return false;
	strbuf_truncate(out, n > root ? n - 1 : root);
	return true;
}

char *
path_normalise(const char *path)
{
	struct strbuf out = STRBUF_INIT;
	size_t root = 0;

	if (*path == '/') {
		strbuf_addch(&out, '/');
		root = 1;
	}
	while (*path) {
		size_t n = (size_t)(strchrnul(path, '/') - path);

		if (n == 0 || (n == 1 && path[0] == '.')) {
			; /* nothing */
		} else if (n == 2 && path[0] == '.' && path[1] == '.') {
			if (!drop_last(&out, root) && !root)
				path_append(&out, "..");
		} else {
			if (out.len > root)
				strbuf_addch(&out, '/');
			strbuf_add(&out, path, n);
		}
		path += n;
		path += *path == '/';
	}
	return strbuf_take(&out);
}

bool
path_is_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (!n)
		return *path != '/';
	if (!strcmp(dir, "/"))
		return *path == '/';
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

const char *
path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	path += n;
	return *path == '/' ? path + 1 : path;
}

char *
path_relative(const char *from, const char *to)
{
	struct strbuf out = STRBUF_INIT;
	size_t common = 0, i = 0;

	for (; from[i] && from[i] == to[i]; i++)
		if (from[i] == '/')
			common = i + 1;
	if ((!from[i] || from[i] == '/') && (!to[i] || to[i] == '/'))
		common = i + (from[i] == '/');
	for (const char *p = from + (common < strlen(from) ? common : strlen(from)); *p;) {
		path_append(&out, "..");
		p += strcspn(p, "/");
		p += *p == '/';
	}
	to += common < strlen(to) ? common : strlen(to);
	if (*to == '/')
		to++;
	path_append(&out, to);
	return strbuf_take(&out);
}

bool
path_is_normal(const char *path)
{
	if (!*path)
		return true;
	for (;;) {
		size_t n = (size_t)(strchrnul(path, '/') - path);

		if (n == 0 || (n == 1 && path[0] == '.') ||
			(n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
		if (!*path)
			return true;
		path++;
	}
}
