/* SPDX-License-Identifier: MIT */
/*
 * The file is a table with three kinds of rows, in this order: one for the runtimes, one for each file, one for each
 * config, the last two sorted by path. A config lists the files that it rests on by their numbers, so that what all import is
 * looked at once.
 */
#include "config/evaluated.h"
#include "config/script.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/digest.h"
#include "util/fd.h"
#include "util/filestate.h"
#include "util/fs.h"
#include "util/htab.h"
#include "util/log.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "util/table.h"
#include <errno.h>

static const char file_name[] = "configs";

enum row_kind {
	ROW_RUNTIMES,
	ROW_FILE,
	ROW_CONFIG,
};

struct row {
	uint64_t kind;
	uint64_t path, path_len; /* in the table's bytes, a NUL behind it */
	union {
		struct {
			struct filestate seen; /* mode 0: it was not there */
			struct digest digest;  /* of ROW_RUNTIMES, too */
		};
		struct {
			uint64_t json, json_len;
			uint64_t needs, nneeds; /* uint32_t each: the number of a file */
			uint64_t nmanifests;    /* of them, the last */
		};
	};
};
_Static_assert(sizeof(struct row) == 120, "a row has no padding");

static const struct table_kind configs_kind = {"vx-confs", 2, sizeof(struct row)};

enum standing {
	NOT_ASKED,
	HOLDS,
	CHANGED,
};

/* A file as it is to be written. */
struct file {
	const char *path;
	struct filestate seen;
	struct digest digest;
	bool is_known; /* it can be told later whether it has changed */
	uint32_t number;
};

/* A config as it is to be written. */
struct kept {
	const char *path, *json;
	size_t len;
	struct file **needs;
	size_t nneeds;
	size_t nmanifests; /* of them, the last */
};

struct evaluated {
	int statefd, rootfd;
	const char *root_path;
	bool is_open; /* the table has been read: it is only once a script is asked for */
	struct digest identity;
	struct table table;
	struct row *rows;
	size_t nfiles, nconfigs; /* after the first row */
	unsigned char *standing; /* by file */
	bool *used;              /* by config */
	bool refreshed;          /* a file was written and holds what it did */
	size_t finger;           /* the config after the last one asked for */
	struct arena arena;
	struct htab files; /* those of what was put: struct file */
	struct htab put;   /* by path: where in v, from 1 */
	struct kept *v;
	size_t n, cap;
};

struct evaluated *
evaluated_open(int statefd, int rootfd, const char *root_path)
{
	struct evaluated *ev = xcalloc(1, sizeof(*ev));

	ev->statefd = statefd;
	ev->rootfd = rootfd;
	ev->root_path = root_path;
	arena_init(&ev->arena);
	htab_init(&ev->files);
	htab_init(&ev->put);
	return ev;
}

/* ------------------------------------------------------------------ the table */

static bool
is_inside(const struct table *t, uint64_t at, uint64_t len)
{
	return at < t->nbytes && len < t->nbytes - at && !t->bytes[at + len];
}

static const struct row *
file_row(const struct evaluated *ev, size_t i)
{
	return &ev->rows[1 + i];
}

static const struct row *
config_row(const struct evaluated *ev, size_t i)
{
	return &ev->rows[1 + ev->nfiles + i];
}

static uint32_t
need_of(const struct evaluated *ev, const struct row *r, size_t i)
{
	uint32_t number;

	memcpy(&number, ev->table.bytes + r->needs + i * sizeof(number), sizeof(number));
	return number;
}

static bool
needs_are_sound(const struct evaluated *ev, const struct row *r)
{
	const struct table *t = &ev->table;

	if (r->needs > t->nbytes || r->nneeds > (t->nbytes - r->needs) / sizeof(uint32_t) ||
		r->nmanifests > r->nneeds)
		return false;
	for (size_t i = 0; i < r->nneeds; i++)
		if (need_of(ev, r, i) >= ev->nfiles)
			return false;
	return true;
}

/* Nothing of the file is believed before its checksum; offsets and order are still looked at. */
static bool
rows_are_sound(struct evaluated *ev)
{
	const struct table *t = &ev->table;

	if (!t->nrows || ev->rows[0].kind != ROW_RUNTIMES)
		return false;
	for (size_t i = 1; i < t->nrows; i++) {
		const struct row *r = &ev->rows[i];

		if (!is_inside(t, r->path, r->path_len) || !path_is_normal(t->bytes + r->path))
			return false;
		if (r->kind == ROW_FILE && !ev->nconfigs)
			ev->nfiles++;
		else if (r->kind == ROW_CONFIG)
			ev->nconfigs++;
		else
			return false;
	}
	for (size_t i = 0; i < ev->nconfigs; i++) {
		const struct row *r = config_row(ev, i);

		if (!is_inside(t, r->json, r->json_len) || !needs_are_sound(ev, r))
			return false;
	}
	return true;
}

