/* SPDX-License-Identifier: MIT */
/*
 * The helper's one voice: frames to the core, or, when started by hand, lines on stderr.
 */
#ifndef SANDBOX_TELL_H
#define SANDBOX_TELL_H

#include "proto/status.h"

/* fd: of the core; -1: by hand. */
void tell_init(int fd);
/* Borrowed. Entries are gathered; everything else goes out at once, or is queued. When the core is
 * gone, the process ends: with it the namespace. */
void tell(const struct status *s);
/* NOTE or NOTICE. */
void tell_note(enum status_type type, const char *text);
/* The last word: waits until the core has taken all. */
void tell_setup_error(const char *cause, const char *remedy);

/*
 * With `on` nothing waits for the core to read: it is queued. Off waits for all
 * of it. tell_fd is to be polled for POLLOUT, -1 when there is nothing to write; then tell_more.
 * tell_queued: bytes that wait; when they are many, what can be left out should be.
 */
void tell_queue(bool on);
int tell_fd(void);
void tell_more(void);
size_t tell_queued(void);

#endif
