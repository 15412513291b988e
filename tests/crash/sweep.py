#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill -9 at each point of a cleaning of the cache, by `vx cache prune` and at the end of a run: no row points to a blob
that is gone, nothing is lost that was to stay, and the next cleaning leaves exactly what the rows need. And the second
that a run gives itself for it: what takes longer is given up before anything has gone, said once, and tried again after
an hour; prune has no such limit."""
import hashlib
import os
import select
import shutil
import signal
import sqlite3
import time

from crash import Place, Run, Tap, Wrong, become_subreaper, end_all, expect, expect_nobody, kill, living, name_of, wait_dead

TASKS = 4
DAY_NS = 24 * 3600 * 10 ** 9
# Files and a directory of its own, and one that all tasks share.
MAKE = "mkdir -p {0}/sub {0}/same; cat in {1} >{0}/a; cat in {1} in >{0}/sub/b; echo same >{0}/same/c; echo made {0}"
PRUNE = ("cache", "prune")
GIVEN_UP = "is too large to be cleaned at the end of a run: run `vx cache prune --older-than 30d`"


class Sweeps:
    def __init__(self):
        become_subreaper()
        self.place = Place({f"t{k}": {
            "exec": {"command": MAKE.format(f"dist{k}", f"own{k}")},
            "cache": {"inputs": {"files": ["in", f"own{k}"]}, "outputs": {"files": [f"dist{k}/**"]}},
        } for k in range(TASKS)})
        self.place.put("vx.workspace.json", '{ "projects": ["p"], "cacheRetention": { "olderThan": "30d" } }')
        self.words = [f"p#t{k}" for k in range(TASKS)] + ["--concurrency=1"]
        self.vx = self.place.root + "/.vx"
        self.saved = self.place.top + "/saved"
        for k in range(TASKS):
            self.place.put(f"p/own{k}", f"{k}\n")
        # Results that nobody has used for long, and, when these are old, of all tasks new ones.
        self.place.put("p/in", "old\n")
        self.place.succeed(*self.words)
        self.sql(f"UPDATE entries SET accessed_ns = accessed_ns - {40 * DAY_NS}")
        self.place.put("p/in", "new\n")
        self.place.succeed(*self.words)
        for text in (b"lost", b"lost, too"):
            self.orphan(text)
        self.done = self.place.snapshot()
        self.old = self.keys(f"WHERE accessed_ns < {time.time_ns() - 30 * DAY_NS}")
        self.new = self.keys() - self.old
        expect(len(self.old) == len(self.new) == TASKS, "the rows")
        shutil.copytree(self.vx, self.saved)

    def sql(self, text):
        db = sqlite3.connect(self.vx + "/cache/index.db")
        rows = db.execute(text).fetchall()
        db.commit()
        db.close()
        return rows

    def keys(self, where=""):
        return {row[0] for row in self.sql(f"SELECT key FROM entries {where}")}

    def orphan(self, content):
        digest = hashlib.sha256(content).hexdigest()
        os.makedirs(f"{self.vx}/cache/blobs/{digest[:2]}", exist_ok=True)
        with open(f"{self.vx}/cache/blobs/{digest[:2]}/{digest[2:]}", "wb") as f:
            f.write(content)

    def start_over(self, swept_ns=0):
        shutil.rmtree(self.vx)
        shutil.copytree(self.saved, self.vx)
        self.sql(f"UPDATE upkeep SET swept_ns = {swept_ns}")
        self.place.put("p/own0", "0\n")

    def expect_restored(self):
        for k in range(TASKS):
            shutil.rmtree(f"{self.place.project}/dist{k}")
        said = self.place.succeed(*self.words)
        expect("all cached" in said and "gone or damaged" not in said, f"not all came from the cache\n{said}")

    def expect_kept(self, is_swept, when):
        """Right after a crash. Without the rows that go: when these are gone, not before."""
        self.place.expect_whole(self.place.look_at_databases(), when)
        keys = self.keys()
        expect(self.new <= keys, f"{when}: rows are gone that were to stay")
        expect(bool(keys & self.old) != is_swept, f"{when}: {len(keys & self.old)} of {len(self.old)} old rows are there")

    def expect_finished(self, when):
        """The next cleaning does what the one that was killed did not."""
        self.place.succeed("--older-than=30d", command=PRUNE)
        expect(not self.keys() & self.old, f"{when}: old rows are left")
        self.place.expect_pruned(when)

    def points(self, words, command):
        """What an undisturbed one announces."""
        self.start_over()
        if command != PRUNE:
            self.place.put("p/own0", "changed\n")
        run = Run(self.place, words, command=command, VX_DEBUG="phase")
        rc = run.end()
        expect(rc == 0, f"undisturbed: exit {rc}\n{run.output()}")
        names = [name_of(line) for line in run.lines()]
        expect(names[-1] == "cache cleaned", f"{names}")
        return names

    def crash(self, words, command, k, victim, is_swept):
        self.start_over()
        if command != PRUNE:
            self.place.put("p/own0", "changed\n")
        run = Run(self.place, words, step=True, command=command, VX_DEBUG="phase")
        expect(run.step_to(k), f"it ended before\n{run.output()}")
        if victim in ("guard", "both"):
            kill(run.guard(), signal.SIGKILL)
        if victim in ("core", "both"):
            kill(run.core(), signal.SIGKILL)
        run.end()
        expect(not wait_dead(living()), "somebody is left")
        expect_nobody("after the crash")
        if victim != "guard":
            self.expect_kept(is_swept, "after the crash")
        if command != PRUNE:
            self.place.succeed(*self.words)
            self.place.expect_snapshot(self.changed, "the next run")
            self.place.expect_databases()
        self.expect_finished("after the next cleaning")
        self.expect_restored()
        self.place.expect_snapshot(self.done if command == PRUNE else self.changed, "restored")

    def at_each_point(self, tap, what, words, command, victims):
        names = self.points(words, command)
        self.changed = self.place.snapshot()
        first, gone = names.index("cache listed"), names.index("rows committed")
        expect(names.count("row removed") == TASKS and names.count("blob removed") > 2 * TASKS, f"{names}")
        for name in dict.fromkeys(names[first:]):
            wrong = []
            at = [k for k in range(first, len(names)) if names[k] == name]
            for k in sorted({at[0], at[len(at) // 2], at[-1]}):
                for victim in victims:
                    try:
                        self.crash(words, command, k, victim, k >= gone)
                    except Wrong as e:
                        wrong.append(f"{victim}, line {k}: {e}")
                        end_all()
            tap.ok(not wrong, f"{what}, at: {name} ({names.count(name)})", wrong)

    def hold_for_a_second(self, words, command):
        """Stands still with the cache listed for longer than a run gives itself."""
        names = self.points(words, command)
        self.start_over()
        if command != PRUNE:
            self.place.put("p/own0", "changed\n")
        run = Run(self.place, words, step=True, command=command, VX_DEBUG="phase")
        line = run.step_to(names.index("cache listed"))
        expect(line and name_of(line) == "cache listed", f"held at {line}\n{run.output()}")
        select.select([], [], [], 1.05)
        rc = run.end()
        expect(rc == 0, f"exit {rc}\n{run.output()}")
        return run

    def given_up(self):
        run = self.hold_for_a_second(self.words, ("run",))
        expect(GIVEN_UP in run.output(), f"it is not said\n{run.output()}")
        self.expect_kept(False, "afterwards")
        expect(set(os.listdir(self.saved + "/cache/blobs")) <= set(os.listdir(self.vx + "/cache/blobs")), "blobs are gone")
        self.place.expect_snapshot(self.changed, "the run")
        # Within the hour it is not tried again, and after it, it is.
        for is_due in (False, True):
            self.place.put("p/own0", f"changed again, {is_due}\n")
            if is_due:
                expect(self.sql("SELECT swept_ns FROM upkeep")[0][0] > time.time_ns(), "it is due at once")
                self.sql(f"UPDATE upkeep SET swept_ns = swept_ns - {2 * 3600 * 10 ** 9}")
            again = Run(self.place, self.words, VX_DEBUG="phase")
            rc = again.end()
            names = [name_of(line) for line in again.lines()]
            expect(rc == 0 and ("cache cleaned" in names) == is_due, f"exit {rc}\n{again.output()}")
            expect(GIVEN_UP not in again.output(), f"it is said again\n{again.output()}")
        self.expect_finished("after the next cleaning")

    def prune_takes_its_time(self):
        self.hold_for_a_second(["--older-than=30d"], PRUNE)
        self.expect_kept(True, "afterwards")


def main():
    tap = Tap()
    t = Sweeps()
    t.at_each_point(tap, "prune", ["--older-than=30d"], PRUNE, ("core",))
    t.at_each_point(tap, "the end of a run", t.words, ("run",), ("core", "guard", "both"))
    for name, test in (("a cleaning that takes more than a second is given up", t.given_up),
                       ("but not by prune", t.prune_takes_its_time)):
        wrong = []
        try:
            test()
        except Wrong as e:
            wrong.append(e)
            end_all()
        tap.ok(not wrong, name, wrong)
    tap.done()


main()
