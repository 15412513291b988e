/* SPDX-License-Identifier: MIT */
/*
 * Second paths: a mount can show a directory or a file once more, anywhere: the workspace, what of it is hidden from a task,
 * vx's own directories, a credential store; whole, a part of it, or something that holds it. What is hidden by its path must be
 * hidden there, too, and what is written there would be written to what nobody granted.
 *
 * From mountinfo: two mounts of one file system, of which one shows what the other shows or a part of it. Another file
 * system made over a directory (an overlay's lower layer, bindfs, NFS to this machine) is not found.
 *
 * A second path to a part of the workspace is left to be seen where all of that part is granted to be read and nothing
 * can be written by it. Every other one in the workspace becomes a rule, so that the task neither sees it nor
 * has anything committed there; one elsewhere is covered by the helper (`hide` of the spec).
 *
 * What is mounted in the workspace from elsewhere stays what it is elsewhere.
 */
#ifndef EXEC_SECONDS_H
#define EXEC_SECONDS_H

struct err;
struct policy;
struct seconds;
struct strvec;

/* places: absolute, which no task may see by another path; those that lie in the workspace, too. */
struct seconds *seconds_new(const char *root_path, const struct strvec *places);
void seconds_free(struct seconds *s);

/* Adds to the policy what there is now. ret_notes: of what the task would have seen otherwise. */
int seconds_hide(struct seconds *s, struct policy *p, struct strvec *ret_notes, struct err *e);

#endif
