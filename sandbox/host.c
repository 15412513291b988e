/* SPDX-License-Identifier: MIT */
#include "sandbox/host.h"
#include "util/cleanup.h"
#include "util/fs.h"

bool
owner_is_foreign(const struct owner *o, const struct stat *st)
{
	if (o->maps_all)
		return st->st_uid == o->unnamed_uid || st->st_gid == o->unnamed_gid;
	return st->st_uid != o->uid || st->st_gid != o->gid;
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
