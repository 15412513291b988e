/* SPDX-License-Identifier: MIT */
#include "cache/db-vfs.h"
#include "util/err.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OTHER_MEMORY = 16 << 20,
	/* Pieces of 32 KiB, each for 4,096 pages of the log: of 64 GiB. */
	SHARED_MAX = 4096,
};

static sqlite3_vfs *system_vfs;
static bool journal_wanted;

static bool
ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), len = strlen(end);

	return n >= len && !strcmp(path + n - len, end);
}

/*
 * A "-journal" beside a file is rolled back by whoever opens the file, and what it names as its
 * super-journal is then removed, any file of the user. The log is all that vx uses: no journal is seen,
 * none is opened, and nothing but logs is removed by name.
 */
static int
see_logs_alone(sqlite3_vfs *v, const char *path, int flags, int *ret)
{
	(void)v;
	if (ends_in(path, "-wal"))
		return system_vfs->xAccess(system_vfs, path, flags, ret);
	*ret = 0;
	return SQLITE_OK;
}

static int
remove_logs_alone(sqlite3_vfs *v, const char *path, int sync_dir)
{
	(void)v;
	return ends_in(path, "-wal") ? system_vfs->xDelete(system_vfs, path, sync_dir)
				     : SQLITE_PERM;
}

static int
open_no_journal(sqlite3_vfs *v, const char *path, sqlite3_file *f, int flags, int *ret_flags)
{
	if (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) {
		f->pMethods = NULL;
		journal_wanted = true;
		return SQLITE_CANTOPEN;
	}
	return system_vfs->xOpen(v, path, f, flags, ret_flags);
}

/*
 * SQLite's open(2). A link leads to somebody's file, and so does a second name; a fifo would hold the open
 * up. Directories it opens to sync them, and the device for a seed. EISDIR is the error after which it
 * does not try to read what it may not write; of the log's index it does all the same.
 */
static int
open_plain(const char *path, int flags, int mode)
{
	int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
	bool reads = (flags & O_ACCMODE) == O_RDONLY && !ends_in(path, "-shm");
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) &&
		(S_ISREG(st.st_mode)
				? reads || st.st_nlink <= 1
				: reads && (S_ISDIR(st.st_mode) || !strcmp(path, "/dev/urandom"))))
		return fd;
	close(fd);
	errno = EISDIR;
	return -1;
}

/*
 * The index of a shared log is mapped from its -shm, which anybody who may write the directory can cut
 * short: a touch of it is SIGBUS then. Zeros of our own are put there, an index of nothing for SQLite,
 * and that database is given up. (No other file is mapped by SQLite.)
 */
static struct {
	char *at;
	size_t n;
} shared[SHARED_MAX];
static volatile sig_atomic_t cut_short;

static void *
map_shared(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = mmap(at, n, prot, flags, fd, offset);

	for (size_t i = 0; p != MAP_FAILED && i < array_len(shared); i++)
		if (!shared[i].at) {
			shared[i].n = n;
			shared[i].at = p;
			break;
		}
	return p;
}

static int
unmap_shared(void *p, size_t n)
{
	for (size_t i = 0; i < array_len(shared); i++)
		if (shared[i].at == p)
			shared[i].at = NULL;
	return munmap(p, n);
}

static void
replace_shared(int sig, siginfo_t *si, void *ctx)
{
	const char *at = si->si_addr;

	(void)ctx;
	for (size_t i = 0; i < array_len(shared); i++)
		if (shared[i].at && at >= shared[i].at && at < shared[i].at + shared[i].n &&
			mmap(shared[i].at, shared[i].n, PROT_READ | PROT_WRITE,
				MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
			cut_short = 1;
			return;
		}
	signal(sig, SIG_DFL); /* and it comes again */
}

static int
survive_cuts(void)
{
	struct sigaction act = {.sa_sigaction = replace_shared, .sa_flags = SA_SIGINFO};
	int rc = system_vfs->xSetSystemCall(system_vfs, "mmap", (sqlite3_syscall_ptr)map_shared);

	if (!rc)
		rc = system_vfs->xSetSystemCall(
			system_vfs, "munmap", (sqlite3_syscall_ptr)unmap_shared);
	if (!rc && sigaction(SIGBUS, &act, NULL))
		rc = SQLITE_ERROR;
	return rc;
}

/*
 * SQLITE_LIMIT_LENGTH is asked of values, not of the whole rows that it compares in tables without
 * rowids. So no piece of memory is larger than a value of the database in use and what else SQLite
 * may take at once.
 */
static sqlite3_mem_methods system_memory;
static int most_memory;
static bool memory_refused;

static bool
is_too_much(int n)
{
	if (n <= most_memory)
		return false;
	memory_refused = true;
	return true;
}

static void *
take_memory(int n)
{
	return is_too_much(n) ? NULL : system_memory.xMalloc(n);
}

static void *
grow_memory(void *p, int n)
{
	return is_too_much(n) ? NULL : system_memory.xRealloc(p, n);
}

void
db_vfs_limit(int longest)
{
	most_memory = longest ? longest + OTHER_MEMORY : INT_MAX;
	memory_refused = false;
	journal_wanted = false;
}

bool
db_vfs_refused_memory(void)
{
	return memory_refused;
}

bool
db_vfs_refused_journal(void)
{
	return journal_wanted;
}

bool
db_vfs_take_cut(void)
{
	bool cut = cut_short;

	cut_short = 0;
	return cut;
}

/* vx has one thread: no lock around every allocation. Only the first open of a process can say so. */
int
db_vfs_init(void)
{
	static sqlite3_vfs vfs;
	static sqlite3_mem_methods memory;
	int rc;

	if (system_vfs)
		return SQLITE_OK;
	most_memory = INT_MAX;
	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &system_memory);
	memory = system_memory;
	memory.xMalloc = take_memory;
	memory.xRealloc = grow_memory;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	/* A file that somebody cuts short is an error where it is read, and a signal where it is mapped. */
	sqlite3_config(SQLITE_CONFIG_MMAP_SIZE, (sqlite3_int64)0, (sqlite3_int64)0);
	rc = sqlite3_initialize();
	if (rc)
		return rc;
	system_vfs = sqlite3_vfs_find("unix");
	if (!system_vfs || system_vfs->iVersion < 3)
		bug("this SQLite has no vfs for Unix");
	vfs = *system_vfs;
	vfs.iVersion = 3;
	vfs.pNext = NULL;
	vfs.zName = "vx";
	vfs.xOpen = open_no_journal;
	vfs.xDelete = remove_logs_alone;
	vfs.xAccess = see_logs_alone;
	rc = system_vfs->xSetSystemCall(system_vfs, "open", (sqlite3_syscall_ptr)open_plain);
	if (!rc)
		rc = survive_cuts();
	return rc ? rc : sqlite3_vfs_register(&vfs, 1);
}
