/* SPDX-License-Identifier: MIT */
#include "workspace/manifest.h"
#include "config/json.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"
#include "util/utf8.h"
#include <errno.h>

static const struct {
	const char *field;
	enum manifest_bucket bucket;
} buckets[] = {
	{"dependencies", MANIFEST_DEPS},
	{"devDependencies", MANIFEST_DEV},
	{"optionalDependencies", MANIFEST_OPTIONAL},
	{"peerDependencies", MANIFEST_PEER},
};

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *
manifest_name_fault(const char *name)
{
	size_t n = strlen(name);

	/* Names stand in lines of output and in JSON. */
	if (utf8_has_control(name))
		return "holds a control character";
	if (!utf8_is_valid(name, n))
		return "is not UTF-8";
	if (n && (is_blank(name[0]) || is_blank(name[n - 1])))
		return "has blanks around it";
	if (strchr(name, '#'))
		return "holds a \"#\", which separates project and task";
	if (*name == '!')
		return "begins with \"!\", which leaves out what follows";
	if (*name == '^')
		return "begins with \"^\", which means the dependencies";
	return !strcmp(name, "//") ? "means the root project" : NULL;
}

int
manifest_check_name(const char *name, const char *shown, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	const char *fault = manifest_name_fault(name);

	if (!fault)
		return 0;
	strbuf_add_sanitised(&text, shown, strlen(shown));
	strbuf_adds(&text, ": name \"");
	strbuf_add_sanitised(&text, name, strlen(name));
	return err_set(e, ERR_CONFIG, 0, "%s\" %s", text.buf, fault);
}

/* npm itself reads past an empty list or null where an object of dependencies belongs. */
static bool
is_absent(const json_t *v)
{
	return !v || json_is_null(v) || (json_is_array(v) && !json_array_size(v));
}

static int
read_deps(const struct json_doc *doc, struct arena *a, struct manifest *m, struct err *e)
{
	size_t max = 0;

	for (size_t i = 0; i < array_len(buckets); i++)
		max += json_object_size(json_object_get(doc->root, buckets[i].field));
	m->deps = arena_array(a, max, struct manifest_dep);
	for (size_t i = 0; i < array_len(buckets); i++) {
		const json_t *bucket = json_object_get(doc->root, buckets[i].field);
		struct json_at at = {.doc = doc, .key = buckets[i].field};

		if (is_absent(bucket))
			continue;
		if (!json_is_object(bucket))
			return json_error(&at, e, "is not an object of package names and versions");
		for (size_t k = 0; k < bucket->n; k++) {
			const json_t *spec = &bucket->items[k];
			struct json_at here = {.doc = doc, .up = &at, .key = spec->key};

			if (!json_is_string(spec))
				return json_error(&here, e, "is not a string");
			m->deps[m->ndeps++] = (struct manifest_dep){
				.bucket = buckets[i].bucket,
				.name = arena_strdup(a, spec->key),
				.spec = arena_strdup(a, spec->text),
			};
		}
	}
	return 0;
}

static int
read_globs(const struct json_at *at, const json_t *list, struct arena *a, struct manifest *m,
	struct err *e)
{
	if (!json_is_array(list))
		return json_error(at, e, "is not an array of strings");
	m->workspaces = arena_array(a, json_array_size(list), const char *);
	for (size_t i = 0; i < list->n; i++) {
		const json_t *glob = &list->items[i];
		struct json_at here = {.doc = at->doc, .up = at, .index = i};

		if (!json_is_string(glob))
			return json_error(&here, e, "is not a string");
		m->workspaces[m->nworkspaces++] = arena_strdup(a, glob->text);
	}
	return 0;
}

