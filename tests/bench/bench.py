#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What vx costs, in ratios to other programs measured in turns on the same machine (make bench).

    bench.py --vx PATH [--part start|read|sandbox|tasks|load|workload|growth] [--packages N] [--rounds N]

  start     a sandboxed `true` against the same view made by bubblewrap, and with 5,000 grants
  read      programs that read 2,000 granted files, inside against outside: Python, rg, a C loop, and tsc where
            VX_BENCH_TOOLS names a directory with node_modules/typescript in it
  sandbox   what is denied and hidden, how much memory a helper takes, and 64 sandboxed tasks at once
  tasks     what vx itself costs for each trivial task without a sandbox: CPU beyond that of starting its shell; and
            what share of a run of 3,270 of them goes into drawing on a terminal
  load      what of a run is finding its workspace: N packages, each with a manifest and a config of its own, and ten
            times as many, in a program that does nothing else (load-tool)
  workload  N packages with three trivial tasks each (default 1,090: 3,270 tasks): warm, restored and
            cold runs of vx against git status, ninja, and Turborepo where VX_BENCH_TURBO names a
            directory with a `turbo` program in it
  growth    a warm run of N packages against one of ten times as many, in layers of the same width: ten times
            the tasks, and the edges

In each round every program runs once, one after the other, so that what disturbs one disturbs all. Of the
rounds the median is printed, and the lower decile: what it takes when nothing disturbs it. Goals are judged by
that one. Quote the ratios, never the seconds.
"""
import argparse
import fcntl
import json
import os
import pathlib
import random
import re
import select
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time


def environment():
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("VX_", "CI"))}
    keep.update(NO_COLOR="1", TURBO_TELEMETRY_DISABLED="1", DO_NOT_TRACK="1", PYTHONDONTWRITEBYTECODE="1")
    return keep


def once(cmd, cwd, prepare=None):
    """Seconds of one run; a failing command ends the benchmark."""
    if prepare:
        prepare()
    with tempfile.TemporaryFile() as said:
        t0 = time.perf_counter()
        p = subprocess.Popen(cmd, cwd=cwd, env=environment(),
                             stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, usage = os.wait4(p.pid, 0)
        seconds = time.perf_counter() - t0
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            said.seek(0)
            sys.exit(f"bench: {' '.join(map(str, cmd))}: exit {p.returncode}\n{said.read().decode(errors='replace')}")
    # Of the process and of all it waited for, the largest; never less than this one has here.
    once.peak_mib = usage.ru_maxrss / 1024
    once.cpu = usage.ru_utime + usage.ru_stime
    return seconds


def in_turns(contenders, rounds):
    """{name: (cmd, cwd, prepare)} to {name: [seconds]}; one round more at first, not counted."""
    got = {name: [] for name in contenders}
    for i in range(rounds + 1):
        for name, (cmd, cwd, prepare) in contenders.items():
            s = once(cmd, cwd, prepare)
            if i:
                got[name].append(s)
    return got


def undisturbed(seconds):
    return sorted(seconds)[len(seconds) // 10]


def table(title, got, base, goals=None):
    print(f"\n{title}\n  {'':28} {'median':>13} {'to ' + base:>12} {'lower decile':>15} {'to ' + base:>12}")
    for name, seconds in got.items():
        m, low = statistics.median(seconds), undisturbed(seconds)
        ratio = low / undisturbed(got[base])
        goal = (goals or {}).get(name)
        mark = "" if goal is None else f"  goal {goal:g}: {'met' if ratio <= goal else 'NOT MET'}"
        print(f"  {name:28} {m * 1000:10.2f} ms {m / statistics.median(got[base]):10.2f} x {low * 1000:12.2f} ms"
              f" {ratio:10.2f} x{mark}")
    sys.stdout.flush()


def goal(what, value, unit, limit):
    print(f"  {what:58} {value:10.2f} {unit}  goal {limit:g}: {'met' if value <= limit else 'NOT MET'}")
    sys.stdout.flush()


def holds(what, wrong):
    """wrong: what speaks against it."""
    print(f"  {what:58} {'met' if not wrong else 'NOT MET: ' + ', '.join(map(str, wrong))}")
    sys.stdout.flush()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git_init(ws):
    git = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "user.name=bench",
           "-c", "user.email=bench@example.invalid", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["config", "gc.auto", "0"], ["add", "-A"], ["commit", "-q", "-m", "workspace"]):
        subprocess.run([*git, *words], cwd=ws, check=True)


MANY = 5000  # grants


def many_files(p, n):
    """The names, from the workspace, of n small files in p, by 100 in a directory."""
    names = [f"d{i // 100}/f{i}.txt" for i in range(n)]
    for name in names:
        write(p / name, "")
    return [f"{p.name}/{name}" for name in names]


# --- start ---------------------------------------------------------------------------------------
def spec_text(ws, cwd, scratch, argv, rules):
    lines = ["vx-spec 1", f"workspace {ws}", f"cwd {cwd}", f"scratch {scratch}", f"home {pathlib.Path.home()}"]
    lines += [f"arg {word}" for word in argv]
    lines += [f"env PATH={os.environ['PATH']}"]
    lines += rules
    return "\n".join(lines) + "\nend\n"


def scratch_parent(path):
    """As vx makes it (exec/scratch.c): ext4 then spreads what is made in it, and so keeps away from inodes that
    were deleted a moment ago, by an earlier round of this very benchmark for instance."""
    FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_TOPDIR_FL = 0x80086601, 0x40086602, 0x00020000
    path.mkdir(parents=True)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags | FS_TOPDIR_FL))
    except OSError:
        pass
    os.close(fd)


def starts(args, top, name, rules, others):
    """{name: [seconds]} of a sandboxed `true` for each list of rules, in turns with the other commands."""
    ws, parent = top / name, top / name / ".vx/scratch"
    scratch_parent(parent)
    true = shutil.which("true")
    got = {what: [] for what in [*others, *rules]}
    for i in range(args.starts + 5):
        run = dict(others)
        for k, (what, lines) in enumerate(rules.items()):
            scratch, spec = parent / f"vx-scratch-{i}-{k}", top / f"spec-{i}-{k}"
            scratch.mkdir()
            write(spec, spec_text(ws, "p", scratch, [true], lines))
            run[what] = [str(args.sandbox), "--spec", str(spec)]
        for what, cmd in run.items():
            seconds = once(cmd, ws)
            if i >= 5:
                got[what].append(seconds)
    return got


def part_start(args, top):
    ws = top / "start"
    write(ws / "p/src/a", "a\n")
    write(ws / "p/secret", "s\n")
    rules = ["read p/src", "write-glob p/dist/**"]
    true = shutil.which("true")
    bwrap = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--tmpfs", str(ws), "--bind", str(ws / "p/src"),
             str(ws / "p/src"), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", str(ws / "p"), true]
    got = starts(args, top, "start", {"vx-sandbox": rules}, {"true": [true], "bwrap": bwrap})
    table(f"sandboxed true, {args.starts} rounds", got, "bwrap", {"vx-sandbox": 0.8})

    ws = top / "grants"
    write(ws / "p/f0", "")
    one, many = ["read p/f0"], [f"read {path}" for path in many_files(ws / "p", MANY)]
    got = starts(args, top, "grants", {"one grant": one, f"{MANY:,} grants": many}, {})
    table(f"sandboxed true, {args.starts} rounds", got, "one grant")
    one, many = map(undisturbed, got.values())
    goal(f"{MANY:,} grants at the start, more than one", (many - one) * 1000, "ms", 10)


# --- read ----------------------------------------------------------------------------------------
READER = """import pathlib, time
t0 = time.perf_counter()
n = 0
for d in sorted(pathlib.Path("data").iterdir()):
    for f in sorted(d.iterdir()):
        n += len(f.read_bytes())
