/* SPDX-License-Identifier: MIT */
/*
 * Bytes from a pipe: the frame reader, every status decoder, and the spec. The input is read twice:
 * as a spec, and, from its second byte on, as a stream fed in pieces of the first byte's size.
 *
 * Claims: how a stream is cut into pieces changes nothing; what was decoded encodes to the bytes it
 * came from; a spec that was read and written reads and writes the same again.
 */
#include "proto/frame.h"
#include "proto/spec.h"
#include "proto/status.h"
#include "util/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool claim, const char *what)
{
	if (!claim)
		bug("%s", what);
}

/* What a stream says: its records written anew, and how it ends. */
struct outcome {
	struct strbuf records;
	int last;
	bool may_end;
};

static void
check_record(const struct frame *record, struct strbuf *out)
{
	struct err e = ERR_INIT;
	struct frame f = *record;
	struct status s;
	size_t mark = out->len;

	if (status_decode(&f, &s, &e)) {
		must(err_is_set(&e), "a refusal without a reason");
		strbuf_addf(out, "refused %u\n", record->type);
	} else {
		status_encode(&s, out);
		must(out->len - mark == record->n + 5 &&
				!memcmp(out->buf + mark + 5, record->p, record->n),
			"a status is not what it was decoded from");
	}
	status_release(&s);
}

static struct outcome
read_stream(const uint8_t *data, size_t size, size_t piece)
{
	struct outcome o = {STRBUF_INIT, 0, false};
	struct frame_reader r = FRAME_READER_INIT;
	struct err e = ERR_INIT;
	struct frame f;

	for (size_t at = 0; at < size && o.last >= 0; at += piece) {
		frame_reader_feed(&r, data + at, size - at < piece ? size - at : piece);
		while ((o.last = frame_reader_next(&r, &f, &e)) == 1)
			check_record(&f, &o.records);
	}
	must((o.last < 0) == err_is_set(&e), "an error without a reason");
	o.may_end = frame_reader_is_empty(&r);
	frame_reader_release(&r);
	return o;
}

static void
check_spec(const char *text, size_t n)
{
	struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
	struct spec a = SPEC_INIT, b = SPEC_INIT;
	struct err e = ERR_INIT;

	if (spec_decode(text, n, &a, &e)) {
		must(err_is_set(&e) && !a.workspace, "a refused spec leaves something");
		return;
	}
	spec_encode(&a, &first);
	must(!spec_decode(first.buf, first.len, &b, &e), "a written spec cannot be read");
	spec_encode(&b, &second);
	must(first.len == second.len && !memcmp(first.buf, second.buf, first.len),
		"a spec changes by reading and writing");
	must(a.nrules == b.nrules && a.argv.n == b.argv.n && a.env.n == b.env.n,
		"a spec loses lines");
	strbuf_release(&first);
	strbuf_release(&second);
	spec_release(&a);
	spec_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, pieces;

	check_spec((const char *)data, size);
	if (size < 2)
		return 0;
	whole = read_stream(data + 1, size - 1, size - 1);
	pieces = read_stream(data + 1, size - 1, data[0] ? data[0] : 1);
	must(whole.last == pieces.last && whole.may_end == pieces.may_end &&
			whole.records.len == pieces.records.len &&
			!memcmp(whole.records.buf, pieces.records.buf, whole.records.len),
		"pieces read differently from the whole");
	strbuf_release(&whole.records);
	strbuf_release(&pieces.records);
	return 0;
}
