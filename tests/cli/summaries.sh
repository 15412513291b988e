#!/bin/sh
# SPDX-License-Identifier: MIT
# A run in writing: --summarize, --profile, --report, --report-file, --tag.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/lib/vx.config.json <<'E'
{ "name": "lib", "tasks": {
	"build": { "exec": { "command": "echo lib" }, "cache": { "inputs": { "files": ["in"] }, "outputs": { "files": [] } } },
	"other": { "exec": { "command": "true" } },
	"all": { "dependsOn": ["build", "other"] }
} }
E
put p/app/vx.config.json <<'E'
{ "name": "app", "dependencies": ["lib"], "tasks": {
	"build": { "dependsOn": ["^all"], "exec": { "command": "exit 3" } },
	"test": { "dependsOn": ["build"], "exec": { "command": "true" } },
	"slow": { "exec": { "command": "sleep 100", "timeout": 50 } }
} }
E
echo 1 >p/lib/in

cat >"$T/check.py" <<'E'
import json, re, sys
# A shape: a type, a tuple of them, a pattern, a list of one shape, an object ("?" behind a name: it need not be there).
def check(v, shape, at):
    if isinstance(shape, dict):
        assert isinstance(v, dict), (at, v)
        names = {k.rstrip("?"): k for k in shape}
        assert set(v) <= set(names), (at, set(v) - set(names))
        for name, k in names.items():
            assert name in v or k.endswith("?"), (at, name)
            if name in v:
                check(v[name], shape[k], at + "." + name)
    elif isinstance(shape, list):
        assert isinstance(v, list), (at, v)
        for i, x in enumerate(v):
            check(x, shape[0], "%s[%d]" % (at, i))
    elif isinstance(shape, str):
        assert isinstance(v, str) and re.fullmatch(shape, v), (at, v)
    else:
        assert isinstance(v, shape) and (shape is bool or not isinstance(v, bool)), (at, v)
number = (int, float)
TASK = {
    "id": str, "project": str, "task": str, "status": "success|cache-hit|failed|skipped",
    "cache": "up-to-date|restored|miss|no-cache", "hash": (str, type(None)), "exitCode": int,
    "durationMs": number, "wallclockStartNs": r"\d+", "wallclockEndNs": r"\d+", "cpuMs?": number, "peakRssBytes?": int,
    "storedCpuMs?": number, "storedPeakRssBytes?": int, "noCache?": bool, "missReason?": str, "persistent?": bool, "notReady?": bool, "timedOut?": bool, "blockedBy?": str,
    "flaky?": {"passes": int, "failures": int, "attempts": int}, "sandboxViolations?": int,
    "denials?": [{"operation": str, "path": str, "class": "finding|walled|probe|ignored", "program?": str, "pid?": int, "grant?": str}],
}
SUMMARY = {
    "version": int, "vx": str, "runId": r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "command": str, "tags?": dict, "ok": bool, "exitCode": int, "startedAt": int, "endedAt": int, "totalMs": number,
    "tasks": [TASK], "aborted": [str], "notRun": [str],
    "summary": {"total": int, "success": int, "failed": int, "skipped": int, "upToDate": int, "restored": int, "missed": int, "noCache": int},
}
d = json.load(open(sys.argv[1]))
check(d, SUMMARY, "")
s = d["summary"]
assert d["version"] == 1 and d["ok"] == (d["exitCode"] == 0)
assert len(d["tasks"]) == s["total"] == s["success"] + s["failed"] + s["skipped"] + s["upToDate"] + s["restored"]
assert abs(d["endedAt"] - d["startedAt"] - d["totalMs"]) <= 2
for t in d["tasks"]:
    assert ("noCache" in t) == (t["cache"] == "no-cache" and t["status"] in ("success", "failed")), t
    assert int(t["wallclockEndNs"]) >= int(t["wallclockStartNs"]), t
E
# FILE EXPRESSION: of d, the document, and t, its tasks by id.
of() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
t = {x["id"]: x for x in d.get("tasks", [])}
print(eval(sys.argv[2]))' "$1" "$2"
}
# Two values of the last run in the history.
known() {
	python3 -c 'import sqlite3
print(*sqlite3.connect(".vx/history.db").execute("SELECT run_id, tags FROM runs").fetchall()[-1])'
}

