/* SPDX-License-Identifier: MIT */
/*
 * The list of moves of one commit, and doing them: from the upper directory of a scratch into the
 * workspace. The list is in the scratch and synced before the first move; each move can be done
 * again from any point, because it carries which inode it is about. After the last one an end mark
 * is left; a list without it is finished by whoever finds it.
 *
 *	vx-moves 1
 *	open PATH		make a directory of ours accessible to us
 *	place INO PATH		upper/PATH (that inode) goes to PATH, over what is there
 *	remove INO BORN PATH	PATH goes if it still is that inode (numbers are used again: so the time
 *				of its birth as well, where the file system tells it)
 *	rmdir PATH		goes if it is empty
 *	mode OCTAL PATH
 *	end
 *
 * in a path, \\ and \n. An existing directory is never replaced: what is placed over one moves into
 * it. Parents are opened from the workspace fd, beneath, no links.
 */
#ifndef EXEC_MOVES_H
#define EXEC_MOVES_H

#include "util/base.h"

struct err;

enum move_kind {
	MOVE_OPEN,
	MOVE_PLACE,
	MOVE_REMOVE,
	MOVE_RMDIR,
	MOVE_MODE
};

struct move {
	enum move_kind kind;
	uint64_t ino;  /* MOVE_PLACE: in the upper directory; MOVE_REMOVE: in the workspace */
	uint64_t born; /* MOVE_REMOVE: ns */
	uint32_t mode; /* MOVE_MODE */
	char *path;    /* from the workspace; owned */
};

struct moves {
	struct move *v;
	size_t n, cap;
};

struct move *moves_add(struct moves *m, enum move_kind kind, const char *path);
/* The file, link or other name that is at path now; nothing is added when there is none, or a
 * directory, or it can only be reached through a link. */
void moves_add_remove(struct moves *m, int rootfd, const char *path);
/* Moves all of `from` behind those of `m`. */
void moves_append_take(struct moves *m, struct moves *from);
void moves_release(struct moves *m);

/* Into the scratch, complete and synced when it returns 0. */
int moves_write(const struct moves *m, int scratchfd, struct err *e);
/* 1 read, 0 there is none or it has its end mark, -1. */
int moves_read(int scratchfd, struct moves *ret, struct err *e);
/* All of them, in order. One that cannot be done does not stop the others: -1 then, with the first
 * failure and how many there were. */
int moves_run(const struct moves *m, int scratchfd, int rootfd, struct err *e);
int moves_mark_end(int scratchfd, struct err *e);

/* Test seam: called with the name of each point at which a crash must do no harm. NULL: nobody. */
void moves_set_announce(void (*fn)(const char *point));
void moves_announce(const char *point);

#endif
