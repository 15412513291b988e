#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill -9 at many moments of a cold run of the example: at announced ones, where the core stands still until it is
dead, and at random ones. Mostly of the core, also of the guard, of both, and of a helper.

After each: no process is left, nor a mount, a scratch or a temporary file after the next start; the databases are sound
and each row has its blobs, all of them with their digests; the next run succeeds and leaves what an undisturbed one
leaves; with the outputs gone, all of them come back from the cache, byte for byte, with modes; and what is in the store
after a prune is exactly what the rows need.

By default a few moments of each kind are tried; VX_CRASH_MOMENTS=100 tries 100 of each. The announced moments are
always the same, the random ones follow VX_CRASH_SEED, or a seed that is printed."""
import collections
import os
import random
import select
import shutil
import signal
import subprocess
import time

from crash import (Place, Run, Tap, Wrong, become_subreaper, end_all, expect, expect_nobody, kill, living, name_of,
                   require_programs, require_sandbox, share, wait_dead)

EXAMPLE = os.environ["VX_SRCDIR"] + "/docs/examples/monorepo"
MOMENTS = int(os.environ.get("VX_CRASH_MOMENTS") or 12)
SEED = int(os.environ.get("VX_CRASH_SEED") or time.time_ns() % 1000000)
WORDS = ("build", "test", "--all", "--concurrency=2")
VICTIMS = ("core", "both", "core", "guard", "core", "helper", "core", "both")


class Example:
    """A copy of the example, and what an undisturbed cold run does in it."""

    def __init__(self):
        become_subreaper()
        self.place = Place(source=EXAMPLE)
        subprocess.run(["git", "init", "-q", "--template="], cwd=self.place.root, env=self.place.env, check=True)
        begin = time.monotonic()
        run = Run(self.place, WORDS, VX_DEBUG="phase")
        rc = run.end()
        self.seconds = time.monotonic() - begin
        expect(rc == 0, f"an undisturbed run: exit {rc}\n{run.output()}")
        self.lines = run.lines()
        self.ntasks = sum(name_of(line) == "row written" for line in self.lines)
        self.done = self.place.snapshot()
        self.place.expect_clean("before")
        self.expect_restored("an undisturbed run")

    def remove_outputs(self):
        top = self.place.root + "/packages"
        for name in os.listdir(top):
            shutil.rmtree(f"{top}/{name}/dist", ignore_errors=True)

    def make_cold(self):
        self.remove_outputs()
        shutil.rmtree(self.place.root + "/.vx")

    def expect_restored(self, when):
        """From the cache alone, which holds nothing else afterwards."""
        self.remove_outputs()
        said = self.place.succeed(*WORDS)
        expect("all cached" in said and "stored result is gone" not in said, f"{when}: not all came from the cache\n{said}")
        self.place.expect_snapshot(self.done, f"{when}: restored")
        rows = self.place.expect_pruned(f"{when}: after prune")
        expect(len(rows) == self.ntasks, f"{when}: {len(rows)} entries of {self.ntasks}")

    def strike(self, run, victim, rng):
        core = run.core()
        if core is None:
            return
        helper = rng.choice(run.helpers() or [None])
        if victim == "helper" and helper is not None:
            kill(helper, signal.SIGKILL)
            return
        if victim in ("guard", "both"):
            kill(run.guard(), signal.SIGKILL)
        if victim != "guard":
            kill(core, signal.SIGKILL)

    def wait_for(self, run, moment):
        """Until then; what is said meanwhile is read."""
        while (left := moment - time.monotonic()) > 0:
            if select.select([run.read_end], [], [], left)[0] and not run.read():
                return

    def crash(self, kind, where, victim, rng):
        """`where`: the number of the line at which it is held, or the part of the time of a run. Returns the point."""
        place = self.place
        self.make_cold()
        run = Run(place, WORDS, step=kind == "announced", VX_DEBUG="phase")
        begin = time.monotonic()
        if kind == "announced":
            line = run.step_to(where)
            expect(line, f"the run ended before\n{run.output()}")
        else:
            self.wait_for(run, begin + where * self.seconds)
            line = b""
        self.strike(run, victim, rng)
        rc = run.end()
        if victim != "both":
            expect_nobody(f"exit {rc}")
            place.expect_clean(f"exit {rc}")
        if os.path.isdir(place.root + "/.vx/cache/blobs"):
            place.expect_whole(place.look_at_databases(), f"exit {rc}")
        place.succeed(*WORDS)
        if victim == "both":
            # Nobody is left who could see to it; the next start does not wait for what still dies.
            expect(not wait_dead(living()), "sandboxed tasks outlive core and guard")
        expect_nobody("after the next run")
        place.expect_snapshot(self.done, "the next run")
        place.expect_clean("after the next run")
        place.expect_databases()
        self.expect_restored("after the crash")
        return name_of(line)


def work(jobs, worker):
    rng = random.Random(SEED + worker)
    example = None
    for job in jobs:
        try:
            example = example or Example()
            yield job, None, example.crash(*job, rng)
        except Wrong as e:
            yield job, str(e), None
            end_all()
            example = None


def main():
    require_sandbox()
    require_programs("git", "make", "cc", "node", "python3")
    tap = Tap()
    example = Example()
    nlines = len(example.lines)
    rng = random.Random(SEED)
    # Rounded so that the first and the last line are among them.
    jobs = [("announced", round(i * (nlines - 1) / max(1, MOMENTS - 1)), VICTIMS[i % len(VICTIMS)]) for i in range(MOMENTS)]
    jobs += [("random", rng.random(), VICTIMS[i % len(VICTIMS)]) for i in range(MOMENTS)]
    print(f"# VX_CRASH_SEED={SEED}; a cold run of {example.ntasks} tasks announces {nlines} moments in {example.seconds:.1f} s")
    wrong, points = collections.defaultdict(list), collections.Counter()
    for job, problem, point in share(jobs, work, 2):
        if job is None:
            tap.ok(False, "the test itself", [problem])
            continue
        kind, where, victim = job
        points[point] += kind == "announced"
        wrong[kind, victim] += [f"at {where}: {problem}"] if problem else []
    for kind in ("announced", "random"):
        for victim in sorted(set(VICTIMS[:MOMENTS])):
            n = sum(job[0] == kind and job[2] == victim for job in jobs)
            tap.ok(not wrong[kind, victim], f"kill -9 of {victim} at {n} {kind} moments", wrong[kind, victim])
    print("# held at: " + ", ".join(f"{name} ({n})" for name, n in points.most_common() if name))
    tap.done()


main()
