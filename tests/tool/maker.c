// SPDX-License-Identifier: MIT
//
// The command of every task in tests/prop/cache.py: what it writes is a function of what it reads.
//
//	maker LOG ID OP... -- ARG...
//
// writes ID and a newline to LOG (a FIFO, so that a sandboxed task can), folds the ARGs into a digest,
// then does each OP in turn:
//
//	read BASE POS NEG SKIP	fold every file and link below BASE whose path from there matches POS and
//				not NEG (ERE, whole path); names of SKIP (a,b) directly in BASE are passed over
//	peek PATH		fold that file, or that it is not there
//	env NAME		fold the value, or that it is unset
//	check NAME		exit 3 if some content held "FAIL"; exit 7 if $NAME is ID
//	file PATH MODE LINES	write a file made of the digest
//	vary PREFIX		the same; the digest decides its name
//	link PATH TARGET
//	dir PATH MODE
//	edit NAME		if $NAME is "ID HOW PATH TEXT": write TEXT to a file that is no output, write
//				its `same` first byte again, `touch` it, `move` it away and back, set
//				its `mode` to what it is, set it `exec` or not, or `delete` it
//
// In a path of the last five %XX is a byte.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t digest = 0xcbf29ce484222325;
static int saw_fail;
static char **found;
static size_t nfound;

static void
die(const char *what)
{
	fprintf(stderr, "maker: %s: %s\n", what, strerror(errno));
	exit(9);
}

// FNV-1a; the NUL keeps neighbours apart.
static void
fold(const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
	digest *= 0x100000001b3;
}

static void
fold_str(const char *s)
{
	fold(s, strlen(s));
}

static int
fold_file(const char *path, const char *name)
{
	static char buf[1 << 20];
	struct stat st;
	ssize_t len;
	if (lstat(path, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		len = readlink(path, buf, sizeof(buf));
		if (len < 0)
			return -1;
		fold_str("link");
	} else {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -1;
		len = 0;
		for (ssize_t n; (n = read(fd, buf + len, sizeof(buf) - (size_t)len)) != 0;
			len += n) {
			if (n < 0)
				die(path);
		}
		close(fd);
		fold_str(st.st_mode & 0111 ? "exec" : "file");
		if (memmem(buf, (size_t)len, "FAIL", 4))
			saw_fail = 1;
	}
	fold_str(name);
	fold(buf, (size_t)len);
	return 0;
}

static int
in_list(const char *name, const char *list)
{
	size_t len = strlen(name);
	for (const char *p = list; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
		if (strcspn(p, ",") == len && memcmp(p, name, len) == 0)
			return 1;
	}
	return 0;
}

static void
walk(const char *dir, const char *rel, const regex_t *pos, const regex_t *neg, const char *skip)
{
	DIR *d = opendir(dir);
	if (!d)
		return;
	for (struct dirent *de; (de = readdir(d));) {
		char path[8192], name[8192];
		struct stat st;
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
			(!*rel && in_list(de->d_name, skip)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		snprintf(name, sizeof(name), "%s%s%s", rel, *rel ? "/" : "", de->d_name);
		if (lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			walk(path, name, pos, neg, skip);
			continue;
		}
		if (regexec(pos, name, 0, NULL, 0) != 0 || regexec(neg, name, 0, NULL, 0) == 0)
			continue;
		found = realloc(found, (nfound + 1) * sizeof(*found));
		if (!found || !(found[nfound++] = strdup(name)))
			die("memory");
	}
	closedir(d);
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
op_read(char **arg)
{
	regex_t pos, neg;
	if (regcomp(&pos, arg[1], REG_EXTENDED) != 0 || regcomp(&neg, arg[2], REG_EXTENDED) != 0)
		die("regex");
	nfound = 0;
	walk(arg[0], "", &pos, &neg, arg[3]);
	if (nfound)
		qsort(found, nfound, sizeof(*found), by_bytes);
	fold_str("read");
	for (size_t i = 0; i < nfound; i++) {
		char path[8192];
		snprintf(path, sizeof(path), "%s/%s", arg[0], found[i]);
		if (fold_file(path, found[i]) < 0)
			die(path);
		free(found[i]);
	}
	regfree(&pos);
	regfree(&neg);
}

// Decodes %XX and makes the directories above.
static const char *
place(const char *arg)
{
	static char path[8192];
	size_t len = 0;
	for (const char *p = arg; *p && len < sizeof(path) - 1; p++) {
		if (*p == '%') {
			path[len++] = (char)strtoul((char[]){p[1], p[2], 0}, NULL, 16);
			p += 2;
		} else {
			path[len++] = *p;
		}
	}
	path[len] = 0;
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			die(path);
		*slash = '/';
	}
	return path;
}

static void
write_file(const char *arg, mode_t mode, int lines)
{
	const char *path = place(arg);
	unlink(path); // a link is not followed, and what is read-only is no hindrance
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		die(path);
	for (int i = 0; i < lines; i++)
		fprintf(f, "%016llx %s\n", (unsigned long long)digest, arg);
	if (fflush(f) != 0 || fchmod(fd, mode) < 0 || fclose(f) != 0)
		die(path);
}

// Where there is no such file, there is nothing to do but for `write`.
static void
edit(const char *how, const char *path, const char *text)
{
	struct stat st;
	char byte;
	int is = lstat(path, &st) == 0;
	if (strcmp(how, "write") == 0) {
		if (is && unlink(path) < 0)
			die(path);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
			die(path);
		close(fd);
	} else if (!is) {
		return;
	} else if (strcmp(how, "same") == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 || pread(fd, &byte, 1, 0) != 1 || pwrite(fd, &byte, 1, 0) != 1)
			die(path);
		close(fd);
	} else if (strcmp(how, "move") == 0) {
		char away[8192];
		snprintf(away, sizeof(away), "%s.away", path);
		if (rename(path, away) < 0 || rename(away, path) < 0)
			die(path);
	} else if ((strcmp(how, "touch") == 0 &&
			   utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) < 0) ||
		   (strcmp(how, "mode") == 0 && chmod(path, st.st_mode & 07777) < 0) ||
		   (strcmp(how, "exec") == 0 && chmod(path, st.st_mode & 0111 ? 0644 : 0755) < 0) ||
		   (strcmp(how, "delete") == 0 && unlink(path) < 0)) {
		die(path);
	}
}

