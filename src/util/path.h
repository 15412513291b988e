/* SPDX-License-Identifier: MIT */
/*
 * Paths as text, without asking the file system. Bytes, '/' between components.
 *
 * A *relative* path of vx is normal: no leading, trailing or double '/', no "." or "..". The empty
 * string is the directory itself.
 */
#ifndef UTIL_PATH_H
#define UTIL_PATH_H

#include "util/base.h"

struct strbuf;

/* dir + "/" + name, owned; an empty dir or name adds no '/'. */
char *path_join(const char *dir, const char *name);
void path_append(struct strbuf *sb, const char *name);

/* Resolves ".", ".." and "//" in an absolute or relative path, as text. A relative path that climbs
 * above its start keeps the leading "..". Owned; "" for ".". */
char *path_normalise(const char *path);

/* Whether `path` is `dir` or lies below it, by component ("sub" does not hold "subway"). The empty
 * dir holds every relative path. */
bool path_is_within(const char *path, const char *dir);
/* The part of `path` below `dir`, which holds it: borrowed from path, "" for dir itself. */
const char *path_below(const char *path, const char *dir);

/* `to` as seen from the directory `from`, both relative to one root: "../lib/x". Owned. */
char *path_relative(const char *from, const char *to);

const char *path_base(const char *path); /* after the last '/' */
/* Where the first component that is `name` begins; NULL: there is none. */
const char *path_find(const char *path, const char *name);
/* Length of the parent part: "a/b" -> 1, "a" -> 0. */
size_t path_parent_len(const char *path);

/* Whether this is a normal relative path as above: what a frame or a stored row must hold. */
bool path_is_normal(const char *path);

#endif
