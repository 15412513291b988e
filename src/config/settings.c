/* SPDX-License-Identifier: MIT */
#include "config/settings.h"
#include "config/fields.h"
#include "config/script.h"
#include "util/alloc.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/glob.h"
#include "util/num.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>

#define IN_PROJECT "belongs in the vx.config.json of a project"
#define IN_EACH "write the tasks in the vx.config.json of each project"

static const struct shape members_shape = {
	.schema = "'type': 'array', 'items': { "
		  "'type': 'string', 'pattern': '^!?(?!/|!|\\.\\.(/|$))' }"};
static const struct shape concurrency_shape = {
	.schema = "'type': 'integer', 'minimum': 1, 'maximum': 2147483647"};
static const struct shape affected_base_shape = {
	.schema = "'type': 'string', 'pattern': '^(?!-)[^" BLANKS "]+$'"};
static const struct shape size_shape = {
	.schema = "'type': 'string', 'pattern': '^0*[1-9][0-9]*([KMGT]B?|B)$'"};
static const struct shape duration_shape = {
	.schema = "'type': 'string', 'pattern': '^0*[1-9][0-9]*[smhd]$'"};

/* What has no slash would have to be looked up, and what is above the root is not of the workspace. */
static const struct shape executors_shape = {
	.schema = "'type': 'array', 'items': { 'type': 'string', "
		  "'pattern': '^\\.?(/(?!\\.{0,2}(/|$))[^/]+)+$' }"};

static const struct field rules_fields[] = {
	{"exclusiveOutputs", FIELD_HERE,
		"No path is an output of two tasks. Without it a task may add to the outputs of "
		"one that it needs.",
		&field_bool_shape},
	{"upfrontKeys", FIELD_HERE,
		"No input of a cached task is an output of another one. Without it the key of such "
		"a task is made when those that it needs are done.",
		&field_bool_shape},
};
static const struct shape rules_shape = {.schema = "'type': 'object'", FIELDS(rules_fields)};

static const struct field retention_fields[] = {
	{"maxSize", FIELD_HERE,
		"Results longest unused go until the rest takes up less: a whole number and K, M, "
		"G or T.",
		&size_shape},
	{"olderThan", FIELD_HERE,
		"Results that have not been used for so long go: a whole number and s, m, h or d.",
		&duration_shape},
};
static const struct shape retention_shape = {
	.schema = "'type': 'object', 'minProperties': 1", FIELDS(retention_fields)};

static const struct field workspace_fields[] = {
	{"$schema", FIELD_HERE, "The schema of this file, for editors.", &field_any_text_shape},
	{"affectedBase", FIELD_HERE, "The git reference that changes are counted from.",
		&affected_base_shape},
	{"cacheDir", FIELD_HERE,
		"Where the cache lives: from the workspace's root, absolute, or below ~/. "
		"VX_CACHE_DIR and --cache-dir outrank it.",
		&field_text_shape},
	{"cacheRetention", FIELD_HERE,
		"What leaves the cache, at the end of a run that wrote to it. By default nothing.",
		&retention_shape},
	{"concurrency", FIELD_HERE,
		"How many commands run at a time; by default the usable cores. --concurrency "
		"outranks it.",
		&concurrency_shape},
	{"executors", FIELD_HERE,
		"Programs that are asked, in this order, whether they execute a task; what none "
		"takes vx executes itself.",
		&executors_shape},
	{"projects", FIELD_HERE,
		"Patterns, from the workspace's root: which directories are projects; ! takes "
		"back. By default the package manager's list.",
		&members_shape},
	{"rules", FIELD_HERE, "Which rules of the task graph hold; by default both.", &rules_shape},
	{"timeout", FIELD_HERE,
		"Milliseconds for tasks without an exec.timeout; by default none. VX_TASK_TIMEOUT "
		"and --timeout outrank it.",
		&field_timeout_shape},
	{"cacheScope", FIELD_NOT, NULL, NULL},
	{"plugins", FIELD_NOT, NULL, NULL},
	{"cacheDirectory", FIELD_FOREIGN, "write 'cacheDir'", NULL},
	{"defaultBase", FIELD_FOREIGN, "write 'affectedBase'", NULL},
	{"dependencies", FIELD_FOREIGN, IN_PROJECT, NULL},
	{"globalDependencies", FIELD_FOREIGN,
		"write the files in cache.inputs.workspaceFiles of the tasks that read them", NULL},
	{"globalEnv", FIELD_FOREIGN,
		"write the names in cache.inputs.env of the tasks that read them", NULL},
	{"globalPassThroughEnv", FIELD_FOREIGN,
		"write the names in exec.env.passThrough of the tasks that use them", NULL},
	{"name", FIELD_FOREIGN, IN_PROJECT, NULL},
	{"packages", FIELD_FOREIGN, "write 'projects'", NULL},
	{"parallel", FIELD_FOREIGN, "write 'concurrency'", NULL},
	{"pipeline", FIELD_FOREIGN, IN_EACH, NULL},
	{"tags", FIELD_FOREIGN, IN_PROJECT, NULL},
	{"targetDefaults", FIELD_FOREIGN, IN_EACH, NULL},
	{"tasks", FIELD_FOREIGN, IN_PROJECT, NULL},
	{"workspaces", FIELD_FOREIGN, "write 'projects'", NULL},
};
const struct shape settings_shape = {.schema = "'type': 'object'", FIELDS(workspace_fields)};

