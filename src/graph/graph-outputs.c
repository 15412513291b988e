/* SPDX-License-Identifier: MIT */
/*
 * Who writes what: no path may have two owners, and no key may wait for what another task has yet
 * to write. Outputs are found by the literal head of their globs: what overlaps has one head above,
 * or equal to, the other, so that a task is compared with its neighbours and not with all.
 *
 * The tasks of this run's projects that do not run count as well: their outputs lie there from an
 * earlier run, and would be taken for somebody's own.
 *
 * Two rules of vx.workspace.json can be off. Then a task may have outputs in common with one that it
 * needs, and inputs that another one writes; what follows from that is noted in the nodes.
 */
#include "graph/graph.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/path.h"
#include "util/strbuf.h"
#include "workspace/workspace.h"

/* One alternative of an output glob. */
struct claim {
	struct node *node;
	const struct glob *glob;
	bool granted; /* no output, but of allow.write: what a sandboxed task may write */
	const char *head;
	size_t next; /* the next claim of the same head, + 1; 0: none */
};

struct claims {
	struct arena arena; /* tasks that do not run */
	struct claim *v;    /* sorted by head, by workspace_compare_paths */
	size_t n, cap;
	struct htab by_head; /* to the first one's index + 1 */
	/* Pairs that collide though neither is an error yet: it depends on their edges. */
	const struct claim *(*pairs)[2];
	size_t npairs, pairs_cap;
};

static int
compare_head(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int c = workspace_compare_paths(x->head, y->head);

	return c ? c : x->node->index < y->node->index ? -1 : x->node->index > y->node->index;
}

static void
add_glob(struct claims *c, struct node *node, const struct glob *glob, bool granted)
{
	for (size_t k = 0; k < glob_nalternatives(glob); k++) {
		GROW(c->v, c->n + 1, c->cap);
		c->v[c->n++] = (struct claim){.node = node,
			.glob = glob,
			.granted = granted,
			.head = glob_literal_head(glob, k)};
	}
}

static void
add_claims(struct claims *c, struct node *node)
{
	const struct cachedef *cache = node->def->cache;
	const struct sandboxdef *sandbox = node->def->sandbox;

	for (size_t j = 0; cache && j < cache->outputs.npos; j++)
		add_glob(c, node, cache->outputs.pos[j], false);
	for (size_t j = 0; cache && sandbox && j < sandbox->nallow_write; j++)
		if (sandbox->allow_write[j].glob)
			add_glob(c, node, sandbox->allow_write[j].glob, true);
}

/* Those tasks of the project that do not run; with `far` only what may lie in other projects. */
static void
add_idle(struct claims *c, struct project *p, const bool *runs, size_t index, bool far)
{
	for (size_t i = 0; i < p->def.ntasks; i++) {
		struct taskdef *def = &p->def.tasks[i];
		struct node *n;

		if (runs[i] || !def->cache || !def->cache->outputs.npos ||
			(far && !taskdef_leaves_project(def)))
			continue;
		n = arena_new(&c->arena, struct node);
		*n = (struct node){.id = arena_printf(&c->arena, "%s#%s",
					   p->is_root ? "//" : p->name, def->name),
			.project = p,
			.def = def,
			.index = index + i};
		add_claims(c, n);
	}
}

static void
collect(struct claims *c, const struct graph *g)
{
	/* All tasks side by side, a project's from first[its index] on. */
	cleanup_free size_t *first = xcalloc(g->w->nprojects + 1, sizeof(*first));
	cleanup_free bool *in_run = xcalloc(g->w->nprojects, sizeof(*in_run));
	cleanup_free bool *runs = NULL;
	bool far = false; /* some task writes in other projects */

	arena_init(&c->arena);
	htab_init(&c->by_head);
	for (size_t i = 0; i < g->w->nprojects; i++)
		first[i + 1] = first[i] + g->w->projects[i]->def.ntasks;
	runs = xcalloc(first[g->w->nprojects], sizeof(*runs));
	for (size_t i = 0; i < g->n; i++) {
		const struct project *p = g->nodes[i]->project;

		in_run[p->index] = true;
		far |= taskdef_leaves_project(g->nodes[i]->def);
		runs[first[p->index] + (size_t)(g->nodes[i]->def - p->def.tasks)] = true;
		add_claims(c, g->nodes[i]);
	}
	for (size_t i = 0; i < g->w->nprojects; i++)
		add_idle(
			c, g->w->projects[i], runs + first[i], g->n + first[i], !in_run[i] && !far);
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), compare_head);
	for (size_t i = c->n; i-- > 0;) {
		uintptr_t old =
			(uintptr_t)htab_put(&c->by_head, c->v[i].head, (void *)(uintptr_t)(i + 1));

		c->v[i].next = old;
	}
}

