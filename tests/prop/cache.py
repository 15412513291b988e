# SPDX-License-Identifier: MIT
"""The cache against a model of it.

Random workspaces and random steps. A step changes something (inputs, outputs, the environment, the
configuration, the cache itself) and runs vx once; what vx says and leaves behind is compared with a
model that was written from the pages about the cache and from no line of vx:

- which tasks ran (they say so on a FIFO), which were up to date, restored, failed or skipped;
- every file and link of the workspace, and the directories among outputs: bytes, modes, targets;
- what is printed, replayed output included; the exit code;
- keys: two are the same exactly when everything is that a key is made of.

Where the pages leave a choice the model allows what they allow. What a task writes is a function of what
it reads (tests/tool/maker.c), so a hit that serves what an execution would not have made is seen.

	VX_PROP_ROUNDS=10000	runs of vx; by default some seconds' worth
	VX_PROP_SEED=17		only the workspace of this seed
	VX_PROP_FIRST=4000	the first seed, 1 by default
	VX_PROP_KEEP=1		leaves the directory of a failure, and names it
"""

import collections
import fnmatch
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import types

SRCDIR, BUILDDIR = os.environ["VX_SRCDIR"], os.path.abspath(os.environ["VX_BUILDDIR"])
VX = os.environ.get("VX", BUILDDIR + "/vx")
DEFAULT_ROUNDS = 240
STEPS = 14  # per workspace
LIMIT = int(os.environ.get("VX_PROP_LIMIT", 30))  # seconds, of one run

COUNT = {}  # outcomes seen

OUTPUT_DIRS = ("dist", "out", "work")


class Wrong(Exception):
    """vx and the model differ."""


# --- patterns ----------------------------------------------------------------------------------


def expand_braces(pattern):
    m = re.search(r"\{([^{}]*)\}", pattern)
    if not m:
        return [pattern]
    return [
        one
        for alternative in m.group(1).split(",")
        for one in expand_braces(pattern[: m.start()] + alternative + pattern[m.end() :])
    ]


def is_literal(pattern):
    return not re.search(r"[*?]", pattern)


def ere_of(pattern, directory=False):
    """A POSIX ERE for the files (or directories) that one pattern without braces selects."""

    def segment(s):
        out = ""
        for c in s:
            out += {"*": "[^/]*", "?": "[^/]"}.get(c) or ("\\" + c if c in r".[]()^$+|\{}" else c)
        return out

    parts = pattern.split("/")
    if is_literal(pattern):
        return segment(pattern) + "(/.*)?"
    out = ""
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**" and last:
            if directory and i:
                return out[:-1] + "(/.*)?"  # `d/**` includes d
            return out + ".+"
        out += "([^/]+/)*" if part == "**" else segment(part) + ("" if last else "/")
    return out


def whole(patterns, directory=False):
    flat = [e for p in patterns for e in expand_braces(p)]
    return "^(" + "|".join(ere_of(e, directory) for e in flat) + ")$" if flat else "^$"


class Globs:
    def __init__(self, patterns):
        self.pos = [p for p in patterns if not p.startswith("!")]
        self.neg = [p[1:] for p in patterns if p.startswith("!")]
        flags = re.S
        self.re = {
            d: (re.compile(py(whole(self.pos, d)), flags), re.compile(py(whole(self.neg, d)), flags))
            for d in (False, True)
        }

    def selects(self, path, directory=False):
        pos, neg = self.re[directory]
        return bool(pos.search(path)) and not neg.search(path)

    def covers(self, path):
        """As selects, what `!` takes back included."""
        return bool(self.re[False][0].search(path))

    def leads_through(self, path):
        """Whether a directory may hold, at any depth, what a pattern with wildcards selects."""
        for p in (e for p in self.pos for e in expand_braces(p)):
            parts = p.split("/")
            for n in range(1, len(parts)):
                if not is_literal("/".join(parts[:n])) and Globs(["/".join(parts[:n])]).selects(path, True):
                    return True
        return False

    def heads(self):
        """The literal beginning of each pattern."""
        for p in (e for p in self.pos for e in expand_braces(p)):
            parts = p.split("/")
            n = next((i for i, s in enumerate(parts) if not is_literal(s)), len(parts))
            yield "/".join(parts[:n])


def py(ere):
    return ere[:-1] + r"\Z" if ere.endswith("$") else ere


# --- files -------------------------------------------------------------------------------------


def raw(path):
    return os.fsencode(path)


def snapshot(root):
    """{path: ('f', mode, content) | ('l', target) | ('d', mode)}, without .git and .vx of the root."""
    out = {}

    def visit(dir_, rel):
        with os.scandir(dir_) as entries:
            for e in entries:
                path = rel + e.name
                if path in (".git", ".vx"):
                    continue
                mode = e.stat(follow_symlinks=False).st_mode & 0o7777
                if e.is_symlink():
                    out[path] = ("l", os.readlink(e.path))
                elif e.is_dir():
                    out[path] = ("d", mode)
                    visit(e.path, path + "/")
                else:
                    with open(e.path, "rb") as f:
                        out[path] = ("f", mode, f.read())

    visit(root, "")
    return out


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def put_node(path, node):
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        if os.path.lexists(parent):
            os.unlink(parent)
        try:
            os.makedirs(parent)
        except (NotADirectoryError, FileExistsError):
            above = os.path.dirname(parent)
            while not os.path.lexists(above) or os.path.isdir(above):
                above = os.path.dirname(above)
            os.unlink(above)
    remove(path)
    if node[0] == "l":
        os.symlink(node[1], path)
    else:
        with open(path, "wb") as f:
            f.write(node[2])
        os.chmod(path, node[1])


def identity(node):
    if node is None or node[0] == "d":
        return "absent"
    if node[0] == "l":
        return "120000:" + repr(node[1])
    return ("100755:" if node[1] & 0o111 else "100644:") + hashlib.sha1(node[2]).hexdigest()


def stat_of(path):
    st = os.lstat(path)
    if os.path.isdir(path) and not os.path.islink(path):
        return (st.st_mode, st.st_ino, st.st_mtime_ns)
    return (st.st_mode, st.st_size, st.st_ino, st.st_mtime_ns, st.st_ctime_ns)


