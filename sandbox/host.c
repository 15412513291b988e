/* SPDX-License-Identifier: MIT */
#include "sandbox/host.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/path.h"
#include "util/strbuf.h"
#include <limits.h>

enum {
	LINKS_MAX = 40
};

bool
owner_is_foreign(const struct owner *o, const struct stat *st)
{
	return !o->maps_all && (st->st_uid != o->uid || st->st_gid != o->gid);
}

static enum host_kind
kind_of(mode_t mode)
{
	return S_ISDIR(mode) ? HOST_DIR : S_ISLNK(mode) ? HOST_LINK : HOST_FILE;
}

int
host_look(int hostfd, const char *path, enum host_kind *ret, struct stat *ret_st)
{
	if (!fs_stat_beneath(hostfd, path, ret_st)) {
		*ret = kind_of(ret_st->st_mode);
		return 0;
	}
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EACCES:
	case ENAMETOOLONG:
		*ret = HOST_ABSENT;
		return 0;
	default:
		return -1;
	}
}

DIR *
host_opendir(int hostfd, const char *path)
{
	cleanup_close int fd = fs_open_beneath(hostfd, path, O_RDONLY | O_DIRECTORY, 0);
	DIR *d;

	if (fd < 0)
		return NULL;
	d = fdopendir(fd);
	if (d)
		take_fd(&fd);
	return d;
}

static bool
is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int
host_readdir(DIR *d, const char **ret_name, enum host_kind *ret)
{
	struct dirent *t;
	struct stat st;

	do {
		errno = 0;
		t = readdir(d);
		if (!t)
			return errno ? -1 : 0;
	} while (is_dots(t->d_name));
	*ret_name = t->d_name;
	switch (t->d_type) {
	case DT_DIR:
		*ret = HOST_DIR;
		break;
	case DT_LNK:
		*ret = HOST_LINK;
		break;
	case DT_UNKNOWN:
		if (fstatat(dirfd(d), t->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			if (errno != ENOENT)
				return -1;
			*ret = HOST_ABSENT;
		} else {
			*ret = kind_of(st.st_mode);
		}
		break;
	default:
		*ret = HOST_FILE;
	}
	return 1;
}

/* The text of a link, below hostfd. errno on -1. */
static int
read_link(int hostfd, const char *path, struct strbuf *out)
{
	const char *base;
	cleanup_close int parent = fs_open_parent(hostfd, path, &base);
	char text[PATH_MAX];
	ssize_t n;

	if (parent < 0)
		return -1;
	n = readlinkat(parent, base, text, sizeof(text));
	if (n < 0)
		return -1;
	strbuf_add(out, text, (size_t)n);
	return 0;
}

/* A way through the workspace: `at` is reached and holds no link, `rest` is to be walked. */
struct way {
	struct strbuf at;
	struct strbuf rest;
};

/* Puts the text of the link at->name in front of the rest. False when it leads out. */
static bool
enter_link(struct way *w, int hostfd, const char *link, const char *workspace)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (read_link(hostfd, link, &text))
		return false;
	if (text.buf[0] == '/') {
		cleanup_free char *normal = path_normalise(text.buf);

		if (!path_is_within(normal, workspace))
			return false;
		strbuf_reset(&text);
		strbuf_adds(&text, path_below(normal, workspace));
		strbuf_reset(&w->at);
	}
	if (w->rest.len) {
		strbuf_addch(&text, '/');
		strbuf_adds(&text, w->rest.buf);
	}
	strbuf_reset(&w->rest);
	strbuf_adds(&w->rest, text.buf);
	return true;
}

/* Takes the first component off the rest. False at the end. */
static bool
next_component(struct way *w, struct strbuf *ret)
{
	const char *p = w->rest.buf + strspn(w->rest.buf, "/");
	size_t n = strcspn(p, "/");
	cleanup_strbuf struct strbuf rest = STRBUF_INIT;

	strbuf_reset(ret);
	strbuf_add(ret, p, n);
	strbuf_adds(&rest, p + n);
	strbuf_reset(&w->rest);
	strbuf_adds(&w->rest, rest.buf);
	return n > 0;
}

/* Walks the way to its end in w->at, granting the links that it goes through. */
static bool
walk_way(struct way *w, int hostfd, const char *workspace, struct ruleset *rules,
	struct strvec *granted)
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;
	int nlinks = 1;

	while (next_component(w, &name)) {
		cleanup_strbuf struct strbuf next = STRBUF_INIT;
		enum host_kind kind;
		struct stat st;

		if (!strcmp(name.buf, "."))
			continue;
		if (!strcmp(name.buf, "..")) {
			if (!w->at.len)
				return false;
			strbuf_truncate(&w->at, path_parent_len(w->at.buf));
			continue;
		}
		strbuf_adds(&next, w->at.buf);
		path_append(&next, name.buf);
		if (host_look(hostfd, next.buf, &kind, &st) || kind == HOST_ABSENT)
			return false;
		if (kind == HOST_LINK) {
			if (++nlinks > LINKS_MAX || !enter_link(w, hostfd, next.buf, workspace))
				return false;
			ruleset_add_read(rules, next.buf);
			strvec_push(granted, next.buf);
		} else {
			strbuf_reset(&w->at);
			strbuf_adds(&w->at, next.buf);
		}
	}
	return true;
}

void
host_grant_target(int hostfd, const char *workspace, struct ruleset *rules, const char *link,
	struct strvec *granted)
{
	struct way w = {STRBUF_INIT, STRBUF_INIT};

	strbuf_add(&w.at, link, path_parent_len(link));
	if (enter_link(&w, hostfd, link, workspace) &&
		walk_way(&w, hostfd, workspace, rules, granted) &&
		!path_is_within(link, w.at.buf)) {
		ruleset_add_read(rules, w.at.buf);
		strvec_push(granted, w.at.buf);
	}
	strbuf_release(&w.at);
	strbuf_release(&w.rest);
}
