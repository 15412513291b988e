# SPDX-License-Identifier: MIT
"""Tasks that add to the outputs of others (rules.exclusiveOutputs off), against a model.

`build` owns dist, `post` and `last` add to it; `last` may be one of another project, whose outputs are `workspaceFiles`.
What a task makes hangs on its input alone. Between runs inputs change, and files in dist are removed, changed and added; a run asks for one
of them, and what it leaves in dist, and who ran, is what "Outputs that several tasks have" of docs/CACHE.md says.

	VX_PROP_ROUNDS=10000	runs of vx; by default some seconds' worth
	VX_PROP_SEED=17		only this seed
"""

import json
import os
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from cache import LIMIT, VX, Arena, Globs, Wrong, cannot, difference, environment, put_node, remove, snapshot, stat_of  # noqa: E402

DEFAULT_ROUNDS = 60
STEPS = 20
COUNT = {}
TASKS = ["build", "post", "last"]
PLACES = {"build": ["m.js", "x.js", "sub/y.js", "sub/deep/y.js"], "post": ["m.js.map", "post/p", "sub/z.map", "m.js", "x.js"],
          "last": ["last/l", "post/p", "post/l", "sub/z.map", "x.js", "sub/deep/n.map"]}  # fmt: skip


class Adding:
    def __init__(self, arena, seed):
        self.rng = rng = random.Random(seed)
        self.top = arena.fresh()
        self.dist = self.top + "/ws/p/dist"
        os.makedirs(self.top + "/ws/p")
        os.mkdir(self.top + "/store")
        self.globs = {"build": ["dist/**"], "post": rng.choice([["dist/**"], ["dist/post/**", "dist/**/*.map", "dist/*.js"]]),
                      "last": rng.choice([["dist/**"], ["dist/**/*.map", "dist/last/**", "dist/post/**"]])}  # fmt: skip
        self.made = {}  # (task, version): files
        self.drops, self.version = set(), {}
        self.far = {"last"} if rng.random() < 0.4 else set()
        tasks = {"p": {}, "q": {}}
        for n, t in enumerate(TASKS):
            for v in "12":
                names = [x for x in PLACES[t] if Globs(self.globs[t]).selects("dist/" + x)]
                names = rng.sample(names, rng.randint(1, len(names)))
                self.made[t, v] = {x: ("f", rng.choice([0o644, 0o755]), ("%s %s %s\n" % (t, v, x)).encode()) for x in names}
                for x, node in self.made[t, v].items():
                    put_node("%s/store/%s.%s/%s" % (self.top, t, v, x), node)
            drop = " rm -f dist/m.js;" if t == "post" and rng.random() < 0.15 else ""
            if drop:
                self.drops.add(t)
            dist = "../p/dist" if t in self.far else "dist"
            command = "echo %s >%s/log; mkdir -p %s;%s cp -R -p %s/store/%s.$(cat %s.in)/. %s/" % (
                t, self.top, dist, drop, self.top, t, t, dist
            )  # fmt: skip
            outputs = {"files": self.globs[t]}
            if t in self.far:
                outputs = {"files": [], "workspaceFiles": ["p/" + g for g in self.globs[t]]}
            tasks["q" if t in self.far else "p"][t] = {
                "exec": {"command": command}, "dependsOn": ["p#" + u for u in TASKS[max(0, n - 1) : n]],
                "cache": {"inputs": {"files": [t + ".in"]}, "outputs": outputs}}  # fmt: skip
            self.set(t, "1")
        for p in tasks:
            put_node("%s/ws/%s/vx.config.json" % (self.top, p), ("f", 0o644, json.dumps({"tasks": tasks[p]}).encode()))
        put_node(self.top + "/ws/vx.workspace.json",
                 ("f", 0o644, b'{"projects": ["p", "q"], "rules": {"exclusiveOutputs": false}}'))  # fmt: skip
        self.log = os.open(self.top + "/log", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.entries = {}  # (task, key, sandboxed): files
        self.stamps = {}  # task: (key or None, {name: stat})
        self.told = [json.dumps(self.globs), "versions: %s" % {"%s.%s" % k: sorted(v) for k, v in self.made.items()}]

    def set(self, t, version):
        put_node("%s/ws/%s/%s.in" % (self.top, "q" if t in self.far else "p", t), ("f", 0o644, version.encode()))
        self.version[t] = version

    def files(self):
        return {p: n for p, n in snapshot(self.dist).items() if n[0] != "d"} if os.path.isdir(self.dist) else {}

    def stats(self, names):
        return {x: stat_of(self.dist + "/" + x) for x in names if os.path.lexists(self.dist + "/" + x)}

    def disturb(self):
        rng, files = self.rng, sorted(self.files())
        how = rng.choice(["input"] * 4 + ["none"] * 3 + ["delete", "change", "stray", "all"])
        if how == "input":
            t = rng.choice(TASKS + ["post"])
            self.set(t, "21"[int(self.version[t]) - 1])
            self.told.append("%s.in = %s" % (t, self.version[t]))
        elif how == "all":
            self.told.append("rm -r dist")
            remove(self.dist)
        elif how == "stray":
            x = rng.choice(["stray", "sub/stray", "stray.map"])
            self.told.append("write dist/" + x)
            put_node(self.dist + "/" + x, ("f", 0o644, b"stray"))
        elif how in ("delete", "change") and files:
            x = rng.choice(files)
            self.told.append("%s dist/%s" % (how, x))
            remove(self.dist + "/" + x)
            if how == "change":
                put_node(self.dist + "/" + x, ("f", 0o644, b"changed"))

    def adders(self, t):
        return TASKS[TASKS.index(t) + 1 :]

    def step(self):
        rng = self.rng
        for _ in range(rng.randint(0, 2)):
            self.disturb()
        asked, sandbox, force = rng.choice(TASKS + ["last"]), rng.random() < 0.25, rng.random() < 0.1
        argv = [VX, "run", asked, "--all", "--output-logs", "hash-only"] + ["--sandbox"] * sandbox + ["--force"] * force
        self.told.append(" ".join(argv[1:3] + argv[6:]))
        disk = self.files()
        stats = {t: self.stats(self.stamps.get(t, (0, {}))[1]) for t in TASKS}
        vx = subprocess.run(argv, cwd=self.top + "/ws", env=environment(self.top), stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=LIMIT)  # fmt: skip
        said = (vx.stdout + vx.stderr).decode("utf-8", "replace")
        outcome = {t: o for o, t in re.findall(r"^(\S+)(?: .*)? [pq]#(\S+) \S+$", said, re.M)}
        try:
            log = os.read(self.log, 4096).decode().split()
        except BlockingIOError:
            log = []
        if vx.returncode:
            raise Wrong("exit %d\n%s" % (vx.returncode, said))
        key, ran, saved = (), [], {}
        for t in TASKS[: TASKS.index(asked) + 1]:
            key += (self.version[t],)
            entry = self.entries.get((t, key, True)) or (None if sandbox else self.entries.get((t, key, False)))
            was = set(self.stamps.get(t, (0, {}))[1])
            before = {x for u in TASKS[: TASKS.index(t)] for x in (saved.get(u) or self.stamps.get(u, (0, {}))[1])}
            got = outcome.get(t)
            COUNT[got] = COUNT.get(got, 0) + 1
            if entry is None or force:
                if got != "success":
                    raise Wrong("%s: %s, expected it to run\n%s" % (t, got, said))
                ran.append(t)
                if t == "build":
                    disk = {}
                else:
                    disk = {x: n for x, n in disk.items() if x not in was or x in before}
                dropped = t in self.drops and "m.js" in disk
                if t in self.drops:
                    disk.pop("m.js", None)
                mine = self.made[t, self.version[t]]
                disk.update(mine)
                dropped &= "m.js" not in mine
                self.stamps[t] = (None if dropped else key, dict.fromkeys(mine))
                saved[t] = mine
                better = (t, key, True) in self.entries and not sandbox
                if not dropped and not better:
                    self.entries[t, key, sandbox] = mine
            elif got == "up-to-date":
                stamp = self.stamps.get(t, (None, {}))
                if any(disk.get(x) != n for x, n in entry.items()) or stamp[0] != key or stats[t] != stamp[1]:
                    raise Wrong("%s: up to date, but it is not\n%s\n%s" % (t, difference(entry, disk), said))
                able = [Globs(self.globs[u]) for u in self.adders(t)]
                for x in set(disk) - set(entry) if t == "build" else ():
                    if not any(g.selects("dist/" + x) for g in able):
                        raise Wrong("%s: up to date in spite of %s\n%s" % (t, x, said))
            elif got == "restored-local":
                theirs = {x for u in self.adders(t) for x in self.stamps.get(u, (0, {}))[1]} - was
                if t == "build":
                    disk = {x: n for x, n in disk.items() if x in theirs}
                else:
                    disk = {x: n for x, n in disk.items() if x not in was or x in before}
                disk.update(entry)
                self.stamps[t] = (key, dict.fromkeys(entry))
                saved[t] = entry
            else:
                raise Wrong("%s: %s, expected a hit\n%s" % (t, got, said))
        now = self.files()
        if sorted(log) != sorted(ran):
            raise Wrong("ran: %s, expected %s\n%s" % (log, ran, said))
        if now != disk:
            raise Wrong("dist is\n%s\n%s" % (difference(disk, now), said))
        for t in saved:
            # What a later one of the same run rewrote is not as it was.
            later = {x for u in self.adders(t) for x in saved.get(u, ())}
            old = self.stamps[t]
            self.stamps[t] = (old[0], {**self.stats(old[1]), **dict.fromkeys(later & set(old[1]))})


def main():
    os.umask(0o022)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    why = cannot()
    if why:
        print("not ok 1 - %s\n1..1" % why if os.environ.get("VX_SANDBOX_MUST_WORK") else "1..0 # SKIP %s" % why)
        sys.exit(bool(os.environ.get("VX_SANDBOX_MUST_WORK")))
    rounds, only = int(os.environ.get("VX_PROP_ROUNDS", DEFAULT_ROUNDS)), os.environ.get("VX_PROP_SEED")
    arena = Arena()
    done, failed, seed = 0, 0, int(only or 1)
    try:
        while done < rounds and failed < int(os.environ.get("VX_PROP_FAILURES", 1)):
            s = Adding(arena, seed)
            try:
                for _ in range(STEPS):
                    done += 1
                    s.step()
            except Wrong as e:
                failed += 1
                print("not ok %d - seed %d\n# %s" % (failed, seed, "\n".join(s.told + [str(e)]).replace("\n", "\n# ")))
            finally:
                os.close(s.log)
            if only:
                break
            seed += 1
        if not failed:
            print("ok 1 - %d runs are as the model says" % done)
            print("# " + ", ".join("%d %s" % (COUNT[k], k) for k in sorted(COUNT)))
        print("1..%d" % max(1, failed))
    finally:
        arena.remove()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
