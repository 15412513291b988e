#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills and signals at random moments: of the first 20 ms of a helper (C18 of the cases: 200 of them), and of a
whole run of many busy sandboxed tasks, helpers that were stopped before among them (a stopped server of FUSE
leaves tasks asleep where no signal reaches them). What must hold afterwards is as in points.py."""
import os
import random
import signal
import time

from crash import (Place, Run, Tap, Wrong, become_subreaper, children, end_all, expect, expect_nobody, is_alive, kill,
                   living, require_sandbox, share, until, wait_dead)

TASKS = 8
FIRST = 100  # tasks of a run whose helpers are killed in their first moments
VICTIMS = ("core", "guard", "both", "helper", "init", "INT", "stopped, then core", "stopped, then guard", "stopped, then helper",
           "stopped, then INT")
ROUNDS = 6  # of each

# Many look-ups (the policy layer answers each), many writes, a daemon, at the end one generation.
BUSY = """
n=$(cat in)
mkdir -p dist$1/a/b
k=1
while [ $k -le 15 ]; do
	echo $n >dist$1/$k; echo $n >dist$1/a/b/$k
	[ -e no/$k ] || [ -e $k.md ] || [ -e src/$k ] || k=$((k + 1))
done
: >dist$1/a/out
(setsid sleep 300 >>dist$1/a/out 2>&1 &)
"""


def first_moments(seed):
    """C18."""
    rng = random.Random(seed)
    place = Place({f"t{k}": {"exec": {"command": f"mkdir -p out; echo partial >out/{k}; setsid sleep 300 & exec sleep 300",
                                      "sandbox": {"allow": {"write": ["out/**"]}}}} for k in range(FIRST)})
    run = Run(place, [f"p#t{k}" for k in range(FIRST)] + ["--concurrency=8", "--continue=always"])
    core = run.core()
    due, killed = {}, set()
    end = time.monotonic() + 60
    while len(killed) < FIRST and is_alive(core):
        expect(time.monotonic() < end, f"only {len(killed)} helpers in a minute")
        now = time.monotonic()
        for pid in run.helpers():
            if pid not in due and pid not in killed:
                due[pid] = now + rng.random() * 0.02
        for pid in [pid for pid in due if due[pid] <= now]:
            del due[pid]
            killed.add(pid)
            kill(pid, signal.SIGKILL)
        os.sched_yield()
    rc = run.end()
    expect(rc == 1, f"exit {rc}\n{run.output()}")
    expect(len(killed) == FIRST, f"{len(killed)} helpers\n{run.output()}")
    expect_nobody("when vx has ended")
    place.expect_clean("when vx has ended")
    expect(place.tree("out") == {}, f"partial output: {place.tree('out')}")
    return len(killed)


class Busy:
    def __init__(self, rng):
        self.rng = rng
        self.n = 0
        sandbox = {"allow": {"read": ["in", "busy.sh", "src/*.c"], "write": ["dist*/**"]}}
        self.place = Place({f"t{k}": {
            "exec": {"command": f"sh busy.sh {k}", "sandbox": sandbox},
            "cache": {"inputs": {"files": ["in", "busy.sh"]}, "outputs": {"files": [f"dist{k}/**"]}},
            **({"dependsOn": [f"t{k - 4}"]} if k >= 4 else {}),
        } for k in range(TASKS)})
        self.place.put("p/busy.sh", BUSY)
        os.mkdir(self.place.project + "/src")
        self.words = [f"p#t{k}" for k in range(TASKS)]
        self.next_input()
        begin = time.monotonic()
        self.place.succeed(*self.words, "--concurrency=4")
        self.seconds = time.monotonic() - begin
        self.place.expect_clean("before")

    def next_input(self):
        self.n += 1
        self.place.put("p/in", f"{self.n}\n")

    def trees(self):
        return [self.place.tree(f"dist{k}") for k in range(TASKS)]

    def generation(self, n):
        files = {f"{d}{k}": f"{n}\n" for d in ("", "a/b/") for k in range(1, 16)}
        return {**files, "a/": "", "a/b/": "", "a/out": ""}

    def strike(self, run, victim):
        core = run.core()
        if core is None:
            return False
        _, stopped, then = victim.rpartition("stopped, then ")
        helper = self.rng.choice(run.helpers() or [None])
        if stopped and (helper is None or not kill(helper, signal.SIGSTOP)):
            return False
        return {
            "core": lambda: kill(core, signal.SIGKILL),
            "guard": lambda: kill(run.guard(), signal.SIGKILL),
            "both": lambda: kill(run.guard(), signal.SIGKILL) & kill(core, signal.SIGKILL),
            "helper": lambda: helper is not None and kill(helper, signal.SIGKILL),
            "init": lambda: helper is not None and any(kill(p, signal.SIGKILL) for p in children(helper)),
            "INT": lambda: kill(run.guard(), signal.SIGINT),
        }[then]()

    def crash(self, victim):
        place = self.place
        old = self.generation(self.n)
        self.next_input()
        new = self.generation(self.n)
        # One at a time with stopped helpers: a task that waits for one may hold the lock of the disk's renames, and
        # a core that commits another task would wait for it, out of the reach of signals (sandbox/serve.c).
        run = Run(place, self.words + [f"--concurrency={1 if 'stopped' in victim else 4}"])
        moment = time.monotonic() + self.rng.random() * self.seconds
        while time.monotonic() < moment:
            os.sched_yield()
        if "helper" in victim or "init" in victim or "stopped" in victim:
            until("a helper, or the end", lambda: run.core() is None or not is_alive(run.core()) or run.helpers())
        hit = self.strike(run, victim)
        rc = run.end()
        if victim == "both":
            # Killed at one instant nobody survives; the next start finds them dying.
            place.succeed("p#t0", "--force")
            expect(not wait_dead(living()), "sandboxed tasks outlive core and guard")
        expect_nobody("when guard and core have ended")
        place.expect_clean("after the crash")
        for k, tree in enumerate(self.trees()):
            expect(tree in (old, new), f"exit {rc}: dist{k} is neither old nor new: {tree}\n{run.output()}")
        place.succeed(*self.words, "--concurrency=4")
        expect(all(tree == new for tree in self.trees()), "the next run has another result")
        place.expect_clean("after the next run")
        place.expect_databases()
        return bool(hit)


def work(jobs, worker):
    become_subreaper()
    rng = random.Random(20 + worker)
    busy = None
    for job in jobs:
        try:
            if isinstance(job, int):
                yield job, None, first_moments(job)
                continue
            busy = busy or Busy(rng)
            yield job, None, busy.crash(job)
        except Wrong as e:
            yield job, str(e), None
            end_all()
            busy = None


def main():
    require_sandbox()
    tap = Tap()
    hits, wrong = {victim: 0 for victim in VICTIMS}, {victim: [] for victim in VICTIMS}
    for job, problem, hit in share([1, 2] + list(VICTIMS) * ROUNDS, work, 2):
        if isinstance(job, int):
            tap.ok(not problem, f"C18: {FIRST} helpers killed in their first 20 ms", [problem] if problem else [])
        elif job is None:
            tap.ok(False, "the test itself", [problem])
        else:
            hits[job] += bool(hit)
            wrong[job] += [problem] if problem else []
    for victim in VICTIMS:
        tap.ok(not wrong[victim] and hits[victim], f"{victim}, at random: {hits[victim]} of {ROUNDS} hit", wrong[victim])
    tap.done()


main()
