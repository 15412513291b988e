#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a power cut may leave, imitated: files of the cache and of the state directory that are empty, end early, are
zeros in whole or from some place on, or go on behind their end. Never wrong bytes and never a failure: a result whose
blob is damaged is a miss, the task runs, once; what is not needed is not missed."""
import os
import random
import re
import shutil
import sqlite3

from crash import OWNER, Place, Tap, Wrong, become_subreaper, expect, read_file

# Blobs of every kind: files, plain and (where the disk cannot clone) packed, nodes of both, and what was printed.
MAKE = """
mkdir -p dist/sub/deep dist/empty
echo small >dist/small
cat noise >dist/noise
seq 1 40000 >dist/large
echo run >dist/sub/run
chmod 755 dist/sub/run
echo private >dist/sub/deep/private
chmod 600 dist/sub/deep/private
ln -s ../small dist/sub/link
ln -s nowhere dist/dangling
echo made
"""
# A node of more than 64 KiB.
MANY = "mkdir -p many; k=0; while [ $k -lt 240 ]; do echo many >many/$(printf '%0220d' 0)$k; k=$((k + 1)); done"
KINDS = {"a small file": "p#t/p/dist/small", "a large file": "p#t/p/dist/noise", "a file that shrinks": "p#t/p/dist/large",
         "the root node": "p#t", "a node": "p#t/p/dist/sub", "a large node": "p#many/p/many",
         "what was printed": "p#t, printed", "much that was printed": "p#loud, printed"}
OUTPUTS = {"p#t": "dist", "p#many": "many"}
NOTICE = "the stored result is gone or damaged; running the task"
# The lines that docs/CACHE.md promises, under "Versions and damage" and "Faults".
CLEAR = re.compile(r"/(index|state|history)\.db (was damaged \(.*\): it is now .*\.broken, and a new one was made"
                   r"|is damaged \(.*\): it is now .*\.broken, and the next run makes a new one)")


def empty(content):
    return b""


def half(content):
    return content[:len(content) // 2]


def zeros(content):
    return bytes(len(content))


def zeros_behind(content):
    return half(content) + bytes(len(content) - len(content) // 2)


def longer(content):
    return content + b"\0"


# Nothing else that sounds like this may be said.
BAD = re.compile("damaged|malformed|error|fail|cannot|not saved|not in the history")
DAMAGES = (empty, half, zeros, zeros_behind, longer)


class Torn:
    def __init__(self, *tasks):
        become_subreaper()
        files = {"files": ["in", "noise", "make.sh"]}
        self.place = Place({
            "t": {"exec": {"command": "sh make.sh"}, "cache": {"inputs": files, "outputs": {"files": ["dist/**"]}}},
            "many": {"exec": {"command": MANY}, "cache": {"inputs": files, "outputs": {"files": ["many/**"]}}},
            "loud": {"exec": {"command": "seq -s . 1 40000"}, "cache": {"inputs": files, "outputs": {"files": []}}},
        })
        self.tasks = tasks
        self.vx = self.place.root + "/.vx"
        self.blobs = self.vx + "/cache/blobs"
        self.place.put("p/in", "1\n")
        self.place.put("p/make.sh", MAKE)
        with open(self.place.project + "/noise", "wb") as f:
            f.write(random.Random(1).randbytes(100000))
        self.run()
        self.done = self.place.snapshot()
        needed = self.place.expect_whole(self.place.look_at_databases(), "at first")
        self.names = {where: name for name, where in needed.items()}
        self.saved = self.place.top + "/saved"
        self.save()

    def save(self):
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.vx, self.saved)

    def start_over(self):
        """The cache and the state as they were; the outputs that stand there are those of the stamps, or none."""
        shutil.rmtree(self.vx)
        shutil.copytree(self.saved, self.vx)

    def run(self, *words):
        """Which tasks ran, and all that was said."""
        said = self.place.succeed(*self.tasks, *words)
        return set(re.findall(r"^└─ (p#\w+) ── .* success$", said, re.M)), said

    def remove_outputs(self):
        for task in self.tasks:
            shutil.rmtree(f"{self.place.project}/{OUTPUTS.get(task)}", ignore_errors=True)

    def damage(self, path, how):
        os.chmod(path, 0o644)
        content = how(read_file(path))
        with open(path, "r+b") as f:
            f.truncate(0)
            f.write(content)

    def expect_mended(self):
        """Everything is in the cache again, with its digest, and comes from there."""
        self.place.expect_snapshot(self.done, "the run")
        self.place.expect_whole(self.place.look_at_databases(), "after the run")
        self.remove_outputs()
        ran, said = self.run()
        expect(not ran and NOTICE not in said, f"afterwards it is no hit\n{said}")
        self.place.expect_snapshot(self.done, "restored afterwards")

    def blob(self, where, how):
        task, printed = re.match("[^/,]*", where).group(), "printed" in where
        self.tasks = [task]
        self.start_over()
        path = f"{self.blobs}/{self.names[where]}"
        if not OWNER:  # who gives all outputs away before each run, so that none is up to date
            # Restored once, so that the stamps are of the outputs that stand there.
            self.run()
            self.damage(path, how)
            ran, said = self.run()
            expect(ran == ({task} if printed else set()), f"up to date: {ran} ran\n{said}")
        if OWNER or printed:
            self.damage(path, how)
        self.remove_outputs()
        ran, said = self.run()
        expect(ran == {task} and f"{task}: {NOTICE}" in said, f"{ran} ran\n{said}")
        self.expect_mended()

    def every_blob(self, how):
        self.tasks = ["p#t", "p#many", "p#loud"]
        self.start_over()
        for name in self.place.blobs():
            self.damage(f"{self.blobs}/{name}", how)
        self.remove_outputs()
        ran, said = self.run()
        expect(ran == set(self.tasks) and said.count(NOTICE) == len(self.tasks), f"{ran} ran\n{said}")
        self.expect_mended()

    def saved_over(self):
        """By a run that looks at nothing that is stored."""
        self.start_over()
        for name in self.place.blobs():
            self.damage(f"{self.blobs}/{name}", empty)
        self.run("--force")
        self.expect_mended()

    def expect_clear(self, said):
        wrong = [line for line in said.splitlines() if BAD.search(line) and not CLEAR.search(line)]
        expect(not wrong, f"no such line is promised: {wrong[0] if wrong else ''}\n{said}")

    def database(self, path, how):
        for outputs in (True, False):
            self.start_over()
            if not outputs:
                self.remove_outputs()
            self.damage(f"{self.vx}/{path}", how)
            # A damaged page may show when it is used, and not before. What was damaged is new the run after.
            for when in ("the run", "the next", "the one after"):
                ran, said = self.run()
                self.place.expect_snapshot(self.done, when)
                self.expect_clear(said)
                if not ran:
                    break
            expect(not ran, f"{ran} ran again and again\n{said}")

    def prune(self, path, how):
        self.start_over()
        self.damage(f"{self.vx}/{path}", how)
        rc, said = self.place.vx("--max-size=1T", command=("cache", "prune"))
        self.expect_clear(said)
        expect(rc == 0 or rc == 2 and CLEAR.search(said), f"exit {rc}\n{said}")
        self.run()
        self.place.expect_snapshot(self.done, "the run")

    def fold(self):
        """The logs into their files."""
        self.start_over()
        for name in ("state.db", "history.db", "cache/index.db"):
            db = sqlite3.connect(f"{self.vx}/{name}")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.close()
        self.save()

    def files(self):
        """Those of databases, with their logs, and the stat file."""
        for base in ("cache/index.db", "state.db", "history.db", "stat"):
            for part in ("", "-wal", "-shm"):
                if os.path.exists(f"{self.saved}/{base}{part}"):
                    yield base + part


def check(tap, name, test, *args):
    """With each damage."""
    wrong = []
    for how in DAMAGES:
        try:
            test(*args, how)
        except Wrong as e:
            wrong.append(f"{how.__name__.replace('_', ' ')}: {e}")
    tap.ok(not wrong, name, wrong)


def main():
    tap = Tap()
    t = Torn("p#t", "p#many", "p#loud")
    for what, where in KINDS.items():
        check(tap, what, t.blob, where)
    check(tap, "every blob at once", t.every_blob)
    check(tap, "every blob is empty, and --force does not look", lambda how: how is empty and t.saved_over())
    t = Torn("p#t")
    for folded in (False, True):
        if folded:
            t.fold()
        for path in t.files():
            what = f"{path}{', logs folded in' if folded else ''}"
            check(tap, what, t.database, path)
            if "index" in path:
                check(tap, f"vx cache prune: {what}", t.prune, path)
    tap.done()


main()
