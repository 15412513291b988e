/* SPDX-License-Identifier: MIT */
/*
 * What configs in JavaScript and TypeScript yielded, remembered so that a run in which nothing has changed starts no
 * runtime. An evaluation is remembered with the files that it rests on, the config itself among them, there
 * or not, and the links of packages, and stands while each of them has the content that it had, by stat and then by digest, and the same runtimes
 * are found (script_identity). One whose value rests on more (script.why) never is.
 */
#ifndef CONFIG_EVALUATED_H
#define CONFIG_EVALUATED_H

#include "util/base.h"

struct evaluated;
struct script;
struct strvec;

/* Loads STATEFD/configs (missing or damaged: empty). All are borrowed; statefd -1 remembers nothing. */
struct evaluated *evaluated_open(int statefd, int rootfd, const char *root_path);

/* The JSON that the config at `path`, from the root, yields, a NUL behind it; NULL: it has to be evaluated. Valid until evaluated_close. */
const char *evaluated_get(struct evaluated *ev, const char *path, size_t *ret_len);
/* Adds the files from the root that it rests on, as in struct script, the config among them. Only after evaluated_get. */
void evaluated_needs(
	struct evaluated *ev, const char *path, struct strvec *needs, struct strvec *manifests);
/* It was not asked for, and goes on to be remembered as it is. */
void evaluated_keep(struct evaluated *ev, const char *path);
/* It was evaluated. Not remembered when a file of it was written since. */
void evaluated_put(struct evaluated *ev, const struct script *s);

/* Writes what was asked for or put in this run, if that is not what is there, when `keep`; and frees. Failing to
 * write is no error to the run: said in VX_DEBUG. */
void evaluated_close(struct evaluated *ev, bool keep);

#endif
