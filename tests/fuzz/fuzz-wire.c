/* SPDX-License-Identifier: MIT */
/*
 * A line of an external executor.
 *
 * Claims: what is refused has a reason and leaves nothing; what is read is within the bounds that everybody
 * behind it relies on, and lists no more than a result may.
 */
#include "exec/denials.h"
#include "exec/wire.h"
#include "util/err.h"
#include "util/strbuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool claim, const char *what)
{
	if (!claim)
		bug("%s", what);
}

static void
check(const struct wire_message *m)
{
	const struct exec_result *r = &m->result;

	must(m->type != WIRE_NONE && wire_type_name(m->type), "a message without a type");
	must((m->type == WIRE_DESCRIPTION) == !m->id, "an id where none is, or none where one is");
	must((m->type == WIRE_DESCRIPTION) == (m->name != NULL), "a name");
	must(!m->name || (*m->name && strlen(m->name) <= WIRE_NAME_MAX), "a name out of bounds");
	must(m->capacity <= WIRE_CAPACITY_MAX, "a capacity out of bounds");
	must(r->exit_code >= 0 && r->exit_code <= 255, "an exit code out of bounds");
	must(r->duration_ns <= (uint64_t)WIRE_DURATION_MAX_MS * 1000000u,
		"a duration out of bounds");
	must(r->ndenials <= DENIALS_MAX && r->ndenials <= r->nfindings, "too many findings");
	for (size_t i = 0; i < r->ndenials; i++)
		must(r->denials[i].class == DENIAL_FINDING && *r->denials[i].path, "a finding");
	must(m->type == WIRE_RESULT || (!r->nfindings && !m->where), "a result of what is none");
	must(!strchr(m->type == WIRE_FAILED ? m->data.buf : "", '\n'), "more than one line");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf line = STRBUF_INIT;
	struct err e = ERR_INIT;
	struct wire_message m;

	if (size > WIRE_LINE_MAX)
		return 0;
	strbuf_add(&line, data, size);
	if (wire_read(line.buf, line.len, NULL, &m, &e))
		must(err_is_set(&e) && *e.text, "a refusal without a reason");
	else
		check(&m);
	wire_message_release(&m);
	strbuf_release(&line);
	return 0;
}