run run test slow --all --continue=deps-ok --summarize --tag team=web --tag url=a=b --tag team=x
exits 1 "a run with all of it"
is "$(find .vx/runs -type f | wc -l)" 1 "one file"
file=$(echo .vx/runs/*)
ok "of its form" python3 "$T/check.py" "$file"
is "$(of "$file" '"%s.json" % d["runId"]')" "${file##*/}" "it has the name of the run"
is "$(known)" "$(of "$file" 'd["runId"]') {\"team\":\"x\",\"url\":\"a=b\"}" "which the history knows, with its tags"
is "$(of "$file" 'd["tags"]')" "{'team': 'x', 'url': 'a=b'}" "the last value of a tag, split at its first ="
is "$(of "$file" 'sorted(t)')" "['app#build', 'app#slow', 'app#test', 'lib#build', 'lib#other']" "all tasks, no groups"
is "$(of "$file" 't["app#build"]["status"], t["app#build"]["exitCode"]')" "('failed', 3)" "a failure"
is "$(of "$file" 't["app#test"]["status"], t["app#test"]["blockedBy"]')" "('skipped', 'app#build')" "what it keeps from running"
is "$(of "$file" 't["app#slow"]["timedOut"], t["app#slow"]["exitCode"]')" "(True, 143)" "a time-out"
is "$(of "$file" 't["lib#build"]["missReason"], t["lib#build"]["cache"]')" "('no earlier run recorded', 'miss')" "why it missed"
made=$(of "$file" '[t["lib#build"].get(x) for x in ("cpuMs", "peakRssBytes")]')
ok "what it used" test "${made%%,*}" != "[None"
is "$(of "$file" 'd["ok"], d["exitCode"], d["summary"]["failed"], d["command"]')" \
	"(False, 1, 2, 'vx run test slow --all --continue=deps-ok --summarize --tag team=web --tag url=a=b --tag team=x')" "and the whole"

mkdir sub
cd sub || exit 99
run run lib#all --summarize=s.json --profile --report-file=r.md
exits 0 "into files from the current directory"
ok "of its form again" python3 "$T/check.py" s.json
is "$(of s.json 't["lib#build"]["cache"], t["lib#build"]["status"]')" "('up-to-date', 'cache-hit')" "a hit"
is "$(of s.json '[t["lib#build"].get(x) for x in ("storedCpuMs", "storedPeakRssBytes")]')" "$made" "what it used when it was made"
is "$(of s.json '[x for x in ("cpuMs", "peakRssBytes") if x in t["lib#build"]]')" "[]" "and nothing in this run"
ok "profile.json" test -s profile.json
ok "nowhere else" test ! -e ../profile.json
echo mine >"$T/victim"
ln -sf "$T/victim" profile.json
run run lib#all --profile
exits 0 "a link is where the profile goes"
is "$(cat "$T/victim")" mine "and is not followed, as nobody has named it"
rm profile.json
cd .. || exit 99
run run lib#all --report-file=sub/r.md
is "$(grep -c '^## vx: 2 tasks' sub/r.md)" 2 "--report-file appends"
said_not '^## vx' "and prints nothing"
run run test --all --report
said '^## vx: 4 tasks, 1 failed, 1 skipped, 1 cached \(25%\), ' "--report prints a page"
said '^\| ❌ app#build \| failed \(exit 3\) \| [0-9.]+m?s \| no-cache \|$' "with failures"
said '^\| ⚠️ app#test \| skipped • blocked by app#build \|  \|  \|$' "what was skipped"
said '^Critical path, .*: lib#other → app#build$' "and what took longest"
is "$(tail -n 1 "$OUT" | wc -c)" 1 "below the footer"
put 'p/odd/vx.config.json' <<'E'
{ "name": "odd|<b>`x`", "tasks": { "t": { "exec": { "command": "true" } } } }
E
run run 'odd|<b>`x`#t' --report=markdown
said '^\| ✅ odd\\\|\\<b\\>\\`x\\`#t \|' "names are no markup"
said '^`` vx run odd\|<b>`x`#t --report=markdown ``$' "nor is the command"

# A trace.
run run app#build --continue=always --profile=trace.json --force
cat >"$T/trace.py" <<'E'
import json
d = json.load(open("trace.json"))
ev = d["traceEvents"]
lanes = {e["tid"]: e["args"]["name"] for e in ev if e["name"] == "thread_name"}
x = [e for e in ev if e["ph"] == "X"]
for e in x:
    assert e["ts"] >= 0 and e["dur"] >= 0 and e["pid"] == 1 and e["args"]["hash"], e
print(sorted(lanes[e["tid"]].replace("lib (2)", "lib") + ": " + e["args"]["id"] for e in x if lanes[e["tid"]] != "critical path"))
critical = {e["args"]["id"] for e in x if e["args"]["critical"]}
print(sorted(critical - {"lib#build", "lib#other"}), len(critical))
print({e["args"]["id"] for e in x if lanes[e["tid"]] == "critical path"} == critical)
by = {}
for e in x:
    by.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
print(all(a[1] <= b[0] + 0.01 for v in by.values() for a, b in zip(sorted(v), sorted(v)[1:])))
E
is "$(python3 "$T/trace.py")" "['app: app#build', 'lib: lib#build', 'lib: lib#other']
['app#build'] 2
True
True" "lanes of projects and of the critical path, in none of which anything overlaps"

