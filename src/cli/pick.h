/* SPDX-License-Identifier: MIT */
/*
 * The picker: asks on the terminal which task to run when none was named (spec/cli.md §1). Before the run begins, so
 * that no lock is held while somebody thinks.
 */
#ifndef CLI_PICK_H
#define CLI_PICK_H

struct err;
struct run_options;
struct strvec;

/* Appends what was picked. 0; where there is no terminal to ask on, 0 as well, and nothing is appended: the run says
 * what could have been named. Else the exit code: 130 after Ctrl-C, 1 after Ctrl-D; or -1. */
int pick_task(const struct run_options *o, struct strvec *words, struct err *e);

#endif
