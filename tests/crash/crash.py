# SPDX-License-Identifier: MIT
"""What the crash tests share: a workspace, runs of vx that are held at announced points, and the look
at what is left, in the workspace and in its cache.

The core announces its phases as lines on stderr (VX_DEBUG=phase). Its stderr here is a pipe that holds
one page and is filled beforehand with just so much that a chosen line does not fit any more: the core
then stands still in write(2) at exactly that point, until somebody reads. A pipe keeps what one write
gave in one piece and has only one page for it, so there is nothing to be lucky about. Where the lines are not
known beforehand (tasks at the same time) the pipe holds one packet: each line stands until the one before it
was read.

This process is a subreaper: whoever loses his parents becomes its child. So nobody is left of a run
exactly when it has no descendants.
"""
import array
import atexit
import ctypes
import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from stat import S_ISLNK, S_ISREG

LIMIT = 60  # seconds, for anything that has to happen
PIPE_BYTES = 4096
F_SETPIPE_SZ = 1031
PR_SET_CHILD_SUBREAPER = 36

BUILD = os.environ["VX_BUILDDIR"]
VX = os.environ.get("VX", BUILD + "/vx")
OWNER = os.environ.get("VX_TEST_OWNER")
NAMES = ("plan made", "helper started", "view up", "command started", "command ended", "entries received", "judged",
         "content stored", "moves listed", "move", "moves done", "moves marked", "row written", "scratch dropped")


class Wrong(Exception):
    """What a test found."""


def expect(claim, what):
    if not claim:
        raise Wrong(what)


# --- processes ---------------------------------------------------------------------------------------


def become_subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def read_proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as f:
            return f.read().decode(errors="replace")
    except OSError:
        return ""


def children(pid):
    return [int(p) for p in read_proc(pid, f"task/{pid}/children").split()]


def proc_stat(pid):
    """The fields of /proc/PID/stat from the state on; [] when there is no such process."""
    return read_proc(pid, "stat").rpartition(")")[2].split()


def state(pid):
    return (proc_stat(pid) or ["X"])[0]


def is_helper(pid):
    """A vx-sandbox that leads its session: its init has the same name but leads none."""
    return comm(pid) == "vx-sandbox" and proc_stat(pid)[3:4] == [str(pid)]


def is_alive(pid):
    return state(pid) not in "ZX"


def comm(pid):
    return read_proc(pid, "comm").strip()


def descendants(pid):
    found = []
    for child in children(pid):
        found.append(child)
        found += descendants(child)
    return found


def describe(pid):
    line = read_proc(pid, "cmdline").replace("\0", " ").strip()
    return f"{pid} {comm(pid)} [{line}] state, parent, group, session {proc_stat(pid)[:4]}"


def pidfd(pid):
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def kill(pid, sig):
    """By pidfd, so that no other process of that number is ever hit. False: it was gone."""
    fd = pidfd(pid)
    if fd is None:
        return False
    try:
        alive = is_alive(pid)
        signal.pidfd_send_signal(fd, sig)
        return alive
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)


def until(what, test):
    """For what the kernel tells nobody by an event: looks again and again, letting others go first."""
    end = time.monotonic() + LIMIT
    while True:
        got = test()
        if got:
            return got
        expect(time.monotonic() < end, f"{what} did not happen")
        os.sched_yield()


class Fifo:
    """Through which a task says that it has come to a place, by a line; a sandboxed one, too: it sees the
    directory of the test read-only, which for a FIFO does not forbid writing."""

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)
        os.chmod(path, 0o666)
        # Open for writing as well: no end of file between two tasks.
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def await_line(self, what):
        text = b""
        while not text.endswith(b"\n"):
            expect(select.select([self.fd], [], [], LIMIT)[0], f"not heard from the task: {what}")
            text += os.read(self.fd, 100)
        return text.decode().strip()

    def poll(self, seconds=0):
        return bool(select.select([self.fd], [], [], seconds)[0])

    def say(self, word):
        os.write(self.fd, word.encode() + b"\n")


def wait_dead(pids, seconds=LIMIT):
    """The ends of these processes, awaited by their pidfds. Returns those that still live."""
    end = time.monotonic() + seconds
    for pid in pids:
        fd = pidfd(pid)
        if fd is not None:
            select.select([fd], [], [], max(0, end - time.monotonic()))
            os.close(fd)
    return [pid for pid in pids if is_alive(pid)]


