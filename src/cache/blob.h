/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one blob on their way into the store and out of it: copied, or packed as one zstd
 * frame (level 1, a window of 512 KiB), with the digest taken of the content. Whole pieces of zeros
 * become holes. What is unpacked is taken as hostile: never more memory than our own frames need,
 * never more bytes than were asked for, and a frame with anything before its end or after it is
 * damaged. Nothing here knows names.
 */
#ifndef CACHE_BLOB_H
#define CACHE_BLOB_H

#include "util/base.h"

struct blob_io;
struct digest;
struct strbuf;

enum {
	BLOB_PACKED_OVER = 64 << 10, /* smaller content is not worth a frame */
};

struct blob_io *blob_io_new(void);
void blob_io_free(struct blob_io *io);

/* All from `from` at its position to the end, to the empty `to`. errno on -1: EFBIG for more than
 * `max` bytes, EBADMSG for no frame of ours, ECANCELED when a stop is asked; *ret_reading says which
 * side failed. To the `to` of -1 only the digest is taken. */
int blob_copy(struct blob_io *io, int from, int to, uint64_t max, struct digest *ret,
	uint64_t *ret_size, bool *ret_reading);
int blob_pack(struct blob_io *io, int from, int to, struct digest *ret, uint64_t *ret_size,
	bool *ret_reading);
int blob_unpack(struct blob_io *io, int from, int to, uint64_t max, struct digest *ret,
	uint64_t *ret_size, bool *ret_reading);

/* The same with the content in memory; its digest is the caller's to take. */
int blob_pack_bytes(struct blob_io *io, const void *p, size_t n, int to);
int blob_unpack_bytes(struct blob_io *io, int from, size_t max, struct strbuf *to);

/* Whether content like this is worth packing: it shrinks by an eighth at least. Of a file, the piece
 * in its middle is asked (what begins like text may hold a film). */
bool blob_pays(struct blob_io *io, const void *p, size_t n);
bool blob_pays_fd(struct blob_io *io, int fd, uint64_t size);

#endif
