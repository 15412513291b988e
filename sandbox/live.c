/* SPDX-License-Identifier: MIT */
/*
 * The live view's beginning and end in the helper. Between them livewall.c serves, and view.c has mounted.
 */
#include "sandbox/livescan.h"
#include "sandbox/setup.h"
#include "sandbox/tell.h"
#include "util/strbuf.h"

void
live_prepare(struct setup *s)
{
	s->live = (struct liverules){s->rules, s->spec.cwd, s->host, s->spec.git_config};
	liveplan_init(&s->plan);
	liveplan_make(&s->plan, &s->live, NULL);
}

static void
tell_planted(const char *path, const char *moved)
{
	struct status st;

	status_init(&st, STATUS_PLANTED);
	/* A path that no frame can carry is told by its beginning. */
	strbuf_add(&st.u.planted.path, path, strnlen(path, STATUS_STRING_MAX));
	if (moved)
		strbuf_add(&st.u.planted.moved, moved, strnlen(moved, STATUS_STRING_MAX));
	tell(&st);
	status_release(&st);
}

/* What is outside of the workspace may be on any file system, and is not for the core to keep: a transaction's
 * scratch is gone with its commit. */
static void
look_through(const struct setup *s, struct livescan *sc)
{
	if (s->spec.live)
		livescan_run(sc, &(struct livescan_options){
					 .plan = &s->plan,
					 .rules = &s->live,
					 .root = s->spec.workspace,
					 .scratch = s->spec.scratch,
					 .proc = s->proc,
					 .since = s->preload.started,
				 });
	livescan_run(sc, &(struct livescan_options){
				 .plan = &s->outside.plan,
				 .rules = &s->outside.live,
				 .root = "",
				 .proc = s->proc,
				 .since = s->preload.started,
			 });
}

void
live_finish(const struct setup *s, const struct strvec *manifests, bool is_told)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	struct livescan sc;

	/* Nothing ran: what is in the directories is older. */
	if (!s->preload.started.tv_sec)
		return;
	livescan_init(&sc);
	look_through(s, &sc);
	/* Who moved nothing out because nobody listened any more would leave a trap: so this comes last. */
	for (size_t i = 0; is_told && i < sc.n; i++)
		tell_planted(sc.v[i].path, sc.v[i].moved);
	for (size_t i = 0; is_told && i < manifests->n; i++)
		tell_planted(manifests->v[i], NULL);
	if (is_told && sc.failed) {
		tell_planted(sc.failed, NULL);
		strbuf_addf(&line,
			"%s could not be looked through for names that are never committed: %s",
			sc.failed, strerror(sc.num));
		tell_note(STATUS_NOTE, line.buf);
		strbuf_reset(&line);
	}
	if (is_told && sc.nsetid) {
		strbuf_addf(&line, "%zu file%s lost the set-user-ID or set-group-ID bit", sc.nsetid,
			sc.nsetid == 1 ? "" : "s");
		tell_note(STATUS_NOTE, line.buf);
	}
	livescan_release(&sc);
}