/* The first claim whose head lies strictly below `dir`, in sorted order. */
static size_t
first_below(const struct claims *c, const char *dir)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (workspace_compare_paths(c->v[mid].head, dir) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
is_subtree(const struct glob *g, size_t alternative)
{
	return !glob_alternative_is_literal(g, alternative) &&
	       glob_matches_all_below(g, glob_literal_head(g, alternative));
}

/* Whether "!" entries may leave nothing of what `other` selects: then no overlap is proven. */
static bool
may_be_taken_back(const struct claim *c, const struct glob *other)
{
	const struct globset *set = &c->node->def->cache->outputs;

	for (size_t k = 0; k < glob_nalternatives(other); k++) {
		const char *head = glob_literal_head(other, k);
		bool subtree = is_subtree(other, k);

		if (globset_excludes(set, c->glob, head))
			return true;
		for (size_t i = 0; i < set->nneg; i++)
			if (glob_is_workspace(set->neg[i]) != glob_is_workspace(c->glob))
				continue;
			else if (subtree ? glob_matches_all_below(set->neg[i], head)
					 : !glob_alternative_is_literal(other, k) &&
						   glob_may_match_below(set->neg[i], head))
				return true;
	}
	return false;
}

static const char *
field_of(const struct claim *c)
{
	return glob_is_workspace(c->glob) ? "workspaceFiles" : "files";
}

/* The pattern as the task of `reader` writes it: from its project, or, in the list of another one and in
 * workspaceFiles, from the root. */
static char *
spelled(const struct claim *c, const struct project *reader, bool from_root)
{
	const char *dir = c->node->project->dir, *text = glob_text(c->glob);

	if (glob_is_workspace(c->glob))
		return xstrdup(!from_root && path_is_within(text, reader->dir)
				       ? path_below(text, reader->dir)
				       : text);
	return from_root ? path_join(dir, text) : xstrdup(text);
}

static int
refuse_overlap(const struct claim *a, const struct claim *b, struct err *e)
{
	cleanup_free char *exclusion = spelled(b, a->node->project, glob_is_workspace(a->glob));
	const char *x = glob_text(a->glob), *y = glob_text(b->glob);

	if (a->node->project == b->node->project && !strcmp(x, y) &&
		!strcmp(field_of(a), field_of(b)))
		return err_set(e, ERR_CONFIG, 0,
			"%s: task %s: cache.outputs.%s \"%s\" is also an output of %s (%s): a "
			"path has one owner; let one of them write elsewhere",
			b->node->def->place, b->node->id, field_of(b), y, a->node->id,
			a->node->def->place);
	return err_set(e, ERR_CONFIG, 0,
		"%s: task %s: cache.outputs.%s \"%s\" overlaps the output \"%s\" of %s (%s): a "
		"path has one owner; add \"!%s\" to the outputs.%s of %s, or let it write "
		"elsewhere",
		b->node->def->place, b->node->id, field_of(b), y, x, a->node->id,
		a->node->def->place, exclusion, field_of(a), a->node->id);
}

static bool
is_nested(const struct project *p, const char *path)
{
	for (size_t i = 0; i < p->nnested; i++)
		if (path_is_within(path, p->nested[i]->dir))
			return true;
	return false;
}

/* An entry of files cannot leave its project, and a nested project is a boundary for it. */
static bool
ends_before(const struct claim *a, const char *path)
{
	const struct project *p = a->node->project;

	return !glob_is_workspace(a->glob) && (!path_is_within(path, p->dir) || is_nested(p, path));
}

/* Appends a path that the alternative selects: a name for every wildcard. */
static void
add_example(struct strbuf *sb, const struct glob *g, size_t alternative)
{
	cleanup_strbuf struct strbuf pattern = STRBUF_INIT;

	glob_add_text(g, alternative, &pattern);
	for (const char *s = glob_text_path(pattern.buf); *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '*' || *s == '?') {
			strbuf_addch(sb, 'a');
			s += s[0] == '*' && s[1] == '*';
			continue;
		}
		strbuf_addch(sb, *s);
	}
}

