#!/bin/sh
# SPDX-License-Identifier: MIT
# Workspaces and projects whose names mean something to globs, shells and lists: grants, denies, outputs and what is
# derived hold for them as for all others.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program python3 git

cat >"$T/odd.py" <<'E2'
import json, os, subprocess, sys
vx, top = sys.argv[1:]
escaped = lambda s: "".join("\\" + c if c in "*?{}[]()!\\," else c for c in s)
task = {"exec": {"command": "cat src/a; cat ../lib*/l src/no.md 2>&1; echo x >out; mkdir -p gen; echo y >gen/b.txt"},
        "cache": {"inputs": {"files": ["src/**", "!src/*.md"], "workspaceFiles": ["**/lib\\[2\\]/l"]},
                  "outputs": {"files": ["out", "gen/*.txt"]}}}
sandbox = {"allow": {"read": ["src/**", "../lib\\[2\\]/l"], "write": ["out", "gen/*.txt"]},
           "deny": {"read": ["src/*.md"]}, "ignore": {"read": ["src/*.md"]}}

def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)

def wrong(workspace, project, own):
    root = "%s/%s" % (top, workspace)
    p = root + "/" + project
    write(root + "/.gitignore", ".vx\n")
    write(root + "/vx.workspace.json", json.dumps({"projects": ["./" + escaped(project)]}))
    write(os.path.dirname(p) + "/lib[2]/l", "lib\n")
    write(p + "/src/a", "hi\n")
    write(p + "/src/no.md", "not seen\n")
    t = dict(task, exec=dict(task["exec"], sandbox=sandbox)) if own else task
    if not own:
        t["exec"]["command"] = t["exec"]["command"].replace(" src/no.md 2>&1", "")
    write(p + "/vx.config.json", json.dumps({"name": "app", "tasks": {"t": t}}))
    subprocess.run(["git", "init", "-q", root], check=True)
    for i in range(2):
        r = subprocess.run([vx, "run", "app#t", "--sandbox"], cwd=p, capture_output=True, text=True, errors="replace")
        out = r.stdout + r.stderr
        if r.returncode or "\nhi\n" not in out or "\nlib\n" not in out or "\nnot seen\n" in out:
            return out
        if open(p + "/out").read() != "x\n" or open(p + "/gen/b.txt").read() != "y\n":
            return "outputs\n" + out
        if i and "up-to-date" not in out:
            return "no hit\n" + out

names = ["p[1]*", "p{a,b}", "!neg", "p\\q", "p\nq", "-p", "p:q", "p:q,r", "@s/p", "~p", "~", "^p", "$p", "a b", "\u00fc"]
workspaces = ["w [x]*?{a},!b", "w\\s", "w\nn", "-dash", "w,x=y:z", "w%s", "w\"q'", "w\x1bz", "$HOME", "#;", " lead "]
for own in True, False:
    for w, p in [("plain", p) for p in names] + [(w, "p") for w in workspaces]:
        why = wrong("%s-%s" % (w, own), p, own)
        print("%s %s: %s" % ("ok" if not why else "not ok", "its own grants" if own else "derived grants", ascii((w, p))))
        if why:
            print(why, file=sys.stderr)
E2
python3 "$T/odd.py" "$VX" "$T" >"$OUT" 2>"$ERR"
is "$(grep -c '^ok' "$OUT")" 52 "all were tried, and hold"
unlike "$OUT" '^not ok' "none does not"
done_testing
