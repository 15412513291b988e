/* SPDX-License-Identifier: MIT */
#include "cache/blob.h"
#include "util/alloc.h"
#include "util/content.h"
#include "util/digest.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/stop.h"
#include "util/strbuf.h"
#include <errno.h>
#include <unistd.h>
#include <zstd.h>

enum {
	LEVEL = 1,
	WINDOW_LOG = 19, /* what level 1 has of itself; said, so that reading can insist on it */
};

struct blob_io {
	char *plain;  /* CONTENT_PIECE bytes */
	char *packed; /* packed_size bytes: room for any piece, packed */
	size_t packed_size;
	ZSTD_CCtx *packer; /* NULL until the first use, as is the next */
	ZSTD_DCtx *unpacker;
};

struct blob_io *
blob_io_new(void)
{
	struct blob_io *io = xcalloc(1, sizeof(*io));

	io->plain = xmalloc(CONTENT_PIECE);
	io->packed_size = ZSTD_compressBound(CONTENT_PIECE);
	io->packed = xmalloc(io->packed_size);
	return io;
}

void
blob_io_free(struct blob_io *io)
{
	if (!io)
		return;
	ZSTD_freeCCtx(io->packer);
	ZSTD_freeDCtx(io->unpacker);
	free(io->plain);
	free(io->packed);
	free(io);
}

/* Ready for a new frame. */
static ZSTD_CCtx *
packer(struct blob_io *io)
{
	if (!io->packer) {
		io->packer = ZSTD_createCCtx();
		if (!io->packer ||
			ZSTD_isError(ZSTD_CCtx_setParameter(
				io->packer, ZSTD_c_compressionLevel, LEVEL)) ||
			ZSTD_isError(
				ZSTD_CCtx_setParameter(io->packer, ZSTD_c_windowLog, WINDOW_LOG)))
			bug("zstd: no context to compress with");
	}
	ZSTD_CCtx_reset(io->packer, ZSTD_reset_session_only);
	return io->packer;
}

static ZSTD_DCtx *
unpacker(struct blob_io *io)
{
	if (!io->unpacker) {
		io->unpacker = ZSTD_createDCtx();
		/* A frame says itself how much memory it wants: up to 128 MiB if nobody forbids it. */
		if (!io->unpacker || ZSTD_isError(ZSTD_DCtx_setParameter(
					     io->unpacker, ZSTD_d_windowLogMax, WINDOW_LOG)))
			bug("zstd: no context to decompress with");
	}
	ZSTD_DCtx_reset(io->unpacker, ZSTD_reset_session_only);
	return io->unpacker;
}

/* Where content goes: memory, a file, or nowhere. */
struct sink {
	struct strbuf *to; /* NULL: fd */
	int fd;            /* -1: only the digest is wanted */
	uint64_t max, size;
	struct digest_state state; /* but of what goes to memory */
};

static bool
is_zero(const char *p, size_t n)
{
	return n && !p[0] && !memcmp(p, p + 1, n - 1);
}

/* `hole`: known to be zeros that need not be written. */
static int
sink_add(struct sink *s, const char *p, size_t n, bool hole)
{
	s->size += n;
	if (s->to) {
		strbuf_add(s->to, p, n);
		return 0;
	}
	digest_update(&s->state, p, n);
	if (s->fd < 0)
		return 0;
	hole = hole || (n == CONTENT_PIECE && is_zero(p, n));
	return hole ? (lseek(s->fd, (off_t)n, SEEK_CUR) < 0 ? -1 : 0) : fd_write_all(s->fd, p, n);
}

static int
sink_end(struct sink *s, struct digest *ret, uint64_t *ret_size)
{
	if (s->fd >= 0 && ftruncate(s->fd, (off_t)s->size)) /* it may end with a hole */
		return -1;
	digest_final(&s->state, ret);
	*ret_size = s->size;
	return 0;
}

static bool
is_too_much(const struct sink *s, size_t more)
{
	if (more <= s->max - s->size)
		return false;
	errno = EFBIG;
	return true;
}

int
blob_copy(struct blob_io *io, int from, int to, uint64_t max, struct digest *ret,
	uint64_t *ret_size, bool *ret_reading)
{
	struct sink s = {.fd = to, .max = max};
	struct content c;
	bool hole = false;
	ssize_t n;

	digest_init(&s.state);
	content_init(&c, from);
	*ret_reading = true;
	while ((n = content_next(&c, io->plain, &hole)) > 0) {
		if (is_too_much(&s, (size_t)n))
			return -1;
		*ret_reading = false;
		if (sink_add(&s, io->plain, (size_t)n, hole))
			return -1;
		*ret_reading = true;
	}
	if (n < 0)
		return -1;
	*ret_reading = false;
	return sink_end(&s, ret, ret_size);
}

