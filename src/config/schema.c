/* SPDX-License-Identifier: MIT */
#include "config/schema.h"
#include "config/fields.h"
#include "util/strbuf.h"

static void print_shape(const struct shape *s, unsigned depth, struct strbuf *out);

static void
start_line(unsigned depth, struct strbuf *out)
{
	strbuf_addch(out, '\n');
	while (depth--)
		strbuf_addch(out, '\t');
}

/* The texts of the tables hold no control characters. */
static void
print_text(const char *s, struct strbuf *out)
{
	strbuf_addch(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *s);
	}
	strbuf_addch(out, '"');
}

static void
print_keywords(const char *s, struct strbuf *out)
{
	for (; *s; s++) {
		if (*s == '\\')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *s == '\'' ? '"' : *s);
	}
}

static void
print_field(const struct field *f, unsigned depth, struct strbuf *out)
{
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	start_line(depth, out);
	print_text(f->name, out);
	strbuf_adds(out, ": {");
	if (f->kind == FIELD_HERE || f->kind == FIELD_IGNORED) {
		strbuf_adds(out,
			f->kind == FIELD_HERE ? " \"description\": " : " \"deprecationMessage\": ");
		print_text(f->text, out);
		strbuf_addch(out, ',');
		print_shape(f->shape, depth, out);
		strbuf_adds(out, " }");
		return;
	}
	if (f->kind != FIELD_FOREIGN)
		strbuf_addf(&why, "is not in this vx%s%s", f->kind == FIELD_LATER ? " yet" : "",
			f->text ? ": " : "");
	strbuf_adds(&why, f->text ? f->text : "");
	strbuf_adds(out, " \"not\": {}, \"doNotSuggest\": true, \"errorMessage\": ");
	print_text(why.buf, out);
	strbuf_adds(out, " }");
}

static void
print_shape(const struct shape *s, unsigned depth, struct strbuf *out)
{
	strbuf_addch(out, ' ');
	print_keywords(s->schema, out);
	if (s->each) {
		strbuf_adds(out, ", \"additionalProperties\": {");
		print_shape(s->each, depth, out);
		strbuf_adds(out, " }");
	}
	if (!s->fields)
		return;
	strbuf_adds(out, ", \"additionalProperties\": false, \"properties\": {");
	for (size_t i = 0; i < s->nfields; i++) {
		if (i)
			strbuf_addch(out, ',');
		print_field(&s->fields[i], depth + 1, out);
	}
	start_line(depth, out);
	strbuf_addch(out, '}');
}

void
schema_print(const struct shape *root, const char *title, struct strbuf *out)
{
	strbuf_adds(
		out, "{\n\"$schema\": \"http://json-schema.org/draft-07/schema#\",\n\"title\": ");
	print_text(title, out);
	/* What JSON has not and our files have (config/json.h). */
	strbuf_adds(out, ",\n\"allowComments\": true, \"allowTrailingCommas\": true,\n");
	print_shape(root, 0, out);
	strbuf_adds(out, "\n}\n");
}
