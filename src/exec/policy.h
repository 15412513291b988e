/* SPDX-License-Identifier: MIT */
/*
 * A task's definition and its place in the graph to what its sandbox grants: from exec.sandbox, or
 * for `--sandbox` derived (design §5, last paragraphs): reads = exactly the files in its key, its
 * manifest, node_modules and the declared outputs of every task folded into its key, transitively;
 * writes = its output globs, "!" entries too. And, after the run, what a written or denied path is.
 *
 * A link is read where its own name is granted, what it leads to where that is: no grant goes through
 * a link, since another task may have made it. Only links in node_modules open something, packages.
 *
 * policy.c builds, policy-links.c looks at node_modules and at paths that lead through links, judge.c
 * answers afterwards, policy-advice.c says what to write in the config,
 * policy-worktree.c where a granted .git leads.
 */
#ifndef EXEC_POLICY_H
#define EXEC_POLICY_H

#include "proto/spec.h"
#include "util/strvec.h"

struct err;
struct files;
struct globset;
struct inputs;
struct node;
struct ruleset;
struct workspace;

enum write_verdict {
	WRITE_GRANTED,
	WRITE_UNDECLARED, /* a finding */
	WRITE_IGNORED,    /* discarded, counted in a note: tool caches, ignore.write */
	WRITE_NEVER, /* granted by a glob or directory, but never committed unless named itself */
};

struct policy {
	const struct workspace *w;
	const struct node *node;
	const struct files *files; /* borrowed, like the others */
	bool derived;
	struct spec_rule *rules; /* what goes into the spec */
	size_t nrules, rules_cap;
	size_t nconfig;  /* the first rules: the task's own entries */
	size_t ncovered; /* the first rules: what they grant is in the task's key by construction */
	bool unix_sockets;
	struct strvec sockets; /* those alone, absolute; none: whatever it sees */
	struct strvec hidden;  /* absolute: what is denied outside of the workspace */
	bool git_config;       /* allow.gitConfig */
	bool may_nest;         /* nested */
	bool hermetic;
	bool weaker; /* weakerWhenNested */
	bool live;   /* the view: no transaction (exec.h: persistent) */
	char *home;  /* absolute and there; NULL: none */
	struct strvec
		stores; /* credential stores in the workspace: where a home is it, or in it, or above */
	/* Of outputs to which the task adds, those that it added last: hidden from it. NULL: it does not add, and
	 * all that its outputs select is hidden. */
	const struct strvec *added;
	const char *
		*nested; /* directories of the projects inside this one, as outputs.h wants them */
	/* What is linked in node_modules and not granted for that, since no part of the key covers it, or
	 * since it is no package: a denied read in it is a finding. */
	struct strvec withheld;
	struct strvec withheld_links; /* the same in their order: as what they are linked */
	size_t nbuilt;         /* rules before those that hide second paths in the workspace */
	struct strvec seconds; /* second paths outside the workspace, to be covered (seconds.h) */
	struct strvec linked;  /* the projects that are granted because they are linked there */
	struct ruleset *compiled; /* of `rules` */
};

/* `area`: the directory of all scratches, absolute, canonical; `added`: see above; borrowed, sorted. */
int policy_build(const struct workspace *w, const struct node *node, const struct files *files,
	const struct inputs *inputs, const char *area, const struct strvec *added,
	struct policy **ret, struct err *e);
void policy_free(struct policy *p);
/* The last step of policy_build, for tests that fill the rules themselves. */
int policy_compile(struct policy *p, struct err *e);

/* The declared outputs; NULL: there are none. */
const struct globset *policy_outputs(const struct policy *p);
/* Whether the path is under this task's declared outputs. */
bool policy_is_output(const struct policy *p, const char *path);
/* Whether it need not be one, when the task wrote it: an entry "!" of the outputs says so, or it is in the
 * cache of a tool. */
