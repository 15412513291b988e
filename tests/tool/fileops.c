/* SPDX-License-Identifier: MIT */
/*
 * File operations that a program may expect to work, each told by one line "NAME: RESULT" that is the
 * same each time. tests/sandbox/fileops.sh runs it outside and inside of a sandbox and compares.
 *
 *	fileops make	makes below the current directory what was there before the command started,
 *			a directory for each group
 *	fileops run	runs the operations on it
 *	fileops own	runs those on files of another owner, which fileops.sh makes
 *
 * A result is "ok", the name of an errno, "yes" or "no" where NAME is a claim, or a value.
 */
#include "tests/tool/fileops.h"

static int
append(const char *name, int flags)
{
	int fd = open(name, O_WRONLY | flags | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, "n", 1);
	close(fd);
	return n < 0 ? -1 : 0;
}

/* What fileops.sh made: mine/, ours, in it theirs of 644 (f644, r644, u644, o644) and of 666 (f666, t666, m666,
 * r666, u666), and ours of another group (group). d755/ and d777/, theirs, in each ours (own) and theirs of 666
 * (theirs); in d777 also theirs (u) and an empty directory. */
static void
run_own(void)
{
	claim("a file of theirs shows its owner", of("mine/f644").st_uid == 1005);
	value("theirs, 644: read", "%s", get("mine/f644"));
	told("theirs, 644: write", append("mine/f644", O_APPEND));
	told("theirs, 644: chmod", chmod("mine/f644", 0600));
	told("theirs, 644: rename in our directory", rename("mine/r644", "mine/r644b"));
	told("theirs, 644: unlink in our directory", unlink("mine/u644"));
	must_put("mine/ours", "");
	told("theirs, 644: rename over it", rename("mine/ours", "mine/o644"));
	value("theirs, 666: read", "%s", get("mine/f666"));
	told("theirs, 666: append", append("mine/f666", O_APPEND));
	told("theirs, 666: O_TRUNC", append("mine/t666", O_TRUNC));
	told("theirs, 666: truncate", truncate("mine/t666", 0));
	told("theirs, 666: utimes", utimensat(AT_FDCWD, "mine/m666", NULL, 0));
	told("theirs, 666: rename in our directory", rename("mine/r666", "mine/r666b"));
	told("theirs, 666: link", link("mine/f666", "mine/l666"));
	told("theirs, 666: unlink in our directory", unlink("mine/u666"));
	told("ours, of another group: append", append("mine/group", O_APPEND));
	told("ours, of another group: chmod", chmod("mine/group", 0600));
	told("their directory, 755: create", append("d755/new", O_CREAT));
	told("their directory, 755: write of ours", append("d755/own", O_APPEND));
	told("their directory, 755: write of theirs, 666", append("d755/theirs", O_APPEND));
	told("their directory, 755: unlink", unlink("d755/own"));
	told("their directory, 777: create", append("d777/new", O_CREAT));
	told("their directory, 777: mkdir", mkdir("d777/newdir", 0755));
	told("their directory, 777: write of ours", append("d777/own", O_APPEND));
	told("their directory, 777: write of theirs, 666", append("d777/theirs", O_APPEND));
	told("their directory, 777: unlink of ours", unlink("d777/own"));
	told("their directory, 777: unlink of theirs", unlink("d777/u"));
	told("their directory, 777: rmdir of theirs", rmdir("d777/empty"));
}

static const struct group {
	const char *name;
	void (*make)(void), (*run)(void);
} groups[] = {
	{"open", make_open, run_open},
	{"rename", make_rename, run_rename},
	{"links", make_links, run_links},
	{"content", make_content, run_content},
	{"locks", make_locks, run_locks},
	{"dirs", make_dirs, run_dirs},
	{"attributes", make_attributes, run_attributes},
	{"special", make_special, run_special},
	{"watch", make_watch, run_watch},
	{"names", make_names, run_names},
};

int
main(int argc, char **argv)
{
	const char *word = argc == 2 ? argv[1] : "";
	bool make = !strcmp(word, "make");

	umask(022);
	if (!strcmp(word, "own")) {
		run_own();
		return 0;
	}
	if (!make && strcmp(word, "run") != 0) {
		fputs("usage: fileops make|run|own\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < array_len(groups); i++) {
		if (make)
			must_mkdir(groups[i].name);
		if (chdir(groups[i].name))
			die(groups[i].name);
		if (make)
			groups[i].make();
		else
			groups[i].run();
		if (chdir(".."))
			die("..");
	}
	return 0;
}