assert n == {total}, n
print("loop", time.perf_counter() - t0)
"""

# What a task does and how long it took, from within: the start of vx and of the sandbox is not in it.
TIMED = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* timed read ROUNDS DIRS FILES: data/dD/fF.ts, opened, read and closed
 * timed miss DIR NAMES: DIR/N, which shall not be there
 * timed run COMMAND... */
int
main(int argc, char **argv)
{
	char name[256], buf[4096];
	double start = now();

	if (argc == 5 && !strcmp(argv[1], "read")) {
		int rounds = atoi(argv[2]), dirs = atoi(argv[3]), files = atoi(argv[4]);

		for (int i = 0; i < rounds * dirs * files; i++) {
			int fd;

			snprintf(name, sizeof(name), "data/d%d/f%d.ts", i / files % dirs, i % files);
			fd = open(name, O_RDONLY);
			if (fd < 0 || read(fd, buf, sizeof(buf)) <= 0 || close(fd)) {
				perror(name);
				return 1;
			}
		}
	} else if (argc == 4 && !strcmp(argv[1], "miss")) {
		for (int i = 0, n = atoi(argv[3]); i < n; i++) {
			snprintf(name, sizeof(name), "%s/%d", argv[2], i);
			if (open(name, O_RDONLY) >= 0 || errno != ENOENT)
				return 1;
		}
	} else if (argc > 2 && !strcmp(argv[1], "run")) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			dup2(open("/dev/null", O_WRONLY), 1);
			execvp(argv[2], argv + 2);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	} else {
		return 2;
	}
	printf("program %.9f\n", now() - start);
	return 0;
}
"""


