/* SPDX-License-Identifier: MIT */
#include "util/escape.h"
#include "util/strbuf.h"

/* States of the escape parser (ECMA-48): ground, after ESC, in CSI, in a string ended by BEL or ST,
 * after ESC in such a string, after ESC and an intermediate byte. */
enum {
	GROUND,
	ESCAPE,
	CSI,
	STRING,
	STRING_ESC,
	CHARSET
};

void
escape_strip(struct escape_state *st, const char *p, size_t n, struct strbuf *out)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

		switch (st->state) {
		case GROUND:
			if (c == 0x1b)
				st->state = ESCAPE;
			else
				strbuf_addch(out, (char)c);
			break;
		case ESCAPE:
			if (c == '[')
				st->state = CSI;
			else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
				st->state = STRING;
			else
				st->state = c >= 0x20 && c <= 0x2f ? CHARSET : GROUND;
			break;
		case CSI:
			if (c >= 0x40 && c <= 0x7e)
				st->state = GROUND;
			break;
		case STRING:
			if (c == 0x07)
				st->state = GROUND;
			else if (c == 0x1b)
				st->state = STRING_ESC;
			break;
		case STRING_ESC:
			st->state = c == '\\' ? GROUND : STRING;
			break;
		case CHARSET:
			st->state = GROUND;
			break;
		}
	}
}
