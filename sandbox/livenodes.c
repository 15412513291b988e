/* SPDX-License-Identifier: MIT */
#include "sandbox/livenodes.h"
#include "sandbox/seen.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <linux/fuse.h>
#include <sys/random.h>

static struct livenode *
new_node(struct livenodes *t)
{
	struct livenode *n = xcalloc(1, sizeof(*n));
	uint32_t slot;

	if (t->nfree) {
		slot = t->free_slots[--t->nfree];
	} else {
		size_t cap = t->cap;

		GROW(t->v, t->n + 1, t->cap);
		if (cap != t->cap)
			t->generations =
				xreallocarray(t->generations, t->cap, sizeof(*t->generations));
		slot = (uint32_t)t->n++;
		t->generations[slot] = 0;
	}
	t->v[slot] = n;
	/* The workspace's slot is 1 and never given back. */
	n->id = (uint64_t)t->generations[slot] << 32 | slot;
	return n;
}

void
livenodes_init(struct livenodes *t)
{
	*t = (struct livenodes){.nbuckets = 256};
	/* The names are the command's choice: it must not be able to have them fall into one bucket. */
	if (getrandom(t->key, sizeof(t->key), 0) != (ssize_t)sizeof(t->key))
		bug("getrandom");
	t->buckets = xcalloc(t->nbuckets, sizeof(struct livenode *));
	new_node(t); /* 0 is no number */
	new_node(t)->type = S_IFDIR;
	_Static_assert(FUSE_ROOT_ID == 1, "the workspace's number");
}

static void
free_node(struct livenode *n)
{
	free(n->name);
	free(n);
}

void
livenodes_release(struct livenodes *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i])
			free_node(t->v[i]);
	free(t->v);
	free(t->generations);
	free(t->free_slots);
	free(t->buckets);
}

struct livenode *
livenodes_get(const struct livenodes *t, uint64_t id)
{
	uint32_t slot = (uint32_t)id;

	if (!slot || slot >= t->n || !t->v[slot] || t->v[slot]->id != id)
		return NULL;
	return t->v[slot];
}

static struct livenode **
bucket_of(const struct livenodes *t, uint64_t parent, const char *name)
{
	uint64_t key[2] = {t->key[0] ^ parent, t->key[1]};

	return &t->buckets[seen_hash(key, name, strlen(name)) & (t->nbuckets - 1)];
}

static void
add_to_bucket(struct livenodes *t, struct livenode *n)
{
	struct livenode **b = bucket_of(t, n->parent->id, n->name);

	n->next = *b;
	*b = n;
}

static void
grow_buckets(struct livenodes *t)
{
	free(t->buckets);
	t->nbuckets *= 2;
	t->buckets = xcalloc(t->nbuckets, sizeof(struct livenode *));
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i] && t->v[i]->parent)
			add_to_bucket(t, t->v[i]);
}

struct livenode *
livenodes_find(const struct livenodes *t, const struct livenode *parent, const char *name)
{
	struct livenode *n = *bucket_of(t, parent->id, name);

	while (n && (n->parent != parent || strcmp(n->name, name) != 0))
		n = n->next;
	return n;
}

static void
name_node(struct livenodes *t, struct livenode *n, struct livenode *parent, const char *name)
{
	n->parent = parent;
	n->name = xstrdup(name);
	livenodes_ref(parent);
	add_to_bucket(t, n);
	if (++t->nnamed > t->nbuckets)
		grow_buckets(t);
}

/* Takes its name; the directory above may go with that. */
void
livenodes_unname(struct livenodes *t, struct livenode *n)
{
	struct livenode *parent = n->parent, **p;

	if (!parent)
		return;
	p = bucket_of(t, parent->id, n->name);
	while (*p != n)
		p = &(*p)->next;
	*p = n->next;
	t->nnamed--;
	free(take_ptr(&n->name));
	n->next = n->parent = NULL;
	livenodes_unref(t, parent);
}

/* One after the other up the tree, which can be deeper than the stack. */
static void
collect(struct livenodes *t, struct livenode *n)
{
	while (n && n->id != FUSE_ROOT_ID && !n->lookups && !n->refs) {
		struct livenode *parent = n->parent;
		uint32_t slot = (uint32_t)n->id;

		if (parent) {
			livenodes_ref(parent);
			livenodes_unname(t, n);
			parent->refs--;
		}
		t->v[slot] = NULL;
		/* A number that comes back must not mean another node to the kernel. */
		t->generations[slot]++;
		GROW(t->free_slots, t->nfree + 1, t->free_cap);
		t->free_slots[t->nfree++] = slot;
		free_node(n);
		n = parent;
	}
}

bool
livenode_is(const struct livenode *n, const struct stat *st)
{
	return n->dev == st->st_dev && n->ino == st->st_ino && n->type == (st->st_mode & S_IFMT);
}

struct livenode *
livenodes_look_up(
	struct livenodes *t, struct livenode *parent, const char *name, const struct stat *st)
{
	struct livenode *n = livenodes_find(t, parent, name);

	if (n && !livenode_is(n, st)) {
		livenodes_unname(t, n);
		n = NULL;
	}
	if (!n) {
		n = new_node(t);
		n->dev = st->st_dev;
		n->ino = st->st_ino;
		n->type = st->st_mode & S_IFMT;
		name_node(t, n, parent, name);
	}
	n->lookups++;
	return n;
}

void
livenodes_forget(struct livenodes *t, struct livenode *n, uint64_t lookups)
{
	n->lookups -= lookups < n->lookups ? lookups : n->lookups;
	collect(t, n);
}

void
livenodes_ref(struct livenode *n)
{
	n->refs++;
}

void
livenodes_unref(struct livenodes *t, struct livenode *n)
{
	n->refs--;
	collect(t, n);
}

void
livenodes_rename(struct livenodes *t, struct livenode *n, struct livenode *parent, const char *name)
{
	struct livenode *there = livenodes_find(t, parent, name);

	if (there == n)
		return;
	/* Neither may go by losing its name: the kernel still knows them. */
	livenodes_ref(n);
	livenodes_ref(parent);
	if (there)
		livenodes_unname(t, there);
	livenodes_unname(t, n);
	name_node(t, n, parent, name);
	livenodes_unref(t, parent);
	livenodes_unref(t, n);
}

bool
livenodes_path(const struct livenode *n, struct strbuf *ret)
{
	const struct livenode *at;
	size_t len = 0, end;

	for (at = n; at->parent; at = at->parent)
		len += strlen(at->name) + 1;
	if (at->id != FUSE_ROOT_ID)
		return false;
	if (!len)
		return true;
	end = len - 1;
	strbuf_grow(ret, len);
	for (at = n; at->parent; at = at->parent) {
		size_t k = strlen(at->name);

		memcpy(ret->buf + end - k, at->name, k);
		end -= k;
		if (end)
			ret->buf[--end] = '/';
	}
	ret->len = len - 1;
	ret->buf[ret->len] = '\0';
	return true;
}