def compile_timed(ws):
    """The program at ws/timed; False, with a word, without a compiler."""
    cc = shutil.which("cc") or shutil.which("gcc")
    if not cc:
        print("\nno cc: what is timed by a program in C is left out")
        return False
    write(ws / "timed.c", TIMED)
    subprocess.run([cc, "-O2", "-o", "timed", "timed.c"], cwd=ws, check=True)
    return True


def tasks(ws, commands):
    """{name: (command, sandbox)} as the tasks of the workspace."""
    write(ws / "vx.config.json", json.dumps({"name": ws.name, "tasks": {
        name: {"exec": {"command": command, **({"sandbox": sandbox} if sandbox else {})}}
        for name, (command, sandbox) in commands.items()}}))
    git_init(ws)


def run_task(args, ws, task, words, code=0):
    """Seconds of the whole of vx run, and of what the task printed as `word seconds`."""
    t0 = time.perf_counter()
    p = subprocess.run([str(args.vx), "run", task], cwd=ws, env=environment(), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seconds = {"vx": time.perf_counter() - t0}
    for said in map(str.split, p.stdout.splitlines()):
        if len(said) == 2 and said[0] in words:
            seconds[said[0]] = float(said[1])
    if p.returncode != code or len(seconds) != 1 + len(words):
        sys.exit(f"bench: vx run {task}: exit {p.returncode}\n{p.stdout[:4000]}")
    return seconds


def both(args, ws, task, rounds, words=("program",), code=0, others=None):
    """{word: {"outside": [seconds], "inside": [seconds]}} of the tasks TASK-out and TASK-in, in turns, once more
    at first. code: how vx run ends for the one inside. others: {name: function} that say `program` in other ways."""
    got = {what: {"outside": [], "inside": []} for what in (*words, "vx")}
    for i in range(rounds + 1):
        for name, suffix in (("outside", "out"), ("inside", "in")):
            seconds = run_task(args, ws, f"{task}-{suffix}", words, code if name == "inside" else 0)
            for what, s in seconds.items() if i else ():
                got[what][name].append(s)
        for name, program in (others or {}).items():
            s = program()
            if i:
                got["program"].setdefault(name, []).append(s)
    return got


BARE = """mount -t overlay -o "userxattr,volatile,lowerdir=$1,upperdir=$2/u,workdir=$2/w" none "$1" && cd "$1" &&
exec sh -c "$3"
"""


def in_bare_overlay(ws, command):
    """What the command says as its `program` seconds in an overlay over the workspace: nothing of vx is in it."""
    with tempfile.TemporaryDirectory(dir=ws.parent) as scratch:
        for name in "u", "w":
            (pathlib.Path(scratch) / name).mkdir()
        said = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", BARE, "-", ws, scratch,
                               command], env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=True, text=True).stdout
        # The kernel makes it so that nobody may look into it.
        (pathlib.Path(scratch) / "w/work").chmod(0o700)
    return float(said.split("program ")[1].split()[0])


# Files of some 6 KB, the mean of sources: 6.0 of this repository's, 9.6 of the JavaScript that tests/tools/npm installs.
DIRS, IN_DIR, LINES = 20, 100, 190


