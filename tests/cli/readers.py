#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who reads what vx prints at a pace of his own, or not at all: nothing is lost or torn, and nobody else waits."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ["VX_BUILDDIR"])
VX = BUILD + "/vx"
LIMIT = 120
MANY, EACH = 40, 5 << 20
failed = 0
count = 0


def ok(good, name, detail=""):
    global failed, count
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, name))
    if not good:
        print("".join("# %s\n" % line for line in str(detail).splitlines()), end="")
    sys.stdout.flush()


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


class Fifo:
    """What tasks say, and that all who had it open are gone."""

    def __init__(self, path):
        os.mkfifo(path)
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self, n):
        """n bytes, or what came until nobody is left who could write."""
        got = b""
        while len(got) < n:
            if not select.select([self.fd], [], [], LIMIT)[0]:
                return None
            piece = os.read(self.fd, n - len(got))
            if not piece:
                return got
            got += piece
        return got


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("VX_") and k not in ("CI", "FORCE_COLOR", "NO_COLOR")}
    env.update(more)
    return env


def start(cwd, *args, **more):
    return subprocess.Popen(
        [VX, "run", *args], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(**more), restore_signals=True)


def many(top):
    """Frames of many tasks, for a reader who sets in late."""
    ws = top + "/many"
    line = "x" * 99
    tasks = {"t%d" % i: {"exec": {"command": "i=%d; yes \"$i %s\" | head -c %d; printf . >%s/said" % (i, line, EACH, top)}} for i in range(MANY)}
    put(ws + "/vx.workspace.json", '{ "projects": ["p"] }')
    put(ws + "/p/vx.config.json", json.dumps({"name": "p", "tasks": tasks}))
    said = Fifo(top + "/said")
    keep = os.open(top + "/said", os.O_WRONLY)
    vx = start(ws, "--all", "--output-logs=full", "--concurrency=4", *tasks)
    # More of them than fit in any pipe: what they printed is with vx by now.
    ok(said.read(4) == b"....", "tasks end though nobody reads")
    out, err = vx.communicate(timeout=LIMIT)
    ok(vx.returncode == 0, "%d tasks of %d MB to a reader who comes late: vx ends well" % (MANY, EACH >> 20), err)
    blocks = re.split(rb"^\xe2\x94\x8c\xe2\x94\x80 ", out, flags=re.M)[1:]
    whole = 0
    for b in blocks:
        name, body = b.split(b" ", 1)[0], b.split("─\n".encode(), 1)[-1]
        full = b"%s %s\n" % (name[3:], line.encode())
        want = (full * (EACH // len(full) + 1))[:EACH].rstrip(b"\n") + b"\n"
        whole += body.startswith(want + "└─ ".encode() + name)
    ok(whole == MANY, "each frame is there, whole and by itself", "%d of %d, %d frames" % (whole, MANY, len(blocks)))
    os.close(keep)
    os.close(said.fd)


def stuck(top):
    """A reader who never reads."""
    ws = top + "/stuck"
    flood = "exec 8>%s/up$N 9>%s/held$N; yes | head -c 300000; echo up >&8; exec 8>&-; exec yes" % (top, top)
    put(ws + "/vx.workspace.json", '{ "projects": ["p"] }')
    put(ws + "/p/vx.config.json", json.dumps({"name": "p", "tasks": {
        "limit": {"exec": {"command": flood, "timeout": 300, "env": {"passThrough": ["N"]}}},
        "flood": {"exec": {"command": flood, "env": {"passThrough": ["N"]}}}}}))
    up, held = Fifo(top + "/up1"), Fifo(top + "/held1")
    vx = start(ws, "p#limit", N="1")
    ok(up.read(3) == b"up\n", "the pipe to the reader is full")
    ok(held.read(1) == b"", "a time-out acts though nobody reads")
    out = vx.communicate(timeout=LIMIT)[0]
    ok(vx.returncode == 1, "the task has failed")
    ok(re.search(r"└─ p#limit ── \(.*\) failed \(timed out after 300ms \(exec.timeout\), exit 143\)\n".encode(), out), "and the frame says so, once it is read", out[-500:])
    ok(not out.split("└─ p#limit".encode())[0].split(b"\n", 2)[2].replace(b"y\n", b"").strip(), "no line is torn")

    up, held = Fifo(top + "/up2"), Fifo(top + "/held2")
    vx = start(ws, "p#flood", N="2")
    ok(up.read(3) == b"up\n", "the pipe is full again")
    vx.send_signal(signal.SIGINT)
    ok(held.read(1) == b"", "Ctrl-C ends the task though nobody reads")
    vx.send_signal(signal.SIGINT)
    try:
        code = vx.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        code = None
        vx.kill()
    ok(code == 130, "and once more vx, whatever was not read", code)
    vx.stdout.close()
    vx.stderr.close()

    up, held = Fifo(top + "/up4"), Fifo(top + "/held4")
    vx = start(ws, "p#flood", N="4", VX_KILL_GRACE_MS="200")
    ok(up.read(3) == b"up\n", "and again, with little grace")
    vx.send_signal(signal.SIGTERM)
    try:
        code = vx.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        code = None
        vx.kill()
    ok(code == 143, "one signal is enough: the wait for a reader has an end then", code)
    vx.stdout.close()
    vx.stderr.close()

    up, held = Fifo(top + "/up3"), Fifo(top + "/held3")
    vx = start(ws, "p#flood", N="3")
    ok(up.read(3) == b"up\n", "a reader who has gone:")
    vx.stdout.close()
    vx.send_signal(signal.SIGINT)
    ok(vx.wait(timeout=LIMIT) == 130, "a signal ends vx all the same")
    vx.stderr.close()


def files(top):
    """What is asked for in a file, and the file is a pipe."""
    ws = top + "/files"
    long = "x" * 200
    tasks = {"t%d%s" % (i, long): {"exec": {"command": "true"}} for i in range(400)}
    put(ws + "/vx.workspace.json", '{ "projects": ["p"] }')
    put(ws + "/p/vx.config.json", json.dumps({"name": "p", "tasks": tasks}))
    os.mkfifo(ws + "/file")
    vx = start(ws, "--all", *tasks, "--graph=file")
    try:
        out = vx.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        vx.kill()
        out = "it waits"
    ok(vx.returncode == 2, "--graph: a fifo that nobody reads is not waited for", out)
    for flag, code in (("--graph", 130), ("--profile", None)):
        fd = os.open(ws + "/file", os.O_RDONLY | os.O_NONBLOCK)
        vx = start(ws, "--all", *tasks, flag + "=file", "--output-logs=none")
        # Some of it is there, and the rest does not fit.
        select.select([fd], [], [], LIMIT)
        vx.send_signal(signal.SIGINT)
        try:
            out = vx.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            vx.kill()
            out = "it waits"
        ok(vx.returncode >= 0 and code in (None, vx.returncode), flag + ": one whose reader does not read, until Ctrl-C", (vx.returncode, out))
        os.close(fd)


def order(top):
    """Notices and frames into one pipe keep their order, however slow it is."""
    ws = top + "/order"
    put(ws + "/vx.workspace.json", '{ "projects": ["p"] }')
    put(ws + "/p/vx.config.json", json.dumps({"name": "p", "tasks": {
        "a": {"exec": {"command": "yes | head -c 300000"}},
        "late": {"dependsOn": ["a"], "exec": {"command": "exec 8>%s/gone; read -r never </dev/null; echo up >&8; read -r never <%s/go" % (top, top)}}}}))
    os.mkfifo(top + "/go")
    gone = Fifo(top + "/gone")
    vx = subprocess.Popen([VX, "run", "p#a", "p#late"], cwd=ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment())
    ok(gone.read(3) == b"up\n", "a frame is not read yet")
    vx.send_signal(signal.SIGINT)
    out = vx.communicate(timeout=LIMIT)[0].decode()
    at = [out.find(t) for t in ("┌─ p#a", "└─ p#a", "vx: stopping", "─ vx ")]
    ok(vx.returncode == 130 and -1 not in at and at == sorted(at), "what is said later comes later", (at, out[-600:]))


def main():
    with tempfile.TemporaryDirectory(prefix="vx-test.", dir=os.environ.get("VX_TEST_DIR", "/var/tmp")) as top:
        many(top)
        stuck(top)
        files(top)
        order(top)
    print("1..%d" % count)
    return failed != 0


sys.exit(main())