static void
read_table(struct evaluated *ev)
{
	int r;

	ev->is_open = true;
	script_identity(ev->root_path, &ev->identity);
	r = ev->statefd < 0 ? 0 : table_open(ev->statefd, file_name, &configs_kind, &ev->table);
	if (r > 0) {
		ev->rows = xreallocarray(NULL, ev->table.nrows, sizeof(*ev->rows));
		memcpy(ev->rows, ev->table.rows, ev->table.nrows * sizeof(*ev->rows));
		if (!rows_are_sound(ev))
			r = -1;
	}
	if (r < 0)
		log_debug("config", "the memory of configs is damaged or of another version: made "
				    "anew");
	if (r > 0 && !digest_equal(&ev->rows[0].digest, &ev->identity)) {
		log_debug("config", "other runtimes than before: all configs are evaluated");
		r = -1;
	}
	if (r <= 0)
		ev->nfiles = ev->nconfigs = 0;
	ev->standing = xcalloc(ev->nfiles + 1, 1);
	ev->used = xcalloc(ev->nconfigs + 1, sizeof(*ev->used));
}

/* ------------------------------------------------------------------ asking */

/* Where a link leads to, as it is written. One that is needed is the link of a package in node_modules. */
static int
learn_link(int rootfd, const char *path, struct filestate *seen, struct digest *digest)
{
	cleanup_close int fd = fs_open_beneath(rootfd, path, O_PATH | O_NOFOLLOW, 0);
	int64_t begun = (int64_t)clock_files_ns();
	char text[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISLNK(st.st_mode))
		return -1;
	n = readlinkat(fd, "", text, sizeof(text));
	if (n < 0)
		return -1;
	digest_bytes(text, (size_t)n, digest);
	filestate_take(seen, &st, begun);
	return 0;
}

/* What is there now, read. */
static int
learn(int rootfd, const char *path, struct filestate *seen, struct digest *digest)
{
	cleanup_close int fd = fs_open_beneath(rootfd, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
	int64_t begun = (int64_t)clock_files_ns();
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return learn_link(rootfd, path, seen, digest);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || digest_fd(fd, digest, NULL))
		return -1;
	filestate_take(seen, &st, begun);
	return 0;
}

static bool
is_absence(int num)
{
	return num == ENOENT || num == ENOTDIR;
}

static bool
look(struct evaluated *ev, size_t i)
{
	struct row *r = &ev->rows[1 + i];
	const char *path = ev->table.bytes + r->path;
	struct filestate seen;
	struct digest digest;
	struct stat st;

	if (fs_stat_beneath(ev->rootfd, path, &st))
		return !r->seen.mode && is_absence(errno);
	if (!r->seen.mode)
		return false;
	if (filestate_holds(&r->seen, &st))
		return true;
	if (learn(ev->rootfd, path, &seen, &digest) || !digest_equal(&digest, &r->digest) ||
		(seen.mode & S_IFMT) != (r->seen.mode & S_IFMT))
		return false;
	r->seen = seen;
	ev->refreshed = true;
	return true;
}

static bool
file_holds(struct evaluated *ev, size_t i)
{
	if (ev->standing[i] == NOT_ASKED)
		ev->standing[i] = look(ev, i) ? HOLDS : CHANGED;
	return ev->standing[i] == HOLDS;
}

