/* SPDX-License-Identifier: MIT */
/*
 * The cache key: the SHA-256 of canonical bytes that list everything a task is declared to read
 * (spec/cache.md §2, design §4). The same bytes can be kept and printed, so that an explanation
 * needs no second implementation. The format, with an example: docs/CACHE.md.
 *
 *	vx-key 1
 *	task:app#build
 *	platform:x86_64 debian 12
 *	workspace:<digest of the lockfiles and workspace files>
 *	manifest:<identity of package.json>
 *	config:<digest of the canonical JSON of the task>
 *	forward-args:<n>, then one per line
 *	env-values:<n>, then NAME or NAME<NUL>value
 *	runtime-values:<n>, then command<NUL>output or command<NUL>output<NUL>errors
 *	ws-runtime-values:<n>, the same
 *	upstream:<n>, then keys, sorted
 *	inputs:<n>, then path<NUL>identity, sorted
 *
 * Every field is preceded by its label and count and ends in a newline; a newline, backslash or NUL in
 * a value is escaped (\n, \\, \0), so that no two lists of parts have the same bytes.
 */
#ifndef CACHE_KEY_H
#define CACHE_KEY_H

#include "util/digest.h"
#include "util/strbuf.h"

struct err;

enum {
	KEY_VERSION = 1
};

struct key_env {
	const char *name;
	const char *value; /* NULL: unset, which is not the same as empty */
};
/* What a command said. */
struct key_runtime {
	const char *command;
	const char *out, *err; /* may hold NULs; one follows */
	size_t nout, nerr;
};
struct key_input {
	const char *path;
	const char *identity; /* file_id_text */
};

struct key_parts {
	const char *task;
	const char *platform;
	const struct digest *workspace;
	const char *manifest; /* identity text; "absent" */
	const char *config;   /* canonical JSON */
	const char *const *forward_args;
	size_t nforward_args;
	const struct key_env *env; /* sorted by name */
	size_t nenv;
	const struct key_runtime *runtime; /* in the project; sorted by command */
	size_t nruntime;
	const struct key_runtime *ws_runtime; /* in the root; the same */
	size_t nws_runtime;
	const struct digest *upstream; /* any order; sorted here */
	size_t nupstream;
	const struct key_input *inputs; /* sorted by path */
	size_t ninputs;
};

/* *ret_text, when not NULL, receives the canonical bytes. */
void key_compute(const struct key_parts *parts, struct digest *ret, struct strbuf *ret_text);

/* "x86_64 debian 12": architecture, ID and VERSION_ID of os-release. Owned. */
char *key_platform(void);

/* What every key rests on, at the root: pnpm-lock.yaml, package-lock.json, npm-shrinkwrap.json,
 * yarn.lock, bun.lock, bun.lockb, pnpm-workspace.yaml, .yarnrc.yml, .npmrc, bunfig.toml. */
extern const char *const key_fingerprint_files[]; /* ended by NULL */
/* Digest over those of the files (paths from the root) that exist. */
struct filehash;
int key_workspace(struct filehash *fh, int rootfd, const char *const *files, size_t n,
	struct digest *ret, struct err *e);

/* Group and uncached-group keys: the digest of the upstream keys, sorted. */
void key_group(const struct digest *upstream, size_t n, struct digest *ret);

#endif
