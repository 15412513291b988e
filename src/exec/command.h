/* SPDX-License-Identifier: MIT */
/*
 * What sh -c is given (spec/execution.md §5). A command that is one program and its arguments is run as
 * `exec PROGRAM …`, so that the program is in the place of the shell: its signals, its end and its use of
 * memory are its own. Everything else goes to the shell as it is.
 */
#ifndef EXEC_COMMAND_H
#define EXEC_COMMAND_H

#include "util/base.h"

/* The program of such a command, as it is written there, and its length; else NULL. */
const char *command_program(const char *command, size_t *ret_n);

/* For sh -c; owned. */
char *command_for_shell(const char *command);

#endif