/* Feeds a piece, or with ZSTD_e_end the last one. */
static int
pack_piece(struct blob_io *io, const void *p, size_t n, ZSTD_EndDirective how, int to)
{
	ZSTD_inBuffer in = {p, n, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {io->packed, io->packed_size, 0};

		left = ZSTD_compressStream2(io->packer, &out, &in, how);
		if (ZSTD_isError(left))
			bug("zstd: %s", ZSTD_getErrorName(left));
		if (fd_write_all(to, io->packed, out.pos))
			return -1;
	} while (how == ZSTD_e_end ? left > 0 : in.pos < in.size);
	return 0;
}

int
blob_pack(struct blob_io *io, int from, int to, struct digest *ret, uint64_t *ret_size,
	bool *ret_reading)
{
	struct digest_state state;
	struct content c;
	uint64_t size = 0;
	bool hole;
	ssize_t n;

	packer(io);
	digest_init(&state);
	content_init(&c, from);
	*ret_reading = true;
	while ((n = content_next(&c, io->plain, &hole)) > 0) {
		*ret_reading = false;
		digest_update(&state, io->plain, (size_t)n);
		size += (uint64_t)n;
		if (pack_piece(io, io->plain, (size_t)n, ZSTD_e_continue, to))
			return -1;
		*ret_reading = true;
	}
	if (n < 0)
		return -1;
	*ret_reading = false;
	if (pack_piece(io, NULL, 0, ZSTD_e_end, to))
		return -1;
	digest_final(&state, ret);
	*ret_size = size;
	return 0;
}

int
blob_pack_bytes(struct blob_io *io, const void *p, size_t n, int to)
{
	packer(io);
	return pack_piece(io, p, n, ZSTD_e_end, to);
}

static int
no_frame(void)
{
	errno = EBADMSG;
	return -1;
}

/* The one frame in `from` to the sink, and nothing may follow it. */
static int
unpack(struct blob_io *io, int from, struct sink *s, bool *ret_reading)
{
	ZSTD_DCtx *d = unpacker(io);
	ZSTD_inBuffer in = {io->packed, 0, 0};
	ZSTD_outBuffer out = {io->plain, CONTENT_PIECE, 0};
	bool full = false; /* there may be more to come without more to read */
	struct content c;
	bool hole;
	size_t left;

	content_init(&c, from);
	do {
		if (in.pos == in.size && !full) {
			ssize_t n = content_next(&c, io->packed, &hole);

			if (n <= 0)
				return n ? -1 : no_frame();
			in = (ZSTD_inBuffer){io->packed, (size_t)n, 0};
		}
		left = ZSTD_decompressStream(d, &out, &in);
		if (ZSTD_isError(left))
			return no_frame();
		full = out.pos == out.size;
		if (full || !left) {
			/* Little can be read that unpacks to much. */
			if (stop_is_asked()) {
				errno = ECANCELED;
				return -1;
			}
			if (is_too_much(s, out.pos))
				return -1;
			*ret_reading = false;
			if (sink_add(s, io->plain, out.pos, false))
				return -1;
			*ret_reading = true;
			out.pos = 0;
		}
	} while (left);
	if (in.pos == in.size) {
		ssize_t n = content_next(&c, io->packed, &hole);

		if (n <= 0)
			return (int)n;
	}
	return no_frame();
}

int
blob_unpack(struct blob_io *io, int from, int to, uint64_t max, struct digest *ret,
	uint64_t *ret_size, bool *ret_reading)
{
	struct sink s = {.fd = to, .max = max};

	digest_init(&s.state);
	*ret_reading = true;
	if (unpack(io, from, &s, ret_reading))
		return -1;
	*ret_reading = false;
	return sink_end(&s, ret, ret_size);
}

int
blob_unpack_bytes(struct blob_io *io, int from, size_t max, struct strbuf *to)
{
	struct sink s = {.fd = -1, .to = to, .max = max};
	bool reading = true;

	return unpack(io, from, &s, &reading);
}

bool
blob_pays(struct blob_io *io, const void *p, size_t n)
{
	size_t sample = n < CONTENT_PIECE ? n : CONTENT_PIECE, r;
	const char *middle = (const char *)p + (n - sample) / 2;

	if (n <= BLOB_PACKED_OVER)
		return false;
	r = ZSTD_compress2(packer(io), io->packed, io->packed_size, middle, sample);
	return !ZSTD_isError(r) && r < sample - sample / 8;
}

bool
blob_pays_fd(struct blob_io *io, int fd, uint64_t size)
{
	size_t sample = size < CONTENT_PIECE ? (size_t)size : CONTENT_PIECE;
	ssize_t n = pread(fd, io->plain, sample, (off_t)((size - sample) / 2));

	return n > 0 && blob_pays(io, io->plain, (size_t)n);
}
