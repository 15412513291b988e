/* SPDX-License-Identifier: MIT */
/*
 * A command of vx: main finds it by its first word and calls it.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

struct err;

struct cmd {
	const char *name;
	const char *summary; /* NULL: known, but not in this vx (yet) */
	const char *missing; /* for those: what to say */
	/* argv without the program's and the command's name. The exit code, or -1 with e set. */
	int (*run)(int argc, char *const *argv, struct err *e);
};

int cmd_cache(int argc, char *const *argv, struct err *e);
int cmd_run(int argc, char *const *argv, struct err *e);
int cmd_version(int argc, char *const *argv, struct err *e);
extern const struct cmd cmd_table[]; /* ended by a NULL name; in main.c */

#endif
