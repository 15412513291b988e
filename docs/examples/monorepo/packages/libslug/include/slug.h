/* Titles to names that are safe in a URL: "Hello, World!" -> "hello-world". */
#ifndef SLUG_H
#define SLUG_H

#include <stddef.h>

/* Writes at most n bytes, the last one '\0'. Returns the length the whole slug has, like snprintf. */
size_t slug_make(char *out, size_t n, const char *title);

#endif
