/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox is to be. The core writes it to a pipe, vx-sandbox reads it, and a person can
 * write one by hand: lines of `word value`, first line `vx-spec 1`, last line `end`. In a value,
 * \\ \n and \xNN are escapes (a newline or NUL cannot stand bare). Unknown words, a missing `end`,
 * a second value for a single one, and more than SPEC_MAX bytes are errors. docs/PROTOCOL.md has
 * the list.
 *
 * No part of it is in a cache key but the config's own text.
 */
#ifndef PROTO_SPEC_H
#define PROTO_SPEC_H

#include "util/arena.h"
#include "util/base.h"
#include "util/strvec.h"

struct err;
struct strbuf;

enum {
	SPEC_MAX = 64 << 20
};

/*
 * What a rule says of the names it selects. For a path, of the read rules (READ, WRITE, DENY_READ)
 * that select it the most specific one decides, and likewise of the write rules (WRITE,
 * DENY_WRITE): the longest literal path before the first wildcard wins, at equal length a deny
 * wins. Order never matters. No rule: denied. WRITE implies READ.
 *
 * A literal selects the name and all below it, a pattern what it matches; but what hides (a deny,
 * QUIET, IGNORE_*) takes with a directory all that is in it, and an OUTPUT pattern takes a directory only
 * when it takes everything in it ("dist" with a final "**"). Else its wildcards do not enter a
 * node_modules, unless it names that.
 */
enum spec_rule_kind {
	SPEC_READ,
	SPEC_WRITE,
	SPEC_DENY_READ,
	SPEC_DENY_WRITE,
	/* This task's declared outputs: hidden at start without a word, whatever READ says. */
	SPEC_OUTPUT,
	/* Hidden without a report: what nobody need hear of (.vx, ignored reads). Outranks READ and
	 * WRITE at any length. */
	SPEC_QUIET,
	/* No rule of what is seen or written: a denial or an undeclared write of such a name is nobody's
	 * business. */
	SPEC_IGNORE_READ,
	SPEC_IGNORE_WRITE,
};

struct spec_rule {
	enum spec_rule_kind kind;
	bool is_glob; /* else a literal: the name and all below it */
	char *path;   /* from the workspace root. Absolute: outside the workspace; literal, READ,
		       * WRITE or IGNORE_* only. A glob is in the grammar of util/glob.h */
};

struct spec {
	char *workspace; /* absolute, canonical */
	char *cwd;       /* working directory, relative to the workspace */
	char *scratch;   /* absolute: an empty directory that the caller made, owns and locks */
	char *home;      /* absolute, or NULL: the task has no home */
	char *program; /* absolute: the file to execute; NULL: what argv[0] names, found on PATH */
	struct strvec argv;
	struct strvec env;
	struct spec_rule *rules;
	size_t nrules;
	size_t rules_cap;
	struct arena paths; /* of the rules: there are thousands of them */
	struct strvec hide; /* outside the workspace, absolute, to cover: cache, scratch parents */
	/* Credential stores elsewhere than in home, absolute: hidden as those are, unless granted. */
	struct strvec stores;
	/* Unix sockets of the host to show, absolute. All others that would be seen are covered, if there are any of
	 * these. */
	struct strvec sockets;
	/* From the workspace: a denied read matters in these, and above them. None: everywhere. What
	 * cannot be told any more, because nobody reads it, is counted apart by this. */
	struct strvec reports;
	/* The live view: no overlay, writes that are granted reach the workspace at once. No OUTPUT rules. */
	bool live;
	bool unix_sockets; /* AF_UNIX stays allowed */
	bool nested;       /* user namespaces stay allowed */
	bool hermetic;     /* of the host only system directories, and a home that is empty */
	bool weaker;       /* where a /proc of its own is refused, /proc is empty */
	bool git_config;   /* a granted .git/config is no name that is never committed */
	bool fuse_off;     /* test seam: behave as if there were no /dev/fuse */
	bool attached;     /* test seam: the start path of kernels before detached layers */
};

#define SPEC_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

void spec_release(struct spec *s);
void spec_add_rule(struct spec *s, enum spec_rule_kind kind, bool is_glob, const char *path);

void spec_encode(const struct spec *s, struct strbuf *out);
/* Errors name the line. Checks form: absolute where absolute is due, normal relative paths, argv
 * not empty, the single ones present. */
int spec_decode(const char *p, size_t n, struct spec *ret, struct err *e);

#endif
