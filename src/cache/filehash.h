/* SPDX-License-Identifier: MIT */
/*
 * Which content a file has, without reading it twice: a memory of (path; device, inode, size,
 * mtime, ctime, mode, uid, gid) -> digest. A row is trusted only when all of them are unchanged and
 * the file was not touched within RACY_NS of the moment it was read (a write in the same clock tick
 * would not show); a racy one is read again.
 */
#ifndef CACHE_FILEHASH_H
#define CACHE_FILEHASH_H

#include "util/digest.h"

struct err;
struct filehash;

enum file_kind {
	FILE_ABSENT,
	FILE_PLAIN,
	FILE_EXEC,
	FILE_LINK,
	FILE_OTHER
};

struct file_id {
	enum file_kind kind;  /* EXEC: any x bit. LINK: the digest is of the target text. */
	struct digest digest; /* zero for ABSENT and OTHER */
};

/* Loads DIRFD/stat (missing or damaged: empty). */
int filehash_open(int dirfd, struct filehash **ret, struct err *e);
/* The identity now. Errors only when a file cannot be read, naming it. */
int filehash_get(
	struct filehash *fh, int rootfd, const char *path, struct file_id *ret, struct err *e);
/* How many files were seen to have changed, and whether this one has since there were `n`: for naming what
 * made a key another one. A change is seen by filehash_get alone, when it has been asked before. */
uint64_t filehash_changes(const struct filehash *fh);
bool filehash_changed_since(const struct filehash *fh, const char *path, uint64_t n);
/* "100644:<hex>", "100755:<hex>", "120000:<hex>", "absent", "other": what a key holds. */
struct strbuf;
enum {
	FILE_ID_TEXT_MAX = 7 + DIGEST_HEX, /* with its NUL */
};
void file_id_text(const struct file_id *id, struct strbuf *out);

/* Begins to look whether the files that are known are unchanged, beside what the caller does meanwhile:
 * for the next filehash_trust, whose answers then are from here on. rootfd stays open until it is off. */
void filehash_look_ahead(struct filehash *fh, int rootfd);

/* While on, each path is looked at once and the answer then stands: for the time in which keys are made
 * and no task runs yet. Off forgets those answers (not the memory). */
void filehash_trust(struct filehash *fh, bool on);

/* Writes the memory if it changed (temporary, rename), without rows for files not asked for in this
 * run when `complete`; and frees. Failing to write is no error to the run: said in VX_DEBUG. */
void filehash_close(struct filehash *fh, bool complete);

#endif