static const char *const manifests[] = {"package.json", "vx.config.json", "vx.config.ts",
	"vx.config.mts", "vx.config.js", "vx.config.mjs", "vx.config.cts", "vx.config.cjs"};

void
settings_init(struct settings *s)
{
	*s = (struct settings){.timeout_by = "timeout in vx.workspace.json",
		.exclusive_outputs = true,
		.upfront_keys = true};
}

/* The member globs: in the one grammar, but "." may be among them. */
static int
parse_projects(const struct json_at *at, const json_t *value, struct arena *a, struct settings *s,
	struct err *e)
{
	bool positive = false;

	if (field_strings(at, value, a, NULL, &s->projects, &s->nprojects, e) < 0)
		return -1;
	for (size_t i = 0; i < s->nprojects; i++) {
		struct json_at here = {at->doc, at, NULL, i};
		bool neg = *s->projects[i] == '!' && s->projects[i][1] != '(';
		struct err why = ERR_INIT;
		struct glob *g;

		if (glob_parse(a, "", s->projects[i] + neg, GLOB_MEMBER, &g, &why) < 0)
			return json_error(&here, e, "%s", why.text);
		positive |= !neg;
	}
	if (s->nprojects && !positive)
		return json_error(at, e,
			"holds only '!' entries, which select nothing: add what they "
			"take from");
	return 0;
}

static int
parse_concurrency(const struct json_at *at, const json_t *value, struct settings *s, struct err *e)
{
	json_int_t v = json_integer_value(value);

	if (!json_is_integer(value) || v < 1 || v > INT_MAX)
		return json_error(at, e, "write a whole number from 1 on");
	s->concurrency = (unsigned)v;
	return 0;
}

static bool
holds_manifest(int dirfd, const char *path)
{
	for (size_t i = 0; i < array_len(manifests); i++) {
		cleanup_free char *file = path_join(path, manifests[i]);

		if (faccessat(dirfd, file, F_OK, 0) == 0)
			return true;
	}
	return false;
}

/* A directory that is, or holds, a project: what is deleted from a cache would be the user's. */
static bool
holds_project(int rootfd, const char *path)
{
	int fd = openat(rootfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!d) {
		fd_close(&fd);
		return false;
	}
	if (holds_manifest(fd, ""))
		return true;
	while ((entry = readdir(d)))
		if (strcmp(entry->d_name, "..") != 0 && holds_manifest(fd, entry->d_name))
			return true;
	return false;
}

