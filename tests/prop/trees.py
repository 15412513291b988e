# SPDX-License-Identifier: MIT
"""Random trees, saved and restored.

A task copies a tree with every kind of name, mode, content and link to its outputs. Between runs the outputs are
removed, mangled or taken for those of another tree. After each run they are what the tree was, byte for byte,
whether the task ran, was up to date or was restored; and it runs only when it must. Written from the pages, as
cache.py is.

	VX_PROP_ROUNDS=10000	runs of vx; by default some seconds' worth
	VX_PROP_SEED=17		only the trees of this seed
"""

import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
from cache import LIMIT, VX, Arena, Wrong, cannot, difference, environment, put_node, raw, snapshot  # noqa: E402

DEFAULT_ROUNDS = 40
STEPS = 8  # per seed
COUNT = {}

NAMES = [b"a", b"A", b".h", b"with space", b" ", b"end ", b"new\nline", b"\n", b"tab\t", b"\xff\xfe", b"\x80", b"[x]{y}*?", b"-rf",
         b"--", b"\\", b"\\n", b"back\\slash", b"%41", b"\xc3\xa9", b"e\xcc\x81", b"n" * 255, b"N" * 255, b"\xfe" * 255,
         b"\x01\x7f\x1b[31m", b"'\"$`", b"...", b"..a", b"~", b"#x", b"!x", b"vx-tree 1", b"aux", b"a/"[:1] + b":b"]  # fmt: skip
NEVER = [b".npmrc", b".envrc", b".GITHUB", b".husky", b"vx.config.json"]
TARGETS = [b"a", b"/nowhere/at/all", b"../..", b".", b"..", b"new\nline\xff", b"x" * 300, b"/", b"a/../a", b"\\", b"-", b"y" * 4000]
SIZES = [0, 1, 100, 4095, 4096, 65535, 65536, 65537, 131072, 200000, 1 << 20]
FILE_MODES = [0o644, 0o644, 0o755, 0o600, 0o444, 0o400, 0o777, 0o640, 0o551, 0o200, 0o111]
DIR_MODES = [0o755, 0o755, 0o700, 0o711, 0o777, 0o750, 0o555, 0o500]
MADE_BY_ROOT = [0o000, 0o000, 0o1777, 0o4755, 0o2711]


def all_modes(modes):
    # Without privileges nobody reads what has no `r`, nor does vx.
    return modes + MADE_BY_ROOT if os.geteuid() == 0 else [m for m in modes if m & 0o400]


def below(top):
    """All that is below a directory, but not what links lead to; files before their directories."""
    for dir_, dirs, files in os.walk(top, topdown=False):
        for name in dirs + files:
            yield dir_ + b"/" + name


