/* SPDX-License-Identifier: MIT */
#include "workspace/pnpm.h"
#include "config/json.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include <errno.h>
#include <yaml.h>

/* NULL: no scalar, or one that holds a NUL. */
static const char *
scalar(const yaml_node_t *n)
{
	const char *s =
		n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;

	return s && strlen(s) == n->data.scalar.length ? s : NULL;
}

static yaml_node_t *
member(yaml_document_t *doc, const yaml_node_t *map, const char *key)
{
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const char *k = scalar(yaml_document_get_node(doc, p->key));

		if (k && !strcmp(k, key))
			return yaml_document_get_node(doc, p->value);
	}
	return NULL;
}

/* A plain word that YAML reads as null, a number or a boolean is no string; "packages: [1]" is a
 * mistake, and so is "packages:\n  -" with nothing behind the dash. */
static bool
is_string(const yaml_node_t *n)
{
	const char *s = scalar(n);

	if (!s)
		return false;
	if (n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return true;
	/* "." and ".." are no numbers, for want of a digit */
	return *s && strcmp(s, "~") && strcmp(s, "null") && strcmp(s, "true") &&
	       strcmp(s, "false") && (s[strspn(s, "0123456789.")] || !s[strspn(s, ".")]);
}

static bool
is_empty(const yaml_node_t *n)
{
	const char *s = scalar(n);

	if (!n)
		return true;
	return s && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*s || !strcmp(s, "~") || !strcmp(s, "null"));
}

static int
place_error(const char *shown, const yaml_node_t *n, struct err *e, const char *what)
{
	return err_set(e, ERR_CONFIG, 0, "%s:%zu:%zu: %s", shown, n->start_mark.line + 1,
		n->start_mark.column + 1, what);
}

/* What would be read in two ways. Package managers refuse a key that is there twice; "<<" brings in
 * those of another mapping. */
static int
check_keys(yaml_document_t *doc, const yaml_node_t *map, const char *shown, struct err *e)
{
	static const char *const keys[] = {"packages", "catalog", "catalogs"};
	bool seen[array_len(keys)] = {false};

	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *key = yaml_document_get_node(doc, p->key);
		const char *k = scalar(key);

		if (k && !strcmp(k, "<<"))
			return place_error(shown, key, e,
				"<<: vx reads no merge keys: write what it brings in");
		for (size_t i = 0; k && i < array_len(keys); i++) {
			cleanup_free char *twice = NULL;

			if (strcmp(k, keys[i]) != 0)
				continue;
			if (!seen[i]) {
				seen[i] = true;
				continue;
			}
			twice = xasprintf("%s: a second time", k);
			return place_error(shown, key, e, twice);
		}
	}
	return 0;
}

static int
read_packages(yaml_document_t *doc, const yaml_node_t *root, const char *shown, struct arena *a,
	struct pnpm *p, struct err *e)
{
	yaml_node_t *list = member(doc, root, "packages");

	if (is_empty(list))
		return 0;
	if (list->type != YAML_SEQUENCE_NODE)
		return place_error(shown, list, e, "packages: is not an array of strings");
	p->packages = arena_array(a,
		(size_t)(list->data.sequence.items.top - list->data.sequence.items.start),
		const char *);
	for (yaml_node_item_t *i = list->data.sequence.items.start;
		i < list->data.sequence.items.top; i++) {
		yaml_node_t *glob = yaml_document_get_node(doc, *i);

		if (!is_string(glob))
			return place_error(shown, glob, e, "packages: holds what is not a string");
		p->packages[p->npackages++] = arena_strdup(a, scalar(glob));
	}
	return 0;
}

static size_t
pairs(const yaml_node_t *map)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return 0;
	return (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start);
}