/* Whether the directory is the workspace or one above it, whatever its spelling. */
static bool
holds_workspace(int rootfd, const char *path)
{
	cleanup_close int fd = openat(rootfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat want, here, last = {0};

	if (fstatat(rootfd, path, &want, 0) < 0)
		return false;
	while (fd >= 0 && fstat(fd, &here) == 0) {
		int up;

		if (here.st_dev == want.st_dev && here.st_ino == want.st_ino)
			return true;
		if (here.st_dev == last.st_dev && here.st_ino == last.st_ino)
			return false; /* "/" is its own parent */
		last = here;
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd_close(&fd);
		fd = up;
	}
	return false;
}

static int
parse_cache_dir(const struct json_at *at, const json_t *value, int rootfd, struct arena *a,
	struct settings *s, struct err *e)
{
	cleanup_free char *normal = NULL;

	if (field_string(at, value, a, &s->cache_dir, e) < 0)
		return -1;
	normal = path_normalise(s->cache_dir);
	if (*normal == '~')
		return 0;
	if (holds_workspace(rootfd, *normal ? normal : "."))
		return json_error(at, e, "'%s' holds the workspace: write a directory of its own",
			s->cache_dir);
	if (holds_project(rootfd, normal))
		return json_error(
			at, e, "'%s' holds a project: write a directory of its own", s->cache_dir);
	return 0;
}

static int
parse_affected_base(const struct json_at *at, const json_t *value, struct arena *a,
	struct settings *s, struct err *e)
{
	if (field_string(at, value, a, &s->affected_base, e) < 0)
		return -1;
	if (strpbrk(s->affected_base, " \t\r\n\v\f"))
		return json_error(at, e, "a git reference holds no blank");
	if (*s->affected_base == '-')
		return json_error(at, e, "a git reference does not begin with '-'");
	return 0;
}

static int
parse_bound(const struct json_at *above, const json_t *object, const char *key,
	int (*parse)(const char *s, uint64_t *ret, struct err *e), uint64_t *ret, struct err *e)
{
	const struct json_at at = {above->doc, above, key, 0};
	const json_t *v = json_object_get(object, key);
	const char *s = json_c_string(v);
	struct err why = ERR_INIT;

	if (!v || (s && !parse(s, ret, &why)))
		return 0;
	if (!json_is_string(v))
		return json_error(&at, e, "is %s: write a string like \"%s\"", json_kind(v),
			parse == num_parse_size ? "10G" : "30d");
	return json_error(&at, e, "%s", s ? why.text : "holds a NUL (\\u0000): leave it out");
}

static int
parse_retention(const struct json_at *at, const json_t *value, struct settings *s, struct err *e)
{
	if (fields_check(at, value, &retention_shape, NULL, e) < 0)
		return -1;
	if (!json_object_size(value))
		return json_error(at, e, "limits nothing: write olderThan, maxSize or both");
	return parse_bound(at, value, "olderThan", num_parse_duration, &s->cache_older_than_ns, e) <
				       0 ||
			       parse_bound(at, value, "maxSize", num_parse_size,
				       &s->cache_max_bytes, e) < 0
		       ? -1
		       : 0;
}

static int
parse_rule(const struct json_at *at, const json_t *value, const char *key, bool *ret, struct err *e)
{
	const struct json_at rule = {at->doc, at, key, 0};
	const json_t *v = json_object_get(value, key);

	if (v && !json_is_boolean(v))
		return json_error(&rule, e, "is %s: write true or false", json_kind(v));
	if (v)
		*ret = json_is_true(v);
	return 0;
}

static int
parse_rules(const struct json_at *at, const json_t *value, struct settings *s, struct err *e)
{
	if (fields_check(at, value, &rules_shape, NULL, e) < 0)
		return -1;
	return parse_rule(at, value, "exclusiveOutputs", &s->exclusive_outputs, e) < 0 ||
			       parse_rule(at, value, "upfrontKeys", &s->upfront_keys, e) < 0
		       ? -1
		       : 0;
}

static int
check_executor(const struct json_at *at, const char *s, struct err *e)
{
	cleanup_free char *normal = path_normalise(s), *again = NULL;

	if (*s != '/' && strncmp(s, "./", 2) != 0)
		return json_error(at, e,
			"'%s' is looked up nowhere: write './…' for a file of the workspace, or an "
			"absolute path",
			s);
	again = xasprintf("%s%s", *s == '/' ? "" : "./", normal);
	if (!*normal || !strcmp(normal, "/") || !strncmp(normal, "../", 3) || strcmp(again, s) != 0)
		return json_error(at, e,
			"'%s': write the path of a file, without '.', '..' and '//' in it", s);
	return 0;
}

static int
parse_settings(const struct json_doc *doc, int rootfd, struct arena *a, struct settings *ret,
	struct err *e)
{
	const struct json_at root = {doc, NULL, NULL, 0};
	struct settings s;
	const json_t *object = doc->root;

	settings_init(&s);
	if (fields_check(&root, object, &settings_shape, NULL, e) < 0)
		return -1;
	for (size_t i = 0; i < object->n; i++) {
		const json_t *v = &object->items[i];
		struct json_at at = {doc, &root, v->key, 0};
		int r = 0;

		if (!strcmp(at.key, "projects"))
			r = parse_projects(&at, v, a, &s, e);
		else if (!strcmp(at.key, "concurrency"))
			r = parse_concurrency(&at, v, &s, e);
		else if (!strcmp(at.key, "cacheDir"))
			r = parse_cache_dir(&at, v, rootfd, a, &s, e);
		else if (!strcmp(at.key, "cacheRetention"))
			r = parse_retention(&at, v, &s, e);
		else if (!strcmp(at.key, "timeout"))
			r = field_timeout(&at, v, &s.timeout_ms, e);
		else if (!strcmp(at.key, "affectedBase"))
			r = parse_affected_base(&at, v, a, &s, e);
		else if (!strcmp(at.key, "executors"))
			r = field_strings(
				&at, v, a, check_executor, &s.executors, &s.nexecutors, e);
		else if (!strcmp(at.key, "rules"))
			r = parse_rules(&at, v, &s, e);
		else if (!json_is_string(v)) /* $schema */
			r = json_error(&at, e, "is %s: write a string", json_kind(v));
		if (r < 0)
			return -1;
	}
	*ret = s;
	return 0;
}

int
settings_find(int rootfd, const char **ret_name, struct err *e)
{
	static const char *const names[] = {"vx.workspace.json", "vx.workspace.ts",
		"vx.workspace.mts", "vx.workspace.js", "vx.workspace.mjs", "vx.workspace.cts",
		"vx.workspace.cjs"};
	const char *found = NULL;

	for (size_t i = 0; i < array_len(names); i++) {
		if (faccessat(rootfd, names[i], F_OK, 0))
			continue;
		if (found)
			return err_set(e, ERR_CONFIG, 0,
				"%s: a second workspace config beside %s: remove one", names[i],
				found);
		found = names[i];
	}
	for (size_t i = 0; i < array_len(script_unread_endings); i++) {
		char name[32];

		snprintf(name, sizeof(name), "vx.workspace.%s", script_unread_endings[i]);
		if (!faccessat(rootfd, name, F_OK, 0))
			return err_set(e, ERR_CONFIG, 0,
				"%s: is not read: write it as vx.workspace.json (where comments "
				"are no errors) or vx.workspace.ts",
				name);
	}
	*ret_name = found;
	return 0;
}

int
settings_load(int rootfd, const struct script *script, struct arena *a, struct settings *ret,
	struct err *e)
{
	static const char name[] = "vx.workspace.json";
	struct json_doc doc = {0};
	struct err missing = ERR_INIT;
	int r;

	if (script && script->json) {
		if (json_parse(script->json, script->len, script->path, JSON_OURS, &doc, e) < 0)
			return -1;
		doc.evaluated = true;
	} else if (json_load(rootfd, name, name, JSON_OURS, &doc, &missing) < 0) {
		if (missing.num == ENOENT) {
			settings_init(ret);
			return 0;
		}
		return err_set(e, missing.kind, 0, "%s", missing.text);
	}
	r = parse_settings(&doc, rootfd, a, ret, e);
	if (!r)
		ret->timeout_by = arena_printf(a, "timeout in %s", doc.file);
	json_doc_release(&doc);
	return r;
}

void
settings_apply_env(struct settings *s)
{
	const char *timeout = getenv("VX_TASK_TIMEOUT"), *dir = getenv("VX_CACHE_DIR");

	if (timeout && *timeout && !timeout[strspn(timeout, "0123456789")]) {
		/* Overflow gives the largest, which is clamped like any other. */
		unsigned long long v = strtoull(timeout, NULL, 10);

		if (v) {
			s->timeout_ms = v < FIELD_TIMEOUT_MAX ? v : FIELD_TIMEOUT_MAX;
			s->timeout_by = "VX_TASK_TIMEOUT";
		}
	}
	if (dir && *dir)
		s->cache_dir = dir;
}

/* The first line of a file below dirfd, without its end; false where it cannot be read. */
static bool
read_line(int dirfd, const char *dir, const char *file, struct strbuf *out)
{
	cleanup_free char *path = path_join(dir, file);
	struct err e = ERR_INIT;

	strbuf_reset(out);
	if (fd_read_file(dirfd, path, 4096, out, &e) < 0)
		return false;
	strbuf_truncate(out, strcspn(out->buf, "\n"));
	return true;
}

/* Rounded up: half a core still runs one task. 0: no limit, or none that can be read. */
static unsigned
quota_cores(const char *quota, const char *period)
{
	/* Larger ones are how some kernels spell "none". */
	const long long unlimited = 1LL << 60;
	char *end;
	long long q, p;

	errno = 0;
	q = strtoll(quota, &end, 10);
	if (errno || end == quota || *end || q <= 0 || q > unlimited)
		return 0;
	p = strtoll(period, &end, 10);
	if (errno || end == period || *end || p <= 0)
		return 0;
	q = (q - 1) / p + 1;
	return q < INT_MAX ? (unsigned)q : 0;
}

static unsigned
group_cores(int dirfd, const char *dir, bool v2)
{
	cleanup_strbuf struct strbuf quota = STRBUF_INIT, period = STRBUF_INIT;
	char *blank;

	if (!v2)
		return read_line(dirfd, dir, "cpu.cfs_quota_us", &quota) &&
				       read_line(dirfd, dir, "cpu.cfs_period_us", &period)
			       ? quota_cores(quota.buf, period.buf)
			       : 0;
	if (!read_line(dirfd, dir, "cpu.max", &quota))
		return 0;
	blank = strchr(quota.buf, ' ');
	if (!blank)
		return 0;
	*blank = '\0';
	return quota_cores(quota.buf, blank + 1);
}

/* The tightest limit from the group up to the top of its hierarchy. */
static unsigned
hierarchy_cores(int dirfd, const char *mount, const char *group, bool v2)
{
	cleanup_free char *normal = path_normalise(group + strspn(group, "/"));
	cleanup_free char *dir = path_join(mount, normal);
	unsigned least = 0;

	for (;;) {
		unsigned n = group_cores(dirfd, dir, v2);

		if (n && (!least || n < least))
			least = n;
		if (strlen(dir) <= strlen(mount))
			return least;
		dir[path_parent_len(dir)] = '\0';
	}
}

/* Whether "cpu" is in the list "cpu,cpuacct". */
static bool
has_cpu(const char *controllers)
{
	for (const char *s = controllers; *s; s += strcspn(s, ","), s += *s == ',')
		if (strcspn(s, ",") == 3 && !strncmp(s, "cpu", 3))
			return true;
	return false;
}

unsigned
settings_quota_cores(const char *groups, int cgroupfd)
{
	cleanup_free char *text = xstrdup(groups);
	unsigned least = 0;
	char *rest = NULL;

	/* ID:CONTROLLERS:GROUP, version 2 without controllers */
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		unsigned n = 0;

		if (!group)
			continue;
		*group++ = '\0';
		controllers++;
		if (!*controllers) {
			n = hierarchy_cores(cgroupfd, "", group, true);
		} else if (has_cpu(controllers)) {
			n = hierarchy_cores(cgroupfd, controllers, group, false);
			if (!n)
				n = hierarchy_cores(cgroupfd, "cpu", group, false);
		}
		if (n && (!least || n < least))
			least = n;
	}
	return least;
}

/* CPUs that this process may run on; the set grows until the kernel's fits. */
static unsigned
affinity_cores(void)
{
	for (int n = 1024; n <= 1 << 20; n *= 2) {
		cpu_set_t *set = CPU_ALLOC((size_t)n);
		size_t size = CPU_ALLOC_SIZE((size_t)n);
		int r = set ? sched_getaffinity(0, size, set) : -1;
		int count = r == 0 ? CPU_COUNT_S(size, set) : 0;

		CPU_FREE(set);
		if (count > 0)
			return (unsigned)count;
		if (r < 0 && errno != EINVAL)
			break;
	}
	return 1;
}

unsigned
settings_usable_cores(void)
{
	cleanup_close int fd = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_strbuf struct strbuf groups = STRBUF_INIT;
	unsigned cores = affinity_cores(), quota = 0;
	struct err e = ERR_INIT;

	if (fd >= 0 && fd_read_file(AT_FDCWD, "/proc/self/cgroup", 1 << 16, &groups, &e) == 0)
		quota = settings_quota_cores(groups.buf, fd);
	return quota && quota < cores ? quota : cores;
}
