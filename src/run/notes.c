/* SPDX-License-Identifier: MIT */
/*
 * A command that fails seldom says that something was hidden from it or refused. What is no finding, as it is
 * normal to be stopped there, is said only beside such a failure (spec/sandbox.md §17). What is known to have been
 * hidden is said in any case; what only may have mattered, when nothing else explains the failure.
 */
#include "exec/policy.h"
#include "proto/status.h"
#include "run/sched-private.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/strbuf.h"
#include "util/strvec.h"
#include "workspace/workspace.h"
#include <sys/stat.h>

enum {
	SHOWN = 3
};

static bool
is_walled_read(const struct exec_denial *d)
{
	return d->class == DENIAL_WALLED && (d->op == DENIAL_READ || d->op == DENIAL_LIST) &&
	       *d->grant;
}

static bool
is_directory(const struct sched *s, const char *path)
{
	struct stat st;

	return *path != '/' && !fs_stat_beneath(s->plan->w->rootfd, path, &st) &&
	       S_ISDIR(st.st_mode);
}

/* Files first: a directory is asked for on the way to what is not there either. */
static bool
note_walled_reads(struct sched *s, struct job *j, const struct exec_result *r)
{
	cleanup_strvec struct strvec told = STRVEC_INIT;
	uint64_t n = 0;

	for (int dirs = 0; dirs < 2; dirs++)
		for (size_t i = 0; i < r->ndenials; i++) {
			const struct exec_denial *d = &r->denials[i];

			if (!is_walled_read(d) || is_directory(s, d->path) != dirs)
				continue;
			n += 1 + d->nmore;
			if (told.n == SHOWN)
				continue;
			strvec_push(&told, d->grant);
			settle_note(
				j, "hidden from it, outside its project; to show it: %s", d->grant);
		}
	if (n > told.n)
		settle_note(j, "hidden from it, outside its project: %llu more name%s",
			(unsigned long long)(n - told.n), n - told.n == 1 ? "" : "s");
	return n > 0;
}

/* "docker, git, …": each program once. */
static void
add_programs(struct strbuf *sb, const struct exec_result *r, enum denial_op op)
{
	cleanup_strvec struct strvec named = STRVEC_INIT;

	for (size_t i = 0; i < r->ndenials; i++) {
		const struct exec_denial *d = &r->denials[i];

		if (d->op != (int)op || !*d->program || strvec_contains(&named, d->program))
			continue;
		if (named.n == SHOWN) {
			strbuf_adds(sb, ", …");
			return;
		}
		strbuf_adds(sb, named.n ? ", " : "");
		strbuf_add_sanitised(sb, d->program, strlen(d->program));
		strvec_push(&named, d->program);
	}
	if (!named.n)
		strbuf_adds(sb, "a program");
}

static bool
note_owners(struct job *j, const struct exec_result *r)
{
	cleanup_strbuf struct strbuf ids = STRBUF_INIT, programs = STRBUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < r->ndenials; i++) {
		const struct exec_denial *d = &r->denials[i];

		if (d->op != DENIAL_CHOWN)
			continue;
		if (n++ < SHOWN)
			strbuf_addf(&ids, "%s%s", n > 1 ? ", " : "", d->path);
	}
	if (!n)
		return false;
	add_programs(&programs, r, DENIAL_CHOWN);
	settle_note(j,
		"%s would give files to %s%s: only root can, and inside an ordinary user's ids are "
		"all "
		"that have names; leave owners out (tar: --no-same-owner)",
		programs.buf, ids.buf, n > SHOWN ? ", …" : "");
	return true;
}

static bool
note_cwd(struct job *j)
{
	cleanup_free char *text = policy_cwd_text(j->policy);

	if (text)
		settle_note(j,
			"nothing in its working directory is granted, so it looks empty; to show "
			"it: %s",
			text);
	return text != NULL;
}

static void
note_sockets(struct job *j, const struct exec_result *r)
{
	cleanup_strbuf struct strbuf programs = STRBUF_INIT;

	for (size_t i = 0; i < r->ndenials; i++) {
		if (r->denials[i].op != DENIAL_SOCKET)
			continue;
		add_programs(&programs, r, DENIAL_SOCKET);
		settle_note(j,
			"Unix sockets are refused, and %s asked for one (looking users up does, "
			"and goes "
			"on without); if it is needed: %s, or the paths of those it needs",
			programs.buf, r->denials[i].grant);
		return;
	}
}

/* The weakest last: it is said when nothing else is. */
void
notes_on_failure(struct sched *s, struct job *j, const struct exec_result *r)
{
	if (!j->policy)
		return;
	if (note_walled_reads(s, j, r) || r->nfindings)
		return;
	if (!note_owners(j, r) && !note_cwd(j))
		note_sockets(j, r);
}
