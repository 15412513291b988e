#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What vx costs, in ratios to other programs measured in turns on the same machine (make bench).

    bench.py --vx PATH [--part start|read|workload|growth] [--packages N] [--rounds N]

  start     a sandboxed `true` against the same view made by bubblewrap
  read      a Python program that reads 2,000 granted files, inside against outside
  workload  N packages with three trivial tasks each (default 1,090: 3,270 tasks): warm, restored and
            cold runs of vx against git status, ninja, and Turborepo where VX_BENCH_TURBO names a
            directory with a `turbo` program in it
  growth    a warm run of N packages against one of ten times as many, in layers of the same width: ten times
            the tasks, and the edges

In each round every program runs once, one after the other, so that what disturbs one disturbs all. Medians
are printed; quote the ratios, never the seconds.
"""
import argparse
import fcntl
import json
import os
import pathlib
import random
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
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


def table(title, got, base, goals=None):
    print(f"\n{title}")
    ref = statistics.median(got[base])
    for name, seconds in got.items():
        m = statistics.median(seconds)
        goal = (goals or {}).get(name)
        mark = "" if goal is None else f"  goal {goal:g}: {'met' if m / ref <= goal else 'NOT MET'}"
        print(f"  {name:28} {m * 1000:10.2f} ms  {min(seconds) * 1000:9.2f} .. {max(seconds) * 1000:<9.2f}"
              f" {m / ref:7.2f} x {base}{mark}")
    sys.stdout.flush()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git_init(ws):
    git = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "user.name=bench",
           "-c", "user.email=bench@example.invalid", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["config", "gc.auto", "0"], ["add", "-A"], ["commit", "-q", "-m", "workspace"]):
        subprocess.run([*git, *words], cwd=ws, check=True)


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


def part_start(args, top):
    ws = top / "start"
    write(ws / "p/src/a", "a\n")
    write(ws / "p/secret", "s\n")
    parent = ws / ".vx/scratch"
    scratch_parent(parent)
    true = shutil.which("true")
    bwrap = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--tmpfs", str(ws), "--bind", str(ws / "p/src"),
             str(ws / "p/src"), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", str(ws / "p"), true]
    got = {"true": [], "bwrap": [], "vx-sandbox": []}
    for i in range(args.starts + 5):
        scratch, spec = parent / f"vx-scratch-{i}", top / f"spec-{i}"
        scratch.mkdir()
        write(spec, spec_text(ws, "p", scratch, [true], ["read p/src", "write-glob p/dist/**"]))
        row = {"true": once([true], ws), "bwrap": once(bwrap, ws),
               "vx-sandbox": once([str(args.sandbox), "--spec", str(spec)], ws)}
        if i >= 5:
            for name, s in row.items():
                got[name].append(s)
    table(f"sandboxed true, {args.starts} rounds", got, "bwrap", {"vx-sandbox": 1.0})


# --- read ----------------------------------------------------------------------------------------
READER = """import pathlib
n = 0
for d in sorted(pathlib.Path("data").iterdir()):
    for f in sorted(d.iterdir()):
        n += len(f.read_bytes())
assert n == {total}, n
"""


def part_read(args, top):
    """The same program, timed from its exec to its exit inside and outside, so that the start of vx and of the
    sandbox is not in it; and its loop over the files, timed by itself."""
    ws = top / "read"
    total = 0
    for d in range(20):
        for f in range(100):
            text = f"{d} {f}\n" * 40
            total += len(text)
            write(ws / f"data/d{d}/f{f}.txt", text)
    write(ws / "reader.py", "import time\nt0 = time.perf_counter()\n" + READER.format(total=total)
          + "print('loop', time.perf_counter() - t0)\n")
    write(ws / "timed.sh", f"TIMEFORMAT='program %3R'\ntime {shlex.quote(sys.executable)} reader.py\n")
    sandbox = {"allow": {"read": ["timed.sh", "reader.py", "data/**"]}}
    write(ws / "vx.config.json", json.dumps({"name": "read", "tasks": {
        "in": {"exec": {"command": "bash timed.sh", "sandbox": sandbox}},
        "out": {"exec": {"command": "bash timed.sh"}}}}))
    git_init(ws)
    got = {what: {"outside": [], "inside": []} for what in ("program", "loop", "vx")}
    for i in range(args.rounds * 4 + 1):
        for name, task in (("outside", "out"), ("inside", "in")):
            t0 = time.perf_counter()
            p = subprocess.run([str(args.vx), "run", task], cwd=ws, env=environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            seconds = {"vx": time.perf_counter() - t0}
            for words in map(str.split, p.stdout.splitlines()):
                if len(words) == 2 and words[0] in ("program", "loop"):
                    seconds[words[0]] = float(words[1])
            if p.returncode or len(seconds) != 3:
                sys.exit(f"bench: vx run {task}: exit {p.returncode}\n{p.stdout}")
            if i:
                for what, s in seconds.items():
                    got[what][name].append(s)
    table("a Python program that reads 2,000 granted files", got["program"], "outside", {"inside": 1.4})
    table("its loop alone: iterdir, open, read, close", got["loop"], "outside")
    table("the program with the whole of vx run around it", got["vx"], "outside")


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
    ratio = statistics.median(warm["vx"]) / statistics.median(warm["git status"])
    print(f"  warm: vx / git status = {ratio:.2f}  goal 2: {'met' if ratio <= 2 else 'NOT MET'}")
    cachers = [n for n in tools if n != "ninja"]
    restore = in_turns({n: (run[n], ws[n], wipe(ws[n], False)) for n in cachers}, args.rounds)
    table("all outputs deleted, restored", restore, "vx")
    if turbo:
        for what, got, goal in (("warm", warm, 0.3), ("restore", restore, 0.25)):
            ratio = statistics.median(got["vx"]) / statistics.median(got["turbo"])
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
    p.add_argument("--part", choices=["start", "read", "workload", "growth"], action="append")
    p.add_argument("--packages", type=int, default=1090)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--cold", type=int, default=1)
    p.add_argument("--starts", type=int, default=200)
    args = p.parse_args()
    args.vx = args.vx.resolve()
    args.sandbox = args.vx.parent / "vx-sandbox"
    parts = {"start": part_start, "read": part_read, "workload": part_workload, "growth": part_growth}
    # On a disk: never /tmp, which a sandbox replaces.
    with tempfile.TemporaryDirectory(prefix="vx-bench.", dir=os.environ.get("VX_BENCH_DIR", "/var/tmp")) as top:
        for name in args.part or parts:
            parts[name](args, pathlib.Path(top).resolve())


main()
