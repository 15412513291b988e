/* SPDX-License-Identifier: MIT */
/*
 * schema print project|workspace
 *	The schema of that file.
 * schema judge DIR
 *	Reads configs, each "project TEXT" or "workspace TEXT" with a NUL behind it, and prints a line of
 *	JSON for each: { "config": the text in plain JSON, "why": what vx says against it, or "" }. What
 *	cannot be parsed has no "config". DIR is empty, and the workspace of those of a workspace.
 */
#include "config/schema.h"
#include "config/fields.h"
#include "config/json.h"
#include "config/settings.h"
#include "config/taskdef.h"
#include "util/arena.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/strbuf.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char settings_file[] = "vx.workspace.json";

static void
die(const char *what)
{
	fprintf(stderr, "schema: %s\n", what);
	exit(2);
}

static int
judge_settings(int dirfd, const char *text, struct arena *a, struct err *e)
{
	cleanup_close int fd =
		openat(dirfd, settings_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct settings settings;

	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		die("cannot write the settings");
	return settings_load(dirfd, NULL, a, &settings, e);
}

static void
judge(int dirfd, const char *record)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	const char *text = strchr(record, ' ');
	bool is_project = !strncmp(record, "project ", 8);
	struct projectdef project;
	struct json_doc doc = {0};
	struct err e = ERR_INIT;
	struct arena a;

	if (!text)
		die("a record without a text");
	text++;
	arena_init(&a);
	strbuf_addch(&out, '{');
	if (json_parse(text, strlen(text), "vx.config.json", JSON_OURS, &doc, &e) == 0) {
		strbuf_adds(&out, "\"config\":");
		json_canonical(doc.root, &out);
		strbuf_addch(&out, ',');
		if (is_project)
			projectdef_parse(&doc, "p", &a, &project, &e);
		else
			judge_settings(dirfd, text, &a, &e);
	}
	strbuf_adds(&out, "\"why\":\"");
	for (const char *s = e.text; *s; s++) {
		if (*s == '"' || *s == '\\')
			strbuf_addch(&out, '\\');
		strbuf_addch(&out, *s);
	}
	strbuf_adds(&out, "\"}");
	puts(out.buf);
	json_doc_release(&doc);
	arena_release(&a);
}

int
main(int argc, char **argv)
{
	cleanup_strbuf struct strbuf sb = STRBUF_INIT;

	if (argc == 3 && !strcmp(argv[1], "print")) {
		if (!strcmp(argv[2], "project"))
			schema_print(&projectdef_shape, "vx.config.json", &sb);
		else
			schema_print(&settings_shape, settings_file, &sb);
		fputs(sb.buf, stdout);
	} else if (argc == 3 && !strcmp(argv[1], "judge")) {
		cleanup_close int dirfd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dirfd < 0 || fd_read_all(STDIN_FILENO, &sb, 64 << 20) < 0)
			die("cannot read");
		for (size_t at = 0; at < sb.len; at += strlen(sb.buf + at) + 1)
			judge(dirfd, sb.buf + at);
		unlinkat(dirfd, settings_file, 0);
	} else {
		die("schema print project|workspace, or schema judge DIR");
	}
	return 0;
}
