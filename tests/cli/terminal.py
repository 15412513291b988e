#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is to be seen on a terminal: the screen itself, as a terminal would draw it, not the bytes."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

BUILD = os.path.abspath(os.environ["VX_BUILDDIR"])
VX = BUILD + "/vx"
LIMIT = 60
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


class Screen:
    """A terminal, as far as vx needs one; anything that it does not know is an error of the test."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.top, self.y, self.x = [""], 0, 0, 0  # lines: with those that have scrolled away
        self.other = None
        self.cursor = True
        self.rest = ""

    def newline(self):
        self.y += 1
        if self.y == len(self.lines):
            self.lines.append("")
        self.top = max(self.top, self.y - self.rows + 1)

    def put(self, c):
        if self.x == self.columns:
            self.x = 0
            self.newline()
        line = self.lines[self.y].ljust(self.x)
        self.lines[self.y] = line[:self.x] + c + line[self.x + 1:]
        self.x += 1

    def sequence(self, params, what):
        n = int(params) if params.isdigit() else 1
        if what == "A":
            self.y = max(self.top, self.y - n)
        elif what == "J" and params in ("", "0"):
            self.lines[self.y] = self.lines[self.y][:self.x]
            del self.lines[self.y + 1:]
        elif what == "K" and params in ("", "0"):
            self.lines[self.y] = self.lines[self.y][:self.x]
        elif what in "hl" and params == "?25":
            self.cursor = what == "h"
        elif what in "hl" and params == "?1049":
            mine = (self.lines, self.top, self.y, self.x)
            if what == "h":
                self.other, (self.lines, self.top, self.y, self.x) = mine, ([""], 0, 0, 0)
            elif self.other:
                (self.lines, self.top, self.y, self.x), self.other = self.other, None
        elif what != "m":
            raise ValueError("not known: %s%s" % (params, what))

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            if text[0] == "\x1b":
                m = re.match(r"\x1b\[([0-9;?]*)([@-~])", text)
                if not m:
                    self.rest = text
                    return
                self.sequence(m[1], m[2])
                text = text[m.end():]
                continue
            if text[0] == "\n":
                self.newline()
            elif text[0] == "\r":
                self.x = 0
            else:
                self.put(text[0])
            text = text[1:]

    def text(self):
        return "".join(line.rstrip() + "\n" for line in self.lines).rstrip("\n") + "\n"


class Terminal:
    """vx on one of its own; no wait is for a time."""

    def __init__(self, cwd, *args, columns=80, rows=24):
        self.screen = Screen(columns, rows)
        self.bytes = b""
        self.decoded = 0
        pid, self.fd = pty.fork()
        if not pid:
            for s in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP):
                signal.signal(s, signal.SIG_DFL)
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(cwd)
            env = {k: v for k, v in os.environ.items() if not k.startswith("VX_") and k not in ("CI", "NO_COLOR", "FORCE_COLOR")}
            os.execve(VX, [VX, "run", *args], dict(env, TERM="xterm"))
        self.pid = pid

    def draw(self, data):
        self.bytes += data
        # Whole characters only.
        text = self.bytes[self.decoded:].decode("utf-8", "ignore")
        self.decoded += len(text.encode())
        self.screen.feed(text)

    def until(self, done):
        end = time.monotonic() + LIMIT
        while not done():
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return False
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return done()
            self.draw(data)
        return True

    def end(self):
        self.until(lambda: False)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def workspace(top, name, tasks):
    put(top + "/" + name + "/vx.workspace.json", '{ "projects": ["p"] }')
    put(top + "/" + name + "/p/vx.config.json", json.dumps({"name": "p", "tasks": {t: {"exec": {"command": c}} for t, c in tasks.items()}}))
    return top + "/" + name


def many(top, n):
    """Nothing of the live part is left, and nothing else is missing."""
    tasks = {"t%04d" % i: "exit 3" if i == 4 else "true" for i in range(n)}
    for columns, rows in ((80, 24), (200, 50), (40, 5)):
        vx = Terminal(workspace(top, "many%d" % n, tasks), *tasks, "--all", "--concurrency=20", columns=columns, rows=rows)
        code = vx.end()
        text = vx.screen.text()
        # Where a line is longer than the terminal is wide, it goes on in the next.
        whole = text.replace("\n", "") if columns < 80 else text
        name = "%d on %dx%d: " % (n, columns, rows)
        missing = [t for t in tasks if len(re.findall(r"[⏺◼] +\S+ +\S+ .*?p#" + t if columns >= 80 else "no-cache  p#" + t, whole)) != 1]
        ok(code == (n > 4) and not missing, name + "a line for each", (code, missing, text[:2000]))
        ok("▸" not in text and "/%d tasks" % n not in text, name + "no row is left over", text[-2000:])
        ok("\n\n\n" not in text and text.count("─ vx ") == 1, name + "no line is blank without need", text[-2000:])
        ok(re.search(r"(⏺[^\n]*\n|[^\n]\n)\n─ vx [^\n]*\nprojects 1\n", text), name + "the footer keeps its distance", text[-2000:])
        if n > 4 and columns >= 80:
            ok("\n\n┌─ p#t0004 > failed (exit 3)\n$ exit 3\n└─ p#t0004" in text, name + "so does a failure's frame", text[-2000:])


def stopped(top):
    """Ctrl-Z, another program's words, fg."""
    for n in ("up", "go"):
        os.mkfifo(top + "/" + n)
    ws = workspace(top, "stopped", {"a": "echo >%s/up; read -r x <%s/go" % (top, top), "b": "true"})
    up = os.open(top + "/up", os.O_RDONLY | os.O_NONBLOCK)
    vx = Terminal(ws, "a", "b", "--all", columns=80, rows=24)
    select.select([up], [], [], LIMIT)
    ok(vx.until(lambda: re.search(r"▸ .*p#a\n.*1/2 tasks", vx.screen.text())), "the live part is drawn", vx.screen.text())
    os.kill(vx.pid, signal.SIGTSTP)
    _, status = os.waitpid(vx.pid, os.WUNTRACED)
    ok(os.WIFSTOPPED(status), "Ctrl-Z stops it")
    core = int(open("/proc/%d/task/%d/children" % (vx.pid, vx.pid)).read().split()[0])
    while open("/proc/%d/stat" % core).read().rsplit(")", 1)[1].split()[0] != "T":
        os.sched_yield()
    while select.select([vx.fd], [], [], 0)[0]:
        vx.draw(os.read(vx.fd, 65536))
    before = vx.screen.text()
    vx.draw(b"^Z\r\n[1]+  Stopped\r\n$ echo between\r\nbetween\r\n$ fg\r\n")
    os.kill(vx.pid, signal.SIGCONT)
    ok(vx.until(lambda: re.search(r"\$ fg\n\n▸ .*p#a\n.*1/2 tasks\n", vx.screen.text())), "and it is drawn below what others wrote meanwhile", vx.screen.text())
    with open(top + "/go", "w") as f:
        f.write("\n")
    ok(vx.end() == 0, "it ends well")
    text = vx.screen.text()
    ok(text.startswith(before.rstrip("\n") + "\n^Z\n[1]+  Stopped\n$ echo between\nbetween\n$ fg\n⏺ "), "none of which is lost", text)
    os.close(up)