class Digest:
    """That of maker."""

    def __init__(self):
        self.h = 0xCBF29CE484222325
        self.saw_fail = False

    def fold(self, data):
        h = self.h
        for b in data:
            h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        self.h = (h * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF

    def fold_node(self, node, name):
        if node[0] == "l":
            self.fold(b"link")
            self.fold(raw(name))
            self.fold(raw(node[1]))
            return
        self.fold(b"exec" if node[1] & 0o111 else b"file")
        self.saw_fail |= b"FAIL" in node[2]
        self.fold(raw(name))
        self.fold(node[2])


def unescape(arg):
    return os.fsdecode(re.sub(rb"%(..)", lambda m: bytes([int(m.group(1), 16)]), raw(arg)))


def escape(path):
    return "".join(
        chr(b) if 32 < b < 127 and b != 37 else "%%%02X" % b for b in raw(path)
    )


# --- workspaces --------------------------------------------------------------------------------

ODD = ["we ird/[id].c", "src/new\nline.c", "src/\udcff\udcfe.c", "src/{x,y}.c", "src/" + "n" * 253 + ".c"]
SOURCES = ["src/a.c", "src/b.c", "src/sub/c.c", "src/sub/d.md", "src/gen/e.txt", "src/.hid.c", "conf/x",
           "conf/y", "top.txt", "src/run.c"]  # fmt: skip
UNDECLARED = ["secret.txt", "src/x.ign", "node_modules/m/index.c", "src/t.tsbuildinfo", "src/sub/y.ign"]
SHARED = ["shared/s.txt", "shared/deep/t.txt", "shared/u.md"]
INPUTS = [["src/**"], ["src/**", "!src/**/*.md"], ["src/*.c"], ["**/*.c"], ["src"], ["src/{a,b}.c", "conf/*"],
          ["src/?.c", "top.txt"], ["**"], ["**/*", "!**/*.md"], ["top.txt"], ["src/**", "!src/gen/**", "conf/*"],
          [], ["**/s*/**/*.c"], ["!src/sub/**", "{src,conf}/**"]]  # fmt: skip
ENVS = ["PROP_A", "PROP_B"]
LOCKS = [".npmrc", "bun.lock"]
NAMES = ["gen.a", "gen.b", "build", "test", "pack", "all"]


class Task:
    def __init__(self, project, name):
        self.project, self.name = project, name
        self.id = project.name + "#" + name
        self.depends, self.command, self.inputs, self.outputs = [], None, None, None
        self.workspace, self.env, self.description, self.salt = [], [], None, ""
        self.ops, self.greedy = [], False
        self.select, self.probes, self.grants = None, [], None

    @property
    def cached(self):
        return self.inputs is not None

    def config(self):
        out = {}
        if self.depends is not None:
            out["dependsOn"] = self.depends
        if self.description:
            out["description"] = self.description
        if self.ops:
            out["exec"] = {
                "command": self.salt + self.command,
                "env": {"passThrough": sorted(ENVS) + ["PROP_EDIT", "PROP_FAIL"]},
            }
            if self.grants is not None:
                out["exec"]["sandbox"] = self.grants
        if self.cached:
            inputs = {"files": self.inputs}
            if self.workspace:
                inputs["workspaceFiles"] = self.workspace
            if self.env:
                inputs["env"] = self.env
            if self.select is not None:
                inputs["tasks"] = self.select
            for where in ("runtime", "workspaceRuntime"):
                if [x for x in self.probes if x[0] == where]:
                    inputs[where] = [x[1] for x in self.probes if x[0] == where]
            out["cache"] = {"inputs": inputs, "outputs": {"files": self.outputs}}
        return out


class Project:
    def __init__(self, name, dir_):
        self.name, self.dir, self.deps, self.tasks, self.blank = name, dir_, [], {}, ""

    def config(self):
        config = {"name": self.name, "dependencies": self.deps}
        config["tasks"] = {t.name: t.config() for t in self.tasks.values()}
        return (self.blank + json.dumps(config, indent=1)).encode()


class World:
    """What is drawn from a seed: projects, their tasks, and the files at the beginning."""

    def __init__(self, seed, top):
        self.rng = rng = random.Random(seed)
        self.top, self.root = top, top + "/ws"
        self.git = rng.random() < 0.8
        self.ignored = rng.random() < 0.7
        self.projects = {}
        names = "abcdef"[: rng.randint(2, 5)]
        for name in names:
            p = Project(name, "p/" + name)
            earlier = list(self.projects)
            p.deps = sorted(rng.sample(earlier, rng.randint(0, min(2, len(earlier)))))
            self.projects[name] = p
        if rng.random() < 0.3:
            inner = Project("n", "p/a/n")
            self.projects["n"] = inner
        for p in self.projects.values():
            for name in NAMES:
                if rng.random() < 0.45 or (name == "build" and rng.random() < 0.7):
                    p.tasks[name] = Task(p, name)
        for p in self.projects.values():
            for t in p.tasks.values():
                self.draw(t)
        self.maxsize = "64K" if rng.random() < 0.08 else None
        for t in self.tasks():
            self.draw_key(t)
            self.draw_grants(t)
        for p in self.projects.values():  # commands name the outputs of others
            for t in p.tasks.values():
                if t.ops is None:
                    self.write_command(t)

    def draw(self, t):
        rng, p = self.rng, t.project
        before = [n for n in p.tasks if NAMES.index(n) < NAMES.index(t.name)]
        declared = {n for q in self.projects.values() for n in q.tasks}
        choices = list(before) + ["^" + n for n in declared if n != "all"]
        choices += [d + "#" + n for d in p.deps for n in self.projects[d].tasks]
        if not t.name.startswith("gen."):
            choices += ["gen.*"]
        if any(n.startswith("gen.") for n in declared):
            choices += ["^gen.*"]
        if "^build" in choices:
            choices += ["^build"] * 3
        choices.sort()
        t.depends = sorted(set(rng.sample(choices, rng.randint(0, min(3, len(choices))))))
        if t.name == "all":
            t.ops = []
            return
        t.ops = None  # later
        if self.ignored and rng.random() < 0.2:
            return
        d = "dist/" + t.name
        shape = rng.choice("aaabbcdefg")
        files = {
            "a": [("file", d + "/o", "644"), ("file", d + "/sub/x", "755"), ("link", d + "/l", "sub/x"),
                  ("dir", d + "/e", rng.choice(["755", "700", "775"])), ("vary", d + "/v")],
            "b": [("file", d + "/o", "600"), ("link", d + "/abs", "/nowhere"), ("dir", d + "/e/f", "750"),
                  ("file", d + "/" + rng.choice(ODD), "640")],
            "c": [("file", d + "/m.o", "644"), ("vary", d + "/.o")],
            "d": [("file", d + ".bin", "755")],
            "e": [("file", d + "/o", "644"), ("file", d + "/tmp/z", "644"), ("vary", d + "/w/v")],
            "f": [],
            "g": [("file", "out/%s/a/b.js" % t.name, "644"), ("file", d + "/c.js", "444")],
        }  # fmt: skip
        globs = {
            "a": [d + "/**"], "b": [d], "c": [d + "/*.o*", d + "/.o?"], "d": [d + ".bin"],
            "e": [d + "/**", "!" + d + "/tmp/**"], "f": [], "g": ["{out,dist}/%s/**/*.js" % t.name],
        }  # fmt: skip
        t.made, t.outputs = files[shape], globs[shape]
        t.inputs = list(rng.choice(INPUTS))
        if any(x.startswith("**") for x in t.inputs):
            t.inputs += ["!dist/**", "!out/**"]
        if rng.random() < 0.3:
            t.workspace = rng.choice([["shared/**"], ["shared/*.txt"], ["shared"], ["shared/**", "!**/*.md"]])
        if rng.random() < 0.4:
            t.env = sorted(rng.sample(ENVS, rng.randint(1, 2)))
        t.greedy = rng.random() < 0.12
        t.peek = None
        if rng.random() < 0.15:
            t.peek = rng.choice(["secret.txt", "../a/top.txt", "../b/secret.txt", "src/x.ign"])
        t.stray = self.ignored and rng.random() < 0.06

    def draw_key(self, t):
        """Which keys are folded into its own, and its probes."""
        rng, up = self.rng, self.upstream(t)
        if not t.cached:
            return
        if up and rng.random() < 0.35:
            u = rng.choice(up)
            t.select = rng.choice([[], ["*"], ["^*"], ["*", "^*", "!" + u.id], ["!" + u.id, "*", "^*"], [u.id],
                                   ["*#build", "^g*"], ["^*", "!*#gen.*", u.id], ["!*", "a#*"]])  # fmt: skip
        if rng.random() < 0.25:
            quoted = shlex.quote(self.top + "/probe.")
            t.probes = rng.sample([
                ("runtime", "cat %sa" % quoted, "file", "a"),
                ("runtime", "cat %sb && echo ' warn' >&2" % quoted, "file", "b"),
                ("workspaceRuntime", "cat %sa" % quoted, "file", "a"),
                ("workspaceRuntime", "echo ${PROP_A-unset}", "env", "PROP_A"),
            ], rng.randint(1, 2))  # fmt: skip
        loose = [u for u in up if u not in self.folded(t) and u.cached]
        for u in loose:
            plain = [o[1] for o in u.made if o[0] == "file" and o[1].endswith(("/o", ".bin", ".js"))]
            if plain and rng.random() < 0.6:
                path = os.path.relpath(u.project.dir + "/" + plain[0], t.project.dir)
                if rng.random() < 0.5:
                    t.probes.append(("runtime", "cat %s 2>/dev/null || :" % path, "out", u.project.dir + "/" + plain[0]))
                else:
                    t.peek = path

    def draw_grants(self, t):
        """An exec.sandbox: what the task needs, or not quite."""
        rng = self.rng
        if t.ops is not None or rng.random() > 0.22:
            return
        allow, deny = {}, {}
        if t.cached:
            read = rng.choice([["src", "conf", "top.txt"], ["src/**", "conf/*", "top.txt"], ["src/*.c"], ["."], ["**/*.c"], []])
            read = read + ["secret.txt"] * (rng.random() < 0.3)
            if t.workspace and rng.random() < 0.7:
                read += ["../" * (t.project.dir.count("/") + 1) + rng.choice(["shared", "shared/**", "shared/*.txt"])]
            for u in self.folded(t):
                if u.cached and rng.random() < 0.8:
                    read += [os.path.relpath(u.project.dir + "/" + h, t.project.dir) for h in self.heads(u)]
            if t.peek and rng.random() < 0.5:
                read += [t.peek]
            # All or nothing: what is not granted may fail for the command already, and how far it came is not to be told.
            write = rng.choice([self.flat(t), self.heads(t)]) if rng.random() < 0.85 else []
        else:
            read = rng.choice([["src"], ["."], ["src/*.c"], []])
            write = rng.choice([["work"], ["work"], ["work/**"], ["."], []])
        if rng.random() < 0.3:
            deny["read"] = rng.sample(["src/sub", "src/*.c", "src/.hid.c", "secret.txt", "conf/x"], rng.randint(1, 2))
        if "." in write and rng.random() < 0.4:
            deny["write"] = ["work"]
        if read:
            allow["read"] = sorted(set(read))
        if write:
            allow["write"] = write
        t.grants = {**({"allow": allow} if allow else {}), **({"deny": deny} if deny else {})}

    def write_command(self, t):
        ops = []
        if not t.cached:
            ops += [("read", ".", "^src/.*$", r"\.ign$", "dist,out,work,node_modules"), ("check", "PROP_FAIL")]
            ops += [("file", "work/%s.ign" % t.name, "644", "1")]
        else:
            if t.greedy:
                ops += [("read", ".", "^src/.*$", "^$", "dist,out,work,node_modules")]
            neg = r"(\.ign|\.tsbuildinfo)$"
            if [x for x in t.inputs if x.startswith("!")]:
                neg = "(%s|%s)" % (neg, whole([x[1:] for x in t.inputs if x.startswith("!")]))
            pos = whole([x for x in t.inputs if not x.startswith("!")])
            skip = "dist,out,work,node_modules" + (",n" if t.project.name == "a" and "n" in self.projects else "")
            ops += [("read", ".", pos, neg, skip)]
            if t.workspace:
                up = os.path.relpath(".", t.project.dir)
                g = Globs(t.workspace)
                pos = whole(["shared/" + x for x in ("**", "*.txt") if "shared/" + x in g.pos] or ["shared"])
                # Paths from the base, not from the root.
                pos = pos.replace("shared(/.*)?", ".*").replace("shared/", "")
                ops += [("read", up + "/shared", pos, r"\.md$" if g.neg else "^$", "")]
            ops += [("env", e) for e in t.env]
            for u in self.folded(t):
                for head in sorted(set(self.heads(u))):
                    base = os.path.relpath(u.project.dir + "/" + os.path.dirname(head), t.project.dir)
                    pos = whole([x[len(os.path.dirname(head)) + 1 :] for x in self.flat(u) if x.startswith(head)])
                    neg = "^$"
                    if u.outputs[1:] and u.outputs[1].startswith("!"):
                        neg = whole([u.outputs[1][1 + len(os.path.dirname(head)) + 1 :]])
                    ops += [("read", base, pos, neg, "")]
            if t.peek:
                ops += [("peek", t.peek)]
            made = [(o[0], escape(o[1]), *o[2:]) + (("2000" if self.rng.random() < 0.02 else "1",) if o[0] == "file" else ())
                    for o in t.made]  # fmt: skip
            cut = self.rng.randint(0, len(made))
            ops += made[:cut] + [("check", "PROP_FAIL")] + made[cut:]
            if t.stray:
                ops += [("file", "work/%s.stray.ign" % t.name, "644", "1")]
        t.ops = ops + [("edit", "PROP_EDIT")]
        words = [self.top + "/maker", self.top + "/log", t.id] + [w for op in t.ops for w in op] + ["--"]
        t.command = " ".join(shlex.quote(w) for w in words)

    def flat(self, u):
        return [e for x in u.outputs or [] if not x.startswith("!") for e in expand_braces(x)]

    def heads(self, u):
        return [h for h in Globs(self.flat(u)).heads()]

    # What `dependsOn` names.
    def upstream(self, t):
        out = {}

        def take(project, name):
            if name.endswith("*"):
                hits = [u for n, u in project.tasks.items() if n.startswith(name[:-1])]
            else:
                hits = [u for n, u in project.tasks.items() if n == name]
            out.update({u.id: u for u in hits if u is not t})
            return bool(hits)

        for d in t.depends:
            if d.startswith("^"):
                seen, todo = set(), list(t.project.deps)
                while todo:
                    name = todo.pop()
                    if name not in seen:
                        seen.add(name)
                        if not take(self.projects[name], d[1:]):
                            todo += self.projects[name].deps
            elif "#" in d:
                take(self.projects[d.split("#")[0]], d.split("#")[1])
            else:
                take(t.project, d)
        return [out[i] for i in sorted(out)]

    def folded(self, t):
        """Those whose keys are in its own."""
        up = self.upstream(t)
        if t.select is None:
            return up
        out = []
        for u in up:
            folds = False
            for entry in t.select:
                pattern = entry.lstrip("!")
                if "#" in pattern:
                    hit = fnmatch.fnmatchcase(u.id, pattern)
                elif pattern.startswith("^"):
                    hit = u.project is not t.project and fnmatch.fnmatchcase(u.name, pattern[1:])
                else:
                    hit = u.project is t.project and fnmatch.fnmatchcase(u.name, pattern)
                if hit:
                    folds = not entry.startswith("!")
            if folds:
                out.append(u)
        return out

    def closure(self, t):
        """Those whose keys are in its own, directly or through others."""
        done, todo = {}, self.folded(t)
        while todo:
            u = todo.pop()
            if u.id not in done:
                done[u.id] = u
                todo += self.folded(u)
        return list(done.values())

    def private(self, t):
        """Whether its probes run when its turn comes."""
        return bool(t.probes) and bool({u.id for u in self.order([t])[:-1] if u.ops} - {u.id for u in self.closure(t)})

    def late(self, t):
        """Whether its key is made when its turn comes, and not when the run starts."""
        order = self.order([t])
        return any(u.ops and not u.cached for u in order[:-1]) or any(self.private(u) for u in order)

    def order(self, roots):
        """Those tasks and all upstream of them, dependencies first."""
        done = {}

        def visit(t):
            if t.id not in done:
                for u in self.upstream(t):
                    visit(u)
                done[t.id] = t

        for t in roots:
            visit(t)
        return list(done.values())

    def tasks(self):
        return [t for p in self.projects.values() for t in p.tasks.values()]

    def owner(self, path):
        """The project that a file belongs to, and its path there."""
        best = None
        for p in self.projects.values():
            if path.startswith(p.dir + "/") and (best is None or len(p.dir) > len(best.dir)):
                best = p
        return (best, path[len(best.dir) + 1 :]) if best else (None, path)

    def write(self):
        rng = self.rng
        put = lambda path, data, mode=0o644: put_node(self.root + "/" + path, ("f", mode, data))
        settings = {"projects": ["p/*"] + ["p/a/n"] * ("n" in self.projects)}
        if self.maxsize:
            settings["cacheRetention"] = {"maxSize": self.maxsize}
        put("vx.workspace.json", json.dumps(settings).encode())
        put(".gitignore", b"*.ign\n" + (b"/p/**/dist\n/p/**/out\n/p/**/work\n" if self.ignored else b""))
        for path in SHARED:
            put(path, b"shared " + raw(path))
        for p in self.projects.values():
            self.write_config(p)
            if rng.random() < 0.5:
                put(p.dir + "/package.json", json.dumps({"name": p.name, "version": "1.0.0"}).encode())
            for path in SOURCES:
                if rng.random() < 0.7:
                    put(p.dir + "/" + path, b"%s %d\n" % (raw(path), rng.randint(0, 9)), rng.choice([0o644, 0o644, 0o755]))
            put(p.dir + "/src/a.c", b"a\n")
            put(p.dir + "/secret.txt", b"secret\n")
            put(p.dir + "/top.txt", b"top\n")

    def write_config(self, p):
        put_node(self.root + "/" + p.dir + "/vx.config.json", ("f", 0o644, p.config()))


# --- the model ---------------------------------------------------------------------------------


Entry = collections.namedtuple("Entry", "low high tree said")  # levels of its making; {path: node}; what it printed
# What the outputs were like at the last save or restore; `weak`: the entry may be of another run; `unsure`: so may the stamp.
Stamp = collections.namedtuple("Stamp", "key seen weak unsure")


class Model:
    def __init__(self, world):
        self.w = world
        self.entries = {}  # key: what may be stored under it: [Entry or None]
        self.stamps = {}  # task: Stamp
        self.tracked = set()
        self.keys, self.printed = {}, {}  # ours: that of vx, and back
        self.shaky = False  # somebody was at the blobs

    # Which files git lists.
    def listed(self, tree):
        out = set()
        for path, node in tree.items():
            if node[0] == "d":
                continue
            if path not in self.tracked:
                parts = path.split("/")
                if path.endswith(".ign") or "node_modules" in parts[:-1]:
                    continue
                if self.w.ignored and path.startswith("p/") and set(OUTPUT_DIRS) & set(parts[1:]):
                    continue
            out.add(path)
        out |= self.tracked - set(tree)  # deleted, and still listed: "absent" in the key
        return {p for p in out if not p.endswith(".tsbuildinfo")}

    def inputs(self, t, tree, listed):
        if not t.cached:
            return [p for p in listed if self.w.owner(p)[0] is t.project]
        files, everywhere, own = Globs(t.inputs), Globs(t.workspace), Globs(t.outputs)
        out = []
        for path in listed:
            project, rel = self.w.owner(path)
            if project is t.project and own.selects(rel):
                continue
            if (project is t.project and files.selects(rel)) or everywhere.selects(path):
                out.append(path)
        return out

    def key(self, t, tree, listed, env, args, keys, probes):
        upstream = sorted(keys[u.id] for u in self.w.folded(t))
        if not t.ops:
            parts = ("group", upstream)
        else:
            manifest = tree.get(t.project.dir + "/package.json")
            locks = [(n, identity(tree[n])) for n in LOCKS if n in tree]
            parts = (
                t.id, locks, manifest and identity(manifest), json.dumps(t.config(), sort_keys=True), args,
                [(n, env.get(n)) for n in t.env], probes, upstream,
                sorted((p, identity(tree.get(p))) for p in self.inputs(t, tree, listed)),
            )  # fmt: skip
        return hashlib.sha1(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def selected(self, t, tree):
        if not t.cached:
            return {}
        g, out = Globs(t.outputs), {}
        for path, node in tree.items():
            project, rel = self.w.owner(path)
            if project is t.project and g.selects(rel, node[0] == "d"):
                out[path] = node
        return out

    # What a sandbox shows to a task.
    def visible(self, t, tree, listed):
        out = set()
        if t.grants is not None:
            return {p for p in tree if self.granted(t, p, "read", tree[p][0] == "d")} - set(self.selected(t, tree))
        for path in tree:
            project, rel = self.w.owner(path)
            if not t.cached and project is t.project:
                out.add(path)
        if t.cached:
            out |= set(self.inputs(t, tree, listed))
            out.add(t.project.dir + "/package.json")
        for u in self.w.closure(t):
            out |= set(self.selected(u, tree))
        return out & set(tree)

    def rules(self, t):
        """The entries of exec.sandbox: where, allowed or denied, the pattern, and where its literal part ends."""
        for how in ("allow", "deny"):
            for kind, entries in t.grants.get(how, {}).items():
                for entry in entries:
                    for pattern in expand_braces(os.path.normpath(t.project.dir + "/" + entry)):
                        globs = Globs([pattern])
                        yield kind, how == "deny", globs, next(globs.heads())

    def granted(self, t, path, kind, directory=False):
        """Whether exec.sandbox lets the task read or write that."""
        project = self.w.owner(path)[0]
        best = (-1, True)
        for of, deny, globs, head in self.rules(t):
            if of != kind and (deny or of != "write"):
                continue
            if project and project is not t.project and project.dir.startswith(t.project.dir + "/"):
                if not (head + "/").startswith(project.dir + "/"):
                    continue  # a project inside this one
            if globs.selects(path, directory):
                best = max(best, (len(head.split("/")), deny))
        return not best[1]

    def open_heads(self, t):
        """Where what it may see begins: the directories above can be passed."""
        out = [t.project.dir]
        if t.grants is not None:
            return out + [head for kind, deny, globs, head in self.rules(t) if not deny]
        for u in [*self.w.closure(t), t]:
            out += [u.project.dir + "/" + h for h in Globs(u.outputs or []).heads()]
        return out

    def execute(self, t, tree, env, args, visible):
        """What the command does: its exit code, what it writes, what it prints, and findings."""
        d, writes, found, edit, read = Digest(), {}, False, None, set()
        for a in args:
            d.fold(raw(a))

        def at(rel):
            return os.path.normpath(t.project.dir + "/" + rel)

        def write(rel, node):
            path = at(unescape(rel))
            parent = os.path.dirname(path)
            while parent != t.project.dir and parent not in writes:
                writes[parent] = ("d", 0o755)
                parent = os.path.dirname(parent)
            writes[path] = node

        def content(arg, lines):
            return b"%016x %s\n" % (d.h, raw(arg)) * lines

        code = 0
        for op in t.ops:
            if op[0] == "read":
                base = at(op[1]) + "/"
                pos, neg = (re.compile(py(x), re.S) for x in op[2:4])
                d.fold(b"read")
                if visible is not None:
                    found |= self.denied(t, base[:-1], tree, visible)
                hits = []
                for path, node in tree.items():
                    if node[0] == "d" or not path.startswith(base) or (visible is not None and path not in visible):
                        continue
                    rel = path[len(base) :]
                    if rel.split("/")[0] in op[4].split(",") or not pos.search(rel) or neg.search(rel):
                        continue
                    hits.append((raw(rel), rel, node))
                for _, rel, node in sorted(hits):
                    d.fold_node(node, rel)
                    read.add(base + rel)
            elif op[0] == "peek":
                node = tree.get(at(op[1]))
                if node and node[0] != "d" and (visible is None or at(op[1]) in visible):
                    d.fold_node(node, op[1])
                    read.add(at(op[1]))
                else:
                    found |= visible is not None and self.denied(t, at(op[1]), tree, visible)
                    d.fold(b"none")
            elif op[0] == "env":
                value = env.get(op[1])
                d.fold(b"unset" if value is None else b"set")
                d.fold(raw(value or ""))
            elif op[0] == "check":
                if d.saw_fail:
                    code = 3
                elif env.get(op[1]) == t.id:
                    code = 7
                if code:
                    break
            elif op[0] == "file":
                write(op[1], ("f", int(op[2], 8), content(op[1], int(op[3]))))
            elif op[0] == "vary":
                write("%s%d" % (op[1], d.h % 3), ("f", 0o644, content("%s%d" % (op[1], d.h % 3), 1)))
            elif op[0] == "link":
                write(op[1], ("l", op[2]))
            elif op[0] == "dir":
                write(op[1], ("d", int(op[2], 8)))
            elif op[0] == "edit" and env.get(op[1], "").split(" ")[0] == t.id:
                path = at(unescape(env[op[1]].split(" ")[2]))
                if visible is not None and path not in visible:
                    found |= self.denied(t, path, tree, visible)
                edit = self.edited(t, env[op[1]], tree, visible)
        said = "made %s %016x\nalso %s %016x\n" % (t.id, d.h, t.id, d.h) if not code else ""
        return code, writes, said, found and visible is not None, edit, read

    def denied(self, t, path, tree, visible):
        """Whether a look-up of a path that is not shown is a finding: the first name on the way that is not
        shown either is there, and in the project."""
        parts = path.split("/")
        heads = self.open_heads(t)
        for n in range(1, len(parts) + 1):
            above = "/".join(parts[:n])
            shown = above in visible or any(v.startswith(above + "/") for v in [*visible, *heads])
            # A file where a grant begins is shown if it is granted: `deny` may name it, too.
            shown |= above in heads and tree.get(above, ("",))[0] == "d"
            if t.grants is not None:
                shown |= tree.get(above, ("",))[0] == "d" and any(not deny and globs.leads_through(above) for _, deny, globs, _ in self.rules(t))
            elif not t.cached:
                shown |= self.w.owner(above + "/x")[0] is t.project
            if above.startswith(t.project.dir + "/") and Globs(t.outputs or []).covers(above[len(t.project.dir) + 1 :]):
                return False
            if not shown:
                return above in tree and (above + "/").startswith(t.project.dir + "/")
        return False

    def clean(self, t, tree):
        for path in self.selected(t, tree):
            if tree[path][0] != "d":
                del tree[path]
        kept = {t.project.dir + "/" + h for h in Globs([x for x in t.outputs if not is_literal(x)]).heads()}
        for path in sorted(set(self.selected(t, tree)) - kept, reverse=True):
            if not any(p.startswith(path + "/") for p in tree):
                del tree[path]

    def commit(self, t, tree, writes, sandbox):
        found = False
        g = Globs(t.outputs) if t.cached else None
        for path, node in writes.items():
            rel = path[len(t.project.dir) + 1 :]
            is_dir = node[0] == "d"
            if sandbox and t.grants is not None:
                # The directories above what is granted are part of the grant.
                above = any(q.startswith(path + "/") and self.granted(t, q, "write", n[0] == "d") for q, n in writes.items())
                ours = self.granted(t, path, "write", is_dir)
                if not ours and not (is_dir and (above or path in tree)):
                    found = True
                if not ours and not (is_dir and above):
                    continue
            elif sandbox and g and not is_dir and not g.covers(rel):
                found = True
                continue
            if is_dir and path in tree and tree[path][0] == "d" and not (g and g.selects(rel, True) and sandbox):
                # mkdir of what is there changes nothing, but maker's `dir` sets a mode.
                if not any(op[0] == "dir" and unescape(op[1]) == rel for op in t.ops):
                    continue
            tree[path] = node
        return found

    # How the outputs on disk compare with the last stamp: 'same', 'maybe' (only a directory in which one
    # could appear has changed) or 'changed'.
    def seen(self, t, tree):
        stat = {p: stat_of(self.w.root + "/" + p) for p in self.selected(t, tree)}
        around = {}
        for head in Globs(t.outputs).heads():
            path = t.project.dir + "/" + head
            if path in tree and tree[path][0] == "d":
                below = [p for p in tree if p.startswith(path + "/") and tree[p][0] == "d"] + [path]
            elif path in tree:
                below = []
            else:
                while path not in tree:
                    path = os.path.dirname(path)
                below = [path]
            around.update({p: stat_of(self.w.root + "/" + p) for p in below})
        return stat, around

    def compare(self, t, seen, key):
        stamp = self.stamps.get(t.id)
        if not stamp or stamp.key != key:
            return "changed"
        if seen[0] != stamp.seen[0]:
            return "changed"
        return "same" if seen[1] == stamp.seen[1] else "maybe"

    def edited(self, t, edit, tree, visible):
        """What the command did to a file that is no output: its path and what it is then."""
        who, how, rel, text = edit.split(" ")
        path = os.path.normpath(t.project.dir + "/" + unescape(rel))
        node = tree.get(path) if visible is None or path in visible else None
        if how == "write":
            return path, ("f", 0o644, raw(text))
        if node is None:
            return None
        if how == "delete":
            return path, None
        if how == "exec":
            return path, ("f", 0o644 if node[1] & 0o111 else 0o755, node[2])
        return path, node  # touched, moved away and back, or given the mode that it has

    def store(self, key, made, certain):
        """What may be stored then, and whether another result may have stayed there."""
        now, kept = [], False
        for old in self.entries.get(key, [None]):
            if not certain:
                now.append(old)
            if old and (old.tree, old.said) == (made.tree, made.said):
                # Which of the two is not to be told.
                now.append(made._replace(low=max(made.low, old.low), high=max(made.high, old.high)))
                kept |= made.low < old.high
                continue
            if not old or made.high >= old.low or self.shaky:
                now.append(made)
            if old and made.low < old.high:
                now.append(old)
                kept = True
        self.entries[key] = [e for n, e in enumerate(now) if e not in now[:n]]
        return kept

    def run(self, roots, how, args, env, probed, log, observed, before, after, seen, frames):
        """Judges what vx did. Returns the tree that must be there, the exit code, who ran, the tasks whose
        outputs are all known, and the stamps."""
        w, tree = self.w, dict(before)
        ran, exact, stamps = [], [], {}
        keys, bad, tainted = {}, {}, set()
        listed = start = self.listed(before)
        touched = []  # files that a command edited, in order
        moved = {}  # task: True, or None where it cannot be told, if its key is not true any more
        editor = env.get("PROP_EDIT", "").split(" ")[0]
        lock = editor and unescape(env["PROP_EDIT"].split(" ")[2]).split("/")[-1] in LOCKS
        broken = False  # the fingerprint has changed
        stopped = how.go_on == "never" and any(o[0].startswith("failed") for o in observed.values())
        order = self.in_order(roots, log, {i for i, o in observed.items() if o[0] != "success"} - set(log))
        up = {t.id: {u.id for u in w.order([t])} for t in order}
        for t in order:
            mine = tuple(args) if t in roots and t.ops else ()
            late = w.late(t)
            since = len(touched) if late else 0
            key_tree, key_listed = (tree, listed) if late else (before, start)
            probes = self.probe(t, tree if w.private(t) else before, env, probed)
            folds = w.folded(t)
            if probes is None or any(keys.get(u.id) is None for u in folds):
                keys[t.id] = key = None
            else:
                keys[t.id] = key = self.key(t, key_tree, key_listed, env, mine, keys, probes)
            upstream = w.upstream(t)
            failed = [u.id for u in upstream if bad.get(u.id)]
            if any(u.id in tainted for u in upstream):
                tainted.add(t.id)
            if any(moved.get(u.id) for u in folds):
                moved[t.id] = True
            elif any(u.id in moved for u in upstream):
                moved[t.id] = None  # by the pages, one that does not fold it is saved; vx does not save it either
            if not t.ops:
                bad[t.id] = bool(failed)
                continue
            if t.id not in observed:
                raise Wrong("%s: vx does not mention it" % t.id)
            outcome, printed = observed.pop(t.id)
            apart = editor in up and t.id not in up[editor] and editor not in up[t.id]
            # Keys. That of a task whose turn comes after the fingerprint has moved may be either.
            if printed and printed != "-" and not (lock and t.id not in up.get(editor, ())):
                if key is None and (probes is None or printed in self.printed):
                    raise Wrong("%s: key %s, though a probe failed" % (t.id, printed))
                if key and self.keys.setdefault(key, printed) != printed:
                    raise Wrong("%s: another key for the same state: %s, was %s" % (t.id, printed, self.keys[key]))
                if key and self.printed.setdefault(printed, key) != key:
                    raise Wrong("%s: the same key %s for another state" % (t.id, printed))
            # What may happen.
            confined = how.sandbox or (t.grants is not None and not how.off)
            known = self.entries.get(key, [None]) if t.cached and how.read and key else [None]
            good = [e for e in known if e and (e.low or not how.sandbox)]
            sure = len(good) == len(known)
            state = self.compare(t, seen[t.id], key) if t.cached else None
            stamp = self.stamps.get(t.id)
            weak = stamp and stamp.weak
            may = set()
            if good:
                here = self.selected(t, before)
                if state == "same":
                    may |= {"up-to-date"}
                elif state == "maybe":
                    may |= {"up-to-date", "restored-local"}
                else:
                    may |= {"restored-local"}
                    if not here and not all(e.tree for e in good):
                        may |= {"up-to-date"}
                if weak:
                    may |= {"restored-local"}
                    if how.sandbox and here not in [e.tree for e in good]:
                        may -= {"up-to-date"}
                if stamp and stamp.unsure:
                    may |= {"restored-local"}
                if broken and late:
                    may = {"ran"}  # nothing is looked up
                elif lock and t.id not in up[editor]:
                    may |= {"ran"}
            if not good or not sure or self.shaky:
                may |= {"ran"}
            if late and (t.id in moved or t.id in tainted):
                # It may come after a task that is not saved: then it is not looked up in its turn (What is not saved).
                may |= {"ran"}
            if failed and how.go_on != "always":
                may = may - {"ran"} | {"skipped"}
            elif failed and good:
                may |= {"ran"}
            if stopped:
                may |= {"skipped"}
            if probes is None:
                may = {"refused"} | ({"skipped"} if failed or stopped else set())
            COUNT[outcome.split()[0]] = COUNT.get(outcome.split()[0], 0) + 1
            kind = "ran" if outcome == "success" or outcome.startswith("failed") else outcome.split()[0]
            if kind == "ran" and probes is None:
                kind = "refused" if outcome.startswith("failed") and t.id not in log else kind
            if kind not in may:
                raise Wrong("%s: %s; expected %s" % (t.id, outcome, " or ".join(sorted(may))))
            # What it comes to.
            if kind == "refused":
                bad[t.id] = True
                tainted.add(t.id)
                continue
            if kind == "skipped":
                bad[t.id] = True
                continue
            if kind in ("up-to-date", "restored-local"):
                there = self.selected(t, after)
                entry = next((e for e in good if e.tree == there and self.is_said(t, e.said, frames)), good[0])
                if not self.shaky:
                    self.entries[key] = [e for e in good if e.tree == entry.tree]
                self.check_said(t, entry.said, frames)
                exact.append(t)
                if t.id in moved:
                    moved[t.id] = None  # its key is one of a state that was; whether that goes on to others, no page says
                if kind == "restored-local":
                    for path in self.selected(t, tree):
                        del tree[path]
                    tree.update(entry.tree)
                    stamps[t.id] = Stamp(key, None, False, False)
                elif not (weak and not how.sandbox) and self.selected(t, tree) != entry.tree:
                    raise Wrong("%s: up to date, but the outputs are not those of the entry:\n%s"
                                % (t.id, difference(entry.tree, self.selected(t, tree))))  # fmt: skip
                continue
            ran.append(t.id)
            visible = self.visible(t, tree, listed) if confined else None
            if confined and t.cached:
                covered = {p for u in w.closure(t) for p in self.selected(u, tree)}
                # Of what is in its key, the inputs are as well: of a command without `cache`, all files of its project.
                for u in [t, *w.closure(t)]:
                    if u.ops:
                        covered |= set(self.inputs(u, key_tree, key_listed)) | {u.project.dir + "/package.json"}
                beyond = {p for p in visible - covered if tree[p][0] != "d" and "node_modules" not in p.split("/")}
            if t.cached and (how.write or confined):
                # Of a result that is not stored, known by name is what it left: that of a sandbox with --no-cache, too.
                stamps[t.id] = None
                if confined and t.grants is not None and not t.grants.get("allow", {}).get("write"):
                    # Outputs that it may not write: whether those of before go, the pages do not say.
                    for path in self.selected(t, tree):
                        if path not in after:
                            del tree[path]
                else:
                    self.clean(t, tree)
                    exact.append(t)
            code, writes, said, found, edit, read = self.execute(t, tree, env, mine, visible)
            if edit and confined and not self.may_write(t, edit[0]):
                found, edit, stray = True, None, True  # it may fail already for the command
            else:
                stray = False
            found |= self.commit(t, tree, writes, confined)
            if edit:
                path, node = edit
                if lock and identity(node) != identity(tree.get(path)):
                    broken = True
                touched.append(path)
                tree.pop(path, None)
                if node:
                    tree[path] = node
                listed = self.listed(tree)
            ok = code == 0 and not found
            if ok != (outcome == "success"):
                raise Wrong("%s: %s; expected exit %d%s" % (t.id, outcome, code, ", findings" if found else ""))
            if found and t.grants is not None:
                stray = True
            elif not ok:
                want = "failed (exit %d" % code
                if code and not outcome.startswith(want):
                    raise Wrong("%s: %s; expected %s)" % (t.id, outcome, want))
            if not ok:
                bad[t.id] = True
                tainted.add(t.id)
            if not stray:
                self.check_said(t, said, frames)
            # What is saved.
            inputs = set(self.inputs(t, key_tree, key_listed)) | set(self.inputs(t, tree, listed))
            inputs.add(t.project.dir + "/package.json")
            if lock and edit:
                inputs.add(edit[0])  # whatever it holds then
            # Before it began, content is what counts; afterwards the same bytes do, too.
            changed = {p for p in touched[since:] if identity(tree.get(p)) != identity(key_tree.get(p))}
            changed = inputs & (changed | ({edit[0]} if edit else set()))
            if not t.cached:
                # Whether its key is still good for those that fold it, the pages do not say.
                if changed:
                    moved.setdefault(t.id, None)
                continue
            if not how.write:
                if changed:
                    moved.setdefault(t.id, None)
                continue
            stamps[t.id] = None
            certain = moved.get(t.id, False)
            notes = re.findall(r"^note: not saved: (.*)$", (frames or {}).get(t.id, ""), re.M)
            above = [n for n in notes if ", which it needs, " in n]
            note = next((n for n in notes if n not in above), None)
            if above and not (t.id in tainted or t.id in moved):
                raise Wrong("%s: %s" % (t.id, above[0]))
            if above and certain is None:
                moved[t.id] = certain = True
            if frames is not None and ok and not above and not broken and (t.id in tainted or certain is True):
                raise Wrong("%s: something that it needs was not saved or failed, and it is not said" % t.id)
            if changed or (broken and editor == t.id):
                said_above = certain is True  # of a task whose key is in its own
                moved[t.id] = certain = True
                if not said_above and frames is not None and ok and t.id not in tainted and not broken and not note:
                    raise Wrong("%s: %s changed, and it is not said" % (t.id, ", ".join(sorted(changed))))
            elif broken:
                certain = True
            elif apart and (lock or self.would_change(t, env, tree, listed)):
                # It ended before the editor began, but perhaps its saving did not.
                certain = None if frames is None else bool(note)
                if certain is not False:
                    moved.setdefault(t.id, certain)
            elif certain is False and confined and not how.alone and any(
                i != t.id and i not in up[t.id] and t.id not in up[i] for i in log
            ):
                # Where it might look, what another one made meanwhile may have come.
                certain = None if frames is None else bool(note)
                if note and "came while it ran" not in note:
                    raise Wrong("%s: %s" % (t.id, "not saved: " + note))
                if certain is not False:
                    moved.setdefault(t.id, certain)
            elif note and certain is False:
                raise Wrong("%s: %s" % (t.id, "not saved: " + note))
            # Of a name that came or went it may speak as of an input.
            unnamed = note in ("an input changed before it ran", "an input changed while it ran")
            unnamed = unnamed and any((c in key_tree) != (c in tree) for c in changed)
            if note and changed and not broken and not unnamed and not any(repr(c)[1:-1] in note for c in changed):
                if not any(set(c) - set(map(chr, range(32, 127))) for c in changed):
                    raise Wrong("%s: %s; but what changed is %s" % (t.id, "not saved: " + note, sorted(changed)))
            if key and ok and t.id not in tainted and certain is not True:
                level = (0, 0)
                if confined:
                    # What the tasks in its key take back with `!`: whether it may be read, the pages do not say.
                    back = any(x.startswith("!") for u in w.closure(t) for x in u.outputs or [])
                    # And what others make meanwhile may be names that come where a grant of its own would show them.
                    amid = t.grants is not None and not how.alone
                    level = (1, 1) if read & beyond else (1, 2) if beyond or back or amid else (2, 2)
                if confined and frames is not None:
                    noted = "confined, not proven" in frames[t.id]
                    if int(not noted) + 1 not in range(level[0], level[1] + 1):
                        raise Wrong("%s: %s; beyond its key: %s" % (t.id, frames[t.id] if noted else "no note", sorted(beyond)))
                    level = (1, 1) if noted else (2, 2)
                made = Entry(*level, self.selected(t, tree), said)
                kept = self.store(key, made, certain is False)
                stamps[t.id] = Stamp(key, None, kept, certain is None or kept)
            elif certain:
                COUNT["not saved"] = COUNT.get("not saved", 0) + 1
        failures = [n for n, i in enumerate(log) if bad.get(i)]
        if how.alone and how.go_on == "never" and failures and failures[0] != len(log) - 1:
            raise Wrong("%s began after %s had failed" % (log[failures[0] + 1], log[failures[0]]))
        if self.w.maxsize:
            self.doubt()
        if observed:
            raise Wrong("vx mentions %s, which are not in the run" % ", ".join(sorted(observed)))
        return tree, int(any(bad.values())), ran, exact, stamps

    def doubt(self):
        """Any entry may be gone."""
        self.entries = {k: e + [None] * (None not in e) for k, e in self.entries.items()}

    def in_order(self, roots, log, free):
        """Dependencies first, and what ran as it began. Those that need a hit, or what a probe failed at the start,
        wait for nothing above it."""

        def merged(free):
            began = {i: n for n, i in enumerate(log)}
            left = {t.id: t for t in self.w.order(roots)}
            while left:
                ready = [t for t in left.values() if t.id in free or not any(u.id in left for u in self.w.upstream(t))]
                t = min(ready, key=lambda t: began.get(t.id, -1))
                yield left.pop(t.id)

        order = [t.id for t in merged(free) if t.id in log]
        if order != log:
            raise Wrong("began before what it depends on: %s, not %s" % (" ".join(log), " ".join(order)))
        return list(merged(()))

    def would_change(self, t, env, tree, listed):
        """Whether what is to be edited in this run is among the inputs of a task."""
        who, how, rel, text = env["PROP_EDIT"].split(" ")
        path = os.path.normpath(next(u for u in self.w.tasks() if u.id == who).project.dir + "/" + unescape(rel))
        then = {**tree, path: tree.get(path, ("f", 0o644, b""))}
        return path in self.inputs(t, then, self.listed(then))

    def probe(self, t, tree, env, probed):
        """What the probes of a task print, or None if one fails."""
        out = []
        for where, command, what, arg in t.probes:
            if what == "file":
                data = probed.get(arg)
                if data is None:
                    return None
                value = (data.strip(), "warn" if ">&2" in command else "")
            elif what == "env":
                value = (env.get(arg, "unset").strip(), "")
            else:
                node = tree.get(arg)
                value = (node[2].decode().strip() if node and node[0] == "f" else "", "")
            out.append((where, command, value))
        return sorted(out)

    def may_write(self, t, path):
        """Whether a sandboxed task may write that file, which is no output."""
        if t.grants is not None:
            return self.granted(t, path, "write")
        return not t.cached and self.w.owner(path)[0] is t.project

    def is_said(self, t, said, frames):
        if frames is None or not said or t.id not in frames:
            return True
        got = [x for x in frames[t.id].split("\n") if x.startswith(("made ", "also "))]
        return sorted(got) == sorted(said.split("\n")[:2])

    def check_said(self, t, said, frames):
        if not self.is_said(t, said, frames):
            raise Wrong("%s: printed %r; expected %r" % (t.id, frames[t.id], said))

    def after(self, tree, stamps):
        for id_, stamp in stamps.items():
            t = next(t for t in self.w.tasks() if t.id == id_)
            if stamp is None:
                self.stamps.pop(id_, None)
            else:
                self.stamps[id_] = stamp._replace(seen=self.seen(t, tree))


def environment(top):
    env = {"PATH": os.environ["PATH"], "HOME": top + "/home", "LC_ALL": "C.UTF-8"}
    for name in ("VX_SCRATCH_DIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    return env


def holders(pipes):
    """Who keeps our pipes from ending."""
    names = {os.readlink("/proc/self/fd/%d" % f.fileno()) for f in pipes}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) != os.getpid() and names & {os.readlink(e.path) for e in os.scandir("/proc/%s/fd" % pid)}:
                with open("/proc/%s/cmdline" % pid) as args, open("/proc/%s/wchan" % pid) as wchan:
                    yield "%s %s %s" % (pid, args.read().replace("\0", " ")[:200], wchan.read())
        except OSError:
            pass  # it is gone, or somebody else's


def difference(want, got):
    lines = []
    for path in sorted(set(want) | set(got)):
        if want.get(path) != got.get(path):
            lines.append("  %r: expected %s, is %s" % (path, short(want.get(path)), short(got.get(path))))
    return "\n".join(lines[:12])


def short(node):
    if node is None:
        return "nothing"
    if node[0] == "d":
        return "directory %o" % node[1]
    if node[0] == "l":
        return "link to %r" % node[1]
    return "file %o %r" % (node[1], node[2][:60])


# --- steps -------------------------------------------------------------------------------------


class Session:
    """One workspace, its model, and the steps done to it."""

    def __init__(self, seed, top):
        self.top = top
        self.w = World(seed, top)
        self.m = Model(self.w)
        self.undo = None  # the file that a command edited in the last run, and what it was
        self.env, self.past, self.probed = {}, [], {"a": "1\n", "b": "1\n"}
        self.w.write()
        for name in self.probed:
            self.write_probe(name)
        self.told = []
        self.log = os.open(top + "/log", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if self.w.git:
            self.git("init", "-q")
            self.add()

    def close(self):
        os.close(self.log)

    def git(self, *args):
        subprocess.run(
            ["git", "-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@example.invalid",
             "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *args],
            cwd=self.w.root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def add(self):
        self.git("add", "-A")
        out = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=self.w.root, check=True, capture_output=True)
        self.m.tracked = {os.fsdecode(x) for x in out.stdout.split(b"\0") if x}

    def sources(self, tree=None):
        tree = tree or snapshot(self.w.root)
        return {
            p: n for p, n in tree.items()
            if n[0] != "d" and not set(OUTPUT_DIRS) & set(p.split("/")) and not p.endswith("vx.config.json")
        }  # fmt: skip

    def step(self, seed):
        rng = random.Random(seed)
        if self.undo and rng.random() < 0.5:
            # Back to what was when the command began that edited it: what was not saved then is now missed.
            path, node, again = self.undo
            if node:
                self.put(path, node)
            else:
                self.delete(path)
        else:
            again = None
            for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
                self.change(rng)
        self.undo = None
        self.run(rng, again)

    def tell(self, what):
        self.told.append(what)

    def change(self, rng):
        w, root = self.w, self.w.root
        p = rng.choice(list(w.projects.values()))
        files = sorted(f for f in self.sources() if w.owner(f)[0] is p and os.path.basename(f) != "package.json")
        kind = rng.choices(
            ["edit", "delete", "rename", "chmod", "link", "touch", "undeclared", "fail", "env", "failenv", "manifest",
             "lock", "config", "outputs", "revert", "commit", "lose", "shared", "probe", "prune"],
            [14, 5, 4, 5, 3, 3, 8, 2, 8, 3, 3, 2, 4, 22, 12, 3, 4, 5, 5, 3],
        )[0]  # fmt: skip
        if kind == "edit":
            path = p.dir + "/" + rng.choice(SOURCES * 2 + ODD)
            self.put(path, ("f", rng.choice([0o644, 0o644, 0o755, 0o600]), b"%d\n" % rng.randint(0, 5)))
        elif kind == "undeclared":
            path = p.dir + "/" + rng.choice(UNDECLARED)
            self.put(path, ("f", 0o644, b"%d\n" % rng.randint(0, 5)))
        elif kind == "shared":
            path = rng.choice(SHARED)
            if rng.random() < 0.3:
                self.delete(path)
            else:
                self.put(path, ("f", 0o644, b"%d\n" % rng.randint(0, 5)))
        elif kind in ("delete", "rename", "chmod", "link", "touch"):
            if not files:
                return
            path = rng.choice(files)
            node = self.sources().get(path)
            if kind == "delete":
                self.delete(path)
            elif kind == "rename":
                to = p.dir + "/" + rng.choice(SOURCES + ODD)
                if to != path:
                    self.put(to, node)
                    self.delete(path)
            elif kind == "chmod" and node[0] == "f":
                self.put(path, ("f", rng.choice([0o644, 0o755, 0o700, 0o600]), node[2]), touch=False)
            elif kind == "link":
                self.put(path, ("l", rng.choice(["a.c", "/nowhere", "../top.txt", "../../b/src"])))
            elif kind == "touch":
                self.tell("touch %r" % path)
                os.utime(root + "/" + path, follow_symlinks=False)
        elif kind == "fail":
            self.put(p.dir + "/src/b.c", ("f", 0o644, b"FAIL\n"))
        elif kind == "env":
            name, value = rng.choice(ENVS), rng.choice([None, "", "x", "y"])
            self.env.pop(name, None)
            if value is not None:
                self.env[name] = value
            self.tell("env %s=%r" % (name, value))
        elif kind == "failenv":
            self.env.pop("PROP_FAIL", None)
            if rng.random() < 0.6:
                self.env["PROP_FAIL"] = rng.choice(w.tasks()).id
            self.tell("env PROP_FAIL=%s" % self.env.get("PROP_FAIL"))
        elif kind == "manifest":
            data = json.dumps({"name": p.name, "version": "1.0.%d" % rng.randint(0, 3)}).encode()
            self.put(p.dir + "/package.json", ("f", 0o644, data))
        elif kind == "lock":
            path = rng.choice(["bun.lock", ".npmrc"])
            if rng.random() < 0.4:
                self.delete(path)
            else:
                self.put(path, ("f", 0o644, b"# %d\n" % rng.randint(0, 2)))
        elif kind == "config":
            t = rng.choice(list(p.tasks.values()) or [None])
            if rng.random() < 0.4:
                p.blank = rng.choice(["", "// x\n", " \n"])
                self.tell("config of %s: blanks" % p.name)
            elif t and t.ops:
                t.salt = rng.choice(["", "true; "])
                self.tell("config of %s: command %r" % (t.id, t.salt))
            elif t:
                t.description = rng.choice([None, "words"])
                self.tell("config of %s: description" % t.id)
            w.write_config(p)
        elif kind == "outputs":
            self.change_outputs(rng)
        elif kind == "revert" and self.past:
            sources, env = rng.choice(self.past)
            now = self.sources()
            self.tell("revert to an earlier state")
            for path in set(now) - set(sources):
                self.delete(path, tell=False)
            for path, node in sources.items():
                if now.get(path) != node:
                    self.put(path, node, tell=False)
            self.env = dict(env)
        elif kind == "commit" and w.git and w.ignored:
            self.tell("git add -A, commit")
            self.add()
            self.git("commit", "-q", "--allow-empty", "-m", "x")
        elif kind == "lose":
            self.lose(rng)
        elif kind == "probe":
            name, value = rng.choice("ab"), rng.choice(["1\n", "1", " 1 \n\n", "2\n", "x\\y\nz\n", "", None])
            self.tell("probe %s prints %r" % (name, value))
            self.probed[name] = value
            self.write_probe(name)
        elif kind == "prune":
            self.prune(rng)

    def change_outputs(self, rng):
        w = self.w
        tree = snapshot(w.root)
        chosen = [(t, p) for t in w.tasks() for p in sorted(self.m.selected(t, tree))]
        if not chosen:
            return
        t, path = rng.choice(chosen)
        node = tree[path]
        kind = rng.choice(["delete", "delete", "edit", "chmod", "touch", "add", "beside", "link", "tree"])
        full = w.root + "/" + path
        self.tell("outputs of %s: %s %r" % (t.id, kind, path))
        if kind == "delete":
            remove(full)
        elif kind == "tree":
            remove(w.root + "/" + t.project.dir + "/dist")
        elif kind == "edit" and node[0] == "f":
            # In place, also to the same size.
            os.chmod(full, node[1] | 0o600)
            with open(full, "r+b") as f:
                f.write(b"Z")
        elif kind == "chmod" and node[0] == "f":
            os.chmod(full, rng.choice([0o644, 0o755, 0o600, 0o400]))
        elif kind == "chmod" and node[0] == "d" and path.count("/") > 3:
            os.chmod(full, rng.choice([0o755, 0o700]))
        elif kind == "touch":
            os.utime(full, follow_symlinks=False)
        elif kind == "link" and node[0] == "f":
            remove(full)
            os.symlink("o", full)
        elif kind in ("add", "beside"):
            dir_ = full if node[0] == "d" else os.path.dirname(full)
            put_node(dir_ + ("/extra.o" if kind == "add" else "/extra.txt"), ("f", 0o644, b"extra"))

    def write_probe(self, name):
        path, value = self.top + "/probe." + name, self.probed[name]
        remove(path)
        if value is not None:
            put_node(path, ("f", 0o644, value.encode()))

    def prune(self, rng):
        blobs = self.w.root + "/.vx/cache/blobs"
        limit = rng.choice(["--max-size=1K", "--max-size=60K", "--max-size=100T", "--older-than=1d"])
        argv = [VX, "cache", "prune", *limit.split("="), "--format", "json"] + ["--dry-run"] * (rng.random() < 0.2)
        self.tell(" ".join(argv))
        if not os.path.isdir(blobs):
            return
        vx = subprocess.run(argv, cwd=self.w.root, env=environment(self.top), stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=LIMIT)  # fmt: skip
        self.out = (vx.stdout + vx.stderr).decode("utf-8", "replace")
        if vx.returncode:
            raise Wrong("vx cache prune: exit %d" % vx.returncode)
        gone = json.loads(vx.stdout)["evicted"]
        least = sum(None not in e for e in self.m.entries.values())
        most = len([e for e in self.m.entries.values() if e != [None]])
        if self.m.shaky:
            least = 0  # rows whose blobs are gone are none
        elif gone > (most if limit.startswith("--max") and "T" not in limit else 0):
            raise Wrong("%d entries pruned; expected %d to %d" % (gone, least, most))
        if "--dry-run" in argv:
            return
        if limit == "--max-size=1K" and gone < least:
            raise Wrong("%d entries pruned; expected %d to %d" % (gone, least, most))
        if limit.endswith("K"):
            size = sum(os.lstat(os.path.join(d, f)).st_blocks * 512 for d, _, fs in os.walk(blobs) for f in fs)
            if size > int(limit[11:-1]) << 10:
                raise Wrong("%d bytes of blobs are left" % size)
            if limit == "--max-size=1K":
                self.m.entries = {}
            elif gone or self.m.shaky:
                self.m.doubt()

    def lose(self, rng):
        vx = self.w.root + "/.vx/"
        what = rng.choice(["stat", "sources", "state.db", "index.db", "blobs", "blob", "tamper"])
        self.tell("lose or spoil %s" % what)
        if what in ("stat", "sources"):
            remove(vx + what)
        elif what == "state.db":
            for x in ("", "-wal", "-shm"):
                remove(vx + "state.db" + x)
            self.m.stamps = {}
        elif what == "index.db":
            for x in ("", "-wal", "-shm"):
                remove(vx + "cache/index.db" + x)
            self.m.entries = {}
        else:
            blobs = sorted(os.path.join(d, f) for d, _, fs in os.walk(vx + "cache/blobs") for f in fs)
            if blobs:
                self.m.shaky = True
                for b in blobs if what == "blobs" else [rng.choice(blobs)]:
                    if what == "tamper":
                        os.chmod(b, 0o644)
                        with open(b, "r+b") as f:
                            f.write(b"Q")
                    else:
                        os.unlink(b)

    def put(self, path, node, touch=True, tell=True):
        if tell:
            self.tell("write %r: %s" % (path, short(node)))
        full = self.w.root + "/" + path
        if not touch and os.path.isfile(full):
            os.chmod(full, node[1])
        else:
            put_node(full, node)

    def delete(self, path, tell=True):
        if tell:
            self.tell("delete %r" % path)
        if not os.path.lexists(self.w.root + "/" + path):
            return
        remove(self.w.root + "/" + path)
        dir_ = os.path.dirname(path)
        while dir_ and not os.listdir(self.w.root + "/" + dir_):
            os.rmdir(self.w.root + "/" + dir_)
            dir_ = os.path.dirname(dir_)

    def select(self, rng):
        """Arguments of vx run, and the tasks they request."""
        w, args = self.w, []
        projects = list(w.projects.values())
        how = rng.choice(["all", "all", "all", "filter", "filter", "one"])
        holders = [p for p in projects if p.tasks]
        if how == "one":
            t = rng.choice([t for t in w.tasks()])
            return [t.id], [t]
        if how == "filter":
            p = rng.choice(holders)
            f = rng.choice(["%s", "%s...", "...%s", "./p/%s"]) % p.name
            if p.name == "n" and f.startswith("./"):
                f = "./p/a/n"
            chosen = {p.name}
            if f.endswith("..."):
                todo = list(p.deps)
                while todo:
                    x = todo.pop()
                    chosen.add(x)
                    todo += w.projects[x].deps
            if f.startswith("..."):
                while True:
                    more = {q.name for q in projects if set(q.deps) & chosen} - chosen
                    if not more:
                        break
                    chosen |= more
            args += ["--filter", f]
            if rng.random() < 0.2 and len(chosen) > 1:
                gone = rng.choice(sorted(chosen - {p.name}))
                chosen.discard(gone)
                args += ["--filter", "!" + gone]
            projects = [w.projects[x] for x in sorted(chosen)]
        else:
            args += ["--all"]
        if not any(p.tasks for p in projects):
            args, projects = ["--all"], [w.projects[x] for x in sorted(w.projects)]
        names = sorted({n for p in projects for n in p.tasks})
        names = rng.sample(names, rng.randint(1, min(3, len(names))))
        return names + args, [t for p in projects for t in p.tasks.values() if t.name in names]

    def run(self, rng, again):
        args, roots = again or self.select(rng)
        how = types.SimpleNamespace(sandbox=rng.random() < 0.29, off=False, read=True, write=True, go_on="deps-ok")
        flags = ["--sandbox"] * how.sandbox
        kind = rng.choices(["", "force", "no-cache"], [81, 11, 8])[0] if not again else ""
        if kind:
            flags += ["--" + kind]
            how.read, how.write = False, kind == "force"
            if rng.random() < 0.2:
                flags += ["--cache", "local:" + rng.choice(["r", "w", ""])]  # outranked
        elif rng.random() < 0.15:
            access = rng.choice(["r", "w", "rw", ""])
            flags += ["--cache", "local:" + access]
            how.read, how.write = "r" in access, "w" in access
        if not how.sandbox and rng.random() < 0.1:
            how.off = True
            flags += ["--sandbox=off"]
        if rng.random() < 0.3:
            how.go_on = rng.choice(["always", "never", "deps-ok"])
            flags += ["--continue=" + how.go_on]
        forwarded = []
        if rng.random() < 0.1 and any(t.ops for t in roots) and not again:
            forwarded = rng.sample(["--fast", "a b", "it's", "", "$HOME", "x\ny", "ü"], rng.randint(1, 2))
        full = rng.random() < 0.3
        before = snapshot(self.w.root)
        env = dict(self.env)
        edit = self.draw_edit(rng, roots, how, before) if rng.random() < 0.3 and not again else None
        if edit:
            env["PROP_EDIT"] = edit
            who, _, rel, _ = edit.split(" ")
            path = os.path.normpath(next(t for t in self.w.tasks() if t.id == who).project.dir + "/" + unescape(rel))
            self.undo = (path, before.get(path), (args, roots))
            self.tell("env PROP_EDIT=%s" % edit)
        # Who edits must be the only one at work.
        width = 1 if edit else rng.randint(1, 4)
        how.alone = width == 1
        argv = [VX, "run", *args, *flags, "--concurrency", str(width)]
        argv += ["--output-logs", "full" if full else "hash-only"]
        if forwarded:
            argv += ["--", *forwarded]
        self.tell("vx " + " ".join(shlex.quote(a) for a in argv[1:]))
        self.commands = ["%s: %s" % (t.id, json.dumps(t.config())) for t in self.w.order(roots)]
        seen = {t.id: self.m.seen(t, before) for t in self.w.order(roots) if t.cached}
        self.past.append((self.sources(before), dict(self.env)))
        vx = subprocess.Popen(argv, cwd=self.w.root, env={**environment(self.top), **env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        late = None
        try:
            streams = vx.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            late = "\n".join(holders([f for f in (vx.stdout, vx.stderr) if not f.closed]))
            vx.terminate()
            streams = vx.communicate()
        out, err = (x.decode("utf-8", "replace") for x in streams)
        self.out = out + err
        if late is not None:
            raise Wrong("vx did not end within %d s:\n%s" % (LIMIT, late))
        log = b""
        try:
            while True:
                log += os.read(self.log, 1 << 16)
        except BlockingIOError:
            pass
        observed, frames = self.parse(out, full)
        if full:
            # Lines of what was skipped are of no frame.
            for t in self.w.order(roots):
                if t.ops and t.id not in observed and re.search(r"skipped.*\b" + re.escape(t.id), out):
                    observed[t.id] = ("skipped", None)
        log, after = log.decode().split(), snapshot(self.w.root)
        want, code, ran, exact, stamps = self.m.run(
            roots, how, forwarded, env, self.probed, log, observed, before, after, seen, frames
        )
        if sorted(log) != sorted(ran):
            raise Wrong("commands that ran: %s; said to have run: %s" % (sorted(log), sorted(ran)))
        if vx.returncode != code:
            raise Wrong("exit code %d; expected %d" % (vx.returncode, code))
        places = [(t.project, Globs(t.outputs)) for t in exact]

        def strict(path):
            project, rel = self.w.owner(path)
            return any(project is p and g.selects(rel, True) for p, g in places)

        trees = [{p: n for p, n in x.items() if n[0] != "d" or strict(p)} for x in (want, after)]
        if trees[0] != trees[1]:
            raise Wrong("the workspace differs:\n" + difference(*trees))
        self.m.after(after, stamps)

    def draw_edit(self, rng, roots, how, tree):
        """What a command of this run does to a file that is no output: as maker's `edit` has it."""
        w = self.w
        order = [t for t in w.order(roots) if t.ops]
        up = {t.id: {u.id for u in w.order([t])} for t in order}
        files = [p for p in self.sources(tree) if tree[p][0] == "f" and not p.startswith(".git")]
        for _ in range(6 if order else 0):
            needed = [x for x in order if x.cached and any(x.id in up[y.id] for y in order if y.cached and y is not x)]
            t = rng.choice(needed if needed and rng.random() < 0.6 else order)
            u = rng.choice([t, rng.choice(order)])
            path = rng.choice([p for p in files if w.owner(p)[0] in (t.project, u.project)] + [
                u.project.dir + "/" + rng.choice(SOURCES + UNDECLARED), rng.choice(SHARED)
            ])  # fmt: skip
            read = sorted(p for p in self.m.inputs(u, tree, self.m.listed(tree)) if p in files)
            if read and rng.random() < 0.7:
                path = rng.choice(read)
            if rng.random() < 0.2:
                path = rng.choice(LOCKS)
            kind = rng.choice(["write"] * 5 + ["same", "touch", "move", "mode", "exec", "delete"])
            confined = how.sandbox or (t.grants is not None and not how.off)
            if path.endswith("package.json") and kind not in ("touch", "move"):
                continue  # it is to remain one
            if confined and path.endswith(".tsbuildinfo"):
                continue  # thrown away silently
            if confined and kind not in ("write", "delete"):
                continue
            if tree.get(os.path.dirname(path), ("d",))[0] != "d" or tree.get(path, ("f",))[0] != "f" or len(raw(path)) > 200:
                continue
            if "/" in path and os.path.dirname(path) not in tree:
                continue
            then = {**tree, path: tree.get(path, ("f", 0o644, b""))}
            listed = self.m.listed(then)
            if any(t.id not in up[x.id] and x.id not in up[t.id] and w.late(x) and path in self.m.inputs(x, then, listed)
                   for x in order):  # fmt: skip
                continue  # when its key is made is not to be told
            return "%s %s %s e%d" % (t.id, kind, escape(os.path.relpath(path, t.project.dir)), rng.randint(0, 999))
        return None

    def parse(self, out, full):
        observed, frames = {}, None
        if not full:
            for line in out.split("\n"):
                m = re.match(r"(success|up-to-date|restored-local|failed \(.*?\)|skipped(?: • blocked by \S+)?) (\S+#\S+) (\S+)$", line)
                if m:
                    observed[m.group(2)] = (m.group(1), m.group(3))
            return observed, None
        frames, now = {}, None
        for line in out.split("\n"):
            m = re.match(r"┌─ (\S+) > (.*)$", line)
            if m:
                now = m.group(1)
                observed[now] = (m.group(2), None)
                frames[now] = ""
            elif line.startswith("└─ "):
                now = None
            elif now:
                frames[now] += line + "\n"
        return observed, frames


# --- the harness -------------------------------------------------------------------------------


class Arena:
    """A directory that is gone in the end."""

    def __init__(self):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="vx-test.", dir=os.environ.get("VX_TEST_DIR", "/var/tmp")))
        os.chmod(self.top, 0o755)

    def fresh(self):
        for name in os.listdir(self.top):
            remove(self.top + "/" + name)
        os.mkdir(self.top + "/ws")
        os.mkdir(self.top + "/home")  # the log must not be in it: a sandbox shows home through an overlay
        os.mkfifo(self.top + "/log")
        shutil.copy(BUILDDIR + "/maker", self.top + "/maker")
        return self.top

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)


def replay(arena, seed, steps):
    """None, or (what is wrong, the session, how many steps were done)."""
    s = Session(seed, arena.fresh())
    try:
        for n, step in enumerate(steps):
            s.tell("step %d:" % step)
            try:
                s.step(step)
            except Wrong as e:
                return str(e), s, n + 1
        return None, s, len(steps)
    finally:
        s.close()


def shrink(arena, seed, steps):
    """Fewer steps that still go wrong, at most about a minute of it."""
    budget = 150
    i = len(steps) - 2
    while i >= 0 and budget > 0:
        fewer = steps[:i] + steps[i + 1 :]
        wrong, _, n = replay(arena, seed, fewer)
        budget -= 1
        if wrong:
            steps = fewer[:n]
            i = min(i, len(steps) - 1)
        i -= 1
    return steps


def cannot():
    """Why not here: the model is one of sandboxes that report."""
    flags = "--user --map-root-user --mount --pid --fork --net --ipc --uts --cgroup"
    try:
        if subprocess.run(["unshare", *flags.split(), "true"], stderr=subprocess.DEVNULL).returncode:
            return "no namespaces here"
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
        return None if shutil.which("git") else "no git here"
    except OSError as e:
        return str(e)


def main():
    os.umask(0o022)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    why = cannot()
    if why and os.environ.get("VX_SANDBOX_MUST_WORK"):
        print("not ok 1 - %s\n1..1" % why)
        sys.exit(1)
    if why:
        print("1..0 # SKIP %s" % why)
        return
    arena = Arena()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds = int(os.environ.get("VX_PROP_ROUNDS", DEFAULT_ROUNDS))
    only = os.environ.get("VX_PROP_SEED")
    seed, failed = int(only or os.environ.get("VX_PROP_FIRST", 1)), 0
    keep = False
    try:
        done = workspaces = 0
        while done < rounds and failed < int(os.environ.get("VX_PROP_FAILURES", 1)):
            steps = [seed * 1000 + n for n in range(STEPS)]
            wrong, s, n = replay(arena, seed, steps)
            done += n
            workspaces += 1
            if wrong:
                failed += 1
                steps = shrink(arena, seed, steps[:n])
                again, t, _ = replay(arena, seed, steps)
                s = t if again else s  # what happened once is told as it was then
                print("not ok %d - seed %d" % (failed, seed))
                for line in (s.told + ["git: %s, outputs ignored: %s" % (s.w.git, s.w.ignored), again or "not again: " + wrong]
                             + s.out.split("\n")[-40:] + s.commands):  # fmt: skip
                    print("# " + line.replace("\n", "\n# "))
                sys.stdout.flush()
                if os.environ.get("VX_PROP_KEEP"):
                    keep = True
                    print("# kept: %s" % arena.top)
                    break
            if only:
                break
            seed += 1
        if not failed:
            print("ok 1 - %d runs, %d workspaces, are as the model says" % (done, workspaces))
            print("# " + ", ".join("%d %s" % (COUNT[k], k) for k in sorted(COUNT)))
        print("1..%d" % max(1, failed))
    finally:
        if not keep:
            arena.remove()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
