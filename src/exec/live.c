/* SPDX-License-Identifier: MIT */
#include "exec/live.h"
#include "cache/never.h"
#include "exec/denials.h"
#include "exec/policy.h"
#include "exec/scratch.h"
#include "proto/status.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include <errno.h>

void
live_init(struct live *l)
{
	strvec_init(&l->planted);
	strvec_init(&l->moved);
}

void
live_release(struct live *l)
{
	strvec_release(&l->planted);
	strvec_release(&l->moved);
}

void
live_add(struct live *l, const struct status_planted *p)
{
	strvec_push(&l->planted, p->path.buf);
	strvec_push(&l->moved, p->moved.buf);
}

static void
find(const struct policy *p, const char *path, struct exec_result *r)
{
	struct exec_denial d = {
		.op = DENIAL_WRITE,
		.class = DENIAL_FINDING,
		.path = xstrdup(path),
		.program = xstrdup(""),
		.cmdline = xstrdup(""),
	};
	struct exec_denial *kept = denials_add_take(r, &d);

	if (kept)
		kept->grant = policy_grant_text(p, true, path);
}

static void
note(struct exec_result *r, const char *path, const char *what, const char *more)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	strbuf_add_sanitised(&sb, path, strlen(path));
	strbuf_adds(&sb, what);
	strbuf_add_sanitised(&sb, more, strlen(more));
	strvec_push(&r->notes, sb.buf);
}

/* The task has ended, but anybody may write in the workspace. */
static void
conclude_manifest(const struct policy *p, int rootfd, const char *path, struct exec_result *r)
{
	cleanup_close int fd = fs_open_beneath(rootfd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	enum never_manifest m = MANIFEST_UNREADABLE;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return;
	if (fd >= 0)
		m = never_manifest_at(fd);
	if (m == MANIFEST_PLAIN)
		return;
	find(p, path, r);
	note(r, path, ", which the task wrote, stands: ", never_manifest_why(m));
}

void
live_conclude(const struct live *l, const struct policy *p, int rootfd, struct scratch_area *area,
	const struct scratch *s, struct exec_result *r)
{
	cleanup_free char *kept = NULL;
	bool is_kept = false;

	for (size_t i = 0; s->path && i < l->planted.n && !is_kept; i++)
		is_kept = *l->moved.v[i] && path_is_within(l->moved.v[i], s->path);
	/* The scratch is deleted with all that is in it, and some of this may be the user's own. */
	if (is_kept)
		kept = scratch_keep(area, s);
	for (size_t i = 0; i < l->planted.n; i++) {
		const char *path = l->planted.v[i], *moved = l->moved.v[i];
		cleanup_free char *now = NULL;

		if (!*moved && *path != '/' && never_is_manifest(path)) {
			conclude_manifest(p, rootfd, path, r);
			continue;
		}
		find(p, path, r);
		if (!*moved) {
			note(r, path,
				" stands, and may be executed or obeyed by who works there: look "
				"at it",
				"");
			continue;
		}
		if (kept && path_is_within(moved, s->path))
			now = path_join(kept, path_base(moved));
		note(r, path,
			" came to be where the task could write, and is never kept: it is now ",
			now ? now : moved);
	}
}