def erase(path):
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        for dir_, dirs, _ in os.walk(path):
            for name in dirs:
                if not os.path.islink(dir_ + b"/" + name):
                    os.chmod(dir_ + b"/" + name, 0o700)
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def write_file(rng, path, size):
    with open(path, "wb") as f:
        kind = rng.random()
        if kind < 0.4:
            f.write(rng.randbytes(size))
        elif kind < 0.7:
            f.write(rng.randbytes(64) * (size // 64) + b"." * (size % 64))
        else:
            f.write(bytes([rng.randrange(256)]) * size)
        if rng.random() < 0.1:
            f.truncate(size + rng.choice([1, 131072, 400000, 5 << 20]))  # ends in a hole
        elif rng.random() < 0.1:
            f.seek(rng.choice([131072, 3 << 20]) + size)  # has one in the middle
            f.write(b"end")


def plant(rng, top, depth=0):
    """Any tree, below `top`."""
    for n in range(rng.randint(0 if depth else 2, 7)):
        name = (rng.choice(NAMES) + (b"" if rng.random() < 0.7 else b"%d" % n))[:255]
        path = top + b"/" + name
        if os.path.lexists(path):
            continue
        kind = rng.random()
        if kind < 0.3 and depth < 4:
            if rng.random() < 0.6:
                path = top + b"/D" + name[:254]  # no file and no link has such a name
            if os.path.lexists(path):
                continue
            os.mkdir(path)
            plant(rng, path, depth + 1)
        elif kind < 0.42:
            os.symlink(rng.choice(TARGETS), path)
        elif kind < 0.5 and [p for p in os.listdir(top) if stat.S_ISREG(os.lstat(top + b"/" + p).st_mode)]:
            files = sorted(p for p in os.listdir(top) if stat.S_ISREG(os.lstat(top + b"/" + p).st_mode))
            os.link(top + b"/" + rng.choice(files), path)
        else:
            write_file(rng, path, rng.choice(SIZES))
    if depth:
        return
    if rng.random() < 0.15:
        deep = top + b"/deep"
        for part in [b"d"] * 150 if rng.random() < 0.5 else [bytes([rng.randrange(97, 123)]) * 255] * 13:
            deep += b"/" + part
        os.makedirs(deep)
        if rng.random() < 0.5:
            write_file(rng, deep + b"/f", 10)
    if rng.random() < 0.05:
        os.mkdir(top + b"/many")
        for n in range(3000):
            with open(top + b"/many/%d" % n, "wb") as f:
                f.write(b"%d" % (n % 7))
    for path in sorted(below(top), reverse=True):
        st = os.lstat(path)
        if stat.S_ISREG(st.st_mode) and st.st_nlink == 1:
            os.chmod(path, rng.choice(all_modes(FILE_MODES)))
    for path in below(top):
        if stat.S_ISDIR(os.lstat(path).st_mode) and rng.random() < 0.7:
            os.chmod(path, rng.choice(all_modes(DIR_MODES)))


def mangle(rng, out):
    """Something else with a few of the names in `out`."""
    for dir_ in [p for p in below(out) if stat.S_ISDIR(os.lstat(p).st_mode)]:
        os.chmod(dir_, os.lstat(dir_).st_mode | 0o700)
    paths = sorted(below(out))
    for path in rng.sample(paths, min(len(paths), rng.randint(1, 5))):
        if not os.path.lexists(path) or os.path.basename(path) == b"many":
            continue
        st = os.lstat(path)
        how = rng.choice(["gone", "mode", "dir", "file", "link", "bytes", "beside", "hard", "time"])
        if how == "mode" and not stat.S_ISLNK(st.st_mode):
            os.chmod(path, rng.choice([0o700, 0o755] if stat.S_ISDIR(st.st_mode) else [0o600, 0o666, 0o4755]))
        elif how == "bytes" and stat.S_ISREG(st.st_mode) and st.st_size:
            # The same size, and the same mtime.
            os.chmod(path, 0o600)
            with open(path, "r+b") as f:
                byte = f.read(1)
                f.seek(0)
                f.write(bytes([byte[0] ^ 1]))
            os.chmod(path, stat.S_IMODE(st.st_mode))
            os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        elif how == "beside" and len(path) < 3000:
            with open(os.path.dirname(path) + b"/extra", "wb") as f:
                f.write(b"extra")
        elif how == "hard" and stat.S_ISREG(st.st_mode):
            erase(os.path.dirname(out) + b"/other")
            os.link(path, os.path.dirname(out) + b"/other")
        elif how == "time":
            os.utime(path, ns=(0, 0), follow_symlinks=False)
        elif how in ("gone", "dir", "file", "link"):
            erase(path)
            if how == "dir":
                os.mkdir(path)
                if rng.random() < 0.5 and len(path) < 3000:
                    os.symlink(b"x", path + b"/y")
            elif how == "file":
                write_file(rng, path, 3)
            elif how == "link":
                os.symlink(rng.choice([b".", b"/etc/hostname", b"a"]), path)


def plain(tree):
    """Without the bits that are not stored."""
    return {p: n if n[0] == "l" else (n[0], n[1] & 0o777, *n[2:]) for p, n in tree.items()}


def sparse(path):
    return os.lstat(path).st_blocks * 512


def check_form(made, store, out):
    """What was put in place has no set-id bits, no second name, and the holes of what was saved."""
    for path in below(raw(out)):
        st = os.lstat(path)
        if stat.S_IMODE(st.st_mode) & 0o7000 and not stat.S_ISLNK(st.st_mode):
            raise Wrong("%r has mode %o" % (path, st.st_mode))
        if stat.S_ISREG(st.st_mode):
            if st.st_nlink != 1:
                raise Wrong("%r has %d names" % (path, st.st_nlink))
            there = raw(store) + path[len(raw(out)) :]
            if sparse(path) > sparse(there) + (1 << 20):
                raise Wrong("%r takes up %d bytes, was saved with %d" % (path, sparse(path), sparse(there)))


def session(arena, seed):
    rng = random.Random(seed)
    for name in os.listdir(arena.top):
        erase(raw(arena.top + "/" + name))
    top = arena.fresh()
    store, out = top + "/store", top + "/ws/p/out"
    os.makedirs(top + "/ws/p")
    os.mkdir(store)
    globs = rng.choice([["out"], ["out/**"], ["out/**/*"], ["{out,gone}/**"], ["./out/**"]])
    command = "echo copy >%s/log; mkdir -p out; cp -a %s/now/. out/" % (top, store)
    config = {"tasks": {"copy": {"exec": {"command": command},
              "cache": {"inputs": {"files": ["which"]}, "outputs": {"files": globs}}}}}  # fmt: skip
    put_node(top + "/ws/p/vx.config.json", ("f", 0o644, json.dumps(config).encode()))
    put_node(top + "/ws/vx.workspace.json", ("f", 0o644, b'{"projects": ["p"]}'))
    log = os.open(top + "/log", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    made, never, known = {}, {}, set()
    told = ["outputs: %s" % globs]
    try:
        for _ in range(STEPS):
            which = rng.choice("123")
            if which not in made:
                os.mkdir(store + "/" + which)
                plant(rng, raw(store + "/" + which))
                if rng.random() < 0.1:
                    never[which] = rng.choice(NEVER)
                    os.mkdir(raw(store + "/" + which) + b"/in")
                    with open(raw(store + "/" + which) + b"/in/" + never[which], "wb"):
                        pass
                made[which] = snapshot(store + "/" + which)
            if os.path.lexists(store + "/now"):
                os.unlink(store + "/now")
            os.symlink(which, store + "/now")
            put_node(top + "/ws/p/which", ("f", 0o644, which.encode()))
            spoil = rng.choice(["none", "none", "gone", "other", "mangle", "mangle", "mangle"])
            if spoil in ("gone", "other"):
                erase(raw(out))
            if spoil == "other":
                os.mkdir(out)
                plant(rng, raw(out))
            if spoil == "mangle" and os.path.isdir(out):
                mangle(rng, raw(out))
            sandbox = rng.random() < 0.35 and which not in never
            told.append("tree %s, outputs before: %s%s" % (which, spoil, ", --sandbox" if sandbox else ""))
            argv = [VX, "run", "copy", "--all", "--output-logs", "hash-only"] + ["--sandbox"] * sandbox
            vx = subprocess.run(argv, cwd=top + "/ws", env=environment(top), stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=LIMIT)  # fmt: skip
            said = (vx.stdout + vx.stderr).decode("utf-8", "replace")
            try:
                ran = bool(os.read(log, 4096))
            except BlockingIOError:
                ran = False
            # --sandbox takes what was made in one only.
            want = (which, True) not in known and (sandbox or (which, False) not in known)
            if which not in never:
                known.add((which, sandbox))
            there = snapshot(out)
            kind = re.match(r"\S*", said).group(0)
            if which not in never and (sandbox or kind == "up-to-date"):
                # What never is put in the workspace is not removed either by a sandboxed task.
                there = {p: n for p, n in there.items() if p.split("/")[0] != "in"}
            if vx.returncode or ran != want or plain(there) != plain(made[which]):
                what = "exit %d, %s" % (vx.returncode, "ran" if ran else "did not run")
                raise Wrong("%s\n%s\n%s\n%s" % ("\n".join(told), what, difference(plain(made[which]), plain(there)), said))
            COUNT[kind] = COUNT.get(kind, 0) + 1
            if kind == "restored-local":
                try:
                    check_form(made[which], store + "/" + which, out)
                except Wrong as e:
                    raise Wrong("%s\n%s" % ("\n".join(told), e)) from None
    finally:
        os.close(log)
    return STEPS


def main():
    os.umask(0o022)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    why = cannot()
    if why:
        print("not ok 1 - %s\n1..1" % why if os.environ.get("VX_SANDBOX_MUST_WORK") else "1..0 # SKIP %s" % why)
        sys.exit(bool(os.environ.get("VX_SANDBOX_MUST_WORK")))
    rounds, only = int(os.environ.get("VX_PROP_ROUNDS", DEFAULT_ROUNDS)), os.environ.get("VX_PROP_SEED")
    arena = Arena()
    done, failed, seed = 0, 0, int(only or 1)
    try:
        while done < rounds and failed < int(os.environ.get("VX_PROP_FAILURES", 1)):
            try:
                done += session(arena, seed)
            except Wrong as e:
                failed += 1
                done += STEPS
                print("not ok %d - trees of seed %d\n# %s" % (failed, seed, str(e).replace("\n", "\n# ")))
            if only:
                break
            seed += 1
        if not failed:
            print("ok 1 - %d runs: every tree is as it was" % done)
            print("# " + ", ".join("%d %s" % (COUNT[k], k) for k in sorted(COUNT)))
        print("1..%d" % max(1, failed))
    finally:
        for name in os.listdir(arena.top):
            erase(raw(arena.top + "/" + name))
        arena.remove()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
