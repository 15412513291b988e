/* SPDX-License-Identifier: MIT */
/* What commit.c keeps and commit-judge.c decides. Nobody else looks inside. */
#ifndef EXEC_COMMIT_PRIVATE_H
#define EXEC_COMMIT_PRIVATE_H

#include "cache/moves.h"
#include "exec/commit.h"
#include "util/err.h"
#include "util/htab.h"

enum fate {
	FATE_KEEP,     /* the workspace has the same */
	FATE_INTO,     /* a directory over one of the workspace: what is in it moves into that */
	FATE_MOVE,     /* with all that is in it and not dropped */
	FATE_DROP,     /* not granted; what is in it is judged by itself */
	FATE_DROP_ALL, /* nor is anything in it worth a word */
};

enum on_host {
	HOST_NOTHING,
	HOST_DIRECTORY,
	HOST_NO_DIRECTORY
};

struct entry {
	enum entry_type type;
	bool merge, opaque;
	bool replaces;   /* host names that are not in it were removed by the task */
	bool sets_mode;  /* FATE_INTO: the task changed its mode */
	bool spoken;     /* something below it was reported */
	bool undeclared; /* a new directory, reported only when nothing below it is */
	bool makes_repo; /* over a directory that would become a repository */
	enum fate fate;
	enum on_host host;
	uint32_t mode;       /* 0777: as the task left it */
	uint32_t upper_mode; /* as it is in the scratch once prepared */
	unsigned repo;       /* never_repo_bit of what the task left in it */
	uint64_t size;
	int64_t mtime_ns;
	uint64_t ino; /* in the scratch, once prepared */
	int64_t ctime_ns;
	size_t parent;
	char *path;
	char *target;
};

struct commit {
	const struct policy *policy;
	int rootfd;
	struct scratch_area *area;
	struct scratch scratch;
	int upperfd;
	struct entry *v; /* v[0] is the workspace itself */
	size_t n, cap;
	struct htab by_path; /* -> index */
	struct err bad;      /* the first entry that cannot be */
	bool judged, prepared;
	struct moves early; /* what stands in the way of something new */
	struct moves late;
	char *removed; /* commit_removed */
	size_t nignored;
	struct strvec ignored; /* some of their names */
};

/* The entry at path, or NULL. */
struct entry *commit_entry(const struct commit *c, const char *path);

#endif