/* SIZE_MAX: none. They are asked for in nearly the order in which they stand. */
static size_t
find_config(struct evaluated *ev, const char *path)
{
	size_t lo = 0, hi = ev->nconfigs;

	while (lo < hi) {
		size_t mid = ev->finger >= lo && ev->finger < hi ? ev->finger : lo + (hi - lo) / 2;
		int c = strcmp(path, ev->table.bytes + config_row(ev, mid)->path);

		ev->finger = SIZE_MAX;
		if (!c) {
			ev->finger = mid + 1;
			return mid;
		}
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return SIZE_MAX;
}

/* NULL: it was not put. */
static const struct kept *
find_put(const struct evaluated *ev, const char *path)
{
	uintptr_t at = (uintptr_t)htab_get(&ev->put, path);

	return at ? &ev->v[at - 1] : NULL;
}

const char *
evaluated_get(struct evaluated *ev, const char *path, size_t *ret_len)
{
	const struct kept *put = find_put(ev, path);
	const struct row *r;
	size_t i;

	if (put) {
		*ret_len = put->len;
		return put->json;
	}
	if (!ev->is_open)
		read_table(ev);
	i = find_config(ev, path);
	if (i == SIZE_MAX)
		return NULL;
	r = config_row(ev, i);
	for (size_t k = 0; k < r->nneeds; k++)
		if (!file_holds(ev, need_of(ev, r, k)))
			return NULL;
	ev->used[i] = true;
	*ret_len = (size_t)r->json_len;
	return ev->table.bytes + r->json;
}

void
evaluated_needs(
	struct evaluated *ev, const char *path, struct strvec *needs, struct strvec *manifests)
{
	const struct kept *put = find_put(ev, path);
	size_t i = put ? SIZE_MAX : find_config(ev, path);
	const struct row *r = i == SIZE_MAX ? NULL : config_row(ev, i);

	for (size_t k = 0; put && k < put->nneeds; k++)
		strvec_push(
			k + put->nmanifests < put->nneeds ? needs : manifests, put->needs[k]->path);
	for (size_t k = 0; r && k < r->nneeds; k++)
		strvec_push(k + r->nmanifests < r->nneeds ? needs : manifests,
			ev->table.bytes + file_row(ev, need_of(ev, r, k))->path);
}

void
evaluated_keep(struct evaluated *ev, const char *path)
{
	size_t i = ev->is_open ? find_config(ev, path) : SIZE_MAX;

	if (i != SIZE_MAX)
		ev->used[i] = true;
}

/* ------------------------------------------------------------------ remembering */

/* As it is now, if that is how it was when it was evaluated. */
static void
take_file(struct evaluated *ev, struct file *f, int64_t learned_ns)
{
	int64_t changed;
	struct stat st;

	if (fs_stat_beneath(ev->rootfd, f->path, &st)) {
		f->is_known = is_absence(errno);
		return;
	}
	if (learn(ev->rootfd, f->path, &f->seen, &f->digest))
		return;
	changed = f->seen.ctime_ns;
	f->is_known = changed && changed < learned_ns && !filestate_is_coarse(changed, learned_ns);
}

static struct file *
need(struct evaluated *ev, const char *path, int64_t learned_ns)
{
	struct file *f = htab_get(&ev->files, path);

	if (f)
		return f;
	f = arena_new(&ev->arena, struct file);
	f->path = arena_strdup(&ev->arena, path);
	htab_put(&ev->files, f->path, f);
	take_file(ev, f, learned_ns);
	return f;
}

void
evaluated_put(struct evaluated *ev, const struct script *s)
{
	struct kept k = {
		.len = s->len,
		.nneeds = s->needs.n + s->manifests.n,
		.nmanifests = s->manifests.n,
	};

	if (ev->statefd < 0 || *s->why || !s->needs.n)
		return;
	if (!ev->is_open)
		read_table(ev);
	k.needs = arena_array(&ev->arena, k.nneeds, struct file *);
	for (size_t i = 0; i < k.nneeds; i++) {
		const char *path = i < s->needs.n ? s->needs.v[i] : s->manifests.v[i - s->needs.n];

		if (!path_is_normal(path))
			return;
		k.needs[i] = need(ev, path, s->learned_ns);
		if (!k.needs[i]->is_known) {
			log_debug("config", "%s: not remembered, as %s is new", s->path, path);
			return;
		}
	}
	k.path = arena_strdup(&ev->arena, s->path);
	k.json = arena_memdupz(&ev->arena, s->json, s->len);
	GROW(ev->v, ev->n + 1, ev->cap);
	ev->v[ev->n++] = k;
	htab_put(&ev->put, k.path, (void *)(uintptr_t)ev->n);
}

/* ------------------------------------------------------------------ writing */

static bool
has_unused(const struct evaluated *ev)
{
	for (size_t i = 0; i < ev->nconfigs; i++)
		if (!ev->used[i])
			return true;
	return false;
}

/* As a row of the table says, or as it was found by then, if that has the same content; NULL. */
static struct file *
file_of_row(struct evaluated *ev, uint32_t number)
{
	const struct row *r = file_row(ev, number);
	const char *path = ev->table.bytes + r->path;
	struct file *f = htab_get(&ev->files, path);

	if (ev->standing[number] == CHANGED)
		return NULL;
	if (!f) {
		f = arena_new(&ev->arena, struct file);
		f->path = path;
		f->seen = r->seen;
		f->digest = r->digest;
		htab_put(&ev->files, path, f);
	} else if (!f->seen.mode != !r->seen.mode ||
		   (f->seen.mode && !digest_equal(&f->digest, &r->digest))) {
		return NULL;
	}
	return f;
}

/* What of the table goes on to stand, beside what was put. Of what nobody has asked for a file may have another content
 * by now, which something that was put rests on. */
static void
keep_used(struct evaluated *ev)
{
	struct file **known = arena_array(&ev->arena, ev->nfiles, struct file *);

	for (size_t i = 0; i < ev->nconfigs; i++) {
		const struct row *r = config_row(ev, i);
		struct kept k = {
			.path = ev->table.bytes + r->path,
			.json = ev->table.bytes + r->json,
			.len = (size_t)r->json_len,
			.nmanifests = (size_t)r->nmanifests,
		};

		if (!ev->used[i])
			continue;
		k.needs = arena_array(&ev->arena, (size_t)r->nneeds, struct file *);
		for (; k.nneeds < r->nneeds; k.nneeds++) {
			uint32_t number = need_of(ev, r, k.nneeds);

			if (!known[number])
				known[number] = file_of_row(ev, number);
			if (!known[number])
				break;
			k.needs[k.nneeds] = known[number];
		}
		if (k.nneeds < r->nneeds)
			continue;
		GROW(ev->v, ev->n + 1, ev->cap);
		ev->v[ev->n++] = k;
	}
}

static int
compare_kept(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->path, ((const struct kept *)b)->path);
}

