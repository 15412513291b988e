#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The schemas for editors say what vx says: about every config that the unit tests try, the examples, and a config
that holds every field, with each of its values replaced by others, left out, or in company that it has not.

A schema may refuse less than vx, where ONLY_VX says why, and never more. The judge is `schema-tool judge`.
"""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("1..0 # SKIP no python3-jsonschema")
    sys.exit(0)

SRC, BUILD = pathlib.Path(os.environ["VX_SRCDIR"]), pathlib.Path(os.environ["VX_BUILDDIR"])

# What a schema cannot tell, by the message.
ONLY_VX = [
    r"holds a NUL",
    r"(holds|entry of this list|selects|names nothing|takes it back|own outputs)",  # one entry against others
    r"is no regular expression",
    r"a regular expression is written without slashes",
    # grammars that are vx's; not that an entry is no string
    r"(inputs|outputs)\.(files|workspaceFiles)\[\d+\]: (?!is (an? |true|false|null))",
    r"sandbox\.(allow|deny|ignore)\.(read|write)\[\d+\]: (?!is (an? |true|false|null))",
    r"unixSockets(\[\d+\])?: (?!is (an? |true|false|null))",
    r"inputs\.tasks(\[\d+\])?: (?!is (an? |true|false|null))",
    r"projects\[\d+\]: (?!is (an? |true|false|null))",
    r"\[\d+\]: a task's name may hold no control character",
    r"cacheDir: .* holds (the workspace|a project)",
    r"exec\.remote: (\"only\" is for|a sandboxed task)",  # one field against others
    r"write a whole number",  # 1.0 is one for a schema
]

# Every field.
WHOLE = {
    "project": {
        "$schema": "x", "name": "app", "dependencies": ["lib"], "tags": ["web"],
        "tasks": {
            "build": {
                "description": "d", "dependsOn": ["gen", "^build", "lib#build", "//#x", "gen.*", "^gen.*"],
                "exec": {
                    "command": "make", "timeout": 1, "retries": 1, "remote": False,
                    "env": {"passThrough": ["A"], "define": {"B": "1"}, "secret": ["C"]},
                    "sandbox": {
                        "allow": {"read": ["src"], "write": ["dist"], "gitConfig": True, "unixSockets": ["/run/x"],
                                  "localBinding": True, "machLookup": ["m"], "pty": True, "systemInfo": ["s"]},
                        "deny": {"read": ["src/x"], "write": ["dist/x"]},
                        "ignore": {"read": ["a"], "write": ["b"], "network": ["h:1"], "systemInfo": ["s"]},
                        "nested": True, "view": "transaction", "weakerWhenNested": True, "hermetic": True,
                        "weakerNetworkIsolation": True}},
                "cache": {
                    "inputs": {"files": ["src/**"], "workspaceFiles": ["w"], "env": ["A"], "runtime": ["r"],
                               "workspaceRuntime": ["r"], "tasks": ["*", "^*", "!lib#build"]},
                    "outputs": {"files": ["dist/**"], "workspaceFiles": ["gen/**"]}}},
            "dev": {"exec": {"command": "serve", "persistent": {"readyWhen": "up"}, "sandbox": {"view": "live"}}},
            "all": {"dependsOn": []}}},
    "workspace": {
        "$schema": "x", "projects": ["packages/*", "!packages/x"], "concurrency": 2, "timeout": 1, "cacheDir": "c",
        "cacheRetention": {"olderThan": "30d", "maxSize": "10G"}, "affectedBase": "origin/main",
        "rules": {"exclusiveOutputs": True, "upfrontKeys": True}, "executors": ["./tools/x", "/opt/x"]},
}  # fmt: skip

OTHERS = [None, True, False, 0, 1, -1, 1.5, 2147483648, "", " ", "x", " x", "x ", "a#b", "a*", "^a", "!a", "//", "../x", "/x",
          "~/x", "~x", "$A", "a...", "a[b]", "10G", "1d", "live", "-x", "A=1", "*", "^*", "a#", "#a", "a#b#c", [], {}, [1],
          ["x"], [""], [["x"]], {"x": 1}, {"x": "y"}]  # fmt: skip
PROPERTY_NAMES = ["x", " x", "x ", "", "a#b", "a*", "^a", "!a", "1A", "A", "a b"]

count = 0


def ok(good, name, *why):
    global count
    count += 1
    print(f"{'' if good else 'not '}ok {count} - {name}")
    for line in why if not good else ():
        print(f"#   {line}")


def places(value, path=()):
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(whole, path, change):
    """The config with what is at `path` changed: `change` takes what holds it, and its key."""
    config = copy.deepcopy(whole)
    at = config
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return config


def mutants(kind, schema):
    whole = WHOLE[kind]
    yield whole
    for path in places(whole):
        if path:
            yield changed(whole, path, lambda at, key: at.pop(key))
            for other in OTHERS:
                yield changed(whole, path, lambda at, key, other=other: at.__setitem__(key, other))
            if isinstance(path[-1], str) and path[-1] not in names_of(schema):
                for name in PROPERTY_NAMES:  # not ours: a task, a variable
                    yield changed(whole, path, lambda at, key, name=name: at.__setitem__(name, at.pop(key)))
        for name in [*names_of(schema), "x"]:  # known elsewhere, or nowhere
            at = whole
            for key in path:
                at = at[key]
            if isinstance(at, dict) and name not in at:
                config = copy.deepcopy(whole)
                at = config
                for key in path:
                    at = at[key]
                at[name] = {}
                yield config


def names_of(schema, known={}):  # noqa: B006 a memory
    def collect(s):
        for name, below in s.get("properties", {}).items():
            names[name] = True
            collect(below)
        if isinstance(s.get("additionalProperties"), dict):
            collect(s["additionalProperties"])

    names = known.setdefault(id(schema), {})
    if not names:
        collect(schema)
    return names


def judged(records, top):
    """Of each (kind, text): the config in plain JSON, or None, and what vx says against it."""
    said = subprocess.run([str(BUILD / "schema-tool"), "judge", str(top)], check=True, stdout=subprocess.PIPE,
                          input=b"".join(f"{kind} {text}".encode() + b"\0" for kind, text in records)).stdout  # fmt: skip
    for line in said.splitlines():
        one = json.loads(line)
        yield one.get("config"), one["why"]


def differences(verdicts, check):
    """What a schema refuses and vx does not, and what it does not refuse and could."""
    more, less = [], []
    for kind, text, config, why in verdicts:
        if config is None:
            continue
        refused = next(check[kind].iter_errors(config), None)
        if refused and not why:
            more.append(f"{text}: {refused.message}")
        if why and not refused and not any(re.search(r, why) for r in ONLY_VX):
            less.append(f"{text}: {why}")
    return more, less


def main():
    schemas, check = {}, {}
    for kind, file in (("project", "vx.config"), ("workspace", "vx.workspace")):
        schemas[kind] = json.loads((SRC / f"schema/{file}.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schemas[kind])
        check[kind] = jsonschema.Draft7Validator(schemas[kind])
        ok(schemas[kind]["allowComments"] and schemas[kind]["allowTrailingCommas"], f"{file}: as lenient as vx")

    with tempfile.TemporaryDirectory(prefix="vx-schema.") as top:
        top = pathlib.Path(top)
        (top / "ws").mkdir()
        for test in "test-taskdef", "test-settings":
            subprocess.run([str(BUILD / test)], check=True, stdout=subprocess.DEVNULL,
                           env=os.environ | {"VX_TEST_CORPUS": str(top / "corpus")})  # fmt: skip
        corpus = [r.split(" ", 1) for r in (top / "corpus").read_text().split("\0")[:-1]]
        examples = [*SRC.glob("docs/examples/**/vx.*.json"), *SRC.glob("tests/data/**/vx.*.json")]
        texts = [("workspace" if "workspace" in p.name else "project", p.read_text()) for p in examples]
        made = [(kind, json.dumps(config)) for kind in WHOLE for config in mutants(kind, schemas[kind])]
        for what, records in (("the unit tests", corpus), ("the examples", texts), ("what is made here", made)):
            verdicts = [(*r, *v) for r, v in zip(records, judged(records, top / "ws"), strict=True)]
            good = sum(not why for _, _, _, why in verdicts)
            print(f"# {what}: {good} that vx accepts, {len(verdicts) - good} that it refuses")
            ok(good > 5 and (len(verdicts) - good > 100 or what == "the examples"), f"{what}: there are some")
            more, less = differences(verdicts, check)
            ok(not more, f"{what}: what vx accepts is accepted", *more[:20])
            ok(not less, f"{what}: what it refuses is refused", *less[:20])

    # Planted, in those that were made: the rule can fail.
    planted = copy.deepcopy(schemas)
    planted["workspace"]["properties"]["cacheDir"]["maxLength"] = 0
    del planted["project"]["properties"]["tasks"]["additionalProperties"]["properties"]["exec"]["required"]
    more, less = differences(verdicts, {kind: jsonschema.Draft7Validator(s) for kind, s in planted.items()})
    ok(len(more) > 5 and all("cacheDir" in line for line in more), "a schema that refuses more is found out", *more[:5])
    ok(less and all("command: is missing" in line for line in less), "and one that refuses less", *less[:5])

    unsorted = [names for s in schemas.values() for names in levels(s) if names != sorted(names)]
    ok(not unsorted, "the fields of each table are sorted, as messages list them", *unsorted)
    held = {f for kind in WHOLE for path in places(WHOLE[kind]) for f in path if isinstance(f, str)}
    told = {n for s in schemas.values() for n in names_here(s)}
    ok(told <= held, "every field is in what is made here", sorted(told - held))
    print(f"1..{count}")


def levels(s):
    """Of each object, the names of its fields, without those that have no effect."""
    fields = {n: b for n, b in s.get("properties", {}).items() if "not" not in b}
    yield [n for n, b in fields.items() if "deprecationMessage" not in b]
    more = s.get("additionalProperties")
    for below in [*fields.values(), *([more] if isinstance(more, dict) else [])]:
        yield from levels(below)


def names_here(s):
    for name, below in s.get("properties", {}).items():
        if "not" not in below:
            yield name
            yield from names_here(below)
    if isinstance(s.get("additionalProperties"), dict):
        yield from names_here(s["additionalProperties"])


main()