static bool
is_common(const struct claim *a, const struct claim *b, const char *path)
{
	return glob_match(a->glob, path) && glob_match(b->glob, path) && !ends_before(a, path) &&
	       !ends_before(b, path) &&
	       !globset_excludes(&a->node->def->cache->outputs, a->glob, path) &&
	       !globset_excludes(&b->node->def->cache->outputs, b->glob, path);
}

/* Two lists that start in different directories have no text in common by which to compare them, and one
 * that knows no projects can take the outputs of all: a path that both select proves it. */
static bool
has_common(const struct claim *a, const struct claim *b)
{
	const struct claim *both[] = {a, b};

	if (!glob_is_workspace(a->glob) && !glob_is_workspace(b->glob))
		return false;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < glob_nalternatives(both[i]->glob); k++) {
			cleanup_strbuf struct strbuf path = STRBUF_INIT;

			cleanup_free char *below = NULL;

			add_example(&path, both[i]->glob, k);
			below = path_join(both[1 - i]->head, path_base(path.buf));
			if (is_common(a, b, path.buf) || is_common(a, b, below) ||
				is_common(a, b, glob_literal_head(both[i]->glob, k)))
				return true;
		}
	return false;
}

static bool
claims_collide(const struct claim *a, const struct claim *b)
{
	/* Of two heads one lies in the other: there they meet. */
	const char *deeper = strlen(a->head) < strlen(b->head) ? b->head : a->head;

	if (a->node == b->node || a->granted || b->granted)
		return false;
	return (glob_surely_overlap(a->glob, b->glob) && !ends_before(a, deeper) &&
		       !ends_before(b, deeper) && !may_be_taken_back(a, b->glob) &&
		       !may_be_taken_back(b, a->glob)) ||
	       has_common(a, b);
}

/* a's head is b's or above it. */
static void
add_pair(struct claims *c, const struct claim *a, const struct claim *b)
{
	if (!claims_collide(a, b))
		return;
	GROW(c->pairs, c->npairs + 1, c->pairs_cap);
	c->pairs[c->npairs][0] = a;
	c->pairs[c->npairs++][1] = b;
}

static void
find_pairs(struct claims *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct claim *mine = &c->v[i];
		size_t len = strlen(mine->head);

		for (size_t j = mine->next; j; j = c->v[j - 1].next)
			add_pair(c, mine, &c->v[j - 1]);
		while (len) {
			uintptr_t first;

			while (len && mine->head[len - 1] != '/')
				len--;
			len -= len > 0;
			first = (uintptr_t)htab_getn(&c->by_head, mine->head, len);
			for (size_t j = first; j; j = c->v[j - 1].next)
				add_pair(c, &c->v[j - 1], mine);
		}
	}
}

static bool
runs(const struct graph *g, const struct node *n)
{
	return n->index < g->n;
}

/* The tasks of the pairs that do not run, with what they need: whether one needs the other must not hang on
 * what is asked for today. */
static int
link_idle(const struct claims *c, const struct graph *g, struct graph *ret, struct err *e)
{
	cleanup_free struct request *requests = xcalloc(2 * c->npairs, sizeof(*requests));
	size_t n = 0;

	for (size_t i = 0; i < c->npairs; i++)
		for (int k = 0; k < 2; k++) {
			const struct node *node = c->pairs[i][k]->node;

			if (!runs(g, node))
				requests[n++] = (struct request){
					.project = node->project, .def = node->def};
		}
	return graph_build(g->w, requests, n, ret, e);
}

static bool
is_needed(const struct graph *g, const struct graph *idle, const struct node *node,
	const struct node *other)
{
	const struct graph *in = runs(g, node) ? g : idle;
	const struct node *a = graph_node(in, node->id), *b = graph_node(in, other->id);

	return a && b && graph_needs(a, b);
}

static void
add_node(struct graph *g, const struct node ***v, size_t *n, const struct node *node)
{
	const struct node **grown;

	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*v)[i]->id, node->id))
			return;
	grown = arena_array(&g->arena, *n + 1, const struct node *);
	for (size_t i = 0; i < *n; i++)
		grown[i] = (*v)[i];
	if (!runs(g, node)) {
		struct node *copy = arena_new(&g->arena, struct node);

		*copy = (struct node){.id = arena_strdup(&g->arena, node->id),
			.project = node->project,
			.def = node->def,
			.index = SIZE_MAX};
		node = copy;
	}
	grown[(*n)++] = node;
	*v = grown;
}

static void
note_addition(struct graph *g, struct node *adds, struct node *owner)
{
	if (runs(g, adds))
		add_node(g, &adds->adds_to, &adds->nadds_to, owner);
	if (runs(g, owner))
		add_node(g, &owner->added_by, &owner->nadded_by, adds);
}