def wild(top):
    """What a task leaves a terminal with."""
    ws = workspace(top, "wild", {
        "screen": "printf 'first\\n\\033[?1049h\\033[?25lon another'",
        "clear": "printf 'one\\ntwo\\n\\033[2J\\033[Hthree\\033[A\\033[1;31mfour\\033[?25l\\n'",
        "bar": "printf '10%%\\r20%%\\r\\033[K'",
        "b": "echo b"})
    vx = Terminal(ws, "p#screen")
    ok(vx.end() == 0 and vx.screen.other is None and vx.screen.cursor, "another screen and a hidden cursor are undone when a task ends")
    ok("first\n└─ p#screen" in vx.screen.text(), "and its frame is whole", vx.screen.text())
    vx = Terminal(ws, "p#clear", "p#b")
    ok(vx.end() == 0 and vx.screen.cursor, "what a task would do to the screen has no place in a frame", vx.bytes)
    ok("─\none\ntwo\nthreefour\n└─ p#clear" in vx.screen.text(), "where it would clear that of others", vx.screen.text())
    ok(b"\x1b[1;31mfour\n\x1b[0m" in vx.bytes.replace(b"\r", b""), "colours do", vx.bytes)
    vx = Terminal(ws, "p#bar")
    ok(vx.end() == 0 and re.search(r"\$ printf[^\n]*\n└─ p#bar", vx.screen.text()), "a bar that was wiped away leaves no blank line", vx.screen.text())


def main():
    with tempfile.TemporaryDirectory(prefix="vx-test.", dir=os.environ.get("VX_TEST_DIR", "/var/tmp")) as top:
        for n in (1, 10, 1000):
            many(top, n)
        stopped(top)
        wild(top)
    print("1..%d" % count)
    return failed != 0


sys.exit(main())
