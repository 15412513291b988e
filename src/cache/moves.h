/* SPDX-License-Identifier: MIT */
/*
 * The list of moves of one commit or restore, and doing them: from a scratch, which is what a
 * sandboxed task wrote or the stage of a run's restores, into the workspace. The list is in the
 * scratch and synced before the first move; each move can be done again from any point, because it
 * carries which inode it is about. After the last one it is marked as done; a list without that mark
 * is finished by whoever finds it.
 *
 *	u/		what is to go to the workspace
 *	moves		a list, complete and not known to be done
 *	moves.off	one that is being written, or is done: renaming is the mark, so that a stage, which
 *			has one list after the other, neither makes nor deletes a file for each
 *	old/		what was removed
 *
 *	vx-moves 2
 *	scratch INO BORN	the directory that the list was written in: its inode and the time of its
 *				birth (0 where the file system tells none)
 *	open PATH		make a directory of ours accessible to us
 *	place INO PATH		u/PATH (that inode) goes to PATH, over what is there
 *	bring INO NUMBER PATH	u/NUMBER does
 *	remove INO BORN PATH	PATH goes if it still is that inode (numbers are used again: so the time
 *				of its birth as well, where the file system tells it)
 *	rmdir PATH		goes if it is empty
 *	mode OCTAL PATH
 *	end
 *
 * A list elsewhere is nobody's to run: one that came with a repository or an archive, or with a copy of
 * the workspace, is not in the directory that it names. The time of birth is the kernel's alone to give,
 * in ns, so nobody can prepare a list for a directory that is still to be made. (No device number: after
 * a reboot, which is when lists are needed most, it may be another.)
 *
 * In a path, \\ and \n. An existing directory is never replaced: what is placed over one moves into
 * it. Parents are opened from the workspace fd, beneath, no links.
 */
#ifndef CACHE_MOVES_H
#define CACHE_MOVES_H

#include "util/base.h"

struct err;

/* The directory in the scratch. */
#define MOVES_FROM "u"

enum move_kind {
	MOVE_OPEN,
	MOVE_PLACE,
	MOVE_BRING,
	MOVE_REMOVE,
	MOVE_RMDIR,
	MOVE_MODE
};

struct move {
	enum move_kind kind;
	uint64_t ino;    /* MOVE_PLACE, MOVE_BRING: in u/; MOVE_REMOVE: in the workspace */
	uint64_t number; /* MOVE_BRING */
	uint64_t born;   /* MOVE_REMOVE: ns */
	uint32_t mode;   /* MOVE_MODE: 07777 */
	char *path;      /* from the workspace; owned */
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
/* By path: a directory before what is in it, or after (deepest first), each path once. */
void moves_sort_outer_first(struct moves *m);
void moves_sort_inner_first(struct moves *m);

/* Whether a move between these directories copies: they are on different mounts. */
bool moves_must_copy(int from, int to);
/* All of it: listed, run, marked. A single move is one rename, which has happened or has not, and
 * needs no list and no sync; unless it copies. -1 as moves_run, or nothing was done. */
int moves_apply(const struct moves *m, bool copies, int scratchfd, int rootfd, struct err *e);
/* For recovery: finishes what is listed in the scratch of a process that died. 1 done, 0 there was
 * nothing to do. After -1 a list that could be read has been done as far as it can be, and is
 * marked; nothing was done of one that could not. */
int moves_roll_forward(int scratchfd, int rootfd, struct err *e);

/* The steps of these. */

/* Into the scratch, complete and synced when it returns 0. */
int moves_write(const struct moves *m, int scratchfd, struct err *e);
/* 1 read, 0 there is none or it is marked as done, -1: also when it was not written there. */
int moves_read(int scratchfd, struct moves *ret, struct err *e);
/* All of them, in order. One that cannot be done does not stop the others: -1 then, with the first
 * failure and how many there were. */
int moves_run(const struct moves *m, int scratchfd, int rootfd, struct err *e);
int moves_mark_end(int scratchfd, struct err *e);

#endif