def reap():
    """What became ours; nobody else may be waited for at that time."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def living():
    return [pid for pid in descendants(os.getpid()) if is_alive(pid)]


def expect_nobody(when):
    """No process of ours is left, now."""
    left = living()
    expect(not left, f"{when}: left: {'; '.join(describe(pid) for pid in left)}")
    reap()


def end_all():
    """After a test that failed: the next one finds nobody."""
    left = living()
    while left:
        for pid in left:
            kill(pid, signal.SIGKILL)
        expect(not wait_dead(left, 20), "a process outlasts SIGKILL")
        left = living()
    reap()


# --- a workspace -------------------------------------------------------------------------------------


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def unpack(frame):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    room = ctypes.create_string_buffer(64 << 20)
    n = zstd.ZSTD_decompress(room, len(room), frame, len(frame))
    expect(n <= len(room), "no zstd frame")
    return room.raw[:n]


PLACES = []


def remove_places():
    for place in PLACES:
        place.remove()


atexit.register(remove_places)


class Place:
    """A directory of its own on a disk file system, with a workspace `ws` in it."""

    def __init__(self, tasks=None, source=None):
        """With one project `p` that has these tasks, or a copy of the directory `source`."""
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="vx-crash.", dir=os.environ.get("VX_TEST_DIR", "/var/tmp")))
        os.chmod(self.top, 0o755)
        self.root = self.top + "/ws"
        self.project = self.root + "/p"
        for name in ("tmp", "home"):
            os.mkdir(f"{self.top}/{name}")
        if source:
            shutil.copytree(source, self.root, symlinks=True)
        else:
            os.makedirs(self.project)
            self.put("vx.workspace.json", json.dumps({"projects": ["p"]}))
            self.put("p/vx.config.json", json.dumps({"name": "p", "tasks": tasks}))
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.top + "/home", "TMPDIR": self.top + "/tmp",
            "LC_ALL": "C.UTF-8", "VX_KILL_GRACE_MS": "200",
        }
        self.tag = hashlib.sha256(self.root.encode()).hexdigest()[:12]
        self.state = None
        PLACES.append(self)

    def put(self, path, text):
        with open(f"{self.root}/{path}", "w") as f:
            f.write(text)

    def fifo(self, name):
        return Fifo(f"{self.top}/{name}")

    def own(self):
        """All but what vx itself keeps: that belongs to whoever runs vx."""
        if OWNER:
            names = [f"{self.root}/{name}" for name in os.listdir(self.root) if name != ".vx"]
            os.chown(self.root, int(OWNER), int(OWNER))
            subprocess.run(["chown", "-R", "-h", f"{OWNER}:{OWNER}", *names], check=True)

    def vx(self, *words, command=("run",)):
        """A run that nobody disturbs: exit code and all that it said."""
        self.own()
        done = subprocess.run([VX, *command, *words], cwd=self.root, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
        return done.returncode, done.stdout.decode(errors="replace")

    def succeed(self, *words, command=("run",)):
        rc, said = self.vx(*words, command=command)
        expect(rc == 0, f"vx {' '.join((*command, *words))}: exit {rc}\n{said}")
        return said

    def tree(self, path):
        """Name -> content of all below, directories too."""
        found = {}
        top = f"{self.project}/{path}"
        for base, dirs, files in os.walk(top):
            for name in dirs:
                found[os.path.relpath(f"{base}/{name}", top) + "/"] = ""
            for name in files:
                with open(f"{base}/{name}") as f:
                    found[os.path.relpath(f"{base}/{name}", top)] = f.read()
        return found

    def expect_clean(self, when):
        """No mount, scratch, trash or temporary file."""
        mounts = [line for line in read_proc("self", "mountinfo").splitlines()
                  if self.top in line or "vx-policy" in line or "vx-wall" in line]
        expect(not mounts, f"{when}: mounted: {mounts}")
        left = [f"tmp/{name}" for name in os.listdir(self.top + "/tmp")]
        for base, dirs, files in os.walk(self.root):
            if os.path.basename(base) == "blobs":
                dirs.clear()
            left += [os.path.relpath(f"{base}/{name}", self.root) for name in dirs + files
                     if name.startswith((".vx-", "vx-", "blob-")) and name not in ("vx.workspace.json", "vx.config.json")]
        for shared in ("/var/tmp", "/dev/shm"):
            own = f"{shared}/vx-scratch-{os.geteuid()}"
            if os.path.isdir(own):
                left += [f"{own}/{name}" for name in os.listdir(own) if self.tag in name]
        expect(not left, f"{when}: left: {' '.join(left)}")
        names = {name for name in os.listdir(self.root + "/.vx") if not name.endswith(("-wal", "-shm", "-journal"))}
        self.state = self.state or names
        expect(names <= self.state | {"scratch", "stat", "sources"}, f"{when}: new in .vx: {names - self.state}")

    def snapshot(self):
        """All of the workspace but what vx and git keep: name -> type, mode, and content or target."""
        found = {}
        for base, dirs, files in os.walk(self.root):
            dirs[:] = [name for name in dirs if name not in (".vx", ".git")]
            for name in dirs + files:
                path = f"{base}/{name}"
                mode = os.lstat(path).st_mode
                content = os.readlink(path) if S_ISLNK(mode) else read_file(path) if S_ISREG(mode) else ""
                found[os.path.relpath(path, self.root)] = (oct(mode), content)
        return found

    def expect_snapshot(self, want, when):
        got = self.snapshot()
        wrong = sorted(name for name in got.keys() | want.keys() if got.get(name) != want.get(name))
        expect(not wrong, f"{when}: not as it should be: {' '.join(wrong)}")

    def expect_databases(self):
        for name in ("state.db", "history.db", "cache/index.db"):
            db = sqlite3.connect(f"{self.root}/.vx/{name}", timeout=10)
            got = db.execute("PRAGMA integrity_check").fetchall()
            db.close()
            expect(got == [("ok",)], f"{name}: {got}")

    def look_at_databases(self):
        """As expect_databases, of copies and of those that are there: the next start shall find them, and their logs, as
        they were left. Returns the rows of the index."""
        rows = []
        for name in ("state.db", "history.db", "cache/index.db"):
            copy = tempfile.mkdtemp(dir=self.top)
            for part in ("", "-wal"):
                if os.path.exists(f"{self.root}/.vx/{name}{part}"):
                    shutil.copy(f"{self.root}/.vx/{name}{part}", f"{copy}/db{part}")
            if os.path.exists(copy + "/db"):
                db = sqlite3.connect(copy + "/db")
                got = db.execute("PRAGMA integrity_check").fetchall()
                expect(got == [("ok",)], f"{name}: {got}")
                if name == "cache/index.db" and db.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchall():
                    rows = db.execute("SELECT task, tree, output FROM entries").fetchall()
                db.close()
            shutil.rmtree(copy)
        return rows

    def blobs(self):
        top = self.root + "/.vx/cache/blobs"
        return {f"{shard}/{name}" for shard in os.listdir(top) for name in os.listdir(f"{top}/{shard}")}

    def expect_whole(self, rows, when):
        """All that the rows name is in the store, with its digest. Returns what they need: blob -> where it was met."""
        needed, there = {}, self.blobs()

        def need(digest, where, is_node):
            name = f"{digest[:2]}/{digest[2:]}"
            name = name if name in there else name + ".zst"
            expect(name in there, f"{when}: {where} is in the index, and no blob {digest}")
            if name in needed:
                return
            content = read_file(f"{self.root}/.vx/cache/blobs/{name}")
            content = unpack(content) if name.endswith(".zst") else content
            expect(hashlib.sha256(content).hexdigest() == digest, f"{when}: {where}: the blob {digest} holds something else")
            needed[name] = where
            for line in content.split(b"\n")[1:-1] if is_node else ():
                words = line.split(b" ")
                if words[0] != b"l":
                    need(words[2].decode(), f"{where}/{words[-1].decode()}", words[0] == b"d")
        for task, tree, output in rows:
            if tree:
                need(tree.hex(), task, True)
            if output:
                need(output.hex(), f"{task}, printed", False)
        return needed

    def expect_pruned(self, when):
        """Prunes; exactly what the rows need is left. The run lock keeps others out of a workspace's own cache, so
        nothing need wait for its hour."""
        self.succeed("--max-size=1T", command=("cache", "prune"))
        rows = self.look_at_databases()
        needed, there = self.expect_whole(rows, when).keys(), self.blobs()
        expect(there == needed, f"{when}: without need: {there - needed}")
        return rows

    def remove(self):
        """Other users' files, too, where we are root."""
        shutil.rmtree(self.top, ignore_errors=True)


