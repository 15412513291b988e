/* SPDX-License-Identifier: MIT */
/*
 * The helper's one voice: frames to the core, or, when started by hand, lines on stderr.
 */
#ifndef SANDBOX_TELL_H
#define SANDBOX_TELL_H

#include "proto/status.h"

/* fd: of the core; -1: by hand. */
void tell_init(int fd);
/* Borrowed. Entries are gathered; everything else goes out at once. When the core does not read any
 * more, the process ends: with it the namespace. */
void tell(const struct status *s);
void tell_note(const char *text);
void tell_setup_error(const char *cause, const char *remedy);

#endif
