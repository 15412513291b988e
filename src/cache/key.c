/* SPDX-License-Identifier: MIT */
#include "cache/key.h"
#include "cache/filehash.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

const char *const key_fingerprint_files[] = {"pnpm-lock.yaml", "package-lock.json",
	"npm-shrinkwrap.json", "yarn.lock", "bun.lock", "bun.lockb", "pnpm-workspace.yaml",
	".yarnrc.yml", ".npmrc", "bunfig.toml", NULL};

/* A value on a line of its own: newline and backslash never plain. */
static void
add_value(struct strbuf *out, const char *s)
{
	for (;;) {
		size_t n = strcspn(s, "\n\\");

		strbuf_add(out, s, n);
		s += n;
		if (!*s)
			return;
		strbuf_adds(out, *s == '\n' ? "\\n" : "\\\\");
		s++;
	}
}

/* The same of bytes with NULs among them. */
static void
add_bytes(struct strbuf *out, const char *p, size_t n)
{
	const char *end = p + n;

	/* one NUL follows, and so each piece is a string */
	for (;;) {
		add_value(out, p);
		p += strlen(p);
		if (p >= end)
			return;
		strbuf_adds(out, "\\0");
		p++;
	}
}

static void
add_field(struct strbuf *out, const char *label, const char *value)
{
	strbuf_adds(out, label);
	add_value(out, value);
	strbuf_addch(out, '\n');
}

static void
add_digest(struct strbuf *out, const char *label, const struct digest *d)
{
	char hex[DIGEST_HEX];

	digest_hex(d, hex);
	hex[DIGEST_HEX - 1] = '\n';
	strbuf_adds(out, label);
	strbuf_add(out, hex, DIGEST_HEX);
}

static void
add_count(struct strbuf *out, const char *label, size_t n)
{
	strbuf_adds(out, label);
	strbuf_addu(out, n);
	strbuf_addch(out, '\n');
}

static int
digest_cmp(const void *a, const void *b)
{
	uint64_t x, y;

	/* the first eight bytes tell nearly always */
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (x != y)
		return be64toh(x) < be64toh(y) ? -1 : 1;
	return memcmp(a, b, sizeof(struct digest));
}

static void
add_upstream(struct strbuf *out, const struct digest *upstream, size_t n)
{
	cleanup_free struct digest *sorted = NULL;

	add_count(out, "upstream:", n);
	if (!n)
		return;
	sorted = xreallocarray(NULL, n, sizeof(*sorted));
	memcpy(sorted, upstream, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), digest_cmp);
	for (size_t i = 0; i < n; i++)
		add_digest(out, "", &sorted[i]);
}

static void
add_runtime(struct strbuf *out, const char *label, const struct key_runtime *v, size_t n)
{
	add_count(out, label, n);
	for (size_t i = 0; i < n; i++) {
		add_value(out, v[i].command);
		strbuf_addch(out, '\0');
		add_bytes(out, v[i].out, v[i].nout);
		if (v[i].nerr) {
			strbuf_addch(out, '\0');
			add_bytes(out, v[i].err, v[i].nerr);
		}
		strbuf_addch(out, '\n');
	}
}

static void
add_parts(struct strbuf *out, const struct key_parts *p)
{
	struct digest config;

	add_count(out, "vx-key ", KEY_VERSION);
	add_field(out, "task:", p->task);
	add_field(out, "platform:", p->platform);
	add_digest(out, "workspace:", p->workspace);
	add_field(out, "manifest:", p->manifest);
	digest_bytes(p->config, strlen(p->config), &config);
	add_digest(out, "config:", &config);
	add_count(out, "forward-args:", p->nforward_args);
	for (size_t i = 0; i < p->nforward_args; i++)
		add_field(out, "", p->forward_args[i]);
	add_count(out, "env-values:", p->nenv);
	for (size_t i = 0; i < p->nenv; i++) {
		add_value(out, p->env[i].name);
		if (p->env[i].value) {
			strbuf_addch(out, '\0');
			add_value(out, p->env[i].value);
		}
		strbuf_addch(out, '\n');
	}
	add_runtime(out, "runtime-values:", p->runtime, p->nruntime);
	add_runtime(out, "ws-runtime-values:", p->ws_runtime, p->nws_runtime);
	add_upstream(out, p->upstream, p->nupstream);
	add_count(out, "inputs:", p->ninputs);
	for (size_t i = 0; i < p->ninputs; i++) {
		add_value(out, p->inputs[i].path);
		strbuf_addch(out, '\0');
		strbuf_adds(out, p->inputs[i].identity);
		strbuf_addch(out, '\n');
	}
}

