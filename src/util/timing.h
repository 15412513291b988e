/* SPDX-License-Identifier: MIT */
/*
 * Where the time of a run goes, for people: with VX_TIMING set (but to 0) a table on stderr at its end. The names
 * are those of spec/execution.md §12, string literals. Only the first thread calls these.
 */
#ifndef UTIL_TIMING_H
#define UTIL_TIMING_H

#include "util/base.h"

/* Reads VX_TIMING; the first stage, startup, begins. Called once by main. */
void timing_init(void);
/* The stage that was on ends. One that comes again goes on where it was. */
void timing_stage(const char *name);

/* What is done for many tasks, within the stages: 0 where nobody asks. */
uint64_t timing_begin(void);
void timing_end(const char *span, uint64_t begun);

/* Ends the last stage. */
void timing_print(void);

#endif