def part_read(args, top):
    ws = top / "read"
    total = 0
    for d in range(DIRS):
        for f in range(IN_DIR):
            text = "".join(f"export const v{k}: number = {d} + {f};\n" for k in range(LINES))
            total += len(text)
            write(ws / f"data/d{d}/f{f}.ts", text)
    write(ws / "reader.py", READER.format(total=total))
    write(ws / "tsconfig.json", json.dumps({"compilerOptions": {"noEmit": True, "strict": True, "types": []},
                                            "include": ["data"]}))
    write(ws / "timed.sh", "TIMEFORMAT='program %3R'\ntime \"$@\"\n")
    tools = os.environ.get("VX_BENCH_TOOLS")
    if tools:
        shutil.copytree(pathlib.Path(tools) / "node_modules/typescript", ws / "node_modules/typescript")
        write(ws / ".gitignore", "node_modules\n")
    allow = {"allow": {"read": ["timed", "timed.sh", "reader.py", "tsconfig.json", "data/**", "node_modules/**"]}}
    run = {"python": f"bash timed.sh {shlex.quote(sys.executable)} reader.py",
           "rg": "bash timed.sh rg --no-config --no-ignore -c 'v1: number' data >/dev/null",
           "tsc": "bash timed.sh node node_modules/typescript/bin/tsc -p .",
           "c": f"./timed read 10 {DIRS} {IN_DIR}"}
    if not shutil.which("rg"):
        del run["rg"]
        print("\nno rg: left out")
    if not tools or not shutil.which("node"):
        del run["tsc"]
        print("\nno VX_BENCH_TOOLS, or no node: tsc is left out")
    if not compile_timed(ws):
        del run["c"]
    tasks(ws, {f"{name}-{suffix}": (command, sandbox) for name, command in run.items()
               for suffix, sandbox in (("out", None), ("in", allow))})

    def measured(name, title, times, limit, words=("program",)):
        got = both(args, ws, name, args.rounds * times, words,
                   others={"a bare overlay": lambda: in_bare_overlay(ws, run[name])})
        table(title, got["program"], "outside", {"inside": limit})
        # No view that stands on one can win back what the kernel's overlayfs costs.
        ratio = undisturbed(got["program"]["inside"]) / undisturbed(got["program"]["a bare overlay"])
        print(f"  inside / a bare overlay = {ratio:.2f}")
        return got

    got = measured("python", "a Python program that reads 2,000 granted files", 4, 1.25, ("program", "loop"))
    table("its loop alone: iterdir, open, read, close", got["loop"], "outside")
    table("the program with the whole of vx run around it", got["vx"], "outside")
    for name, title, times, limit in (("rg", "rg over them", 4, 1.25), ("tsc", "tsc over them", 1, 1.25),
                                      ("c", "a C loop over them, ten times: open, read, close", 4, 1.7)):
        if name in run:
            measured(name, title, times, limit)


# --- sandbox -------------------------------------------------------------------------------------
HIDDEN, DENIED, AT_ONCE = 1000, 500, 64
PATIENCE = 60  # seconds; what takes longer hangs


def denials(args, top):
    ws = top / "denials"
    for i in range(DENIED):
        write(ws / f"denied/{i}", "")
    for i in range(HIDDEN):
        write(ws / f"listed/{i}", "")
    write(ws / "denied/shown", "")
    write(ws / "listed/shown", "")
    (ws / "absent").mkdir()
    if not compile_timed(ws):
        return
    allow = {"allow": {"read": ["timed", "denied/shown", "listed/shown"]}}
    tasks(ws, {"miss-out": (f"./timed miss absent {DENIED}", None),
               "miss-in": (f"./timed miss denied {DENIED}", allow),
               "ls-out": ("./timed run ls listed", None), "ls-in": ("./timed run ls listed", allow)})
    # What is denied fails the task.
    got = both(args, ws, "miss", args.rounds * 2, code=1)["program"]
    table(f"{DENIED} hidden names opened, against absent ones", got, "outside")
    more = undisturbed(got["inside"]) - undisturbed(got["outside"])
    goal("one denial, more than an absent name outside", more / DENIED * 1e6, "us", 60)
    got = both(args, ws, "ls", args.rounds * 2)["program"]
    table(f"ls of a directory with {HIDDEN:,} hidden names", got, "outside")
    more = undisturbed(got["inside"]) - undisturbed(got["outside"])
    goal("ls, more than outside", more * 1000, "ms", 3)


