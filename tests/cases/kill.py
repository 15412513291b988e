#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kills one process of a run of vx, again and again, and looks at what is left.

    kill.py --victim helper|core|guard|int --rounds N --moment MS|FIFO --held FIFO
            [--input FILE] [--base N] [--after CHECK] -- VX run ...

Each round writes its number, counted from N, into FILE (so that the task is a miss, or a hit that is known), starts vx, and at a random moment of the
first MS milliseconds (of fewer, where runs turn out to be shorter), or when a task writes to FIFO, kills the victim: a vx-sandbox, the core or the guard
by SIGKILL; `int` sends SIGINT to the run. When the run is over (guard and core), nobody may hold HELD open:
every process of the task does. Then CHECK is run by sh; it must succeed.
"""
import argparse
import errno
import os
import random
import select
import signal
import subprocess
import sys
import time

LIMIT = 30


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def named(pid, name):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip() == name
    except OSError:
        return False


def pidfd(pid):
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def find(victim, run):
    """A pidfd of the victim, or None when the run is over before there was one."""
    while run.poll() is None:
        cores = children(run.pid)
        if victim in ("guard", "int"):
            return pidfd(run.pid)
        for core in cores:
            if victim == "core":
                return pidfd(core)
            for pid in children(core):
                if named(pid, "vx-sandbox"):
                    return pidfd(pid)
    return None


def ended(fd, what):
    if fd is not None and not select.select([fd], [], [], LIMIT)[0]:
        sys.exit(f"{what} did not end")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--victim", choices=["helper", "core", "guard", "int"], required=True)
    p.add_argument("--rounds", type=int, required=True)
    p.add_argument("--moment", required=True)
    p.add_argument("--held", required=True)
    p.add_argument("--input")
    p.add_argument("--base", type=int, default=0)
    p.add_argument("--after")
    p.add_argument("--seed", type=int, default=18)
    p.add_argument("vx", nargs="+")
    a = p.parse_args()
    random.seed(a.seed)
    hit = 0
    span = int(a.moment) / 1000 if a.moment.isdigit() else None
    for i in range(a.rounds):
        if a.input:
            with open(a.input, "w") as f:
                f.write(f"{a.base + i}\n")
        run = subprocess.Popen(a.vx, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        start = time.monotonic()
        struck = False
        fd = find(a.victim, run)
        cores = [pidfd(c) for c in children(run.pid)]
        if fd is not None:
            if span:
                wait = start + random.random() * span - time.monotonic()
                select.select([], [], [], max(0, wait))
            else:
                with open(a.moment) as f:
                    f.readline()
                cores = [pidfd(c) for c in children(run.pid)]
            try:
                signal.pidfd_send_signal(fd, signal.SIGINT if a.victim == "int" else signal.SIGKILL)
                struck = True
                hit += 1
            except ProcessLookupError:
                pass
            os.close(fd)
        try:
            out, _ = run.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            sys.exit(f"round {i}: vx did not end")
        if span and not struck:
            span = min(span, time.monotonic() - start)
        for core in cores:
            ended(core, f"round {i}: the core")
            if core is not None:
                os.close(core)
        allowed = {"helper": (0, 1), "core": (0, 1, 137), "guard": (0, 1, -9), "int": (0, 1, 130, -2)}[a.victim]
        if run.returncode not in allowed:
            sys.exit(f"round {i}: exit {run.returncode}\n{out.decode(errors='replace')}")
        try:
            os.close(os.open(a.held, os.O_WRONLY | os.O_NONBLOCK))
            sys.exit(f"round {i}: a process of the task is left")
        except OSError as e:
            if e.errno != errno.ENXIO:
                raise
        if a.after and subprocess.run(["sh", a.after], stdin=subprocess.DEVNULL).returncode:
            sys.exit(f"round {i}: the check failed after exit {run.returncode}\n{out.decode(errors='replace')}")
    print(f"{hit} of {a.rounds} hit")
    sys.exit(hit < a.rounds // 2)


main()
