/* SPDX-License-Identifier: MIT */
/*
 * The tables of fields as JSON Schema, draft 7, for editors: completion, hover texts, and underlines
 * where a config is refused, fields of other runners with what to write. What no schema can tell (the
 * grammar of patterns, names that are not there) only vx says. schema/ holds the two texts, which
 * `make schema` writes.
 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

struct shape;
struct strbuf;

/* `title`: the name of the file that it is for. */
void schema_print(const struct shape *root, const char *title, struct strbuf *out);

#endif