# --- a run that is disturbed -------------------------------------------------------------------------


class Run:
    """vx as the guard's parent sees it. With `lines` and `at`: it is held at line `at`. With `step`: at each line, until
    the one before it was read. With `shell`: that runs on a terminal of its own, "$@" is vx. With another `command`
    than run there is no guard."""

    def __init__(self, place, words, lines=None, at=None, step=False, shell=None, command=("run",), **env):
        place.own()
        self.place = place
        self.at = at
        self.text = b""
        self.filled = 0
        self.read_end, write_end = os.pipe2(os.O_CLOEXEC | (os.O_DIRECT if step else 0))
        if step:
            fcntl.fcntl(write_end, F_SETPIPE_SZ, PIPE_BYTES)
            os.write(write_end, b"\n")
        if at is not None:
            size = fcntl.fcntl(write_end, F_SETPIPE_SZ, PIPE_BYTES)
            # The numbers in the lines have not always the same length: half a line is left over.
            room = sum(len(line) for line in lines[:at]) + len(lines[at]) // 2
            expect(room < size, "the lines do not fit into a pipe")
            self.filled = size - room
            os.write(write_end, b"." * self.filled)
        self.has_guard = command == ("run",)
        command = [VX, *command, *words]
        self.said = open(place.top + "/said", "w+b")
        self.terminal = None
        stdin, stdout, own = subprocess.DEVNULL, self.said, None
        if shell:
            command = ["sh", "-c", shell, "sh", *command]
            self.terminal, stdin = os.openpty()
            os.set_inheritable(self.terminal, False)
            stdout = stdin

            def own():
                os.setsid()
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.child = subprocess.Popen(command, cwd=place.root, env={**place.env, **env}, stdin=stdin, stdout=stdout,
                                      stderr=write_end, preexec_fn=own)
        os.close(write_end)
        if shell:
            os.close(stdin)
        self.guard_pid = None if shell else self.child.pid
        self.core_pid = None

    def guard(self):
        """The guard's pid: our child, or the shell's."""
        def look():
            return next((pid for pid in [self.child.pid] + children(self.child.pid) if comm(pid) == "vx-guard"), None)
        self.guard_pid = self.guard_pid or until("a guard", look)
        return self.guard_pid

    def core(self):
        """The core's pid; None when the run ended before."""
        def look():
            if self.child.poll() is not None:
                return -1
            return next(iter(children(self.guard())), None) if self.has_guard else self.child.pid
        if self.core_pid is None:
            pid = until("a core", look)
            self.core_pid = pid if pid > 0 else None
        return self.core_pid

    def helpers(self):
        return [pid for pid in children(self.core_pid or 0) if is_helper(pid)]

    def hold(self):
        """Until the core stands still in write(2) to its stderr."""
        core = self.core()
        expect(core is not None, "the run ended before the point")

        def stands():
            expect(is_alive(core), f"the core ended before the point: {self.output()}")
            return read_proc(core, "syscall").split()[1:2] == ["0x2"]
        until("the point", stands)
        waiting = array.array("i", [0])
        fcntl.ioctl(self.read_end, termios.FIONREAD, waiting)
        return waiting[0]

    def step_to(self, k):
        """With `step`: until the core stands still in write(2) at its line `k`. Returns the line; None: the run ended."""
        while len(self.lines()) < k - 1 or (k and not self.text):
            if not self.read():
                return None
        # The line before it fills the pipe.
        if not select.select([self.read_end], [], [], LIMIT)[0]:
            raise Wrong(f"nothing happens\n{self.output()}")
        core = self.core()

        def look():
            if core is None or not is_alive(core):
                return b" "
            return about_to_say(core)
        line = until("the line", look)
        return None if line == b" " else line

    def release(self):
        """Lets a held core go on. What it had said tells that it was held where it should be."""
        self.text += os.read(self.read_end, 1 << 20)[self.filled:]
        got = len(self.lines())
        expect(got == self.at, f"held after {got} lines, not {self.at}: {self.lines()[-2:]}")

    def lines(self):
        return [line for line in self.text.split(b"\n") if b" us: " in line]

    def hear(self, point, times=1):
        """Reads on until the point is announced. False: the run ended without it."""
        while sum(name_of(line) == point for line in self.lines()) < times:
            if not self.read():
                return False
        return True

    def end(self):
        """The end of guard and core: exit code. stderr is theirs alone, so its end is theirs."""
        while self.read():
            pass
        rc = self.child.wait(LIMIT)
        if self.core_pid:
            wait_dead([self.core_pid])
        os.close(self.read_end)
        if self.terminal is not None:
            os.close(self.terminal)
        return rc

    def read(self):
        """More of what is said. False: that was all."""
        fds = [self.read_end] + ([self.terminal] if self.terminal is not None else [])
        ready = select.select(fds, [], [], LIMIT)[0]
        expect(ready, f"nothing happens; there are {[describe(p) for p in living()]}\n{self.output()}")
        if self.terminal in ready:
            try:
                self.said.write(os.read(self.terminal, 1 << 16))
            except OSError:  # nobody has the other side open
                os.close(self.terminal)
                self.terminal = None
        if self.read_end in ready:
            more = os.read(self.read_end, 1 << 16)
            self.text += more
            return bool(more)
        return True

    def output(self):
        self.said.flush()
        self.said.seek(0)
        return self.said.read().decode(errors="replace") + self.text.decode(errors="replace")


