/* SPDX-License-Identifier: MIT */
#include "sandbox/asked.h"
#include "sandbox/filter.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>

/* A newer kernel may have more to say than the header knows of. */
union question {
	struct seccomp_notif n;
	char room[512];
};
union reply {
	struct seccomp_notif_resp n;
	char room[512];
};

static void
add_id(struct strbuf *sb, uint32_t id)
{
	if (id != FILTER_NO_ID)
		strbuf_addf(sb, "%u", (unsigned)id);
}

/* What makes it another one than those before: the program that wants a socket, or the ids. */
static void
find_key(const struct asked *a, const struct asked_call *call, char key[ASKED_KEY])
{
	cleanup_strbuf struct strbuf comm = STRBUF_INIT;
	struct err ignored = ERR_INIT;
	char path[32];

	snprintf(path, sizeof(path), "%u/comm", (unsigned)call->pid);
	if (call->op == DENIAL_SOCKET)
		fd_read_file(a->proc, path, 4096, &comm, &ignored);
	snprintf(key, ASKED_KEY, "%s", call->op == DENIAL_SOCKET ? comm.buf : call->what);
}

/* A program that asks without end must cost little: when the list is full nothing is looked at any more. */
static void
tell_once(struct asked *a, const struct asked_call *call)
{
	unsigned kind = call->op == DENIAL_CHOWN;
	char key[ASKED_KEY];

	if (a->ntold[kind] == ASKED_TOLD_MAX)
		return;
	find_key(a, call, key);
	for (unsigned i = 0; i < a->ntold[kind]; i++)
		if (!strcmp(a->keys[kind][i], key))
			return;
	memcpy(a->keys[kind][a->ntold[kind]++], key, sizeof(key));
	a->told(a->ctx, call);
}

void
asked_serve(struct asked *a)
{
	union question q = {0};
	union reply reply = {0};
	struct asked_call call = {.op = DENIAL_SOCKET, .what = "unix"};
	struct filter_question about;

	/* ENOENT: the caller was killed meanwhile. Any other failure is the end of the listener. */
	if (ioctl(a->fd, SECCOMP_IOCTL_NOTIF_RECV, &q)) {
		if (errno != ENOENT && errno != EINTR)
			fd_close(&a->fd);
		return;
	}
	reply.n.id = q.n.id;
	reply.n.error = -EPERM;
	about = filter_question(&q.n.data);
	if (about.is_owner) {
		cleanup_strbuf struct strbuf ids = STRBUF_INIT;

		add_id(&ids, about.uid);
		strbuf_addch(&ids, ':');
		add_id(&ids, about.gid);
		call.op = DENIAL_CHOWN;
		snprintf(call.what, sizeof(call.what), "%s", ids.buf);
		/* The arguments are read again, and may be others by then: nothing is granted by going on. */
		reply.n.error = 0;
		reply.n.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	call.pid = q.n.pid;
	tell_once(a, &call);
	(void)!ioctl(a->fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}
