#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tasks that do not want to end, in a sandbox and without one: deaf to INT, TERM and HUP, with daemons in sessions
of their own, stopped children, a stopped init, hundreds of processes. Whatever ends the run, nobody is left when it
has ended, and the outputs of a sandboxed task are as they were. Also on a real terminal, with Ctrl-C, Ctrl-Z and a
hang-up."""
import os
import signal
import subprocess

from crash import (VX, Place, Run, Tap, Wrong, become_subreaper, children, end_all, expect, expect_nobody,
                   kill, living, read_proc, require_sandbox, state, until, wait_dead)

DEAF = """
trap 'echo heard >SAY' INT TERM HUP
(trap '' INT TERM HUP; setsid sh -c 'setsid sleep 300 & exec sleep 300' &)
(trap '' INT TERM HUP; sleep 300) & kill -STOP $!
kill -STOP 1 2>/dev/null
echo partial >dist/x
k=0
while [ $k -lt MANY ]; do sleep 300 & k=$((k + 1)); done
echo up >SAY
while :; do wait; done
"""
# In a sandbox, beside a server of another run.
BESIDE = """
echo new >dist/x
echo up >SAY
read -r word <HEAR
"""
# More denied names than a pipe holds.
NOSY = """
echo up >SAY
read -r word <HEAR
k=0
while [ $k -lt 3000 ]; do [ -e none$k ]; k=$((k + 1)); done
mkdir dist/new
echo done >SAY
exec sleep 300
"""


class Stubborn:
    def __init__(self):
        become_subreaper()
        self.tap = Tap()
        allow = {"read": ["*.sh"], "write": ["dist/**"]}
        self.place = Place({
            "boxed": {"exec": {"command": "exec sh deaf.sh", "sandbox": {"allow": allow}}},
            "free": {"exec": {"command": "exec sh deaf.sh"}},
            "crowd": {"exec": {"command": "exec sh crowd.sh", "sandbox": {"allow": allow}}},
            "limited": {"exec": {"command": "exec sh deaf.sh", "timeout": 300, "sandbox": {"allow": allow}}},
            "nosy": {"exec": {"command": "exec sh nosy.sh", "sandbox": {"allow": allow}}},
            "server": {"exec": {"command": "exec sh deaf.sh", "persistent": {}}},
            "waits": {"exec": {"command": "exec sh deaf.sh", "persistent": {"readyWhen": "never"}}},
            "live": {"exec": {"command": "exec sh deaf.sh", "persistent": {}, "sandbox": {"allow": {"read": ["*.sh"], "write": ["dist"]}}}},
            "beside": {"exec": {"command": "exec sh beside.sh", "sandbox": {"allow": allow}}},
            "next": {"exec": {"command": "true"}},
        })
        self.heard = self.place.fifo("say")
        self.orders = self.place.fifo("hear")
        for name, text in (("deaf", DEAF.replace("MANY", "3")), ("crowd", DEAF.replace("MANY", "300")), ("nosy", NOSY), ("beside", BESIDE)):
            self.place.put(f"p/{name}.sh", text.replace("SAY", self.heard.path).replace("HEAR", self.orders.path))
        os.mkdir(self.place.project + "/dist")
        self.reset()
        self.place.succeed("p#next")
        self.place.expect_clean("before")

    def reset(self):
        self.place.put("p/dist/x", "old\n")

    def case(self, name, task, act, codes, shell=None, grace=200):
        """act(run) once the task is up. Afterwards all must be as it was."""
        try:
            run = Run(self.place, [f"p#{task}"], shell=shell, VX_KILL_GRACE_MS=str(grace))
            run.core()
            expect(self.heard.await_line("up") == "up", "something else")
            act(run)
            rc = run.end()
            expect(rc in codes, f"exit {rc}, not {codes}\n{run.output()}")
            expect_nobody("when vx has ended")
            self.place.expect_clean(f"when vx has ended, exit {rc}\n{run.output()}")
            if task not in ("free", "server", "waits", "live"):
                expect(self.place.tree("dist") == {"x": "old\n"}, f"dist: {self.place.tree('dist')}")
            self.place.succeed("p#next")
            self.tap.ok(True, name)
        except Wrong as e:
            self.tap.ok(False, name, [e])
            end_all()
        self.reset()
        while self.heard.poll():
            self.heard.await_line("the rest")

    def twice(self, sig):
        def act(run):
            kill(run.guard(), sig)
            self.heard.await_line("that it was asked")
            kill(run.guard(), sig)
        return act

    def sandboxed(self):
        for task, what in (("boxed", "in a sandbox"), ("free", "without a sandbox")):
            for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
                self.case(f"{sig.name}, {what}", task, lambda run: kill(run.guard(), sig), [code])
            self.case(f"a second Ctrl-C does not wait for the grace, {what}", task, self.twice(signal.SIGINT), [130], grace=10 ** 9)
            self.case(f"kill -9 of the core, {what}", task, lambda run: kill(run.core(), signal.SIGKILL), [137])
            self.case(f"kill -9 of the guard, {what}", task, lambda run: kill(run.guard(), signal.SIGKILL), [-9])
            self.case(f"kill -9 of the guard during the grace, {what}", task, self.guard_in_grace, [-9], grace=10 ** 9)
        self.case("a time-out", "limited", lambda run: None, [1])
        for who in ("helper", "init"):
            self.case(f"kill -9 of the {who} of 300 processes", "crowd", lambda run: kill(self.inside(run, who), signal.SIGKILL), [1])
        self.case("kill -9 of the core over 300 processes", "crowd", lambda run: kill(run.core(), signal.SIGKILL), [137])
        self.case("a stopped init", "boxed", self.stopped_init, [130])
        self.case("a stopped helper", "boxed", self.stopped_helper, [130])
        self.case("a stopped core stops no look-up", "nosy", self.stopped_core, [130])

    def servers(self):
        """Of these the run has ended but for them: the lock is free."""
        def act(what):
            def stay_and_act(run):
                self.place.succeed("p#next")
                what(run)
            return stay_and_act
        for task, what in (("server", "a server that stays"), ("live", "one in a sandbox")):
            for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
                self.case(f"{sig.name}, {what}", task, act(lambda run: kill(run.guard(), sig)), [code])
            self.case(f"a second Ctrl-C, {what}", task, act(self.twice(signal.SIGINT)), [130], grace=10 ** 9)
            self.case(f"kill -9 of the core, {what}", task, act(lambda run: kill(run.core(), signal.SIGKILL)), [137])
            self.case(f"kill -9 of the guard, {what}", task, act(lambda run: kill(run.guard(), signal.SIGKILL)), [-9])
        for who in ("helper", "init"):
            self.case(f"kill -9 of the {who} of a server", "live", act(lambda run: kill(self.inside(run, who), signal.SIGKILL)), [1])
        self.case("a stopped helper of a server", "live", act(self.stopped_helper), [130])
        for who in ("core", "guard"):
            self.case(f"kill -9 of the {who}, a server that is not ready", "waits",
                      lambda run: kill(getattr(run, who)(), signal.SIGKILL), [137, -9])
        self.case("Ctrl-C on a terminal, a server that stays", "server", act(lambda run: os.write(run.terminal, b"\3")), [130],
                  shell='exec "$@"')
        self.case("the terminal goes away, a server that stays", "server", act(self.hang_up), [129], shell='exec "$@"')
        for task in ("server", "live"):
            for who in ("core", "guard"):
                self.beside(task, who)

    def beside(self, task, who):
        """What is left of a run keeps its hands off the next one, which may have begun."""
        name = f"kill -9 of the {who} of a server, {task}, beside another run"
        try:
            run = Run(self.place, [f"p#{task}"])
            core = run.core()
            self.heard.await_line("up")
            other = Run(self.place, ["p#beside"])
            other.core()
            expect(self.heard.await_line("up") == "up", "something else")
            kill(core if who == "core" else run.guard(), signal.SIGKILL)
            rc = run.end()
            expect(rc in (137, -9), f"exit {rc}")
            self.orders.say("go")
            rc = other.end()
            expect(rc == 0, f"the other run: exit {rc}\n{other.output()}")
            expect(self.place.tree("dist") == {"x": "new\n"}, f"dist: {self.place.tree('dist')}")
            expect_nobody("afterwards")
            # A scratch that nobody could see to is the next one's.
            self.place.succeed("p#next")
            self.place.expect_clean("afterwards")
            self.tap.ok(True, name)
        except Wrong as e:
            self.tap.ok(False, name, [e])
            end_all()
        self.reset()

    def inside(self, run, who):
        helper = until("a helper", run.helpers)[0]
        return helper if who == "helper" else children(helper)[0]

    def guard_in_grace(self, run):
        kill(run.guard(), signal.SIGINT)
        self.heard.await_line("that it was asked")
        kill(run.guard(), signal.SIGKILL)

    def stopped_init(self, run):
        kill(self.inside(run, "init"), signal.SIGSTOP)
        kill(run.guard(), signal.SIGINT)

    def stopped_helper(self, run):
        kill(self.inside(run, "helper"), signal.SIGSTOP)
        kill(run.guard(), signal.SIGINT)

    def stopped_core(self, run):
        """A task can hold locks of the kernel while it waits for the helper's answer (overlayfs takes the one of all
        renames of the disk to copy a directory up), and the core may wait for these. So the helper must answer though
        the core does not read what it tells."""
        core = run.core()
        kill(core, signal.SIGSTOP)
        self.orders.say("go")
        try:
            expect(self.heard.await_line("its end") == "done", "something else")
        finally:
            kill(core, signal.SIGCONT)
        kill(run.guard(), signal.SIGINT)

    def on_a_terminal(self):
        own, job = 'exec "$@"', 'set -m; "$@"; echo code $?; read -r word'
        for task in ("boxed", "free"):
            self.case(f"Ctrl-C on a terminal, {task}", task, lambda run: os.write(run.terminal, b"\3"), [130], shell=own)
            self.case(f"Ctrl-C in a shell with jobs, {task}", task, self.interrupt_job, [0], shell=job)
            self.case(f"the terminal goes away, {task}", task, self.hang_up, [129], shell=own)
            self.case(f"Ctrl-Z, then kill -9 of the guard, {task}", task, self.stop_and_kill, [0, 137], shell=job)

    def interrupt_job(self, run):
        os.write(run.terminal, b"\3")
        wait_dead([run.guard()])
        os.write(run.terminal, b"\n")

    def hang_up(self, run):
        os.close(run.terminal)
        run.terminal = None

    def stop_and_kill(self, run):
        core = run.core()
        os.write(run.terminal, b"\x1a")
        until("the stop", lambda: state(core) == "T" and state(run.guard()) == "T")
        kill(run.guard(), signal.SIGKILL)
        os.write(run.terminal, b"\n")

    def waiting(self):
        """A run that waits for the lock is one process; the next run waits for the survivor of the one before."""
        name = "kill -9 of a run that waits for another"
        try:
            run = Run(self.place, ["p#boxed"])
            run.core()
            self.heard.await_line("up")
            other = subprocess.Popen([VX, "run", "p#next"], cwd=self.place.root, env=self.place.env,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            said = other.stderr.readline()
            expect(b"waiting for another run" in said, said)
            other.kill()
            other.wait()
            other.stderr.close()
            expect(living() and not any(read_proc(p, "cmdline").find("p#next") >= 0 for p in living()), "it is not all gone")
            kill(run.core(), signal.SIGKILL)
            expect(run.end() == 137, "the first run")
            expect_nobody("afterwards")
            self.tap.ok(True, name)
        except Wrong as e:
            self.tap.ok(False, name, [e])
            end_all()


def main():
    require_sandbox()
    tests = Stubborn()
    tests.sandboxed()
    tests.servers()
    tests.on_a_terminal()
    tests.waiting()
    tests.tap.done()


main()
