#!/bin/sh
# SPDX-License-Identifier: MIT
# --dry as text and as JSON (docs/DRY.md), with predicted times, and --graph.
. "${VX_SRCDIR:?}/tests/lib.sh"
require_program python3
cd "$W" || exit 99

echo '{ "projects": ["p/*"] }' >vx.workspace.json
put p/lib/vx.config.json <<'E'
{ "name": "lib", "tasks": {
  "build": { "description": "makes \"lib\"", "exec": { "command": "sleep 0.2; echo x >out" },
    "cache": { "inputs": { "files": ["src/**"], "env": ["FLAVOUR"] }, "outputs": { "files": ["out"] } } } } }
E
put p/app/vx.config.json <<'E'
{ "name": "app", "dependencies": ["lib"], "tasks": {
  "build": { "exec": { "command": "sleep 0.2" }, "dependsOn": ["^build"],
    "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } },
  "check": { "exec": { "command": "true" }, "dependsOn": ["build"] },
  "late": { "exec": { "command": "true" }, "dependsOn": ["check"],
    "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } },
  "serve": { "exec": { "command": "true", "persistent": {} } },
  "all": { "dependsOn": ["build", "check"] },
  "e2e": { "exec": { "command": "true" }, "dependsOn": ["serve"],
    "cache": { "inputs": { "files": ["src/**"] }, "outputs": { "files": [] } } } } }
E
echo 1 | put p/lib/src/f
echo 1 | put p/app/src/f

# Python over the answer: t is tasks by id, d the whole.
holds() { # NAME EXPRESSION
	ok "$1" python3 -c 'import hashlib, json, sys
d = json.load(open(sys.argv[1]))
t = {x["id"]: x for x in d["tasks"]}
if not eval(sys.argv[2]): sys.exit(json.dumps(d, indent=1))' "$OUT" "$2"
}

run run all late e2e --filter app --dry
exits 0 "a plan"
said '^▶ lib#build  miss  [0-9a-f]{8}$' "a miss"
said '^    makes "lib"$' "its description"
said '^· app#check  no-cache  [0-9a-f]{8}$' "without a cache"
said '^\? app#late  known when its dependencies have run  --------$' "unknown"
said '^· app#serve  persistent  [0-9a-f]{8}$' "a server"
said '^○ app#all  group  --------$' "a group"
said '^6 tasks: 0 to be hits, 3 to miss, 2 without cache, 1 unknown$' "counted"
said '^predicted: nothing, as none of what may run has run before$' "no time without one that was measured"
ok "nothing ran" test ! -e p/lib/out
run run all late e2e --filter app --dry=json
exits 0 "the same in JSON"
is "$(cat "$ERR")" '' "with nothing on standard error"
holds "its version" 'd["version"] == 1 and list(d) == ["version", "tasks"]'
holds "tasks after what they depend on" 'all(list(t).index(u) < list(t).index(x["id"]) for x in d["tasks"] for u in x["deps"])'
holds "fields" 'list(t["lib#build"]) == ["id", "project", "dir", "task", "description", "requested", "hash", "cacheStatus", "deps", "keyText"]'
holds "their values" '[t["lib#build"][k] for k in ("id", "project", "dir", "task", "description", "requested", "cacheStatus", "deps")] == ["lib#build", "lib", "p/lib", "build", "makes \"lib\"", False, "miss", []]'
holds "what was asked for" '[x for x in t if t[x]["requested"]] == ["app#e2e", "app#all", "app#late"] or sorted(x for x in t if t[x]["requested"]) == ["app#all", "app#e2e", "app#late"]'
holds "states" '{x: t[x]["cacheStatus"] for x in t} == {"lib#build": "miss", "app#build": "miss", "app#check": "no-cache", "app#late": "unknown", "app#all": "group", "app#serve": "no-cache", "app#e2e": "miss"}'
holds "a key that is not known" 't["app#late"]["hash"] is None and "keyText" not in t["app#late"]'
holds "a key is the digest of its text" 'all(hashlib.sha256(x["keyText"].encode()).hexdigest() == x["hash"] for x in d["tasks"] if "keyText" in x)'
holds "nor one that is made of it" 't["app#all"]["hash"] is None and "keyText" not in t["app#all"]'
FLAVOUR=sweet
export FLAVOUR
run run lib#build --dry=json
holds "values of variables are in the text" '"FLAVOUR\0sweet\n" in t["lib#build"]["keyText"]'
unset FLAVOUR

run run app#build
run run app#build --dry=json
holds "hits need no time" 'd["predicted"] == {"wallMs": 0, "workMs": 0, "unknownCount": 0} and t["app#build"]["cacheStatus"] == "hit"'
run run app#build --dry
said '^◉ app#build  hit  [0-9a-f]{8}$' "a hit"
said_not 'predicted' "where all are there is nothing to predict"
run run app#build --force --dry=json --concurrency 8
holds "a chain takes as long as all of it" 'd["predicted"]["wallMs"] == d["predicted"]["workMs"] == t["app#build"]["p50Ms"] + t["lib#build"]["p50Ms"] >= 400'
run run app#build --force --dry
said '^▶ lib#build  miss  [0-9a-f]{8}  ~2[0-9][0-9]ms$' "the time of a task"
said '^predicted: ~[0-9.]+m?s wall · ~[0-9.]+m?s total$' "and of all"
run run app#build app#e2e --force --dry=json
holds "what never ran is counted" 'd["predicted"]["unknownCount"] == 1 and d["predicted"]["workMs"] > 0'
run run app#build app#e2e --force --dry
said ', without 1 task of which too little is known$' "and told"

# Two that do not wait for each other.
put p/two/vx.config.json <<'E'
{ "name": "two", "tasks": {
  "build": { "exec": { "command": "sleep 0.2" }, "cache": { "inputs": { "files": [] }, "outputs": { "files": [] } } } } }
E
run run two#build lib#build --force
run run two#build lib#build --force --dry=json --concurrency 2
holds "beside each other" 'd["predicted"]["wallMs"] == max(x["p50Ms"] for x in d["tasks"]) and d["predicted"]["workMs"] == sum(x["p50Ms"] for x in d["tasks"])'
run run two#build lib#build --force --dry=json --concurrency 1
holds "one after the other" 'd["predicted"]["wallMs"] == d["predicted"]["workMs"]'
run run app#serve --dry=json
holds "a server that was asked for" 't["app#serve"]["cacheStatus"] == "no-cache" and d["predicted"]["workMs"] == 0'
run run app#e2e
run run app#e2e --dry=json
holds "one that nothing needs" 't["app#serve"]["cacheStatus"] == "not-started"'
run run app#build --no-cache --dry=json
holds "without a cache" 't["app#build"]["cacheStatus"] == "no-cache"'

# Names that JSON cannot hold as they are.
put "p/lib/src/$(printf 'x\377"\134')" </dev/null
run run lib#build --dry=json
holds "bytes that are no UTF-8" '"p/lib/src/x\\xFF\"\\\\\0" in t["lib#build"]["keyText"]'

# A description cannot forge lines.
printf '{ "name": "odd", "tasks": { "t": { "description": "a\\n▶ x#y\\u001b[31m", "exec": { "command": "true" } } } }' | put p/odd/vx.config.json
run run t --all --dry
is "$(grep -c . "$OUT")" 4 "control bytes in a description"
not_ok "no escape byte" grep -q "$(printf '\033')" "$OUT"

# The graph.
run run app#all --graph
exits 0 "a graph"
is "$(cat "$OUT")" 'digraph vx {
	rankdir = LR;
	node [shape = box];
	"lib#build";
	"app#build";
	"app#check";
	"app#all" [shape = ellipse, style = bold];
	"app#build" -> "lib#build";
	"app#check" -> "app#build";
	"app#all" -> "app#build";
	"app#all" -> "app#check";
}' "in the DOT language"
cp "$OUT" "$T/graph"
run run app#all --graph=
exits 2 "an empty value of --graph"
said '^vx: --graph= has an empty value: write --graph alone, or --graph=FILE$' "is refused, as it is a variable that is not set"
run run --graph out.dot --all
exits 2 "a file without its ="
said 'no project declares a task "out\.dot"; did you mean --graph=out\.dot\?$' "is told apart from a task"
cd p || exit 99
run run app#all --graph=../x.dot
exits 0 "into a file"
is "$(cat "$OUT")" '' "and not to standard output"
ok "from the current directory" cmp ../x.dot "$T/graph"
rm ../x.dot
run run app#all --graph=/dev/stdout
ok "or into what is no file" cmp "$OUT" "$T/graph"
cd .. || exit 99
printf '{ "name": "o\\"x\\\\", "tasks": { "t": { "exec": { "command": "true" } } } }' | put p/odd/vx.config.json
run run t --all --graph
like "$OUT" '^	"o\\"x\\\\#t" \[style = bold\];$' "names in quotes"
if command -v dot >/dev/null; then
	ok "dot takes it" dot -Tsvg -o "$T/x.svg" "$OUT"
else
	skip "dot takes it" "no dot here"
fi
done_testing