int
main(int argc, char **argv)
{
	char **op = argv + 3;
	int end = 3;
	if (argc < 3)
		return 9;
	int log = open(argv[1], O_WRONLY | O_CLOEXEC);
	char line[256];
	int len = snprintf(line, sizeof(line), "%s\n", argv[2]);
	if (log < 0 || write(log, line, (size_t)len) != len)
		die(argv[1]);
	while (end < argc && strcmp(argv[end], "--") != 0)
		end++;
	for (int i = end + 1; i < argc; i++)
		fold_str(argv[i]);
	argv[end] = NULL;
	for (; *op; op++) {
		if (strcmp(*op, "read") == 0) {
			op_read(op + 1);
			op += 4;
		} else if (strcmp(*op, "peek") == 0) {
			if (fold_file(op[1], op[1]) < 0)
				fold_str("none");
			op += 1;
		} else if (strcmp(*op, "env") == 0) {
			const char *value = getenv(op[1]);
			fold_str(value ? "set" : "unset");
			fold_str(value ? value : "");
			op += 1;
		} else if (strcmp(*op, "check") == 0) {
			const char *who = getenv(op[1]);
			if (saw_fail)
				return 3;
			if (who && strcmp(who, argv[2]) == 0)
				return 7;
			op += 1;
		} else if (strcmp(*op, "file") == 0) {
			write_file(op[1], (mode_t)strtoul(op[2], NULL, 8), atoi(op[3]));
			op += 3;
		} else if (strcmp(*op, "vary") == 0) {
			char path[4096];
			snprintf(path, sizeof(path), "%s%d", op[1], (int)(digest % 3));
			write_file(path, 0644, 1);
			op += 1;
		} else if (strcmp(*op, "link") == 0) {
			const char *path = place(op[1]);
			unlink(path);
			if (symlink(op[2], path) < 0)
				die(path);
			op += 2;
		} else if (strcmp(*op, "dir") == 0) {
			const char *path = place(op[1]);
			if ((mkdir(path, 0777) < 0 && errno != EEXIST) ||
				chmod(path, (mode_t)strtoul(op[2], NULL, 8)) < 0)
				die(path);
			op += 2;
		} else if (strcmp(*op, "edit") == 0) {
			char who[256], how[16], path[4096], text[64];
			const char *what = getenv(op[1]);
			if (what &&
				sscanf(what, "%255s %15s %4095s %63s", who, how, path, text) == 4 &&
				strcmp(who, argv[2]) == 0)
				edit(how, place(path), text);
			op += 1;
		} else {
			die(*op);
		}
	}
	printf("made %s %016llx\n", argv[2], (unsigned long long)digest);
	fprintf(stderr, "also %s %016llx\n", argv[2], (unsigned long long)digest);
	return 0;
}
