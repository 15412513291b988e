/* SPDX-License-Identifier: MIT */
#include "cache/stage.h"
#include "exec/scratch.h"
#include "tests/tap.h"
#include "util/alloc.h"
#include "util/cleanup.h"
#include "util/err.h"
#include "util/fd.h"
#include "util/fs.h"
#include "util/path.h"
#include <dirent.h>
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[] = "/var/tmp/vx-test-scratch-XXXXXX";

/* How many names in the area begin with prefix. */
static int
count(const char *dir, const char *prefix)
{
	cleanup_dir DIR *d = opendir(dir);
	struct dirent *de;
	int n = 0;

	while (d && (de = readdir(d)))
		n += !strncmp(de->d_name, prefix, strlen(prefix));
	return n;
}

static mode_t
mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? 0 : st.st_mode & 07777;
}

static void
fill(const struct scratch *s)
{
	fs_mkdirs(s->fd, "u/a/b");
	fs_mkdirs(s->fd, "w/work");
	if (fchmodat(s->fd, "w/work", 0, 0))
		bug("chmod: %s", strerror(errno));
}

/* Much in the trash does not wait for the end of the run. */
static void
test_much_trash(const char *root)
{
	struct scratch_area *a;
	struct scratch s;
	struct err e = ERR_INIT;
	cleanup_free char *area = path_join(root, ".vx/scratch");
	bool can_part = !syscall(SYS_close_range, ~0U, ~0U, 0); /* of none */
	char name[32];
	int fd, status;

	ok(!scratch_area_open(root, &a, &e) && !scratch_new(a, &s, &e), "a scratch (%s)", e.text);
	fs_mkdirs(s.fd, "u");
	scratch_drop(a, &s);
	ok(waitpid(-1, &status, 0) < 0 && errno == ECHILD, "what holds nothing stays in the trash");
	ok_int(count(area, "vx-trash-"), 1, "for the end of the run");
	if (scratch_new(a, &s, &e))
		bug("%s", e.text);
	fs_mkdirs(s.fd, "u");
	fs_mkdirs(s.fd, "tmp");
	fd = openat(s.fd, "tmp/0", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	for (int i = 1; i <= 10000; i++) {
		snprintf(name, sizeof(name), "tmp/%d", i);
		if (linkat(s.fd, "tmp/0", s.fd, name, 0))
			bug("link: %s", strerror(errno));
	}
	scratch_drop(a, &s);
	ok(waitpid(-1, &status, 0) > 0 && !status == can_part,
		"ten thousand names are removed by a child, if it can part with our descriptors");
	ok_int(count(area, "vx-trash-"), can_part ? 0 : 2, "with all that was in the trash");
	if (scratch_new(a, &s, &e))
		bug("%s", e.text);
	scratch_drop(a, &s);
	ok_int(count(area, "vx-trash-"), can_part ? 1 : 3, "what comes later");
	scratch_area_close(a);
	ok_int(count(area, "vx-"), 0, "goes at the end");
}

static void
test_life(const char *root)
{
	struct scratch_area *a;
	struct scratch s[2];
	struct err e = ERR_INIT;
	cleanup_free char *want = path_join(root, ".vx/scratch");
	cleanup_free char *ignore = path_join(root, ".vx/.gitignore");
	cleanup_close int rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int again = -1;

	ok(!scratch_area_open(root, &a, &e), "an area (%s)", e.text);
	ok_str(scratch_area_path(a), want, "is in the workspace first");
	ok_int(mode_of(want), 0700, "for us alone");
	ok(!access(ignore, F_OK), "hidden from git");
	ok(!scratch_new(a, &s[0], &e) && !scratch_new(a, &s[1], &e), "scratches");
	ok(strcmp(s[0].path, s[1].path) != 0 && !strncmp(s[0].path, want, strlen(want)),
		"each its own");
	ok_int(mode_of(s[0].path), 0700, "0700");
	again = open(s[0].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(flock(again, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK, "locked");
	fill(&s[0]);
	scratch_drop(a, &s[0]);
	ok_int(count(want, "vx-trash-"), 1, "a used one is in the trash");
	ok_int(count(want, "vx-scratch-"), 1, "the other is not");
	fd_close(&again);
	again = open(s[1].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(!flock(again, LOCK_SH | LOCK_NB), "its helper locks it, too");
	fd_close(&s[1].fd);
	scratch_area_empty(a);
	ok(!scratch_recover(root, rootfd, &e), "the core is gone, and the next comes (%s)", e.text);
	ok_int(count(want, "vx-scratch-"), 1, "a scratch whose helper lives is left alone");
	ok_int(count(want, "vx-trash-"), 0, "the trash is not");
	fd_close(&again);
	scratch_drop(a, &s[1]);
	scratch_area_close(a);
	ok_int(count(want, "vx-"), 0, "the trash is emptied at the end");
}

/* As they may come with an archive: "kept" of the workspace is what the links lead to. */
static void
plant(const char *area)
{
	static const char *const names[] = {"vx-scratch-", "vx-trash-"};
	cleanup_close int fd = open(area, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (mkdirat(fd, "../../kept", 0755))
		bug("mkdir: %s", strerror(errno));
	for (size_t i = 0; i < array_len(names); i++) {
		cleanup_free char *file = xasprintf("%sfile", names[i]);
		cleanup_free char *link = xasprintf("%slink", names[i]);
		cleanup_free char *fifo = xasprintf("%sfifo", names[i]);

		if (mknodat(fd, file, S_IFREG | 0644, 0) || symlinkat("../../kept", fd, link) ||
			mkfifoat(fd, fifo, 0644))
			bug("%s", strerror(errno));
	}
}

static void
test_recovery(const char *root)
{
	struct scratch_area *a;
	struct scratch mine, open_list, left;
	struct moves m = {0};
	struct err e = ERR_INIT;
	cleanup_free char *area = path_join(root, ".vx/scratch");
	cleanup_close int rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	ok(!scratch_area_open(root, &a, &e) && !scratch_new(a, &mine, &e) &&
			!scratch_new(a, &open_list, &e) && !scratch_new(a, &left, &e),
		"three scratches (%s)", e.text);
	fill(&left);
	fs_mkdirs(left.fd, SCRATCH_OUT "/0-.husky");
	fs_mkdirs(open_list.fd, "u/new");
	fstatat(open_list.fd, "u/new", &st, 0);
	moves_add(&m, MOVE_PLACE, "new")->ino = st.st_ino;
	if (moves_write(&m, open_list.fd, &e))
		bug("%s", e.text);
	moves_release(&m);
	/* their owner dies */
	close(open_list.fd);
	close(left.fd);
	free(open_list.path);
	free(left.path);
	ok(!scratch_recover(root, rootfd, &e), "recovery (%s)", e.text);
	ok(!fstatat(rootfd, "new", &st, 0), "finishes a commit that was begun");
	ok_int(count(area, "vx-scratch-"), 1, "removes what nobody uses");
	ok_int(count(area, "vx-moved-out-"), 1, "but for what was moved out of the workspace");
	ok(!access(mine.path, F_OK), "and leaves what somebody does");
	scratch_drop(a, &mine);
	plant(area);
	ok(!scratch_recover(root, rootfd, &e), "again, where there are files and links (%s)",
		e.text);
	ok(!faccessat(rootfd, "kept", F_OK, 0), "what a link leads to stays");
	ok_int(count(area, "vx-trash-") + count(area, "vx-scratch-"), 0, "trash is removed");
	ok_int(count(area, "vx-moved-out-"), 1, "and that is not");
	fs_remove_tree(rootfd, ".vx");
	scratch_area_close(a);
}

/* Of a run that died in a restore: its stage is never freed. */
static void
test_recovery_of_a_restore(const char *root)
{
	cleanup_free char *area = path_join(root, ".vx/scratch");
	cleanup_close int rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = ERR_INIT;
	struct stat st;
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		struct stage *s = stage_new(rootfd);
		struct moves m = {0};
		char name[24];
		struct move *mv;

		if (stage_open(s, &e))
			_exit(1);
		mv = moves_add(&m, MOVE_BRING, "restored");
		mv->number = stage_number(s);
		snprintf(name, sizeof(name), "%llu", (unsigned long long)mv->number);
		if (mkdirat(stage_pieces(s), name, 0755) ||
			fstatat(stage_pieces(s), name, &st, AT_SYMLINK_NOFOLLOW))
			_exit(2);
		mv->ino = st.st_ino;
		_exit(moves_write(&m, stage_scratch(s), &e) ? 3 : 0);
	}
	waitpid(pid, &status, 0);
	ok_int(status, 0, "a restore that died");
	ok_int(count(area, "vx-"), 1, "leaves its stage");
	ok(!scratch_recover(root, rootfd, &e), "recovery (%s)", e.text);
	ok(!fstatat(rootfd, "restored", &st, 0), "finishes it");
	ok_int(count(area, "vx-"), 0, "and removes the stage");
}

/* Where the workspace cannot hold it. */
static void
test_elsewhere(void)
{
	cleanup_free char *root = xasprintf("%s/blocked", top);
	cleanup_free char *other = xasprintf("%s/other-root", top);
	cleanup_free char *volume = xasprintf("%s/volume", top);
	cleanup_free char *area = xasprintf("%s/vx-scratch-%u", volume, (unsigned)geteuid());
	cleanup_free char *vx = path_join(root, ".vx");
	struct scratch_area *a;
	struct scratch s;
	struct err e = ERR_INIT;
	cleanup_close int rootfd = -1;

	mkdir(root, 0755);
	mkdir(other, 0755);
	mkdir(volume, 0755);
	/* a planted link is no place */
	if (symlink(volume, vx))
		bug("symlink");
	setenv("VX_SCRATCH_DIR", volume, 1);
	ok(!scratch_area_open(root, &a, &e), "elsewhere (%s)", e.text);
	ok_str(scratch_area_path(a), area, "$VX_SCRATCH_DIR is next, never through a link");
	ok_int(mode_of(area), 0700, "for us alone");
	ok(!scratch_new(a, &s, &e), "a scratch");
	close(s.fd);
	free(s.path);
	rootfd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(!scratch_recover(other, rootfd, &e), "the recovery of another workspace (%s)", e.text);
	ok_int(count(area, "vx-scratch-"), 1, "leaves it");
	ok(!scratch_recover(root, rootfd, &e), "its own");
	ok_int(count(area, "vx-scratch-"), 0, "removes it");
	scratch_area_close(a);

	if (chmod(area, 0777))
		bug("chmod");
	ok(!scratch_area_open(root, &a, &e), "an area that others could write to");
	ok_int(mode_of(area), 0700, "is tightened");
	scratch_area_close(a);
	rmdir(area);
	if (symlink(top, area))
		bug("symlink");
	ok(!scratch_area_open(root, &a, &e) && strcmp(scratch_area_path(a), area) != 0,
		"a link in its place is not used");
	scratch_area_close(a);

	setenv("VX_SCRATCH_DIR", "relative", 1);
	ok(scratch_area_open(root, &a, &e), "a relative $VX_SCRATCH_DIR");
	ok_err(&e, "VX_SCRATCH_DIR must be an absolute path", "is refused");
	unsetenv("VX_SCRATCH_DIR");
}

/* A directory of somebody else's in the shared place. */
static void
test_squatted(void)
{
	cleanup_free char *root = xasprintf("%s/squat-root", top);
	cleanup_free char *vx = path_join(root, ".vx");
	cleanup_free char *volume = xasprintf("%s/squat", top);
	cleanup_free char *area = xasprintf("%s/vx-scratch-0", volume);
	struct scratch_area *a;
	struct err e = ERR_INIT;

	if (geteuid()) {
		skip("a squatted area", "only root can make what belongs to another user");
		return;
	}
	mkdir(root, 0755);
	mkdir(volume, 01777);
	mkdir(area, 0777);
	close(open(vx, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (chown(area, 65534, 65534))
		bug("chown");
	setenv("VX_SCRATCH_DIR", volume, 1);
	ok(!scratch_area_open(root, &a, &e) && strcmp(scratch_area_path(a), area) != 0,
		"a squatted area is not used");
	scratch_area_close(a);
	unsetenv("VX_SCRATCH_DIR");
}

/* The workspace is used by several users. */
static void
test_other_user(void)
{
	cleanup_free char *root = xasprintf("%s/shared", top);
	cleanup_free char *theirs = path_join(root, ".vx/scratch");
	cleanup_free char *ours = path_join(root, ".vx/scratch-0");
	cleanup_close int rootfd = -1;
	struct scratch_area *a;
	struct scratch s;
	struct err e = ERR_INIT;

	if (geteuid()) {
		skip("another user's .vx/scratch",
			"only root can make what belongs to another user");
		return;
	}
	mkdir(root, 0755);
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs_mkdirs(rootfd, ".vx/scratch") || chown(theirs, 65534, 65534))
		bug("chown");
	ok(!scratch_area_open(root, &a, &e), "an area where .vx/scratch is another user's (%s)",
		e.text);
	ok_str(scratch_area_path(a), ours, "is one of our own beside it");
	ok(!scratch_new(a, &s, &e), "a scratch in it");
	close(s.fd); /* its owner dies */
	free(s.path);
	ok(!scratch_recover(root, rootfd, &e), "recovery (%s)", e.text);
	ok_int(count(ours, "vx-"), 0, "finds it there");
	scratch_area_close(a);
}

int
main(void)
{
	cleanup_free char *root = NULL;

	if (!mkdtemp(top))
		bug("mkdtemp: %s", strerror(errno));
	unsetenv("VX_SCRATCH_DIR");
	root = xasprintf("%s/root", top);
	mkdir(root, 0755);
	test_life(root);
	test_much_trash(root);
	test_recovery(root);
	test_recovery_of_a_restore(root);
	test_elsewhere();
	test_squatted();
	test_other_user();
	fs_remove_tree(AT_FDCWD, top);
	return tap_done();
}
