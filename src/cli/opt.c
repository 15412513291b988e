/* SPDX-License-Identifier: MIT */
#include "cli/opt.h"
#include "config/taskdef.h"
#include "util/alloc.h"
#include "util/columns.h"
#include "util/err.h"
#include "util/strbuf.h"

enum {
	HELP_WIDTH = 34 /* of a flag, beside which its text stands */
};

void
opt_init(struct opt_parser *p, const char *command, const struct opt *table, int argc,
	char *const *argv)
{
	*p = (struct opt_parser){command, table, argv, argc, .rest = argc};
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			p->rest = i + 1;
			p->argc = i;
			break;
		}
	}
}

static const struct opt *
find(const struct opt *table, const char *name, size_t n)
{
	for (; table->name; table++)
		if (strlen(table->name) == n && !memcmp(table->name, name, n))
			return table;
	return NULL;
}

/* The one that begins with it: "--dry" of "--dry-run". */
static const char *
longer(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (*name && !strncmp(names[i], name, strlen(name)))
			return names[i];
	return NULL;
}

static int
unknown(const struct opt_parser *p, const char *word, size_t n, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;
	const char **names;
	const char *near;
	char *name = xmemdupz(word + 2, n);
	size_t count = 0;

	for (const struct opt *o = p->table; o->name; o++)
		count++;
	names = xcalloc(count, sizeof(*names));
	count = 0;
	for (const struct opt *o = p->table; o->name; o++)
		if (o->arg != OPT_NOT)
			names[count++] = o->name;
	near = nearest_name(name, names, count);
	if (!near)
		near = longer(name, names, count);
	strbuf_add_sanitised(&shown, word, n + 2);
	if (near)
		err_set(e, ERR_USAGE, 0, "unknown flag %s; did you mean --%s?", shown.buf, near);
	else
		err_set(e, ERR_USAGE, 0, "unknown flag %s (`%s --help` lists them)", shown.buf,
			p->command);
	free(names);
	free(name);
	return -1;
}

/* -j, also with its value, as -j4. */
static int
refuse_short(const struct opt_parser *p, const char *word, struct err *e)
{
	const struct opt *o = find(p->table, word + 1, 1);

	if (o)
		return err_set(e, ERR_USAGE, 0, "unknown flag -%s: %s", o->name, o->help);
	return err_set(e, ERR_USAGE, 0,
		"unknown flag %.60s (flags are spelled out: `%s --help` lists them)", word,
		p->command);
}

static int
refuse_empty(const struct opt *o, struct err *e)
{
	if (o->arg == OPT_OPTIONAL)
		return err_set(e, ERR_USAGE, 0,
			"--%s= has an empty value: write --%s alone, or --%s=%s", o->name, o->name,
			o->name, o->metavar);
	return err_set(e, ERR_USAGE, 0, "--%s= has an empty value: write --%s=%s", o->name, o->name,
		o->metavar);
}

int
opt_next(struct opt_parser *p, int *ret_id, const char **ret_value, struct err *e)
{
	while (p->at < p->argc) {
		const char *word = p->argv[p->at++];
		const char *value = NULL;
		const struct opt *o;
		size_t n;

		if (word[0] != '-' || !word[1]) {
			strvec_push(&p->words, word);
			continue;
		}
		if (!strcmp(word, "-h"))
			word = "--help";
		if (word[1] != '-')
			return refuse_short(p, word, e);
		n = strcspn(word + 2, "=");
		if (word[2 + n])
			value = word + 2 + n + 1;
		o = find(p->table, word + 2, n);
		if (!o)
			return unknown(p, word, n, e);
		switch (o->arg) {
		case OPT_NOT:
			return err_set(e, ERR_USAGE, 0, "unknown flag --%s: %s", o->name, o->help);
		case OPT_LATER:
			return err_set(e, ERR_USAGE, 0, "--%s is not in this vx yet", o->name);
		case OPT_FLAG:
			if (value)
				return err_set(e, ERR_USAGE, 0, "--%s takes no value", o->name);
			break;
		case OPT_VALUE:
			if (!value) {
				if (p->at >= p->argc)
					return err_set(e, ERR_USAGE, 0,
						"--%s needs a value: --%s=%s", o->name, o->name,
						o->metavar);
				value = p->argv[p->at++];
				if (value[0] == '-' && value[1])
					return err_set(e, ERR_USAGE, 0,
						"--%s needs a value, but '%.60s' follows; write "
						"--%s=%s",
						o->name, value, o->name, o->metavar);
			}
			break;
		case OPT_OPTIONAL:
			if (!value && p->at < p->argc && p->argv[p->at][0] != '-')
				strvec_push_take(
					&p->strays, xasprintf("--%s=%s", o->name, p->argv[p->at]));
			break;
		}
		if (value && !*value)
			return refuse_empty(o, e);
		*ret_id = o->id;
		*ret_value = value;
		return 1;
	}
	return 0;
}

void
opt_print_help(const struct opt *table)
{
	for (; table->name; table++) {
		cleanup_strbuf struct strbuf left = STRBUF_INIT;
		size_t width;

		if (table->arg == OPT_LATER || table->arg == OPT_NOT)
			continue;
		strbuf_addf(&left, "--%s", table->name);
		if (table->arg == OPT_VALUE)
			strbuf_addf(&left, " %s", table->metavar);
		else if (table->arg == OPT_OPTIONAL)
			strbuf_addf(&left, "[=%s]", table->metavar);
		width = columns_of(left.buf);
		if (width > HELP_WIDTH) {
			strbuf_adds(&left, "\n  ");
			width = 0;
		}
		for (; width < HELP_WIDTH; width++)
			strbuf_addch(&left, ' ');
		printf("  %s %s\n", left.buf, table->help);
	}
}