void
key_compute(const struct key_parts *parts, struct digest *ret, struct strbuf *ret_text)
{
	cleanup_strbuf struct strbuf own = STRBUF_INIT;
	struct strbuf *text = ret_text ? ret_text : &own;
	size_t start = text->len;

	strbuf_grow(text, 1024 + 128 * parts->ninputs);
	add_parts(text, parts);
	digest_bytes(text->buf + start, text->len - start, ret);
}

void
key_group(const struct digest *upstream, size_t n, struct digest *ret)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "vx-group %d\n", KEY_VERSION);
	add_upstream(&text, upstream, n);
	digest_bytes(text.buf, text.len, ret);
}

/* The value of NAME= in os-release: quotes and backslashes as a shell would take them. False: none. */
static bool
os_release_value(const char *text, const char *name, struct strbuf *out)
{
	size_t n = strlen(name);

	for (const char *line = text; *line; line += *line == '\n') {
		const char *end = line + strcspn(line, "\n"), *p = line + n + 1;
		char quote = 0;

		if (end - line > (ptrdiff_t)n && !strncmp(line, name, n) && line[n] == '=') {
			strbuf_reset(out);
			if (p < end && (*p == '"' || *p == '\''))
				quote = *p++;
			for (; p < end && *p != quote; p++) {
				if (*p == '\\' && quote != '\'' && p + 1 < end)
					p++;
				strbuf_addch(out, *p);
			}
			return true;
		}
		line = end;
	}
	return false;
}

char *
key_platform(void)
{
	static const char *const files[] = {"/etc/os-release", "/usr/lib/os-release"};
	cleanup_strbuf struct strbuf text = STRBUF_INIT, value = STRBUF_INIT, out = STRBUF_INIT;
	struct utsname u;

	if (uname(&u))
		bug("uname");
	strbuf_adds(&out, u.machine);
	for (size_t i = 0; i < array_len(files) && !text.len; i++) {
		struct err e = ERR_INIT;

		/* A system without one (a bare container) is told apart by architecture alone. */
		if (fd_read_file(AT_FDCWD, files[i], 1 << 16, &text, &e))
			strbuf_reset(&text);
	}
	strbuf_addf(&out, " %s", os_release_value(text.buf, "ID", &value) ? value.buf : "linux");
	if (os_release_value(text.buf, "VERSION_ID", &value))
		strbuf_addf(&out, " %s", value.buf);
	return strbuf_take(&out);
}

/*
 * A lockfile that is a link counts with its target's text and with the content behind it: it is not
 * declared by anyone, so a package manager's reading through it must show. Only a digest leaves here.
 */
static int
add_behind_link(int rootfd, const char *name, struct strbuf *out, struct err *e)
{
	cleanup_close int fd = openat(rootfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct digest d;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	if (digest_fd(fd, &d, NULL))
		return err_set(e, ERR_IO, errno, "read %s", name);
	add_digest(out, "behind:", &d);
	return 0;
}

int
key_workspace(struct filehash *fh, int rootfd, const char *const *files, size_t n,
	struct digest *ret, struct err *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "vx-workspace %d\n", KEY_VERSION);
	for (size_t i = 0; i < n; i++) {
		const char *name = files[i];
		struct file_id id;

		if (filehash_get(fh, rootfd, name, &id, e))
			return -1;
		if (id.kind == FILE_ABSENT)
			continue;
		add_value(&text, name);
		strbuf_addch(&text, '\0');
		file_id_text(&id, &text);
		strbuf_addch(&text, '\n');
		if (id.kind == FILE_LINK && add_behind_link(rootfd, name, &text, e))
			return -1;
	}
	digest_bytes(text.buf, text.len, ret);
	return 0;
}
