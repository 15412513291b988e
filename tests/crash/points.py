#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Core, guard, helper, the init inside, and core and guard together are killed by SIGKILL, and INT, TERM and
HUP are sent, at each point that the core announces of a sandboxed task: once while the core is held at that
very point, once as soon as it is heard while the core goes on.

After the survivor, or for core and guard together the next start, has run: no process, mount, scratch or
temporary file is left; the outputs are those of one generation, all of them; the databases are sound; and the
next run has the right result."""
import signal

from crash import (NAMES, Place, Run, Tap, Wrong, become_subreaper, children, end_all, expect, expect_nobody, is_alive, kill,
                   living, name_of, require_sandbox, share, until, wait_dead)

# A generation: in every file, and in which files there are.
SCRIPT = """
n=$(cat in)
mkdir -p dist/sub
for f in 1 2 3; do echo $n >dist/$f; echo $n >dist/sub/$f; done
if [ $((n % 2)) = 0 ]; then k=even; else k=odd; fi
mkdir dist/$k dist/sub/$k
echo $n >dist/$k/a
echo $n >dist/sub/$k/b
[ "$(cat stay)" = no ] || sleep 300
"""
SIGNALS = {"INT": signal.SIGINT, "TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "QUIT": signal.SIGQUIT}
# The helper ends by itself when it has told what was written.
HELPER_LIVES = NAMES[1:4]


def generation(n):
    kind = "odd" if n % 2 else "even"
    files = [f"{d}{f}" for d in ("", "sub/") for f in "123"] + [f"{kind}/a", f"sub/{kind}/b"]
    return {**{name: f"{n}\n" for name in files}, "sub/": "", f"{kind}/": "", f"sub/{kind}/": ""}


def is_pending(pid, sig):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return (int(fields["ShdPnd"], 16) | int(fields["SigPnd"], 16)) >> (sig - 1) & 1


class Crashes:
    def __init__(self):
        become_subreaper()
        self.n = 0
        self.place = Place({
            "t": {"exec": {"command": "sh make.sh", "sandbox": {"allow": {"read": ["in", "stay", "make.sh"], "write": ["dist/**"]}}},
                  "cache": {"inputs": {"files": ["in", "make.sh"]}, "outputs": {"files": ["dist/**"]}}},
            "next": {"exec": {"command": "true"}},
        })
        self.place.put("p/make.sh", SCRIPT)
        self.place.put("p/stay", "no\n")
        for _ in range(3):  # the third is as all that follow: it replaces, and its opposite was there
            self.next_input()
            self.lines = self.undisturbed()
        self.place.expect_clean("before")

    def next_input(self):
        self.n += 1
        self.place.put("p/in", f"{self.n}\n")

    def undisturbed(self):
        run = Run(self.place, ["p#t"], VX_DEBUG="phase")
        rc = run.end()
        expect(rc == 0, f"an undisturbed run: exit {rc}\n{run.output()}")
        return [line + b"\n" for line in run.lines()]

    def strike(self, run, victim, held):
        """Kills; True when there was somebody to kill."""
        core = run.core()
        if core is None:
            return False
        if victim == "core":
            return kill(core, signal.SIGKILL)
        if victim in ("guard", "both"):
            hit = kill(run.guard(), signal.SIGKILL)
            return victim == "guard" and hit or kill(core, signal.SIGKILL)
        if victim in SIGNALS:
            hit = kill(run.guard(), SIGNALS[victim])
            # A core that stands still goes on only when the guard has passed it on.
            return hit and (not held or bool(until("the signal", lambda: is_pending(core, SIGNALS[victim]))))
        helper = next(iter(run.helpers()), None)
        if helper is None:
            return False
        if victim == "helper":
            return kill(helper, signal.SIGKILL)
        init = until("an init", lambda: not is_alive(helper) or next(iter(children(helper)), None))
        return init is not True and kill(init, signal.SIGKILL)

    def crash(self, point, nth, victim, held):
        place = self.place
        old, self_n = generation(self.n), self.n + 1
        self.next_input()
        new = generation(self_n)
        at = [i for i, line in enumerate(self.lines) if name_of(line) == point][nth]
        stay = victim in ("helper", "init")
        place.put("p/stay", "yes\n" if stay else "no\n")
        run = Run(place, ["p#t"], self.lines, at if held else None, VX_DEBUG="phase")
        if held:
            run.hold()
            hit = self.strike(run, victim, held)
            run.release()
        else:
            hit = run.hear(point) and self.strike(run, victim, held)
        rc = run.end()
        if victim == "both":
            # The next start does not wait for what still dies.
            place.succeed("p#next")
            expect(not wait_dead(living()), "sandboxed tasks outlive core and guard")
        expect_nobody("when guard and core have ended")
        place.expect_clean("after the crash")
        dist = place.tree("dist")
        expect(dist in (old, new), f"neither old nor new: {dist}\n{run.output()}")
        self.expect_outcome(point, victim, held, rc, dist == new, run)
        place.put("p/stay", "no\n")
        place.succeed("p#t")
        expect(place.tree("dist") == new, f"the next run: {place.tree('dist')}, not generation {self_n}")
        place.expect_clean("after the next run")
        place.expect_databases()
        return bool(hit)

    def expect_outcome(self, point, victim, held, rc, is_new, run):
        """What is certain when the core stood still."""
        if not held:
            return
        k = NAMES.index(point)
        if victim in ("core", "both"):
            # From the list of moves on the task has happened.
            expect(is_new == (k >= NAMES.index("moves listed")), f"{'new' if is_new else 'old'} outputs")
        if victim == "core":
            expect(rc == 137, f"exit {rc}\n{run.output()}")
        if victim in ("helper", "init"):
            expect(not is_new and rc == 1, f"exit {rc}, {'new' if is_new else 'old'} outputs\n{run.output()}")
        if victim in SIGNALS:
            stopped = 128 + SIGNALS[victim]
            if k <= NAMES.index("view up"):
                expect(rc == stopped and not is_new, f"exit {rc}, {'new' if is_new else 'old'} outputs\n{run.output()}")
            expect(rc in (0, stopped), f"exit {rc}\n{run.output()}")


def work(jobs, _):
    crashes = Crashes()
    for job in jobs:
        try:
            yield job, None, crashes.crash(*job)
        except Wrong as e:
            yield job, str(e), None
            end_all()
            crashes = Crashes()


def main():
    require_sandbox()
    jobs = []
    for point in NAMES:
        for held in (True, False):
            jobs += [(point, 0, victim, held) for victim in ("core", "guard", "both", "INT")]
            if point in HELPER_LIVES:
                jobs += [(point, 0, victim, held) for victim in ("helper", "init")]
        jobs += [(point, 0, victim, True) for victim in ("TERM", "HUP", "QUIT", "core", "guard", "both")]
    probe = Crashes()
    moves = sum(name_of(line) == "move" for line in probe.lines)
    jobs += [("move", nth, victim, True) for nth in range(1, moves) for victim in ("core",)]
    tap = Tap()
    hits, wrong = dict.fromkeys(NAMES, 0), {name: [] for name in NAMES}
    for job, problem, hit in share(jobs, work, 2):
        if job is None:
            tap.ok(False, "the test itself", [problem])
            continue
        hits[job[0]] += bool(hit)
        if problem:
            wrong[job[0]].append(f"{job[2]}, {'held' if job[3] else 'going on'}{f', the {job[1] + 1}th' if job[1] else ''}: {problem}")
    for name in NAMES:
        tap.ok(not wrong[name] and hits[name] >= 10, f"{name}: {hits[name]} crashes", wrong[name])
    tap.done()


main()