static int
compare_files(const void *a, const void *b)
{
	return strcmp((*(struct file *const *)a)->path, (*(struct file *const *)b)->path);
}

/* Those that a config rests on, sorted and numbered; how many. */
static size_t
number_files(struct evaluated *ev, struct file **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < ev->n; i++)
		for (size_t k = 0; k < ev->v[i].nneeds; k++)
			ev->v[i].needs[k]->number = 1;
	for (size_t i = 0; i < ev->files.n; i++) {
		struct file *f = ev->files.entries[i].value;

		if (f->number)
			ret[n++] = f;
	}
	if (n)
		qsort(ret, n, sizeof(*ret), compare_files);
	for (size_t i = 0; i < n; i++)
		ret[i]->number = (uint32_t)i;
	return n;
}

static int
write_table(struct evaluated *ev)
{
	cleanup_strbuf struct strbuf bytes = STRBUF_INIT;
	cleanup_free struct row *rows = NULL;
	cleanup_free struct file **files = NULL;
	struct row *r;
	size_t n;

	keep_used(ev);
	if (ev->n)
		qsort(ev->v, ev->n, sizeof(*ev->v), compare_kept);
	files = xcalloc(ev->files.n + 1, sizeof(*files));
	n = number_files(ev, files);
	r = rows = xcalloc(1 + n + ev->n, sizeof(*rows));
	*r++ = (struct row){.kind = ROW_RUNTIMES, .digest = ev->identity};
	for (size_t i = 0; i < n; i++, r++)
		*r = (struct row){
			.kind = ROW_FILE,
			.path = table_add_text(&bytes, files[i]->path, strlen(files[i]->path)),
			.path_len = strlen(files[i]->path),
			.seen = files[i]->seen,
			.digest = files[i]->digest,
		};
	for (size_t i = 0; i < ev->n; i++, r++) {
		const struct kept *k = &ev->v[i];

		*r = (struct row){.kind = ROW_CONFIG, .path_len = strlen(k->path)};
		r->path = table_add_text(&bytes, k->path, r->path_len);
		r->json = table_add_text(&bytes, k->json, k->len);
		r->json_len = k->len;
		r->needs = bytes.len;
		r->nneeds = k->nneeds;
		r->nmanifests = k->nmanifests;
		for (size_t m = 0; m < k->nneeds; m++)
			strbuf_add(&bytes, &k->needs[m]->number, sizeof(k->needs[m]->number));
	}
	return table_write(ev->statefd, file_name, &configs_kind, rows, (size_t)(r - rows),
		bytes.buf, bytes.len);
}

void
evaluated_close(struct evaluated *ev, bool keep)
{
	if (keep && ev->is_open && ev->statefd >= 0 && (ev->n || ev->refreshed || has_unused(ev)) &&
		write_table(ev))
		log_debug("config", "the memory of configs is not written: %s", strerror(errno));
	table_close(&ev->table);
	htab_release(&ev->files);
	htab_release(&ev->put);
	arena_release(&ev->arena);
	free(ev->rows);
	free(ev->standing);
	free(ev->used);
	free(ev->v);
	free(ev);
}
