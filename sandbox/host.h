/* SPDX-License-Identifier: MIT */
/*
 * What the real workspace holds, asked beneath its fd and without following links: the other half
 * of a verdict. Shared by the policy layer and the wall.
 */
#ifndef SANDBOX_HOST_H
#define SANDBOX_HOST_H

#include "proto/ruleset.h"
#include <dirent.h>
#include <sys/stat.h>

/* Whose ids exist inside. Everything else would be shown as the overflow id and could not be copied
 * up (EOVERFLOW). */
struct owner {
	uid_t uid; /* the caller */
	gid_t gid;
	bool maps_all; /* every id of this user namespace is mapped to itself */
	/* As which the kernel shows ids that this user namespace has no name for; -1 where none are, or where
	 * it is also the name of one. */
	uid_t unnamed_uid;
	gid_t unnamed_gid;
};
bool owner_is_foreign(const struct owner *o, const struct stat *st);

/* What is at path; *ret_st is set unless that is HOST_ABSENT. What cannot be reached (a component
 * is no directory, a link, or closed to the caller) is absent: the task could not reach it either.
 * errno on -1: the system failed, nothing is known. */
int host_look(int hostfd, const char *path, enum host_kind *ret, struct stat *ret_st);

/* NULL with errno. */
DIR *host_opendir(int hostfd, const char *path);
/* The next name that is not "." or "..", and its kind. 1, 0 at the end, -1 with errno. */
int host_readdir(DIR *d, const char **ret_name, enum host_kind *ret);

#endif
