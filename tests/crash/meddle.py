#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Somebody else writes to an output, in place and just as many bytes, or adds one, while vx stands between storing (or
restoring) it and the look that its stamp is made of. A task is never up to date with bytes that vx did not store."""
import os

from crash import OWNER, Place, Run, Tap, Wrong, end_all, expect, name_of, require_sandbox

TASK = "n=$(cat in); mkdir -p dist/sub; for f in 1 2; do echo $n >dist/$f; echo $n >dist/sub/$f; done; ln -s 1 dist/link"


def meddle(place, how):
    name = f"{place.project}/dist/sub/2"
    if how == "a write":
        with open(name, "r+") as f:
            f.write("x")
    elif how == "another file":
        with open(name + ".new", "w") as f:
            f.write("x\n")
        os.rename(name + ".new", name)
    elif how == "a new name":
        with open(name + "2", "w") as f:
            f.write("x\n")
    elif how == "another link":
        os.unlink(f"{place.project}/dist/link")
        os.symlink("2", f"{place.project}/dist/link")
    elif how == "a removal":
        os.unlink(name)


WAYS = ("a write", "another file", "a new name", "another link", "a removal")


class Meddling:
    def __init__(self):
        self.tap = Tap()
        self.place = Place({"t": {"exec": {"command": TASK},
                                  "cache": {"inputs": {"files": ["in"]}, "outputs": {"files": ["dist/**"]}}}})
        self.n = 100  # always three digits

    def make(self, words):
        self.n += 1
        self.place.put("p/in", f"{self.n}\n")
        self.place.succeed("p#t", *words)

    def made(self):
        tree = self.place.tree("dist")
        expect(os.readlink(f"{self.place.project}/dist/link") == "1", "another link")
        return tree == {"1": f"{self.n}\n", "2": f"{self.n}\n", "link": f"{self.n}\n", "sub/": "", "sub/1": f"{self.n}\n",
                        "sub/2": f"{self.n}\n"}

    def undisturbed(self, words):
        run = Run(self.place, ["p#t", *words], VX_DEBUG="phase")
        expect(run.end() == 0, run.output())
        expect(self.made(), "undisturbed")
        return [line + b"\n" for line in run.lines()]

    def disturbed(self, words, lines, point, how):
        names = [name_of(line) for line in lines]
        expect(point in names, f"no such point: {names}")
        run = Run(self.place, ["p#t", *words], lines, names.index(point), VX_DEBUG="phase")
        run.hold()
        meddle(self.place, how)
        run.release()
        return run.end(), run.output()

    def expect_restored(self, words):
        said = self.place.succeed("p#t", *words)
        expect("restored" in said, f"the next run does not restore:\n{said}")
        expect(self.made(), f"the next run: {self.place.tree('dist')}")
        said = self.place.succeed("p#t", *words)
        # Who gives all away before each run has it restored each time.
        expect(OWNER or "up to date" in said, f"and then it is not up to date:\n{said}")

    def save(self, words, point, how):
        self.make(words)
        self.n += 1
        self.place.put("p/in", f"{self.n}\n")
        lines = self.undisturbed(words)
        self.n += 1
        self.place.put("p/in", f"{self.n}\n")
        rc, said = self.disturbed(words, lines, point, how)
        expect(rc == 0 and "was changed after it was stored: the next run restores it" in said, f"exit {rc}\n{said}")
        self.expect_restored(words)

    def restore(self, how):
        def prepare():
            with open(f"{self.place.project}/dist/sub/2", "w") as f:
                f.write("old\n")
            with open(f"{self.place.project}/dist/1", "w") as f:
                f.write("old\n")
        self.make([])
        prepare()
        lines = self.undisturbed([])
        prepare()
        rc, said = self.disturbed([], lines, "moves marked", how)
        expect(rc == 0 and "by another process after it was restored: the next run restores it again" in said, f"exit {rc}\n{said}")
        self.expect_restored([])

    def tell(self, name, work, *args):
        wrong = []
        try:
            work(*args)
        except Wrong as e:
            wrong.append(e)
            end_all()
        self.tap.ok(not wrong, name, wrong)

    def run(self):
        for how in WAYS:
            self.tell(f"{how}, when the content is stored", self.save, [], "content stored", how)
        for how in WAYS:
            self.tell(f"{how}, when it is restored", self.restore, how)
        for how in WAYS:
            self.tell(f"{how}, when it has come out of the sandbox", self.save, ["--sandbox"], "moves marked", how)
        self.tap.done()


if __name__ == "__main__":
    require_sandbox()
    Meddling().run()