static void
read_catalog(yaml_document_t *doc, const yaml_node_t *map, const char *label, struct arena *a,
	struct pnpm *p)
{
	for (size_t i = 0; i < pairs(map); i++) {
		yaml_node_pair_t *pair = &map->data.mapping.pairs.start[i];
		const char *name = scalar(yaml_document_get_node(doc, pair->key));
		const char *spec = scalar(yaml_document_get_node(doc, pair->value));

		if (!name || !spec)
			continue; /* the package manager's to refuse */
		p->catalogs[p->ncatalogs++] = (struct catalog_entry){
			.catalog = label,
			.name = arena_strdup(a, name),
			.spec = arena_strdup(a, spec),
		};
	}
}

static void
read_catalogs(yaml_document_t *doc, const yaml_node_t *root, struct arena *a, struct pnpm *p)
{
	yaml_node_t *one = member(doc, root, "catalog"), *many = member(doc, root, "catalogs");
	size_t n = pairs(one);

	for (size_t i = 0; i < pairs(many); i++)
		n += pairs(yaml_document_get_node(doc, many->data.mapping.pairs.start[i].value));
	p->catalogs = arena_array(a, n, struct catalog_entry);
	read_catalog(doc, one, "default", a, p);
	for (size_t i = 0; i < pairs(many); i++) {
		yaml_node_pair_t *pair = &many->data.mapping.pairs.start[i];
		const char *label = scalar(yaml_document_get_node(doc, pair->key));

		if (label)
			read_catalog(doc, yaml_document_get_node(doc, pair->value),
				arena_strdup(a, label), a, p);
	}
}

static int
read_document(
	yaml_document_t *doc, const char *shown, struct arena *a, struct pnpm *p, struct err *e)
{
	yaml_node_t *root = yaml_document_get_root_node(doc);

	if (is_empty(root))
		return 0;
	if (root->type != YAML_MAPPING_NODE)
		return err_set(e, ERR_CONFIG, 0,
			"%s: is not a mapping; the member globs belong under \"packages:\"", shown);
	if (check_keys(doc, root, shown, e) < 0 || read_packages(doc, root, shown, a, p, e) < 0)
		return -1;
	read_catalogs(doc, root, a, p);
	return 0;
}

/* The next document of the file; its root is NULL after the last. */
static int
next_document(yaml_parser_t *parser, const char *shown, yaml_document_t *ret, struct err *e)
{
	if (yaml_parser_load(parser, ret))
		return 0;
	return err_set(e, ERR_CONFIG, 0, "%s:%zu:%zu: %s", shown, parser->problem_mark.line + 1,
		parser->problem_mark.column + 1,
		parser->problem ? parser->problem : "cannot be parsed");
}

static int
check_end(yaml_parser_t *parser, const char *shown, struct err *e)
{
	yaml_document_t doc;
	bool more;

	if (next_document(parser, shown, &doc, e) < 0)
		return -1;
	more = yaml_document_get_root_node(&doc);
	yaml_document_delete(&doc);
	return more ? err_set(e, ERR_CONFIG, 0, "%s: holds more than one document", shown) : 0;
}

static int
read_file(yaml_parser_t *parser, const char *shown, struct arena *a, struct pnpm *p, struct err *e)
{
	yaml_document_t doc;
	int r;

	if (next_document(parser, shown, &doc, e) < 0)
		return -1;
	r = read_document(&doc, shown, a, p, e);
	if (!r && yaml_document_get_root_node(&doc))
		r = check_end(parser, shown, e);
	yaml_document_delete(&doc);
	return r;
}

int
pnpm_load(int dirfd, const char *shown, struct arena *a, struct pnpm *ret, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err mine = ERR_INIT;
	struct pnpm p = {0};
	yaml_parser_t parser;
	struct stat st;
	int r;

	if (json_read(dirfd, "pnpm-workspace.yaml", shown, &text, &st, &mine) < 0)
		return mine.num == ENOENT ? 0 : err_set(e, mine.kind, 0, "%s", mine.text);
	if (!yaml_parser_initialize(&parser))
		return err_set(e, ERR_IO, ENOMEM, "read %s", shown);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.buf, text.len);
	r = read_file(&parser, shown, a, &p, e);
	yaml_parser_delete(&parser);
	if (r < 0)
		return -1;
	*ret = p;
	return 1;
}