static int
check_exclusive(struct claims *c, struct graph *g, struct err *e)
{
	struct graph idle;
	int r = 0;

	find_pairs(c);
	if (!c->npairs)
		return 0;
	if (g->w->settings.exclusive_outputs)
		return refuse_overlap(c->pairs[0][0], c->pairs[0][1], e);
	if (link_idle(c, g, &idle, e))
		return -1;
	for (size_t i = 0; i < c->npairs && !r; i++) {
		const struct claim *a = c->pairs[i][0], *b = c->pairs[i][1];

		if (is_needed(g, &idle, a->node, b->node))
			note_addition(g, a->node, b->node);
		else if (is_needed(g, &idle, b->node, a->node))
			note_addition(g, b->node, a->node);
		else
			r = refuse_overlap(a, b, e);
	}
	graph_release(&idle);
	return r;
}

/* A literal whose name has an ending is taken for a file, not for a tree. */
static bool
is_tree(const struct glob *g, size_t alternative)
{
	return glob_alternative_is_literal(g, alternative)
		       ? !strchr(path_base(glob_literal_head(g, alternative)), '.')
		       : is_subtree(g, alternative);
}

/* What no input ever is: incremental state of tsc, and untracked files of node_modules. */
static bool
is_never_input(const struct claim *c)
{
	const char *text = glob_text(c->glob), *at = c->head;
	static const char ending[] = ".tsbuildinfo", modules[] = "node_modules";
	size_t n = strlen(text);

	if (n >= sizeof(ending) - 1 && !strcmp(text + n - (sizeof(ending) - 1), ending))
		return true;
	while ((at = strstr(at, modules))) {
		const char *end = at + sizeof(modules) - 1;

		if ((at == c->head || at[-1] == '/') && (!*end || *end == '/'))
			return true;
		at = end;
	}
	return false;
}

struct reader {
	struct node *node;
	const struct globset *set;
	const struct glob *glob;
	const char *field;
	bool whole_workspace; /* workspaceFiles: no project boundary */
};

/* Whether the path is an input of the reader and an output of the claim's task. */
static bool
is_witness(const struct reader *r, const struct claim *c, const char *path)
{
	const struct globset *own = &r->node->def->cache->outputs;
	bool nested;

	if (!glob_match(r->glob, path) || !glob_match(c->glob, path) ||
		globset_excludes(r->set, r->glob, path) ||
		(!c->granted && (globset_excludes(&c->node->def->cache->outputs, c->glob, path) ||
					ends_before(c, path))))
		return false;
	nested = is_nested(r->node->project, path);
	return (!nested || r->whole_workspace) &&
	       !(nested ? globset_match_nested(own, path) : globset_match(own, path));
}

/* Tries a path that `names` selects, and such a name below each tree of `trees`; and the heads. */
static bool
has_witness(const struct reader *r, const struct claim *c, const struct glob *names,
	const struct glob *trees)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	for (size_t i = 0; i < glob_nalternatives(names); i++) {
		strbuf_reset(&path);
		add_example(&path, names, i);
		if (is_witness(r, c, path.buf))
			return true;
		for (size_t k = 0; k < glob_nalternatives(trees); k++) {
			const char *head = glob_literal_head(trees, k);
			cleanup_free char *below = path_join(head, path_base(path.buf));

			if (is_witness(r, c, head) ||
				(is_tree(trees, k) && is_witness(r, c, below)))
				return true;
		}
	}
	return false;
}

/*
 * Whether the input glob can match what the task of the claim writes. Only a path that both select
 * proves it; patterns that meet in none of those tried pass. That is safe: an input that moves
 * between keying and saving is seen before anything is saved.
 */
static bool
can_read(const struct reader *r, const struct claim *c)
{
	if (c->node == r->node || is_never_input(c))
		return false;
	if (!r->whole_workspace && c->node->project != r->node->project &&
		!glob_is_workspace(c->glob) && !c->granted)
		return false;
	return has_witness(r, c, c->glob, r->glob) || has_witness(r, c, r->glob, c->glob);
}