class Gate:
    """A directory that tasks are granted to write, with two FIFOs: they come, and wait to be let through."""

    WAIT = "echo x >{0}/come && read -r word <{0}/go"

    def __init__(self, path):
        self.path = path
        path.mkdir()
        os.mkfifo(path / "come")
        os.mkfifo(path / "go")
        # Read and write: neither end is ever missing.
        self.come = os.open(path / "come", os.O_RDWR | os.O_CLOEXEC)
        self.go = os.open(path / "go", os.O_RDWR | os.O_CLOEXEC)

    def wait(self, n):
        """For n of them; False when they do not come."""
        end = time.monotonic() + PATIENCE
        while n > 0:
            ready, _, _ = select.select([self.come], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            n -= os.read(self.come, 4096).count(b"\n")
        return True

    def let(self, n):
        os.write(self.go, b"x\n" * n)


def resident_mib(pid):
    """At most so far, or now: the kernel counts the first only roughly, and the second to the page."""
    kib = 0
    for file, word in (("status", "VmHWM:"), ("smaps_rollup", "Rss:")):
        for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(word):
                kib = max(kib, int(line.split()[1]))
    return kib / 1024


def memory(args, top):
    ws = top / "memory"
    rules = {"two grants": ["read p/d0", "write-glob p/dist/**"],
             f"{MANY:,} grants": [f"read {name}" for name in many_files(ws / "p", MANY)]}
    scratch_parent(ws / ".vx/scratch")
    print("\nresident memory of a helper while its task waits")
    for k, (what, lines) in enumerate(rules.items()):
        gate, scratch, spec = Gate(top / f"gate-{k}"), ws / f".vx/scratch/vx-scratch-{k}", top / f"spec-memory-{k}"
        scratch.mkdir()
        write(spec, spec_text(ws, "p", scratch, ["sh", "-c", Gate.WAIT.format(gate.path)],
                              [*lines, f"write {gate.path}"]))
        p = subprocess.Popen([str(args.sandbox), "--spec", str(spec)], cwd=ws, env=environment(),
                             stdin=subprocess.DEVNULL)
        if not gate.wait(1):
            p.kill()
            sys.exit("bench: the task of the memory part has not started")
        goal(f"at most, {what}", resident_mib(p.pid), "MiB", 6)
        gate.let(1)
        if p.wait(PATIENCE):
            sys.exit(f"bench: the task of the memory part: exit {p.returncode}")


def helpers(args):
    """The processes of this vx-sandbox."""
    found = []
    for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            if exe.readlink() == args.sandbox:
                found.append(int(exe.parent.name))
        except OSError:
            pass
    return found


def at_once(args, top):
    ws, gate = top / "at-once", Gate(top / "gate")
    write(ws / "src/a", "a\n")
    sandbox = {"allow": {"read": ["src/**"], "write": ["out/**", str(gate.path)]}}
    command = Gate.WAIT.format(gate.path) + " && mkdir -p out && cat src/a >out/{0}"
    tasks(ws, {f"t{i}": (command.format(i), sandbox) for i in range(AT_ONCE)})
    # The first run makes what stays.
    gate.let(AT_ONCE)
    cmd = [str(args.vx), "run", *[f"t{i}" for i in range(AT_ONCE)], "--concurrency", str(AT_ONCE)]
    with tempfile.TemporaryFile() as said:
        before, mounts = set(helpers(args)), pathlib.Path("/proc/self/mountinfo").read_text()
        once(cmd, ws)
        gate.wait(AT_ONCE)
        shutil.rmtree(ws / "out")
        t0 = time.perf_counter()
        p = subprocess.Popen(cmd, cwd=ws, env=environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        came = gate.wait(AT_ONCE)
        seconds = time.perf_counter() - t0
        peak = [resident_mib(pid) for pid in set(helpers(args)) - before]
        gate.let(AT_ONCE)
        try:
            p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            p.terminate()
            p.wait()
    wrong = [] if came else ["not all of them started"]
    wrong += [f"exit {p.returncode}"] if p.returncode else []
    wrong += [f"no out/{i}" for i in range(AT_ONCE) if not (ws / f"out/{i}").exists()]
    print(f"\n{AT_ONCE} sandboxed tasks at once: all of them wait after {seconds * 1000:.0f} ms, a helper takes at"
          f" most {max(peak, default=0):.1f} MiB")
    holds("they work", wrong)
    left = [f"process {pid}" for pid in sorted(set(helpers(args)) - before)]
    left += [f"scratch {path.name}" for path in sorted((ws / ".vx/scratch").glob("*"))]
    left += ["a mount"] if pathlib.Path("/proc/self/mountinfo").read_text() != mounts else []
    holds("they leave nothing: processes, mounts, scratch", left)


def part_sandbox(args, top):
    denials(args, top)
    memory(args, top)
    at_once(args, top)


# --- tasks ---------------------------------------------------------------------------------------
TASKS = 400


def part_tasks(args, top):
    ws = top / "tasks"
    tasks(ws, {f"t{i}": ("true", None) for i in range(TASKS)})
    contenders = {
        "one": [str(args.vx), "run", "t0", "--concurrency", "1"],
        "all": [str(args.vx), "run", *[f"t{i}" for i in range(TASKS)], "--concurrency", "1", "--output-logs=none"],
        # With as few variables as a task has.
        "shells": ["env", "-i", *[f"{k}={v}" for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "USER")],
                   str(args.spawn), str(TASKS - 1), "true"],
    }
    got = {name: [] for name in contenders}
    for _ in range(args.rounds):
        for name, cmd in contenders.items():
            once(cmd, ws)
            got[name].append(once.cpu)
    # CPU is what others disturb least; the least of it is what it takes.
    one, every, shells = (min(got[name]) for name in ("one", "all", "shells"))
    print(f"\n{TASKS} tasks `true` without a sandbox and without a cache, one at a time")
    print(f"  {'a shell, plain':58} {shells / (TASKS - 1) * 1000:10.2f} ms CPU")
    goal("vx for each task, beyond its shell", (every - one - shells) / (TASKS - 1) * 1000, "ms CPU", 0.4)
    redraws(args, top)


def on_terminal(cmd, cwd, stderr=None):
    """What it wrote on a terminal that reads all at once; its CPU is in once.cpu."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    p = subprocess.Popen(cmd, cwd=cwd, env=dict(environment(), TERM="xterm"), stdin=subprocess.DEVNULL, stdout=slave,
                         stderr=stderr or slave)
    os.close(slave)
    wrote = bytearray()
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # EIO: nobody has it open any more
            break
        if not piece:
            break
        wrote += piece
    os.close(master)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f"bench: {' '.join(map(str, cmd))}: exit {p.returncode}\n{wrote.decode(errors='replace')[-2000:]}")
    once.cpu = usage.ru_utime + usage.ru_stime
    return bytes(wrote)


def redraws(args, top):
    ws, n = top / "redraws", 3 * args.packages
    tasks(ws, {f"t{i}": ("true", None) for i in range(n)})
    # How often it draws in such a run, times what that costs: the difference of two runs would be less than their noise.
    drawn = on_terminal([str(args.vx), "run", *[f"t{i}" for i in range(n)], "--all", "--concurrency", "4"], ws)
    cpu = once.cpu
    times = len(re.findall(rb"\x1b\[[0-9]+A", drawn))
    each = []
    for _ in range(args.rounds):
        with tempfile.TemporaryFile() as said:
            on_terminal([str(args.redraw), "4", "1000"], ws, said)
            said.seek(0)
            each.append(float(said.read()))
    print(f"\n{n:,} tasks `true` on a terminal, 4 at a time: {cpu:.2f} s CPU, {times} redraws of {min(each):.0f} us")
    goal("redraws, of the CPU of the run", times * min(each) / 1e6 / cpu * 100, "%", 1)


# --- load ----------------------------------------------------------------------------------------
def config_of(name):
    """Three tasks, like nobody else's."""
    return {"tags": [f"t-{name}"], "tasks": {
        task: {"description": f"{task} of {name}", "dependsOn": deps,
               "exec": {"command": f"make -C src {task} NAME={name}", "env": {"passThrough": ["MODE"]}},
               "cache": {"inputs": {"files": ["src/**", "!src/**/*.md"], "env": ["MODE"]},
                         "outputs": {"files": [f"dist/{task}/**"]}}}
        for task, deps in (("build", ["^build"]), ("test", ["build"]), ("lint", []))}}


def part_load(args, top):
    if not args.load.exists():
        print("\nno load-tool (make load-tool): the load part is left out")
        return
    got = {}
    for n in args.packages, 10 * args.packages:
        ws, state = top / f"load-{n}", top / f"load-state-{n}"
        state.mkdir()
        write(ws / "vx.workspace.json", json.dumps({"projects": ["packages/*"]}))
        for name, deps in packages(n, n * LAYERS // args.packages):
            write(ws / f"packages/{name}/package.json", json.dumps(
                {"name": name, "version": "0.0.0", "dependencies": {dep: "workspace:*" for dep in deps}}))
            write(ws / f"packages/{name}/vx.config.json", json.dumps(config_of(name), indent=1))
        for what, words in ("remembered", []), ("read anew", ["forget"]):
            said = subprocess.run([str(args.load), str(ws), str(state), str(4 * args.rounds), *words], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout
            # The limit is one of time, so not a ratio, but what others on the machine can add the least to.
            got[what, n] = min(map(float, said.split()))
    print("\nfinding and loading a workspace, on the processor, the fastest of some rounds")
    for what in "remembered", "read anew":
        small, large = got[what, args.packages], got[what, 10 * args.packages]
        goal(f"{args.packages:,} configs, {what}", small, "ms", 30)
        goal(f"{10 * args.packages:,} configs, {what} ({large / small:.1f} x that)", large, "ms", 300)


# --- workload ------------------------------------------------------------------------------------
BUILD, TEST, LINT = "mkdir -p dist && cat src/* > dist/out.txt", "test -d src", "test -s src/f0.js"
LAYERS, DEPS, FILES = 100, 30, 4


def packages(n, layers):
    """[(name, [names it depends on])]: layers of equal width, each on the one below, one on top of all."""
    rng = random.Random(1)
    layers = min(layers, n)
    width, wide = divmod(n - 1, max(1, layers - 1))
    below, out = [], []
    for layer in range(layers - 1):
        here = [f"l{layer}-{i}" for i in range(width + (layer < wide))]
        for name in here:
            out.append((name, sorted(rng.sample(below, min(DEPS, len(below))))))
        below = here
    out.append(("top", sorted(below)))
    return out


def generate(ws, pkgs):
    """The same work for each program, in its own words."""
    ninja = ["rule run", "  command = cd packages/$p && $cmd", "rule check",
             "  command = (cd packages/$p && $cmd) && touch $out"]
    turbo_task = {"build": (BUILD, ["^build"], ["dist/**"]), "test": (TEST, ["build"], []), "lint": (LINT, [], [])}
    write(ws / ".gitignore", "dist\nnode_modules\n.vx\n.turbo\n.ninja_*\n.stamps\n")
    write(ws / "package.json", json.dumps({"name": "bench", "private": True, "packageManager": "bun@1.4.5",
                                           "workspaces": ["packages/*"]}))
    write(ws / "turbo.json", json.dumps({"tasks": {
        name: {"inputs": ["src/**"], "outputs": out, "dependsOn": deps}
        for name, (_, deps, out) in turbo_task.items()}}))
    lock = {"lockfileVersion": 1, "workspaces": {"": {"name": "bench"}}, "packages": {}}
    config = json.dumps({"tasks": {
        name: {"dependsOn": deps, "exec": {"command": cmd},
               "cache": {"inputs": {"files": ["src/**"]}, "outputs": {"files": out}}}
        for name, (cmd, deps, out) in turbo_task.items()}}, indent=1)
    for name, deps in pkgs:
        d = ws / "packages" / name
        edges = {dep: "workspace:*" for dep in deps}
        write(d / "package.json", json.dumps({
            "name": name, "version": "0.0.0", "private": True, "dependencies": edges,
            "scripts": {task: cmd for task, (cmd, _, _) in turbo_task.items()}}))
        write(d / "vx.config.json", config)
        lock["workspaces"][f"packages/{name}"] = {"name": name, "version": "0.0.0", "dependencies": edges}
        lock["packages"][name] = [f"{name}@workspace:packages/{name}"]
        for i in range(FILES):
            write(d / f"src/f{i}.js", f"module.exports = '{name} {i}';\n" + "// line of text\n" * 25)
        files = " ".join(f"packages/{name}/src/f{i}.js" for i in range(FILES))
        out = f"packages/{name}/dist/out.txt"
        ups = " ".join(f"packages/{dep}/dist/out.txt" for dep in deps)
        ninja += [f"build {out}: run {files} | {ups}", f"  p = {name}", f"  cmd = {BUILD}",
                  f"build .stamps/{name}.test: check {files} | {out}", f"  p = {name}", f"  cmd = {TEST}",
                  f"build .stamps/{name}.lint: check {files}", f"  p = {name}", f"  cmd = {LINT}"]
    write(ws / "bun.lock", json.dumps(lock))
    write(ws / "build.ninja", "\n".join(ninja) + "\n")
    git_init(ws)


def part_workload(args, top):
    pkgs = packages(args.packages, LAYERS)
    jobs = "4"
    logs = "--output-logs=errors-only"
    run = {
        "vx": [str(args.vx), "run", "build", "test", "lint", "--all", "--concurrency", jobs, logs],
        "vx --sandbox": [str(args.vx), "run", "build", "test", "lint", "--all", "--sandbox", "--concurrency", jobs,
                         logs],
        "ninja": ["ninja", "--quiet", f"-j{jobs}"],
        "git status": ["git", "status", "--porcelain", "-uall"],
    }
    turbo = os.environ.get("VX_BENCH_TURBO")
    if turbo:
        run["turbo"] = [str(pathlib.Path(turbo) / "turbo"), "run", "build", "test", "lint", f"--concurrency={jobs}",
                        "--ui=stream", logs]
    # A workspace each: what one restores must not disturb the other.
    ws = {name: top / name.replace(" ", "-") for name in run}
    for path in ws.values():
        generate(path, pkgs)

    def wipe(path, caches):
        def prepare():
            for dist in path.glob("packages/*/dist"):
                shutil.rmtree(dist)
            for name in (".vx", ".turbo", ".ninja_log", ".ninja_deps", ".stamps") if caches else ():
                gone = path / name
                shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
        return prepare

    tools = [n for n in run if n != "git status"]
    cold = {name: [] for name in tools}
    for _ in range(args.cold):
        for name in tools:
            cold[name].append(once(run[name], ws[name], wipe(ws[name], True)))
    tasks = 3 * len(pkgs)
    table(f"cold, {tasks} tasks", cold, "ninja", {"vx": 1.3})

    warm = in_turns({name: (run[name], ws[name], None) for name in run}, args.rounds)
    table(f"warm, {tasks} tasks up to date", warm, "ninja", {"vx": 1.5})
    ratio = undisturbed(warm["vx"]) / undisturbed(warm["git status"])
    print(f"  warm: vx / git status = {ratio:.2f}  goal 2: {'met' if ratio <= 2 else 'NOT MET'}")
    cachers = [n for n in tools if n != "ninja"]
    restore = in_turns({n: (run[n], ws[n], wipe(ws[n], False)) for n in cachers}, args.rounds)
    table("all outputs deleted, restored", restore, "vx")
    if turbo:
        for what, got, goal in (("warm", warm, 0.3), ("restore", restore, 0.25)):
            ratio = undisturbed(got["vx"]) / undisturbed(got["turbo"])
            print(f"  {what}: vx / turbo = {ratio:.3f}  goal {goal}: {'met' if ratio <= goal else 'NOT MET'}")
    once(run["vx"], ws["vx"])
    print(f"\n  peak memory of a warm run: at most {once.peak_mib:.1f} MiB  goal 48: {'met' if once.peak_mib <= 48 else 'NOT MET'}")


def part_growth(args, top):
    run = [str(args.vx), "run", "build", "test", "lint", "--all", "--concurrency", "4", "--output-logs=errors-only"]
    small, large = f"{args.packages} packages", f"{10 * args.packages} packages"
    ws = {}
    for name, times in (small, 1), (large, 10):
        ws[name] = top / name.replace(" ", "-")
        generate(ws[name], packages(times * args.packages, times * LAYERS))
        once(run, ws[name])
    table("ten times as many packages, warm", in_turns({n: (run, ws[n], None) for n in ws}, args.rounds), small,
          {large: 10})
    for name in ws:
        once(run, ws[name])
        print(f"  peak memory, {name}: at most {once.peak_mib:.1f} MiB")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vx", type=pathlib.Path, required=True)
    p.add_argument("--part", choices=["start", "read", "sandbox", "tasks", "load", "workload", "growth"], action="append")
    p.add_argument("--packages", type=int, default=1090)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--cold", type=int, default=1)
    p.add_argument("--starts", type=int, default=200)
    args = p.parse_args()
    args.vx = args.vx.resolve()
    args.sandbox = args.vx.parent / "vx-sandbox"
    args.load = args.vx.parent / "load-tool"
    args.spawn = args.vx.parent / "spawn-tool"
    args.redraw = args.vx.parent / "redraw-tool"
    parts = {"start": part_start, "read": part_read, "sandbox": part_sandbox, "tasks": part_tasks, "load": part_load,
             "workload": part_workload, "growth": part_growth}
    # On a disk: never /tmp, which a sandbox replaces.
    with tempfile.TemporaryDirectory(prefix="vx-bench.", dir=os.environ.get("VX_BENCH_DIR", "/var/tmp")) as top:
        for name in args.part or parts:
            parts[name](args, pathlib.Path(top).resolve())


main()
