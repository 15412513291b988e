/* SPDX-License-Identifier: MIT */
/*
 * A task's definition and its place in the graph to what its sandbox grants: from exec.sandbox, or
 * for `--sandbox` derived (design §5, last paragraphs): reads = exactly the files in its key, its
 * manifest, node_modules and the declared outputs of every task folded into its key, transitively;
 * writes = its output globs, "!" entries too. And, after the run, what a written or denied path is.
 */
#ifndef EXEC_POLICY_H
#define EXEC_POLICY_H

#include "proto/spec.h"

struct err;
struct files;
struct inputs;
struct node;
struct workspace;

enum write_verdict {
	WRITE_GRANTED,
	WRITE_UNDECLARED, /* a finding */
	WRITE_IGNORED,	  /* discarded, counted in a note: tool caches, ignore.write */
	WRITE_NEVER,	  /* granted by a glob or directory, but never committed unless named itself */
};

struct policy {
	const struct workspace *w;
	const struct node *node;
	bool derived;
	struct spec_rule *rules; /* what goes into the spec */
	size_t nrules, rules_cap;
	bool unix_sockets;
	const char *home; /* NULL: none */
	char *const *outputs_visible; /* reserved for additive tasks */
	void *compiled; /* the write rules, parsed once */
};

int policy_build(const struct workspace *w, const struct node *node, const struct files *files,
	const struct inputs *inputs, struct policy **ret, struct err *e);
void policy_free(struct policy *p);

enum write_verdict policy_judge_write(const struct policy *p, const char *path);
/* Whether the path is under this task's declared outputs. */
bool policy_is_output(const struct policy *p, const char *path);
/* Whether a denied read of the path fails the task (inside the project or a withheld package) or was
 * only stopped by the wall (spec/sandbox.md §15). */
bool policy_read_is_finding(const struct policy *p, const char *path);
/* "allow.read: ['../lib/x']", as the config of this project would spell it. Owned. */
char *policy_grant_text(const struct policy *p, bool write, const char *path);

/* Up to `max` existing workspace files, outside node_modules, that the policy lets the task read and
 * no part of its key covers: what keeps a confined result from being proven. Returns how many were
 * put into ret (owned strings). */
struct strvec;
int policy_unkeyed(const struct policy *p, const struct files *files, const struct inputs *inputs,
	size_t max, struct strvec *ret, struct err *e);

#endif
