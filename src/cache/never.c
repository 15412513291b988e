/* SPDX-License-Identifier: MIT */
#include "cache/never.h"
#include "config/json.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <errno.h>

/* By the reader that finds the root (workspace/root.c). What that refuses, as no JSON, a key that is there
 * twice or too large, makes none: the search ends with an error. Fixtures of broken manifests are such. */
enum never_manifest
never_manifest_at(int fd)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum never_manifest m = MANIFEST_PLAIN;
	struct err e = ERR_INIT;
	struct json_doc doc;

	if (lseek(fd, 0, SEEK_SET))
		return MANIFEST_UNREADABLE;
	if (fd_read_all(fd, &text, JSON_FILE_MAX))
		return errno == EFBIG ? MANIFEST_PLAIN : MANIFEST_UNREADABLE;
	if (json_parse(text.buf, text.len, "package.json", JSON_PACKAGE, &doc, &e))
		return MANIFEST_PLAIN;
	if (json_object_get(doc.root, "workspaces"))
		m = MANIFEST_WORKSPACES;
	json_doc_release(&doc);
	return m;
}

const char *
never_manifest_why(enum never_manifest m)
{
	return m == MANIFEST_WORKSPACES
		       ? "its \"workspaces\" would make its directory a workspace root"
	       : m == MANIFEST_UNREADABLE
		       ? "vx cannot read it, so it could make its directory a workspace root"
		       : "";
}