static int
read_workspaces(const struct json_doc *doc, struct arena *a, struct manifest *m, struct err *e)
{
	const json_t *v = json_object_get(doc->root, "workspaces"), *packages;
	struct json_at at = {.doc = doc, .key = "workspaces"};
	struct json_at inner = {.doc = doc, .up = &at, .key = "packages"};

	if (!v)
		return 0;
	m->has_workspaces = true;
	if (!json_is_object(v))
		return read_globs(&at, v, a, m, e);
	packages = json_object_get(v, "packages");
	return packages ? read_globs(&inner, packages, a, m, e) : 0;
}

static size_t
count_catalogs(const json_t *holder)
{
	const json_t *named = json_object_get(holder, "catalogs");
	size_t n = json_object_size(json_object_get(holder, "catalog"));

	for (size_t i = 0; i < json_object_size(named); i++)
		n += json_object_size(&named->items[i]);
	return n;
}

static void
read_catalog(const json_t *catalog, const char *label, struct arena *a, struct manifest *m)
{
	for (size_t i = 0; i < json_object_size(catalog); i++) {
		const json_t *spec = &catalog->items[i];

		if (!json_is_string(spec))
			continue; /* the package manager's to refuse */
		m->catalogs[m->ncatalogs++] = (struct catalog_entry){
			.catalog = label,
			.name = arena_strdup(a, spec->key),
			.spec = arena_strdup(a, spec->text),
		};
	}
}

/* bun: `catalog` and `catalogs` stand in the root manifest or in its `workspaces`. */
static void
read_catalogs(const json_t *root, struct arena *a, struct manifest *m)
{
	const json_t *holders[] = {root, json_object_get(root, "workspaces")};
	size_t n = count_catalogs(holders[0]) + count_catalogs(holders[1]);

	if (!n)
		return;
	m->catalogs = arena_array(a, n, struct catalog_entry);
	for (size_t i = 0; i < array_len(holders); i++) {
		const json_t *named = json_object_get(holders[i], "catalogs");

		read_catalog(json_object_get(holders[i], "catalog"), "default", a, m);
		for (size_t k = 0; k < json_object_size(named); k++)
			read_catalog(&named->items[k], arena_strdup(a, named->items[k].key), a, m);
	}
}

static int
read_manifest(const struct json_doc *doc, struct arena *a, struct manifest *m, struct err *e)
{
	const json_t *name, *version;
	struct json_at at = {.doc = doc, .key = "name"};

	if (!json_is_object(doc->root))
		return err_set(e, ERR_CONFIG, 0, "%s: is not a JSON object", doc->file);
	name = json_object_get(doc->root, "name");
	if (name && !json_is_string(name))
		return json_error(&at, e, "is not a string");
	if (name && name->len) {
		m->name = arena_strdup(a, name->text);
		if (manifest_check_name(m->name, doc->file, e) < 0)
			return -1;
	}
	version = json_object_get(doc->root, "version");
	if (json_is_string(version))
		m->version = arena_strdup(a, json_string_value(version));
	if (read_workspaces(doc, a, m, e) < 0)
		return -1;
	read_catalogs(doc->root, a, m);
	return read_deps(doc, a, m, e);
}

int
manifest_parse(const char *text, size_t len, const char *shown, struct arena *a,
	struct manifest *ret, struct err *e)
{
	struct manifest m = {0};
	struct json_doc doc;
	int r;

	if (manifest_scan(text, len, a, &m)) {
		r = m.name ? manifest_check_name(m.name, shown, e) : 0;
	} else {
		if (json_parse(text, len, shown, JSON_PACKAGE, &doc, e) < 0)
			return -1;
		r = read_manifest(&doc, a, &m, e);
		json_doc_release(&doc);
	}
	if (!r)
		*ret = m;
	return r;
}

int
manifest_load(int dirfd, const char *path, const char *shown, struct arena *a, struct manifest *ret,
	struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err mine = ERR_INIT;
	struct stat st;

	if (json_read(dirfd, path, shown, &text, &st, &mine) < 0)
		return mine.num == ENOENT ? 0 : err_set(e, mine.kind, 0, "%s", mine.text);
	return manifest_parse(text.buf, text.len, shown, a, ret, e) < 0 ? -1 : 1;
}
