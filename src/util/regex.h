/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions as JavaScript writes them, for configs: whether a line holds a match, and nothing
 * else. All of the syntax that such a question can need (without flags), but for what a machine of states
 * cannot answer: looks ahead and behind, and references back. Those are refused by name, as is every
 * escape without a meaning. Characters are those of UTF-8; a byte that is none stands for itself.
 *
 * The time of a search is bounded by (steps of the pattern) x (length of the text), whatever the two are:
 * the text is a task's, and the loop waits for the answer.
 */
#ifndef UTIL_REGEX_H
#define UTIL_REGEX_H

#include "util/base.h"

struct err;
struct regex;

enum {
	REGEX_STEPS_MAX = 2000 /* a counted repetition has the steps of all its copies */
};

/* NULL with e set (kind CONFIG): what is wrong, and at which character, from 1. */
struct regex *regex_new(const char *pattern, struct err *e);
void regex_free(struct regex *re);
/* Whether some part of the text matches; `^` and `$` are the ends of the text. */
bool regex_finds(const struct regex *re, const char *text, size_t n);

/*
 * The same for a text that comes in pieces, of whatever size: each byte is looked at once, and nothing of the
 * text is kept. `re` outlives the search.
 */
struct regex_search;
struct regex_search *regex_search_new(const struct regex *re);
void regex_search_free(struct regex_search *s);
/* Of another text. */
void regex_search_restart(struct regex_search *s);
/* True, from then on: a part matches, whatever follows. */
bool regex_search_feed(struct regex_search *s, const char *text, size_t n);
/* The text is over: whether some part of it matches. */
bool regex_search_ends(struct regex_search *s);
/* Whether it would, were it over now; it may go on. Not in the middle of a character. */
bool regex_search_could_end(struct regex_search *s);

#endif
