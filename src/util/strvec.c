/* SPDX-License-Identifier: MIT */
#include "util/strvec.h"
#include "util/alloc.h"
#include <errno.h>
#include <stdarg.h>

void
strvec_init(struct strvec *sv)
{
	*sv = (struct strvec)STRVEC_INIT;
}

void
strvec_release(struct strvec *sv)
{
	int saved = errno;

	for (size_t i = 0; i < sv->n; i++)
		free(sv->v[i]);
	free(sv->v);
	strvec_init(sv);
	errno = saved;
}

void
strvec_push_take(struct strvec *sv, char *s)
{
	GROW(sv->v, sv->n + 2, sv->cap);
	sv->v[sv->n++] = s;
	sv->v[sv->n] = NULL;
}

void
strvec_push(struct strvec *sv, const char *s)
{
	strvec_push_take(sv, xstrdup(s));
}

void
strvec_pushf(struct strvec *sv, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	strvec_push_take(sv, n < 0 ? xstrdup("") : s);
}

bool
strvec_contains(const struct strvec *sv, const char *s)
{
	for (size_t i = 0; i < sv->n; i++)
		if (!strcmp(sv->v[i], s))
			return true;
	return false;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
strvec_sort(struct strvec *sv)
{
	if (sv->n)
		qsort(sv->v, sv->n, sizeof(*sv->v), compare);
}

char **
strvec_argv(struct strvec *sv)
{
	GROW(sv->v, sv->n + 1, sv->cap);
	sv->v[sv->n] = NULL;
	return sv->v;
}

static char **
find_env(const struct strvec *sv, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < sv->n; i++)
		if (!strncmp(sv->v[i], name, n) && sv->v[i][n] == '=')
			return &sv->v[i];
	return NULL;
}

void
strvec_setenv(struct strvec *sv, const char *name, const char *value)
{
	char **slot = find_env(sv, name);
	char *s = xasprintf("%s=%s", name, value);

	if (slot) {
		free(*slot);
		*slot = s;
	} else {
		strvec_push_take(sv, s);
	}
}

const char *
strvec_getenv(const struct strvec *sv, const char *name)
{
	char **slot = find_env(sv, name);

	return slot ? *slot + strlen(name) + 1 : NULL;
}
