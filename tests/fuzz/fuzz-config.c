/* SPDX-License-Identifier: MIT */
/*
 * A vx.config.json to a project. Whatever the bytes, an error has its place; what is accepted keeps
 * what it promises, and each task's canonical text is a task again, with the same canonical text.
 */
#include "config/json.h"
#include "config/taskdef.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/strbuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static const char file[] = "p/vx.config.json";

/* "p/vx.config.json:LINE:COLUMN: …", the place in the text, and nothing a terminal would obey. */
static void
check_error(const struct err *e, const char *text, size_t len)
{
	size_t lines = 1, longest = 0, start = 0;
	unsigned long line, col;
	char *end;

	REQUIRE(e->kind == ERR_CONFIG && !strncmp(e->text, file, strlen(file)));
	REQUIRE(e->text[strlen(file)] == ':');
	line = strtoul(e->text + strlen(file) + 1, &end, 10);
	REQUIRE(*end == ':');
	col = strtoul(end + 1, &end, 10);
	REQUIRE(end[0] == ':' && end[1] == ' ' && end[2]);
	for (size_t i = 0; i <= len; i++) {
		if (i - start > longest)
			longest = i - start;
		if (i < len && text[i] == '\n') {
			lines++;
			start = i + 1;
		}
	}
	REQUIRE(line >= 1 && line <= lines && col >= 1 && col <= longest + 1);
	for (const char *s = e->text; *s; s++)
		REQUIRE((unsigned char)*s >= 0x20 && *s != 0x7f);
}

/* 0: accepted, with the project in the arena. */
static int
parse(const char *text, size_t len, struct arena *a, struct projectdef *ret)
{
	struct json_doc doc = {0};
	struct err e = ERR_INIT;
	int r = json_parse(text, len, file, JSON_OURS, &doc, &e);

	REQUIRE(doc.root || r < 0);
	if (!r) {
		r = projectdef_parse(&doc, "p", a, ret, &e);
		json_doc_release(&doc);
	}
	REQUIRE((r < 0) == err_is_set(&e));
	if (r < 0)
		check_error(&e, text, len);
	return r;
}

static void
check_set(const struct globset *s)
{
	REQUIRE(s->npos || !s->nneg);
	for (size_t i = 0; i < s->npos; i++)
		REQUIRE(glob_nalternatives(s->pos[i]) > 0);
}

static void
check_grants(const struct grant *g, size_t n)
{
	for (size_t i = 0; i < n; i++)
		REQUIRE((g[i].glob != NULL) != (g[i].absolute != NULL) && *g[i].text);
}

static void
check_task(const struct taskdef *t)
{
	REQUIRE(*t->name && !strpbrk(t->name, "#*") && !strncmp(t->place, file, strlen(file)));
	REQUIRE(!t->cache || t->command);
	REQUIRE(t->timeout_ms <= 2147483647);
	for (size_t i = 0; i < t->ndefine; i++)
		REQUIRE(*t->define[i].name && !strchr(t->define[i].name, '='));
	for (size_t i = 0; i < t->npass_through; i++)
		REQUIRE(!strpbrk(t->pass_through[i], "*!="));
	for (size_t i = 0; i < t->ndepends_on; i++) {
		const struct depspec *d = &t->depends_on[i];

		REQUIRE(*d->task && (d->form == DEP_PROJECT) == (d->project != NULL));
		REQUIRE(!strchr(d->task, '#'));
	}
	if (t->cache) {
		check_set(&t->cache->files);
		check_set(&t->cache->workspace_files);
		check_set(&t->cache->outputs);
		REQUIRE(!globset_match(&t->cache->outputs, "p/package.json"));
		for (size_t i = 1; i < t->cache->nenv; i++)
			REQUIRE(strcmp(t->cache->env[i - 1], t->cache->env[i]) < 0);
	}
	if (t->sandbox) {
		check_grants(t->sandbox->allow_read, t->sandbox->nallow_read);
		check_grants(t->sandbox->allow_write, t->sandbox->nallow_write);
		check_grants(t->sandbox->deny_read, t->sandbox->ndeny_read);
		check_grants(t->sandbox->deny_write, t->sandbox->ndeny_write);
	}
}

static void
check_canonical(const struct taskdef *t, struct arena *a)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct projectdef again = {0};

	strbuf_addf(&text, "{\"tasks\":{\"t\":%s}}", t->canonical);
	REQUIRE(parse(text.buf, text.len, a, &again) == 0 && again.ntasks == 1);
	REQUIRE(!strcmp(again.tasks[0].canonical, t->canonical));
	REQUIRE(again.tasks[0].ndepends_on == t->ndepends_on);
}

/* What is taken as it stands is taken with the same value where more is allowed: no string is
 * mistaken for a comment. Its canonical text is JSON, and its own canonical text. */
static void
check_strict(const char *text, size_t len)
{
	cleanup_strbuf struct strbuf once = STRBUF_INIT, relaxed = STRBUF_INIT, twice = STRBUF_INIT;
	struct json_doc doc = {0};
	struct err e = ERR_INIT;

	if (json_parse(text, len, file, JSON_STRICT, &doc, &e))
		return;
	json_canonical(doc.root, &once);
	json_doc_release(&doc);
	REQUIRE(!json_parse(text, len, file, JSON_OURS, &doc, &e));
	json_canonical(doc.root, &relaxed);
	json_doc_release(&doc);
	REQUIRE(!json_parse(once.buf, once.len, file, JSON_STRICT, &doc, &e));
	json_canonical(doc.root, &twice);
	json_doc_release(&doc);
	REQUIRE(!strcmp(once.buf, relaxed.buf) && !strcmp(once.buf, twice.buf));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xmemdupz(data, size);
	struct projectdef p = {0};
	struct arena a;

	check_strict(text, size);
	arena_init(&a);
	if (parse(text, size, &a, &p) == 0)
		for (size_t i = 0; i < p.ntasks; i++) {
			check_task(&p.tasks[i]);
			check_canonical(&p.tasks[i], &a);
		}
	arena_release(&a);
	return 0;
}
