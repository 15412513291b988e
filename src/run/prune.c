/* SPDX-License-Identifier: MIT */
#include "run/prune.h"
#include "cache/gc.h"
#include "cache/index.h"
#include "cache/store.h"
#include "config/settings.h"
#include "run/report.h"
#include "run/state.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/path.h"
#include "util/stop.h"
#include "workspace/root.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

struct prune {
	const struct prune_options *o;
	struct root root;
	struct arena arena;
	char *state_path, *cache_path;
	int lockfd, cachefd;
	struct index *index;
	struct store *store;
};

static void
release(struct prune *p)
{
	index_close(p->index);
	store_close(p->store);
	fd_close(&p->cachefd);
	fd_close(&p->lockfd);
	free(p->cache_path);
	free(p->state_path);
	root_release(&p->root);
	arena_release(&p->arena);
}

/* 1 found, 0 there is none yet, -1. */
static int
find_cache(struct prune *p, const struct settings *s, struct err *e)
{
	cleanup_free char *dir = NULL;
	struct stat st;

	if (state_cache_path(&p->root, p->state_path, s->cache_dir, p->o->cache_dir, &dir, e))
		return -1;
	p->cachefd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->cachefd < 0 && errno == ENOENT && !p->o->cache_dir)
		return 0;
	if (p->cachefd < 0)
		return err_set(e, ERR_IO, errno, "open the cache directory %s", dir);
	p->cache_path = realpath(dir, NULL);
	if (!p->cache_path)
		return err_set(e, ERR_IO, errno, "open the cache directory %s", dir);
	if (state_check_cache(p->cachefd, dir, e))
		return -1;
	/* Where only the index was lost, nothing needs what it led to. */
	if (!fstatat(p->cachefd, "index.db", &st, AT_SYMLINK_NOFOLLOW) ||
		!fstatat(p->cachefd, "blobs", &st, AT_SYMLINK_NOFOLLOW))
		return 1;
	return errno == ENOENT ? 0 : err_set(e, ERR_IO, errno, "%s/index.db", p->cache_path);
}

static int
open_cache(struct prune *p, struct err *e)
{
	cleanup_free char *note = NULL;

	if (index_open(p->cache_path, NULL, false, &p->index, &note, e) ||
		store_open(p->cachefd, &p->store, e))
		return -1;
	if (note)
		report_warn("%s", note);
	return 0;
}

static void
say(const struct prune_options *o, const struct gc_result *r, struct strbuf *out)
{
	char freed[32], orphans[32], young[32];

	if (o->json) {
		strbuf_addf(out,
			"{\"dryRun\":%s,\"evicted\":%llu,\"bytesFreed\":%llu,\"orphans\":%llu,"
			"\"orphanBytes\":%llu}\n",
			o->dry ? "true" : "false", (unsigned long long)r->entries,
			(unsigned long long)r->bytes, (unsigned long long)r->orphans,
			(unsigned long long)r->orphan_bytes);
		return;
	}
	gc_size_text(r->bytes, freed, sizeof(freed));
	gc_size_text(r->orphan_bytes, orphans, sizeof(orphans));
	strbuf_addf(out, "%s %llu %s (%s freed)", o->dry ? "Would prune" : "Pruned",
		(unsigned long long)r->entries, r->entries == 1 ? "entry" : "entries", freed);
	if (r->orphans)
		strbuf_addf(out, ", %s %llu orphaned %s (%s)", o->dry ? "reap" : "reaped",
			(unsigned long long)r->orphans, r->orphans == 1 ? "file" : "files",
			orphans);
	strbuf_addch(out, '\n');
	if (!r->young)
		return;
	gc_size_text(r->young, young, sizeof(young));
	strbuf_addf(out,
		"%s that no result needs stay: files younger than an hour may be in use by other "
		"workspaces; prune again later\n",
		young);
}

/* The signal that asked for the stop; it is blocked, and pending. */
static int
stopped_code(const sigset_t *signals)
{
	const struct timespec now = {0};
	int sig = sigtimedwait(signals, NULL, &now);

	return 128 + (sig > 0 ? sig : SIGINT);
}

static int
enter(struct prune *p, const sigset_t *signals, struct err *e)
{
	const char *outer = getenv("VX_RUN_WORKSPACE");
	struct stat st;
	int sig, r;

	if (root_find(NULL, ROOT_EVALUATE, &p->root, e))
		return -1;
	if (outer && !strcmp(outer, p->root.path))
		return err_set(e, ERR_USAGE, 0,
			"vx cache prune inside a task of the same workspace would wait for itself");
	if (fstatat(p->root.fd, ".vx", &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT &&
		!p->o->cache_dir) {
		p->state_path = path_join(p->root.path, ".vx");
		return 0;
	}
	if (state_make(p->root.fd, p->root.path, &p->state_path, e))
		return -1;
	if (sigprocmask(SIG_BLOCK, signals, NULL))
		return err_set(e, ERR_IO, errno, "block signals");
	r = state_lock(p->state_path, p->o->command, &p->lockfd, &sig, e);
	return r > 0 ? 0 : r < 0 ? -1 : 128 + sig;
}

static int
prune(struct prune *p, const sigset_t *signals, struct strbuf *product, struct err *e)
{
	struct gc_result res = {0};
	struct gc_limits limits = {p->o->older_than_ns, p->o->max_bytes};
	struct settings s;
	int r = enter(p, signals, e);

	if (r)
		return r;
	if (settings_load(p->root.fd, &p->root.settings, &p->arena, &s, e))
		return -1;
	settings_apply_env(&s);
	if (!limits.older_than_ns && !limits.max_bytes) {
		limits.older_than_ns = s.cache_older_than_ns;
		limits.max_bytes = s.cache_max_bytes;
	}
	if (!limits.older_than_ns && !limits.max_bytes)
		return err_set(e, ERR_USAGE, 0,
			"how much? --older-than 30d, --max-size 10G, or cacheRetention in "
			"vx.workspace.json");
	r = find_cache(p, &s, e);
	if (r > 0) {
		r = open_cache(p, e);
		if (!r)
			r = gc_sweep(p->index, p->store, &limits, 0, p->o->dry, &res, e);
		if (!r)
			return stopped_code(signals);
	}
	if (r < 0)
		return -1;
	say(p->o, &res, product);
	return 0;
}

int
prune_cache(const struct prune_options *o, struct strbuf *product, struct err *e)
{
	struct prune p = {.o = o, .root = {.fd = -1}, .lockfd = -1, .cachefd = -1};
	sigset_t signals;
	int r;

	arena_init(&p.arena);
	stop_signals(&signals);
	r = prune(&p, &signals, product, e);
	release(&p);
	return r;
}
