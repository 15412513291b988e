#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Outputs that are large or deep: Ctrl-C is heard while they are stored, and what cannot be named is refused."""
import os
import signal
import subprocess
import time

from crash import Place, Run, Tap, Wrong, become_subreaper, end_all, expect, expect_nobody, kill, require_sandbox

SECONDS = 2  # digesting eight GiB takes longer on any machine, and a stop less
DEEP = "import os, sys\nos.chdir(sys.argv[1])\nfor i in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('f', 'w')\n"


def task(command, sandbox=True):
    """Its outputs are the directory that it makes first, `dist` in a sandbox and `plain` without one."""
    out = "dist" if sandbox else "plain"
    exec_ = {"command": f"mkdir -p {out} && {command}"}
    if sandbox:
        exec_["sandbox"] = {"allow": {"read": ["deep.py"], "write": [f"{out}/**"]}}
    return {"exec": exec_, "cache": {"inputs": {"files": ["deep.py"]}, "outputs": {"files": [f"{out}/**"]}}}


class Large:
    def __init__(self):
        become_subreaper()
        self.tap = Tap()
        self.place = Place({
            "big": task("truncate -s 8G dist/big"),
            "next": {"exec": {"command": "true"}},
        })
        self.deep = Place({
            "deep": task("python3 deep.py dist"),
            "plain": task("python3 deep.py plain", sandbox=False),
        })
        self.deep.put("p/deep.py", DEEP)
        self.sparse = Place({
            "sandboxed": task("truncate -s 15T dist/x"),
            "plain": task("truncate -s 15T plain/x", sandbox=False),
        })
        self.place.succeed("p#next")

    def check(self, name, test):
        try:
            test()
            self.tap.ok(True, name)
        except Wrong as e:
            end_all()
            self.tap.ok(False, name, [e])

    def stop_while_storing(self):
        run = Run(self.place, ["p#big"], VX_DEBUG="phase")
        run.guard()
        run.core()
        expect(run.hear("judged"), "nothing was judged")
        begin = time.monotonic()
        kill(run.guard(), signal.SIGINT)
        rc = run.end()
        took = time.monotonic() - begin
        expect(rc == 130, f"exit {rc}\n{run.output()}")
        expect(took < SECONDS, f"it took {took:.1f} s")
        expect("aborted" in run.output(), run.output())
        expect_nobody("when vx has ended")
        expect(not os.path.exists(self.place.project + "/dist"), "something reached the workspace")
        self.place.expect_clean("after the stop")

    def refuse(self, name):
        begin = time.monotonic()
        rc, said = self.deep.vx(f"p#{name}")
        took = time.monotonic() - begin
        expect("/d/d/d" in said and "too long to be named" in said, f"exit {rc}\n{said}")
        expect(rc == (name == "deep"), f"exit {rc}\n{said}")
        expect(took < 10 * SECONDS, f"it took {took:.1f} s")

    def refuse_holes(self, name, out):
        begin = time.monotonic()
        rc, said = self.sparse.vx(f"p#{name}")
        took = time.monotonic() - begin
        expect(rc == 0, f"exit {rc}\n{said}")
        expect(f"not saved: output p/{out}/x: sparse, 15360 GiB" in said, said)
        expect(os.path.getsize(f"{self.sparse.project}/{out}/x") == 15 << 40, "it is not in the workspace")
        expect(took < SECONDS, f"it took {took:.1f} s")


def main():
    require_sandbox()
    t = Large()
    t.check("Ctrl-C while 8 GiB are digested", t.stop_while_storing)
    t.check("a sandboxed task leaves 3,000 directories in each other", lambda: t.refuse("deep"))
    t.check("one without a sandbox does", lambda: t.refuse("plain"))
    t.check("a sandboxed task leaves 15 TiB of a hole", lambda: t.refuse_holes("sandboxed", "dist"))
    t.check("one without a sandbox does", lambda: t.refuse_holes("plain", "plain"))
    subprocess.run(["rm", "-rf", t.deep.project], check=True)
    t.tap.done()


main()