def about_to_say(pid):
    """What a process is writing to its stderr, when it sleeps because there is no room for it; b"": nothing."""
    words = read_proc(pid, "syscall").split()
    if words[1:2] != ["0x2"] or state(pid) != "S":
        return b""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
            f.seek(int(words[2], 16))
            return f.read(int(words[3], 16))
    except OSError:
        return b""


def name_of(line):
    """The point that a line announces: without time, task and numbers."""
    words = line.decode(errors="replace").partition(" us: ")[2].split()
    if words[:1] in (["move"], ["restore"]) and words[-2:-1] == ["of"]:
        return words[0]
    if words and "#" in words[0]:
        words = words[1:]
    return " ".join(words)


# --- reports -----------------------------------------------------------------------------------------


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def ok(self, claim, name, why=()):
        self.n += 1
        self.failed += not claim
        print(f"{'ok' if claim else 'not ok'} {self.n} - {name}")
        for text in why:
            for line in str(text).splitlines()[:60]:
                print(f"# {line}")
        sys.stdout.flush()

    def done(self):
        print(f"1..{self.n}")
        sys.exit(bool(self.failed))


def share(jobs, work, workers):
    """Runs work(job) for each job, in processes of their own; yields (job, problem or None, note)."""
    read_end, write_end = os.pipe()
    pids = []
    for k in range(workers):
        pid = os.fork()
        if not pid:
            os.close(read_end)
            PLACES.clear()
            try:
                for job, problem, note in work(jobs[k::workers], k):
                    os.write(write_end, (json.dumps([job, problem, note]) + "\n").encode())
            except BaseException:
                os.write(write_end, (json.dumps([None, traceback.format_exc()[-1500:], None]) + "\n").encode())
            remove_places()
            os._exit(0)
        pids.append(pid)
    os.close(write_end)
    with os.fdopen(read_end) as f:
        for line in f:
            yield json.loads(line)
    for pid in pids:
        os.waitpid(pid, 0)


def cannot(why):
    if os.environ.get("VX_SANDBOX_MUST_WORK"):
        print(f"not ok 1 - {why}\n1..1")
        sys.exit(1)
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def require_programs(*names):
    for name in names:
        if not shutil.which(name):
            cannot(f"{name} is not installed")


def require_sandbox():
    """As tests/lib.sh: asked of the kernel, not of vx."""
    got = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts",
                          "--cgroup", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if got.returncode:
        cannot(f"no namespaces here: {got.stdout.decode(errors='replace').strip()}")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        cannot(f"cannot open /dev/fuse: {e}")