static int
refuse_read(const struct reader *r, const struct claim *c, struct err *e)
{
	const char *text = glob_text(r->glob);
	cleanup_free char *exclusion = spelled(c, r->node->project, r->whole_workspace);
	bool inside = true;

	for (size_t k = 0; k < glob_nalternatives(r->glob); k++)
		inside &= glob_match(c->glob, glob_literal_head(r->glob, k));
	if (inside)
		return err_set(e, ERR_CONFIG, 0,
			"%s: task %s: %s \"%s\" is what %s writes (\"%s\", %s), so its key would "
			"have "
			"to wait; remove the entry: with \"dependsOn\" the key of %s stands for it",
			r->node->def->place, r->node->id, r->field, text, c->node->id,
			glob_text(c->glob), c->node->def->place, c->node->id);
	return err_set(e, ERR_CONFIG, 0,
		"%s: task %s: %s \"%s\" can match what %s writes (\"%s\", %s), so its key would "
		"have "
		"to wait; add \"!%s\" to %s",
		r->node->def->place, r->node->id, r->field, text, c->node->id, glob_text(c->glob),
		c->node->def->place, exclusion, r->field);
}

/* An output that the task may read. */
static int
check_read(const struct graph *g, const struct reader *r, const struct claim *c, struct err *e)
{
	if ((c->granted && r->node->reads_ahead) || !can_read(r, c))
		return 0;
	if (!c->granted && g->w->settings.upfront_keys)
		return refuse_read(r, c, e);
	r->node->reads_ahead |= runs(g, c->node) && graph_needs(r->node, c->node);
	return 0;
}

/* The claims above, at and below one head of an input glob. */
static int
check_head(const struct claims *c, const struct graph *g, const struct reader *r, const char *head,
	struct err *e)
{
	for (size_t len = strlen(head);;) {
		uintptr_t first = (uintptr_t)htab_getn(&c->by_head, head, len);

		for (size_t j = first; j; j = c->v[j - 1].next)
			if (check_read(g, r, &c->v[j - 1], e))
				return -1;
		if (!len)
			break;
		while (len && head[len - 1] != '/')
			len--;
		len -= len > 0;
	}
	for (size_t i = first_below(c, head); i < c->n && path_is_within(c->v[i].head, head); i++)
		if (check_read(g, r, &c->v[i], e))
			return -1;
	return 0;
}

static int
check_reader(const struct claims *c, const struct graph *g, struct reader *r, struct err *e)
{
	for (size_t i = 0; i < r->set->npos; i++) {
		r->glob = r->set->pos[i];
		for (size_t k = 0; k < glob_nalternatives(r->glob); k++)
			if (check_head(c, g, r, glob_literal_head(r->glob, k), e) < 0)
				return -1;
	}
	return 0;
}

static int
check_upfront(const struct claims *c, const struct graph *g, struct err *e)
{
	for (size_t i = 0; i < g->n; i++) {
		struct node *n = g->nodes[i];
		struct reader files = {.node = n, .field = "cache.inputs.files"};
		struct reader all = {
			.node = n, .field = "cache.inputs.workspaceFiles", .whole_workspace = true};

		if (!n->def->cache)
			continue;
		files.set = &n->def->cache->files;
		all.set = &n->def->cache->workspace_files;
		if (check_reader(c, g, &files, e) < 0 || check_reader(c, g, &all, e) < 0)
			return -1;
	}
	return 0;
}

/* What makes a directory a project is nobody's output. (Its own task is told by config/taskdef-cache.c.) */
static int
check_projects(const struct graph *g, const struct node *n, struct err *e)
{
	for (size_t i = 0; i < g->w->nprojects; i++) {
		const struct project *p = g->w->projects[i];
		cleanup_free char *manifest = path_join(p->dir, "package.json");
		const char *taken = NULL;

		if (p->config && globset_match_nested(&n->def->cache->outputs, p->config))
			taken = p->config;
		else if (globset_match_nested(&n->def->cache->outputs, manifest))
			taken = manifest;
		if (taken)
			return err_set(e, ERR_CONFIG, 0,
				"%s: task %s: cache.outputs.workspaceFiles select %s, which "
				"belongs "
				"to project %s: write a narrower pattern, or add \"!%s\"",
				n->def->place, n->id, taken, p->name, taken);
	}
	return 0;
}

int
graph_check_outputs(struct graph *g, struct err *e)
{
	struct claims c = {0};
	int r;

	for (size_t i = 0; i < g->n; i++)
		if (taskdef_leaves_project(g->nodes[i]->def) && check_projects(g, g->nodes[i], e))
			return -1;
	collect(&c, g);
	r = check_exclusive(&c, g, e);
	if (!r)
		r = check_upfront(&c, g, e);
	htab_release(&c.by_head);
	free(c.pairs);
	arena_release(&c.arena);
	free(c.v);
	return r;
}
