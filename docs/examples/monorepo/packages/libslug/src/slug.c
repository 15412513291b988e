#include "slug.h"

size_t
slug_make(char *out, size_t n, const char *title)
{
	size_t len = 0;
	int gap = 0;

	for (const char *p = title; *p; p++) {
		char c = *p;

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
			gap = 1;
			continue;
		}
		if (gap && len > 0) {
			if (len + 1 < n)
				out[len] = '-';
			len++;
		}
		gap = 0;
		if (len + 1 < n)
			out[len] = c;
		len++;
	}
	if (n > 0)
		out[len < n ? len : n - 1] = '\0';
	return len;
}
