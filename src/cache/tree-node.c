/* SPDX-License-Identifier: MIT */
#include "cache/tree-node.h"
#include "util/strbuf.h"
#include <limits.h>

static const char header[] = "vx-tree 1\n";
enum {
	HEADER_LEN = sizeof(header) - 1,
	NO_MODE_LEN = 4
};
static const char no_mode[] = "----";

void
tree_node_begin(struct strbuf *node)
{
	strbuf_add(node, header, HEADER_LEN);
}

static void
add_escaped(struct strbuf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '\n')
			strbuf_adds(out, "\\n");
		else if (*s == '\\')
			strbuf_adds(out, "\\\\");
		else
			strbuf_addch(out, *s);
	}
}

void
tree_node_add(struct strbuf *node, const struct tree_line *line)
{
	char hex[DIGEST_HEX];

	digest_hex(&line->digest, hex);
	if (line->type == OUTPUT_LINK) {
		strbuf_adds(node, "l ");
		add_escaped(node, line->name);
		strbuf_addch(node, '\0');
		add_escaped(node, line->target);
		strbuf_addch(node, '\n');
		return;
	}
	if (line->type == OUTPUT_FILE)
		strbuf_addf(node, "f %04o %s %llu ", line->mode & 0777, hex,
			(unsigned long long)line->size);
	else if (line->on_the_way)
		strbuf_addf(node, "d %s %s ", no_mode, hex);
	else
		strbuf_addf(node, "d %04o %s ", line->mode & 0777, hex);
	add_escaped(node, line->name);
	strbuf_addch(node, '\n');
}

/* Reading. */

struct cursor {
	const char *p, *end;
};

static bool
take(struct cursor *c, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, s, n) != 0)
		return false;
	c->p += n;
	return true;
}

static bool
take_mode(struct cursor *c, struct tree_line *line)
{
	if (line->type == OUTPUT_DIR && take(c, no_mode)) {
		line->on_the_way = true;
		return take(c, " ");
	}
	if (c->end - c->p < NO_MODE_LEN || *c->p != '0')
		return false;
	for (int i = 1; i < NO_MODE_LEN; i++) {
		if (c->p[i] < '0' || c->p[i] > '7')
			return false;
		line->mode = line->mode << 3 | (uint32_t)(c->p[i] - '0');
	}
	c->p += NO_MODE_LEN;
	return take(c, " ");
}

static bool
take_digest(struct cursor *c, struct digest *ret)
{
	char hex[DIGEST_HEX];

	if (c->end - c->p < DIGEST_HEX - 1)
		return false;
	memcpy(hex, c->p, DIGEST_HEX - 1);
	hex[DIGEST_HEX - 1] = '\0';
	c->p += DIGEST_HEX - 1;
	return digest_parse(hex, ret) && take(c, " ");
}

static bool
take_size(struct cursor *c, uint64_t *ret)
{
	const char *start = c->p;
	uint64_t v = 0;

	for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
		unsigned digit = (unsigned)(*c->p - '0');

		if (v > ((uint64_t)INT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	if (c->p == start || (*start == '0' && c->p - start > 1))
		return false;
	*ret = v;
	return take(c, " ");
}

/* Up to `end`, which a value cannot hold. */
static bool
take_value(struct cursor *c, char end, size_t max, struct strbuf *ret)
{
	strbuf_reset(ret);
	for (; c->p < c->end && *c->p != end; c->p++) {
		char b = *c->p;

		if (b == '\0' || b == '\n')
			return false;
		if (b == '\\') {
			if (++c->p == c->end || (*c->p != 'n' && *c->p != '\\'))
				return false;
			b = *c->p == 'n' ? '\n' : '\\';
		}
		strbuf_addch(ret, b);
	}
	if (c->p == c->end || !ret->len || ret->len > max)
		return false;
	c->p++;
	return true;
}

static bool
is_name(const struct strbuf *name)
{
	return !memchr(name->buf, '/', name->len) && strcmp(name->buf, ".") != 0 &&
	       strcmp(name->buf, "..") != 0;
}

static bool
take_line(struct cursor *c, struct tree_line *line, struct strbuf *name, struct strbuf *target)
{
	*line = (struct tree_line){0};
	if (take(c, "l ")) {
		line->type = OUTPUT_LINK;
		line->mode = 0777;
		if (!take_value(c, '\0', NAME_MAX, name) ||
			!take_value(c, '\n', PATH_MAX - 1, target))
			return false;
		line->size = target->len;
		line->target = target->buf;
	} else if (take(c, "f ")) {
		line->type = OUTPUT_FILE;
		if (!take_mode(c, line) || !take_digest(c, &line->digest) ||
			!take_size(c, &line->size) || !take_value(c, '\n', NAME_MAX, name))
			return false;
	} else if (take(c, "d ")) {
		line->type = OUTPUT_DIR;
		if (!take_mode(c, line) || !take_digest(c, &line->digest) ||
			!take_value(c, '\n', NAME_MAX, name))
			return false;
	} else {
		return false;
	}
	line->name = name->buf;
	return is_name(name);
}

bool
tree_node_parse(const char *bytes, size_t n, bool (*each)(void *ctx, const struct tree_line *line),
	void *ctx)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT, last = STRBUF_INIT, target = STRBUF_INIT;
	struct cursor c = {bytes, bytes + n};
	struct tree_line line;

	if (!take(&c, header))
		return false;
	while (c.p < c.end) {
		if (!take_line(&c, &line, &name, &target))
			return false;
		/* No name twice: what one line makes, the next could otherwise write through. */
		if (last.len && strcmp(last.buf, name.buf) >= 0)
			return false;
		if (!each(ctx, &line))
			return false;
		strbuf_reset(&last);
		strbuf_add(&last, name.buf, name.len);
	}
	return true;
}
