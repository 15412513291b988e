/* SPDX-License-Identifier: MIT */
#include "exec/secrets.h"
#include "graph/graph.h"
#include "util/cleanup.h"
#include "util/htab.h"
#include "util/mask.h"
#include "util/strbuf.h"
#include <strings.h>

/* Of upper case letters, whatever their case is here. Most places differ in the first. */
static bool
is_at(const char *p, size_t left, const char *word)
{
	size_t n;

	if (!left || (*p & ~0x20) != (*word & ~0x20))
		return false;
	n = strlen(word);
	return n <= left && !strncasecmp(p, word, n);
}

bool
secrets_has_name(const char *name, size_t n)
{
	static const char *const words[] = {
		"TOKEN", "SECRET", "KEY", "PASSWORD", "PASSWD", "CREDENTIAL"};
	/* Where the secret lies, or the name of a setting. */
	static const char *const places[] = {"_FILE", "_PATH", "_DIR"};

	for (size_t i = 0; i < array_len(places); i++) {
		size_t k = strlen(places[i]);

		if (n >= k && is_at(name + n - k, k, places[i]))
			return false;
	}
	if (is_at(name, n, "GIT_CONFIG_KEY_"))
		return false;
	for (size_t at = 0; at < n; at++)
		for (size_t i = 0; i < array_len(words); i++)
			if (is_at(name + at, n - at, words[i]))
				return true;
	return false;
}

static void
add_lines(struct mask *m, const char *value)
{
	mask_add(m, value, strlen(value));
	/* A log prints it line by line, and may have other ends of lines. */
	while (*value) {
		size_t n = strcspn(value, "\r\n");

		mask_add(m, value, n);
		value += n;
		value += strspn(value, "\r\n");
	}
}

static void
add(struct mask *m, const char *value)
{
	cleanup_strbuf struct strbuf doubled = STRBUF_INIT;

	add_lines(m, value);
	if (!strchr(value, '\\'))
		return;
	/* As the text of a key spells it. */
	for (; *value; value++) {
		if (*value == '\\')
			strbuf_addch(&doubled, '\\');
		strbuf_addch(&doubled, *value);
	}
	add_lines(m, doubled.buf);
}

static bool
is_secret(const struct htab *listed, const char *name, size_t n)
{
	return htab_findn(listed, name, n) || secrets_has_name(name, n);
}

struct mask *
secrets_mask(char *const *env, const struct graph *g)
{
	struct mask *m = mask_new();
	struct htab listed;

	htab_init(&listed);
	for (size_t i = 0; g && i < g->n; i++) {
		const struct taskdef *t = g->nodes[i]->def;

		for (size_t k = 0; k < t->nsecret; k++)
			htab_put(&listed, t->secret[k], NULL);
	}
	for (size_t i = 0; g && i < g->n; i++) {
		const struct taskdef *t = g->nodes[i]->def;

		for (size_t k = 0; k < t->ndefine; k++) {
			const struct define *d = &t->define[k];

			if (is_secret(&listed, d->name, strlen(d->name)))
				add(m, d->value);
		}
	}
	for (; *env; env++) {
		size_t n = strcspn(*env, "=");

		if ((*env)[n] && is_secret(&listed, *env, n))
			add(m, *env + n + 1);
	}
	htab_release(&listed);
	if (!mask_is_empty(m)) {
		mask_finish(m);
		return m;
	}
	mask_free(m);
	return NULL;
}
