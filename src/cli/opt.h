/* SPDX-License-Identifier: MIT */
/*
 * Options as data: one table per command gives parsing, help, and the words that the man page must
 * have (tests/lint/options.sh). Rules (spec/cli.md, parsing): a flag with an optional value takes
 * one only with `=`; a flag with a value takes both forms; an empty value is refused, as it is a variable that
 * is not set; an unknown flag is refused with the nearest one; everything after `--` belongs to the task.
 */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include "util/strvec.h"

struct err;

enum opt_arg {
	OPT_FLAG,     /* --force */
	OPT_VALUE,    /* --filter P, --filter=P */
	OPT_OPTIONAL, /* --continue, --continue=never */
	OPT_LATER,    /* known, refused: "not in this vx yet" */
	OPT_NOT, /* one of another runner's: `help` is what to write instead. Of one letter: a short one */
};

struct opt {
	const char *name; /* without dashes */
	enum opt_arg arg;
	const char *metavar; /* NULL for flags */
	const char *help;    /* one line; NULL for OPT_LATER */
	int id;
};

/* What was typed, in order. */
struct opt_parser {
	const char *command;     /* "vx run" */
	const struct opt *table; /* ended by a NULL name */
	char *const *argv;
	int argc;
	int at;
	struct strvec words; /* what is no flag; the caller's to release */
	/* "--continue=never" for a word that follows a bare flag with an optional value: it may be meant to be
	 * that. The caller's to release. */
	struct strvec strays;
	int rest; /* index of the first word after `--`, argc when there is none */
};

void opt_init(struct opt_parser *p, const char *command, const struct opt *table, int argc,
	char *const *argv);
/* 1: *ret_id and *ret_value (NULL where none was given) of the next flag; 0: done, p->words is
 * complete; -1 with e set. */
int opt_next(struct opt_parser *p, int *ret_id, const char **ret_value, struct err *e);

/* The option part of a help page, to stdout. */
void opt_print_help(const struct opt *table);

#endif
