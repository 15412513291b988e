#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core, guard, both killed, and Ctrl-C, at each point of a restore from the cache, over missing outputs and over
others: what stands there afterwards is the old or the new, all of it, and nothing else is left. Also a recovery that is
killed itself, and half-written files of a killed vx."""
import os
import shutil
import signal

from crash import (Place, Run, Tap, Wrong, become_subreaper, end_all, expect, expect_nobody, kill, living, name_of,
                   require_sandbox, wait_dead)

TASK = "n=$(cat in); mkdir -p dist/sub dist/only-$n; for f in 1 2 3; do echo $n >dist/$f; echo $n >dist/sub/$f; done; echo $n >dist/only-$n/x"


class Restores:
    def __init__(self):
        become_subreaper()
        self.tap = Tap()
        self.place = Place({
            "t": {"exec": {"command": TASK, "sandbox": {"allow": {"read": ["in"], "write": ["dist/**"]}}},
                  "cache": {"inputs": {"files": ["in"]}, "outputs": {"files": ["dist/**"]}}},
            "next": {"exec": {"command": "true"}},
        })
        self.trees = {}
        for n in (1, 2):
            self.trees[n] = self.make(n)
        self.place.succeed("p#next")
        self.lines = {missing: self.dry(missing) for missing in (True, False)}
        self.place.expect_clean("before")

    def make(self, n):
        self.place.put("p/in", f"{n}\n")
        self.place.succeed("p#t")
        return self.place.tree("dist")

    def prepare(self, missing):
        """Generation 1 is asked for; of the outputs there are none, or those of generation 2."""
        expect(self.make(2) == self.trees[2], "generation 2")
        if missing:
            shutil.rmtree(self.place.project + "/dist")
        self.place.put("p/in", "1\n")

    def dry(self, missing):
        self.prepare(missing)
        run = Run(self.place, ["p#t"], VX_DEBUG="phase")
        expect(run.end() == 0, run.output())
        return [line + b"\n" for line in run.lines()]

    def crash(self, missing, at, victim):
        place = self.place
        self.prepare(missing)
        run = Run(place, ["p#t"], self.lines[missing], at, VX_DEBUG="phase")
        run.hold()
        if victim in ("guard", "both"):
            kill(run.guard(), signal.SIGKILL)
        if victim in ("core", "both"):
            kill(run.core(), signal.SIGKILL)
        if victim == "INT":
            kill(run.guard(), signal.SIGINT)
        run.release()
        run.end()
        expect_nobody("when vx has ended")
        if victim == "both":
            place.succeed("p#next")
        place.expect_clean("after the crash")
        tree = place.tree("dist")
        old = {} if missing else self.trees[2]
        expect(tree in (old, self.trees[1]), f"neither old nor new: {tree}")
        if victim in ("core", "both"):
            names = [name_of(line) for line in self.lines[missing][:at + 1]]
            begun = "moves listed" in names if not missing else "moves done" in names
            expect((tree == self.trees[1]) == begun, f"{'new' if tree != old else 'old'} outputs")
        said = place.succeed("p#t")
        expect("restored" in said or tree == self.trees[1], f"the next run did not restore\n{said}")
        expect(place.tree("dist") == self.trees[1], f"the next run: {place.tree('dist')}")
        place.expect_clean("after the next run")
        place.expect_databases()

    def at_each_point(self):
        for missing in (True, False):
            what = "missing outputs" if missing else "other outputs"
            for at, line in enumerate(self.lines[missing]):
                wrong = []
                for victim in ("core", "guard", "both", "INT"):
                    try:
                        self.crash(missing, at, victim)
                    except Wrong as e:
                        wrong.append(f"{victim}: {e}")
                        end_all()
                self.tap.ok(not wrong, f"a restore over {what}, at: {line.decode().partition(' us: ')[2].strip()}", wrong)

    def killed_recovery(self):
        """The core dies when the list of moves is written, and the guard, which does them, in the middle."""
        place = self.place
        expect(self.make(2) == self.trees[2], "generation 2")
        place.put("p/in", "1\n")
        run = Run(place, ["p#t", "--force"], VX_DEBUG="phase")
        expect(run.end() == 0, run.output())
        lines = [line + b"\n" for line in run.lines()]
        at = [name_of(line) for line in lines].index("moves listed")
        moves = sum(name_of(line) == "move" for line in lines)
        wrong = []
        for nth in range(moves):
            try:
                expect(self.make(2) == self.trees[2], "generation 2")
                place.put("p/in", "1\n")
                run = Run(place, ["p#t", "--force"], lines, at, VX_DEBUG="phase")
                run.hold()
                kill(run.core(), signal.SIGKILL)
                if nth:  # else the guard stands still at its first line, as the core did
                    run.release()
                    expect(run.hear("move", nth), "no recovery")
                kill(run.guard(), signal.SIGKILL)
                run.end()
                expect(not wait_dead(living()), "sandboxed tasks outlive core and guard")
                place.succeed("p#next")
                place.expect_clean("after the next start")
                expect(place.tree("dist") == self.trees[1], f"not finished: {place.tree('dist')}")
            except Wrong as e:
                wrong.append(f"move {nth + 1}: {e}")
                end_all()
        self.tap.ok(not wrong and moves > 5, f"a recovery is killed at each of its {moves} moves", wrong)

    def half_written(self):
        left = [f"{self.place.root}/.vx/{d}.vx-tmp-0123456789abcdef" for d in ("", "empty.git/")]

        def leave():
            for name in left:
                with open(name, "w") as f:
                    f.write("half")

        leave()
        self.place.succeed("p#next")
        self.tap.ok(not any(os.path.exists(name) for name in left), "half-written files are removed by the next start")
        run = Run(self.place, ["p#t", "--force"], VX_DEBUG="phase")
        expect(run.end() == 0, run.output())
        run = Run(self.place, ["p#t", "--force"], [line + b"\n" for line in run.lines()], 0, VX_DEBUG="phase")
        run.hold()
        leave()
        kill(run.core(), signal.SIGKILL)
        run.release()
        run.end()
        self.tap.ok(not any(os.path.exists(name) for name in left), "or by the guard, when the core was killed")


def main():
    require_sandbox()
    tests = Restores()
    tests.at_each_point()
    tests.killed_recovery()
    tests.half_written()
    tests.tap.done()


main()