# What cannot be written is a warning.
run run lib#all --summarize=no/such/dir --profile=no/such/dir --report-file=no/such/dir
exits 0 "files that cannot be written"
said 'vx: --summarize: cannot write no/such/dir: No such file' "--summarize warns"
said 'vx: --profile: cannot write no/such/dir: No such file' "--profile warns"
said 'vx: --report-file: cannot write no/such/dir: No such file' "--report-file warns"
fifo nobody
run run lib#all --profile="$T/nobody"
exits 0 "a fifo that nobody reads is not waited for"
said 'vx: --profile: cannot write .*/nobody: No such device' "it is told"
rm -rf .vx/runs
mkdir elsewhere
ln -s ../elsewhere .vx/runs
run run lib#all --summarize
said 'vx: --summarize: cannot write .*/.vx/runs/' "a link in .vx is not followed"
is "$(find elsewhere -type f)" "" "wherever it leads"
rm .vx/runs

# Stopped.
fifo up go
put p/app/vx.config.json <<E
{ "name": "app", "tasks": {
	"wait": { "exec": { "command": "echo waiting for db; echo up >$T/up; read -r x <$T/go" } },
	"then": { "dependsOn": ["wait"], "exec": { "command": "true" } } } }
E
export CI=1
bg run app#then --summarize=stopped.json
unset CI
await up >/dev/null || fail "the task did not start"
kill -s INT "$BG"
bg_wait
exits 130 "a run that is stopped"
said '^waiting for db$' "shows what those had printed that it aborted, where all is shown"
ok "has a summary, too" python3 "$T/check.py" stopped.json
is "$(of stopped.json 'd["exitCode"], d["aborted"], d["notRun"], d["tasks"]')" "(130, ['app#wait'], ['app#then'], [])" "of what was aborted and what did not run"

# Of servers: how they end is known when they have.
put p/app/vx.config.json <<E
{ "name": "app", "tasks": {
	"dies": { "exec": { "command": "echo is ready; read -r x <$T/go; exit 4", "persistent": { "readyWhen": "ready" } } },
	"slow": { "exec": { "command": "echo up >$T/up; read -r x <$T/go", "persistent": { "readyWhen": "never" } } },
	"bad": { "exec": { "command": "read -r x <$T/up; exit 1" } } } }
E
fifo log
own
"$VX" run app#dies --summarize=dies.json --report-file=dies.md >"$T/log" 2>"$ERR" </dev/null &
BG=$!
timeout 30 sed -n '/^result/q' "$T/log"
echo now >"$T/go"
bg_wait
exits 1 "a server that fails in the foreground"
ok "has a summary" python3 "$T/check.py" dies.json
is "$(of dies.json 'd["ok"], d["exitCode"], t["app#dies"]["status"], t["app#dies"]["exitCode"]')" "(False, 1, 'failed', 4)" "of its end"
ok "and a page" grep -q '❌ app#dies' dies.md
run run app#slow app#bad --summarize=slow.json
exits 1 "one that is not ready yet when another task fails"
is "$(of slow.json 'd["aborted"], sorted(t)')" "(['app#slow'], ['app#bad'])" "was aborted"
said '✗ .*aborted +.*app#slow' "which is said"

# Words.
for flag in summarize profile report report-file=x; do
	run run lib#all --dry --$flag
	exits 2 "--dry --$flag"
	said "vx: --${flag%=*} tells of a run, and --dry runs nothing: ask for one of them" "--dry --$flag: why"
	run run lib#all --graph --$flag
	said "vx: --${flag%=*} tells of a run, and --graph runs nothing" "--graph --$flag: why"
done
run run lib#all --report=html
said "vx: --report=html: write markdown" "--report=html"
run run lib#all --tag =x
exits 2 "a tag without a name"
said 'vx: --tag==x: a tag is a name and a value: --tag=NAME=VALUE' "and why"
run run lib#all --tag x
said 'vx: --tag=x: a tag is a name and a value' "one without a value"
run run lib#all --report-file -x
exits 2 "--report-file takes no flag for its file"
if can_sandbox; then
	put p/box/vx.config.json <<'E'
{ "name": "box", "tasks": { "t": { "exec": { "command": "cat secret; true", "sandbox": {} } } } }
E
	echo s >p/box/secret
	run run box#t --summarize=box.json
	ok "denials are of their form" python3 "$T/check.py" box.json
	is "$(of box.json 't["box#t"]["sandboxViolations"] > 0')" True "they are counted"
else
	skip "denials are of their form" "no namespaces here"
fi
# Files of vx's own are nobody's to write.
mkdir -p .vx/runs elsewhere
ln -sf ../.vx/lock elsewhere/link
for file in .vx/lock .vx/new.file sub/../.vx/history.db elsewhere/link .vx/cache/index.db; do
	for flag in summarize profile report-file graph; do
		[ "$flag $file" != "graph .vx/cache/index.db" ] || continue
		run run lib#all "--$flag=$file"
		exits 2 "--$flag=$file"
		said "^vx: --$flag=$file: is among vx's own files: choose a file outside of /.*/\.vx(/cache)?$" "is refused"
	done
done
ok "none of them was made" test ! -e .vx/new.file
run run lib#all --summarize=.vx/runs/mine.json
exits 0 "beside other summaries"
ok "there is room" test -s .vx/runs/mine.json

done_testing