bool policy_leaves_unstored(const struct policy *p, const char *path);
/* Whether it was hidden from the task at its start for that: what it does not leave there, goes. */
bool policy_hides_output(const struct policy *p, const char *path);

/* Whether a pattern of cache.outputs.workspaceFiles grants names in the directory of a project inside this
 * one, without starting in it: no wall can stand there, and policy_judge_write tells what is an output. */
bool policy_outputs_cross(const struct policy *p, const char *nested);

/* What ignore.read and ignore.write select. Who may not keep a file need not find an old one, so the latter
 * goes for reads, too. A write that is granted is kept all the same. */
bool policy_ignores_read(const struct policy *p, const char *path);
bool policy_ignores_write(const struct policy *p, const char *path);

enum write_verdict policy_judge_write(const struct policy *p, const char *path);
/* Whether an entry grants writing outside of the workspace, where nothing is committed. */
bool policy_writes_outside(const struct policy *p);
/* Whether a missing directory may be made there: a grant names it or something below it. */
bool policy_may_make_dir(const struct policy *p, const char *path);
/* Whether a literal write grant names `name` itself, or something in it that covers path. */
bool policy_names_write(const struct policy *p, const char *name, const char *path);
/* Whether the task could see the name, if the host had it. */
bool policy_may_see(const struct policy *p, const char *path, bool is_dir);

/* Whether a denied read of the path fails the task (inside the project or a withheld package, or, of an
 * absolute path, a credential store that no tool reads as a matter of course) or was only stopped by the
 * wall (spec/sandbox.md §15). */
bool policy_read_is_finding(const struct policy *p, const char *path);
/* The places in which, and above which, it may. */
void policy_add_reports(const struct policy *p, struct strvec *ret);
/* What to write in the config of this project to allow it and, for a read of a cached task, to have
 * it in the key: `allow.read: ["../lib/x"], and cache.inputs.workspaceFiles: ["lib/x"]`; for derived
 * grants the fields that they come from. Never what would be refused: no input that git ignores, no grant
 * that an entry of `deny` overrules. Owned. */
char *policy_grant_text(const struct policy *p, bool write, const char *path);
/* Of each write entry that is a .git which is a file (of a linked worktree, a submodule): that the repository it leads
 * to is not granted, and what to write. */
void policy_note_worktrees(const struct policy *p, struct strvec *ret);
/* What to write to lift the refusal of Unix sockets. Owned. */
char *policy_sockets_text(const struct policy *p);
/* Where an exec.sandbox grants nothing in the task's working directory, nor that: what to write to have it there,
 * whose names it does not even see. NULL: some grant does. Owned. */
char *policy_cwd_text(const struct policy *p);
/* For a denied read in a package that is linked and withheld, with the path of the link: why, and what to
 * write to have its task in the key. NULL: in no such package. Owned. */
char *policy_withheld_text(const struct policy *p, const char *path);
/* What to write to have these workspace files in the key of the task: `cache.inputs.files: ["a", "b"],
 * cache.inputs.workspaceFiles: ["lib/c"]`. Empty when none of them can be an input. Owned. */
char *policy_inputs_text(const struct policy *p, const struct strvec *paths);
/* Why an existing workspace file, of which that is empty, is no input: "git ignores it". */
const char *policy_why_no_input(const struct policy *p, const char *path);
/* The same to have what was written there stored with the result. Owned. */
char *policy_outputs_text(const struct policy *p, const struct strvec *paths);

/* Up to `max` existing workspace files, outside node_modules, that the policy lets the task read and
 * no part of its key covers: what keeps a confined result from being proven. Returns how many were
 * put into ret (owned strings), or -1. */
int policy_unkeyed(const struct policy *p, const struct inputs *inputs, size_t max,
	struct strvec *ret, struct err *e);
/* Whether a grant could select a name that is not there yet, directly in `dir` or in a directory that is not
 * there either: whoever comes and goes there may have been read. */
bool policy_may_gain(const struct policy *p, const char *dir);

#endif
