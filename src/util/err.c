/* SPDX-License-Identifier: MIT */
#include "util/err.h"
#include <errno.h>
#include <stdarg.h>

int
err_set(struct err *e, enum err_kind kind, int num, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (err_is_set(e))
		return -1;
	e->kind = kind;
	e->num = num;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	if (num)
		snprintf(e->text + n, sizeof(e->text) - n, ": %s%s", strerror(num),
			num == EMFILE ? " (raise the limit: ulimit -n)" : "");
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char old[sizeof(e->text)];
	va_list ap;
	size_t n;

	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", old);
	return -1;
}

void
err_clear(struct err *e)
{
	*e = (struct err)ERR_INIT;
}

bool
err_is_no_room(int num)
{
	return num == ENOSPC || num == EDQUOT;
}

int
err_exit_code(const struct err *e)
{
	return err_is_set(e) ? 2 : 0;
}

void
bug_at(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "vx: bug at %s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\nvx: please report this with the command you ran\n", stderr);
	abort();
}
