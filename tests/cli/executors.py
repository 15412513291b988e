#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Executors that others have written: the one of docs/EXECUTORS.md as it stands there, and one that does everything wrong."""

import base64
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile

SRC, BUILD = (pathlib.Path(os.environ[name]).resolve() for name in ("VX_SRCDIR", "VX_BUILDDIR"))
LIMIT = 60
count = failed = 0


def ok(good, name, *why):
    global count, failed
    count += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {count} - {name}", flush=True)
    for line in "\n".join(map(str, why)).splitlines() if not good else ():
        print(f"#   {line}")


TOP = pathlib.Path(tempfile.mkdtemp(prefix="vx-test.", dir=os.environ.get("VX_TEST_DIR", "/var/tmp")))
TOP.chmod(0o755)
WS = TOP / "ws"
ENV = {k: v for k, v in os.environ.items() if not k.startswith("VX_") and k not in ("CI", "NO_COLOR", "FORCE_COLOR")}
ENV["LC_ALL"] = "C.UTF-8"


def task(command="true", cached=False, needs=(), **fields):
    t = {"exec": {"command": command, **fields}, "dependsOn": list(needs)}
    if cached:
        t["cache"] = {"inputs": {"files": ["in"]}, "outputs": {"files": ["out/**"]}}
    return t


def workspace(tasks, executors=("./x",), **settings):
    shutil.rmtree(WS, ignore_errors=True)
    (WS / "p").mkdir(parents=True)
    (WS / "p/in").write_text("1\n")
    (WS / "vx.workspace.json").write_text(
        json.dumps({"projects": ["p"], **({"executors": list(executors)} if executors else {}), **settings}))  # fmt: skip
    (WS / "p/vx.config.json").write_text(json.dumps({"tasks": tasks}))


def install(name, text):
    path = WS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def scripted(script, name="x"):
    install(name, (SRC / "tests/tool/executor.py").read_text())
    (WS / (name + ".json")).write_text(json.dumps(script))


def messages(name="x"):
    """What vx said to it, in all its lives."""
    log = WS / (name + ".log")
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{")]


def offered(name="x"):
    return {m["taskId"]: m for m in messages(name) if m["type"] == "accepts"}


def executed(name="x"):
    return {m["taskId"]: m for m in messages(name) if m["type"] == "execute"}


def vx(*args, **env):
    return subprocess.run([BUILD / "vx", "run", *args], cwd=WS / "p", env={**ENV, **env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, check=False)  # fmt: skip


def shown(r):
    return f"exit {r.returncode}\n" + r.stdout.decode("utf-8", "replace")


def begin(*args, **env):
    return subprocess.Popen([BUILD / "vx", "run", *args], cwd=WS / "p", env={**ENV, **env}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip


def core_of(guard):
    return int(pathlib.Path(f"/proc/{guard}/task/{guard}/children").read_text().split()[0])


# --------------------------------------------------------------------------- the documented one


def documented():
    return re.search(r"```python\n(.*?)```", (SRC / "docs/EXECUTORS.md").read_text(), re.S).group(1)


def example():
    workspace({
        "all": task("printf 'out\\377\\000'; echo err >&2; mkdir -p out; echo \"$A $VX_RUN_TASK\" >out/f", True,
                    env={"define": {"A": "1"}}),
        "three": task("exit 3"),
        "killed": task("kill -9 $$"),
        "args": task("echo got"),
        "long": task("exec 3>../fifo; echo up >&3; sleep 1000 & trap 'echo asked' INT; echo here; wait; wait; exit 5"),
        "daemon": task("sleep 1000 & echo $! >../daemon; exit 0"),
        "deaf": task("trap '' TERM; echo here; sleep 1000"), "slow": task("echo here; sleep 1000"),
        "both": task("true", needs=["args", "three"]),
    })  # fmt: skip
    install("x", documented())
    os.mkfifo(WS / "fifo")
    r = vx("all")
    ok(r.returncode == 0 and b"out\xff\x00" in r.stdout and b"err" in r.stdout, "a task is executed, and its bytes come", shown(r))
    ok((WS / "p/out/f").read_text() == "1 p#all\n", "with its environment, in its directory")
    r = vx("all")
    ok(r.returncode == 0 and b"up-to-date" in r.stdout and b"out\xff\x00" in r.stdout, "its result is kept", shown(r))
    shutil.rmtree(WS / "p/out")
    r = vx("all")
    ok(r.returncode == 0 and b"restored" in r.stdout and (WS / "p/out/f").exists(), "and restored", shown(r))
    (WS / "p/in").write_text("2\n")
    (WS / "p/out/old").write_text("")
    r = vx("all")
    ok(r.returncode == 0 and not (WS / "p/out/old").exists(), "old outputs are gone before it is executed", shown(r))
    r = vx("three")
    ok(r.returncode == 1 and b"failed (exit 3)" in r.stdout, "an exit code is its own", shown(r))
    r = vx("killed")
    ok(r.returncode == 1 and b"failed (exit 137, 128 + SIGKILL)" in r.stdout, "as is a signal", shown(r))
    r = vx("args", "--", "a b", "$c")
    ok(r.returncode == 0 and b"got a b $c" in r.stdout, "forwarded arguments are at the end of the command", shown(r))
    r = vx("daemon")
    ok(r.returncode == 0, "what it left in the background holds up nothing", shown(r))
    os.kill(int((WS / "daemon").read_text()), signal.SIGKILL)
    r = vx("slow", "--timeout", "500", VX_KILL_GRACE_MS="20000")
    ok(r.returncode == 1 and b"here" in r.stdout and b"timed out after 500ms (--timeout), exit 143)" in r.stdout, "a time-out ends it", shown(r))
    r = vx("deaf", "--timeout", "500", VX_KILL_GRACE_MS="300")
    ok(r.returncode == 1 and b"here" in r.stdout and b"timed out after 500ms (--timeout), exit 137)" in r.stdout,
       "at the latest at the end of the grace", shown(r))  # fmt: skip
    with fifo_of("long") as (run, fifo):
        os.kill(run.pid, signal.SIGINT)
        out = run.communicate(timeout=LIMIT)[0]
        ok(run.returncode == 130 and b"aborted" in out and b"asked" in out, "Ctrl-C reaches the command, and its end is awaited", out)
        ok(fifo.read() == "", "and nothing of it is left")
    with fifo_of("long") as (run, fifo):
        os.kill(core_of(run.pid), signal.SIGKILL)
        run.communicate(timeout=LIMIT)
        ok(fifo.read() == "", "kill -9 of vx: the command is gone")


class fifo_of:  # noqa: N801 a context
    """A run of a task that holds ../fifo open for writing, once it is up."""

    def __init__(self, *args):
        self.args = args

    def __enter__(self):
        # The end for writing is the task's alone.
        self.run = begin(*self.args, VX_KILL_GRACE_MS="20000")
        self.fifo = open(WS / "fifo", encoding="utf-8")  # noqa: SIM115
        assert self.fifo.readline() == "up\n"
        return self.run, self.fifo

    def __exit__(self, *_):
        self.run.kill()
        self.run.communicate()
        self.fifo.close()


# --------------------------------------------------------------------------- doing it wrong


def say(**message):
    return {"say": message}


def result(**members):
    base = {"type": "result", "id": "@", "exitCode": 0, "durationMs": 1}
    base.update(members)
    return [{"say": {k: v for k, v in base.items() if v is not ...}}]


def description(**members):
    base = {"type": "description", "protocol": 1, "name": "x"}
    base.update(members)
    return [{"say": {k: v for k, v in base.items() if v is not ...}}]


NUMBER = "a whole number from 0 to 255 is wanted"
OUT = say(type="stdout", id="@", data="YQ==")
BAD_LINES = [
    ("what is no JSON", [{"raw": "hello\n"}], "a line is no JSON"),
    ("what is more than JSON", [{"raw": "{} {}\n"}], "a line is no JSON"),
    ("half a line", [{"raw": '{"type":\n'}], "a line is no JSON"),
    ("an empty line", [{"raw": "\n"}], "a line is no JSON"),
    ("comments", [{"raw": "{} // x\n"}], "a line is no JSON"),
    ("no UTF-8", [{"raw": '{"type":"\xff"}\n'}], "a line is no JSON"),
    ("a NUL", [{"raw": "{}\0\n"}], "a line is no JSON"),
    ("a NUL in a text", [{"raw": '{"type":"\\u0000"}\n'}], "a line is no JSON|type holds a NUL"),
    ("a member twice", [{"raw": '{"type":"result","type":"result"}\n'}], "a line is no JSON"),
    ("depth", [{"raw": "[" * 100000 + "\n"}], "a line is no JSON"),
    ("an array", [{"raw": "[1]\n"}], "a line is an array: an object is wanted"),
    ("no type", [{"raw": "{}\n"}], "type is missing"),
    ("a type that is a number", [{"raw": '{"type":1}\n'}], "type is 1: a string is wanted"),
    ("an unknown type", [{"raw": '{"type":"hello\\u001b"}\n'}], r"type is 'hello\\x1b', which is none of"),
    ("a long line", [{"fill": 300000}], "a line is longer than 256 KiB"),
    ("an end", [{"exit": 3}], "it has ended with exit code 3"),
    ("a death", [{"kill": 9}], "it was ended by SIGKILL"),
    ("a closed standard output", [{"close": 1}, {"hold": 1}], "it has closed its standard output"),
    ("an id that is a text", [say(type="result", id="1", exitCode=0, durationMs=0)], "id is a string: a whole number from 1 on is wanted"),
    ("an id of 0", [say(type="accepted", id=0, accepts=True)], "id is 0: a whole number from 1 on is wanted"),
    ("an id of -1", [say(type="accepted", id=-1, accepts=True)], "id is -1: a whole number from 1 on is wanted"),
]  # fmt: skip

# The run goes no further: nothing is executed, exit code 2.
BEFORE = [
    *[("describe", name, steps, why) for name, steps, why in BAD_LINES],
    *[("accepts", name, steps, why) for name, steps, why in BAD_LINES],
    ("describe", "last words", [{"stderr": "boom\nno such\n"}, {"exit": 1}], "exit code 1, and its last words were: no such;"),
    ("describe", "silence", [], "no answer to describe within 300 ms"),
    ("describe", "another protocol", description(protocol=2), "description: protocol is 2: this vx speaks 1"),
    ("describe", "no protocol", description(protocol=...), "description: protocol is missing"),
    ("describe", "no name", description(name=...), "description: name is missing"),
    ("describe", "an empty name", description(name=""), "description: name is empty"),
    ("describe", "a name with a blank", description(name="a b"), "name is not at most 64 letters"),
    ("describe", "a long name", description(name="a" * 65), "name is not at most 64 letters"),
    ("describe", "the name of vx", description(name="local"), "name is 'local', which is that of vx itself"),
    ("describe", "remote as a number", description(remote=1), "remote is 1: true or false is wanted"),
    ("describe", "no capacity", description(capacity=0), "capacity is 0: a whole number from 1 to 10000 is wanted"),
    ("describe", "a capacity that is none", description(capacity="2"), "capacity is a string: a whole number from 1"),
    ("describe", "an unknown member", description(capasity=2), "description: 'capasity' is no member of it"),
    ("describe", "twice", description() * 2, "it has described itself twice"),
    ("describe", "an answer to nothing", [say(type="accepted", id=1, accepts=True)], "it says something else before its description"),
    ("accepts", "silence", [], r"executor x: p#a: no answer to accepts within 3000 ms"),
    ("accepts", "a number", [say(type="accepted", id="@", accepts=1)], r"p#a: accepted: accepts is 1: true or false is wanted"),
    ("accepts", "nothing", [say(type="accepted", id="@")], "p#a: accepted: accepts is missing"),
    ("accepts", "an unknown id", [say(type="accepted", id=99, accepts=True)], "accepted has the id 99, which vx has not given"),
    ("accepts", "a result", result(), "p#a: result is no answer to accepts"),
    ("accepts", "a failure", [say(type="failed", id="@", message="no\nnetwork")], r"executor x failed in accepts for p#a: no\\x0anetwork\n"),
    ("accepts", "a failure without words", [say(type="failed", id="@", message="")], "p#a: failed: message is empty"),
]  # fmt: skip

# The task fails, exit code 1.
WHILE = [
    *[(name, steps, why) for name, steps, why in BAD_LINES],
    ("an answer of before", [say(type="accepted", id=1, accepts=True)], "p#a: accepted came when all was said"),
    ("no exitCode", result(exitCode=...), "p#a: result: exitCode is missing"),
    ("an exitCode that is a text", result(exitCode="0"), "p#a: result: exitCode is a string: " + NUMBER),
    ("an exitCode of 256", result(exitCode=256), "p#a: result: exitCode is 256: " + NUMBER),
    ("an exitCode of -1", result(exitCode=-1), "p#a: result: exitCode is -1: " + NUMBER),
    ("half an exitCode", result(exitCode=0.5), "p#a: result: exitCode is a number: " + NUMBER),
    ("an exitCode of null", result(exitCode=None), "p#a: result: exitCode is null: " + NUMBER),
    ("no durationMs", result(durationMs=...), "p#a: result: durationMs is missing"),
    ("a durationMs that is a text", result(durationMs="1"), "p#a: result: durationMs is a string: a number from 0 to 2147483647 is"),
    ("a negative durationMs", result(durationMs=-0.1), "p#a: result: durationMs is -0.1: a number from 0"),
    ("weeks", result(durationMs=2147483648), "p#a: result: durationMs is out of bounds: a number from 0"),
    ("an infinite durationMs", [{"raw": '{"type":"result","id":@,"exitCode":0,"durationMs":1e999}\n'}], "durationMs is 1e999: a number"),
    ("a stdout in the result", result(stdout="x"), "p#a: result: 'stdout' is no member of it"),
    ("violations that are an object", result(violations={}), "p#a: result: violations is an object: an array is wanted"),
    ("a violation that is a text", result(violations=["x"]), r"violations\[0\] is a string: an object with operation and path"),
    ("a violation without a path", result(violations=[{"operation": "read"}]), r"violations\[0\] has no path"),
    ("a violation without an operation", result(violations=[{"path": "x"}]), r"violations\[0\] has no operation"),
    ("a path that is a number", result(violations=[{"operation": "read", "path": 1}]), r"violations\[0\].path is 1: a string is wanted"),
    ("an unknown operation", result(violations=[{"operation": "eat", "path": "x"}]), r"violations\[0\].operation is none of"),
    ("more in a violation", result(violations=[{"operation": "read", "path": "x", "y": 1}]), "has more than operation and path"),
    ("outputs that are an array", result(outputs=[]), "p#a: result: outputs is an array: an object is wanted"),
    ("outputs of no kind", result(outputs={}), "p#a: result: outputs has no kind"),
    ("outputs of a number", result(outputs={"kind": 1}), "p#a: result: outputs.kind is 1: a string is wanted"),
    ("outputs elsewhere", result(outputs={"kind": "deferred"}), "outputs.kind is 'deferred': this vx knows only 'disk'"),
    ("more in outputs", result(outputs={"kind": "disk", "x": 1}), "outputs has more than a kind"),
    ("a where that is a number", result(where=1), "p#a: result: where is 1: a string is wanted"),
    ("cpuMs that is absurd", result(cpuMs=-1), "p#a: result: cpuMs is out of bounds"),
    ("more cpuMs than can be counted", result(cpuMs=1e13), "p#a: result: cpuMs is 10000000000000.0: a number from 0 to 1000000000000 is wanted"),
    ("peakRssBytes that is absurd", result(peakRssBytes="1"), "p#a: result: peakRssBytes is a string: a number"),
    ("an unknown member", result(exitcode=0), "p#a: result: 'exitcode' is no member of it"),
    ("a stdout without data", [say(type="stdout", id="@")], "p#a: stdout: data is missing"),
    ("data that is a number", [say(type="stderr", id="@", data=1)], "p#a: stderr: data is 1: a string in base64 is wanted"),
    ("data that is no base64", [say(type="stdout", id="@", data="a")], "p#a: stdout: data is no base64"),
    ("data without padding", [say(type="stdout", id="@", data="YQ")], "p#a: stdout: data is no base64"),
    ("data with bits too many", [say(type="stdout", id="@", data="YR==")], "p#a: stdout: data is no base64"),
    ("stdout of nobody", [say(type="stdout", id=99, data="")], "executor x: stdout has the id 99, which vx has not given"),
    ("a second result", result() * 2, "p#a: result came when all was said"),
    ("output after the result", [*result(), OUT], "p#a: stdout came when all was said"),
    ("output after a failure", [say(type="failed", id="@", message="no"), OUT], "p#a: stdout came when all was said"),
    ("output for a question", [say(type="stdout", id=1, data="")], "p#a: stdout came when all was said"),
    ("an answer to nothing", [say(type="accepted", id="@", accepts=True)], "p#a: accepted is no answer to execute"),
    ("a failure", [say(type="failed", id="@", message="no room")], r"executor x failed in execute for p#a: no room\n"),
    ("a death with secrets on its lips", [{"stderr": "secret\n"}, {"exit": 1}], r"exit code 1; that is a bug"),
]  # fmt: skip


def wrong():
    workspace({"a": task()})
    for when, name, steps, why in BEFORE:
        scripted({when: steps})
        limit = "" if name != "silence" else "300" if when == "describe" else "3000"
        r = vx("a", VX_EXECUTOR_ANSWER_MS=limit)
        ok(r.returncode == 2 and re.search(why.encode(), r.stdout) and r.stdout.count(b"\n") == 1, f"{when}: {name}", why, shown(r))
    for name, steps, why in WHILE:
        scripted({"execute": steps})
        r = vx("a")
        text = r.stdout.decode("utf-8", "replace")
        ok(r.returncode == 1 and re.search("(?m)^vx: .*" + why, text) and "executor x" in text and "secret" not in text,
           f"execute: {name}", why, shown(r))  # fmt: skip
        if "failed in" not in text:
            bug = re.search("; that is a bug of the executor(, ./x)?\n", text)
            ok(bug and text.count("bug of the executor") == 1, "as the executor's bug, once", text)


def outage():
    """What an executor broke says nothing of the task."""
    workspace({"a": task(cached=True)})
    scripted({"execute": [{"exit": 3}]})
    ok(vx("a").returncode == 1 and vx("a").returncode == 1, "an executor that ends in the middle, twice")
    scripted({"execute": result()})
    r = vx("a")
    ok(r.returncode == 0 and b"flaky" not in r.stdout, "its task is not flaky for that", shown(r))


def in_two():
    """Words are cut: not before their secrets are hidden, half of which nobody would know."""
    workspace({"a": task()})
    for name, steps in (
        ("a failure", [say(type="failed", id="@", message="m" * 296 + "s3cr3t-value")]),
        ("where", result(exitCode=1, where="w" * 196 + "s3cr3t-value")),
        ("a member", result(**{"k" * 296 + "s3cr3t-value": 1})),
        ("a kind", result(outputs={"kind": "k" * 296 + "s3cr3t-value"})),
    ):
        scripted({"execute": steps})
        r = vx("a", MY_TOKEN="s3cr3t-value")
        ok(r.returncode == 1 and re.search(b"(m|w|k){90}", r.stdout) and b"s3cr" not in r.stdout, f"no half of a secret in {name}", shown(r))
    scripted({"describe": [{"stderr": "l" * 196 + "s3cr3t-value"}, {"exit": 1}]})
    r = vx("a", MY_TOKEN="s3cr3t-value")
    ok(r.returncode == 2 and b"lll" in r.stdout and b"s3cr" not in r.stdout, "nor in last words", shown(r))


def counted():
    workspace({"a": task()})
    scripted({"execute": result(cpuMs=1e12, durationMs=2147483647)})
    r = vx("a", "--summarize=s.json")
    t = json.loads((WS / "p/s.json").read_text())["tasks"][0] if r.returncode == 0 else {}
    ok(t.get("cpuMs") == 1e12 and t["durationMs"] == 2147483647, "numbers without measure are told as they are", t, shown(r))


def unread():
    """Nobody reads what vx prints: an executor waits with what it says, and the time-out still comes."""
    if not hasattr(os, "pidfd_open"):
        ok(True, "a flood that nobody reads # SKIP python3 is older than 3.9")
        return
    workspace({"a": task(timeout=3000)})
    os.mkfifo(WS / "fifo")
    scripted({"execute": [{"sh": "echo up >fifo"}, {"flood": {"type": "stdout", "id": "@", "data": base64.b64encode(b"x" * 60000).decode()}}]})
    run = begin("a", VX_KILL_GRACE_MS="200")
    with open(WS / "fifo", encoding="utf-8") as f:
        f.read()
    pid = int((WS / "x.log").read_text().splitlines()[0])
    fd = os.pidfd_open(pid)
    ended = select.select([fd], [], [], LIMIT)[0]
    os.close(fd)
    ok(ended, "a task that floods is timed out though nobody reads")
    if not ended:
        run.kill()
    out = run.communicate(timeout=LIMIT)[0]
    ok(b"timed out after 3s" in out and len(out) < 16 << 20, "and little of it was held", len(out))


def one_task_alone():
    workspace({"a": task(), "b": task(), "c": task(needs=["a"])})
    scripted({"execute": [{"say": {"type": "result", "id": "@", "exitCode": 0, "durationMs": 1}}]})
    # a bad member is one task's matter: the other is executed by the same process
    install("x", (SRC / "tests/tool/executor.py").read_text().replace(
        "    ((what, value),) = one.items()\n",
        '    ((what, value),) = one.items()\n    if message.get("taskId") == "p#a" and message["type"] == "execute":\n'
        '        value = {**value, "exitCode": "0"}\n'))  # fmt: skip
    r = vx("--filter", "p", "a", "b", "--concurrency", "1")
    ok(r.returncode == 1 and b"1 ok" in r.stdout and b"1 failed" in r.stdout and set(executed()) == {"p#a", "p#b"},
       "a wrong member fails one task, and the executor goes on", shown(r))  # fmt: skip
    # after its death there is no other
    scripted({"execute": [{"exit": 0}]})
    (WS / "x.log").unlink()
    r = vx("--filter", "p", "a", "b", "--concurrency", "1", "--continue=always")
    ok(r.returncode == 1 and len(executed()) == 1 and r.stdout.count(b"it has ended with exit code 0") == 2,
       "what is to be executed by a dead one fails, too", shown(r))  # fmt: skip
    # and b, which had its result, keeps it
    scripted({"takes": ["p#a"], "execute": [*result(), *result()]})
    r = vx("--filter", "p", "a", "b")
    ok(r.returncode == 1 and b"2 ok" in r.stdout and b"came when all was said" in r.stdout, "a bug that is no task's fails the run", shown(r))


def stubborn():
    workspace({"a": task(), "slow": task("x", timeout=300)})
    scripted({"execute": [], "cancel": [{"say": {"type": "result", "id": "@", "exitCode": 0, "durationMs": 1}}]})
    r = vx("slow")
    ok(r.returncode == 1 and b"timed out after 300ms (exec.timeout), exit 143)" in r.stdout, "a result after cancel is no success", shown(r))
    ok([m["signal"] for m in messages() if m["type"] == "cancel"] == ["SIGTERM"], "it was asked once")
    scripted({"execute": [], "cancel": []})
    r = vx("slow", VX_KILL_GRACE_MS="1000")
    ok(r.returncode == 1 and b"timed out after 300ms (exec.timeout), exit 137)" in r.stdout, "one that never ends is abandoned", shown(r))
    ok([m["signal"] for m in messages() if m["type"] == "cancel"][1:] == ["SIGTERM", "SIGKILL"], "after a last word")
    # late, and dropped: the second cancel comes when the task is over
    scripted({"execute": [], "cancel": [OUT, *result()]})
    (WS / "x").write_text((WS / "x").read_text().replace(
        "        message = json.loads(line)\n",
        "        message = json.loads(line)\n        if message.get('signal') == 'SIGTERM':\n            continue\n"))  # fmt: skip
    r = vx("slow", VX_KILL_GRACE_MS="200")
    ok(r.returncode == 1 and b"exit 137)" in r.stdout and b"bug" not in r.stdout, "what still comes of it is dropped", shown(r))
    scripted({"execute": [{"flood": {"type": "stdout", "id": "@", "data": base64.b64encode(b"x" * 60000).decode()}}]})
    r = vx("slow", VX_KILL_GRACE_MS="200")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    ok(r.returncode == 1 and b"exit 137)" in r.stdout, "a flood is stopped", r.returncode)
    ok(peak < 200 << 10 or b"__asan_init" in (BUILD / "vx").read_bytes(), "and held nowhere", f"{peak} KiB")
    scripted({"end": [{"hold": 1}]})
    r = vx("a", VX_KILL_GRACE_MS="200")
    ok(r.returncode == 0 and b"executor x has not ended 200 ms after its standard input, and was killed" in r.stdout,
       "one that does not end is killed, and that is said", shown(r))  # fmt: skip
    scripted({"end": [{"raw": "hello\n"}]})
    r = vx("a")
    ok(r.returncode == 1 and b"1 ok" in r.stdout and b"a line is no JSON" in r.stdout, "it is heard out", shown(r))
    # more than a pipe holds, and nobody reads
    workspace({f"t{i}": task("x" * 4000) for i in range(40)})
    scripted({"accepts": [{"hold": 1}]})
    r = vx("--all", *[f"t{i}" for i in range(40)], VX_EXECUTOR_ANSWER_MS="3000")
    ok(r.returncode == 2 and re.search(b"has not read its standard input for 3000 ms|no answer to accepts", r.stdout),
       "one that does not read is found out", shown(r))  # fmt: skip
    workspace({"a": task("x" * 100000)})
    scripted({"accepts": [say(type="accepted", id="@", accepts=True), {"hold": 1}]})
    r = vx("a", VX_EXECUTOR_ANSWER_MS="3000")
    ok(r.returncode == 1 and b"it has not read its standard input for 3000 ms" in r.stdout, "nor with a task", r.stdout[-300:])
    workspace({"t0": task()})
    scripted({"describe": [{"close": 0}, *description(), {"hold": 1}]})
    r = vx("--all", "t0", VX_EXECUTOR_ANSWER_MS="20000")
    ok(r.returncode == 2 and b"it has closed its standard input" in r.stdout, "nor can it close its input", shown(r))
    workspace({"a": task(timeout=300)})
    scripted({"execute": [{"close": 0}, {"hold": 1}]})
    r = vx("a", VX_KILL_GRACE_MS="20000")
    ok(r.returncode == 1 and b"p#a" in r.stdout and b"it has closed its standard input" in r.stdout, "nor while a task runs", shown(r))
    workspace({"a": task("t")})
    scripted({"execute": [{"hold": 1}]})
    for name, number, whom, code in (("a second Ctrl-C", signal.SIGINT, "guard", 130), ("kill -9 of vx", signal.SIGKILL, "core", 137)):
        run = begin("a", VX_KILL_GRACE_MS="20000")
        told(run, b"$ t\n")
        if whom == "guard":
            os.kill(run.pid, signal.SIGINT)
            told(run, b"once more kills\n")
        os.kill(run.pid if whom == "guard" else core_of(run.pid), number)
        run.communicate(timeout=LIMIT)
        pid = int((WS / "x.log").read_text().splitlines()[0])
        ok(run.returncode == code and not os.path.exists(f"/proc/{pid}"), f"{name} ends it whatever it does", run.returncode)
        (WS / "x.log").unlink()
    scripted({"accepts": [{"sh": "echo up >fifo"}, {"hold": 1}]})
    os.mkfifo(WS / "fifo")
    run = begin("a", VX_KILL_GRACE_MS="200")
    with open(WS / "fifo", encoding="utf-8") as f:
        f.read()
    os.kill(run.pid, signal.SIGINT)
    run.communicate(timeout=LIMIT)
    pid = int((WS / "x.log").read_text().splitlines()[0])
    ok(run.returncode == 130 and not os.path.exists(f"/proc/{pid}"), "Ctrl-C while it is asked", run.returncode)


def told(run, text):
    """Until the run has said so."""
    said = b""
    while text not in said:
        piece = os.read(run.stdout.fileno(), 65536)
        assert piece, said
        said += piece


# --------------------------------------------------------------------------- who gets what


def placement():
    tasks = {
        "plain": task("exit 9"), "boxed": task(sandbox={}), "serves": task("sleep 1000", persistent={}),
        "on-boxed": task(needs=["boxed"]), "on-that": task(needs=["on-boxed"]), "on-served": task(needs=["serves"]),
        "here": task(remote=False), "only": task("exit 9", True, remote="only"), "on-only": task(cached=True, needs=["only"]),
        "group": {"dependsOn": ["plain"]},
        "probed": {"exec": {"command": "true"}, "cache": {"inputs": {"files": ["in"], "runtime": ["echo 1"]}, "outputs": {"files": []}}},
        "on-probed": task(needs=["probed"]),
    }  # fmt: skip
    del tasks["on-only"]["cache"]["outputs"]
    tasks["on-only"]["cache"]["outputs"] = {"files": ["out2/**"]}
    workspace(tasks, executors=["./far", "./near"])
    scripted({"describe": description(name="far", remote=True), "takes": ["p#plain", "p#only"]}, "far")
    scripted({"describe": description(name="near"), "takes": ["p#plain", "p#here"]}, "near")
    every = [*tasks]
    r = vx("--filter", "p", *every, "--dry=json")
    plan = {t["task"]: t for t in json.loads(r.stdout)["tasks"]}
    ok({t["executor"] for t in plan.values() if t["task"] not in ("plain", "only", "here", "group")} == {"local"}
       and plan["plain"]["executor"] == plan["only"]["executor"] == "far" and plan["here"]["executor"] == "near"
       and "executor" not in plan["group"], "--dry=json names them", r.stdout)  # fmt: skip
    r = vx("--filter", "p", *every, "--dry")
    ok(re.search(rb"^. p#plain  .*  on far$", r.stdout.decode().encode("ascii", "replace"), re.M) and b"p#group  group  --------\n" in r.stdout,
       "so does a plan in words", shown(r))  # fmt: skip
    ok(not executed("far") and not executed("near"), "and nothing is executed")
    r = vx("--filter", "p", "plain", "here", "--dry")
    ok(re.search(rb"p#plain  no-cache  \w+  on far\n", r.stdout) and re.search(rb"p#here .*  on near\n", r.stdout), "--dry, too", shown(r))
    far, near = offered("far"), offered("near")
    ok(set(far) == {"p#plain", "p#only", "p#on-only", "p#on-probed"}, "one far away is asked about what is not pinned", sorted(far))
    ok(set(near) == {"p#" + t for t in tasks} - {"p#plain", "p#boxed", "p#serves", "p#only", "p#group"},
       "one on this machine about all that is left", sorted(near))  # fmt: skip
    ok({t for t, m in near.items() if m["pinnedLocal"]} == {"p#on-boxed", "p#on-that", "p#on-served", "p#here", "p#probed"},
       "and told what is pinned", near)  # fmt: skip
    ok(far["p#only"] == {"type": "accepts", "id": far["p#only"]["id"], "taskId": "p#only", "projectName": "p", "projectDir": "p",
                         "command": "exit 9", "pinnedLocal": False, "cacheable": True}, "a question is as documented", far)  # fmt: skip
    (WS / "far.log").unlink()
    (WS / "near.log").unlink()
    r = vx("--filter", "p", "plain", "here", "only", "on-only")
    ok(r.returncode == 0 and set(executed("far")) == {"p#plain", "p#only"} and set(executed("near")) == {"p#here"},
       "each gets what it takes, and vx the rest", shown(r))  # fmt: skip
    ok(executed("far")["p#only"]["remoteOnly"] and not (WS / "p/out").exists(), "results of one that is only remote stay there")
    r = vx("only")
    ok(r.returncode == 0 and len(executed("far")) == 2 and len([m for m in messages("far") if m["type"] == "execute"]) == 3,
       "and are looked up there", shown(r))  # fmt: skip
    for path in WS.glob("*.log"):
        path.unlink()
    vx("--filter", "p", "plain", "here", "boxed", "--sandbox")
    ok(not messages("far") and not messages("near"), "with --sandbox nobody is asked")
    vx("--filter", "p", "boxed", "--sandbox=off", VX_SANDBOX_OFF="1")
    ok(not messages("far") and not messages("near"), "nor about one whose sandbox is off")
    r = vx("plain", "--sandbox")
    ok(b"exit 9" in r.stdout, "it is executed here", shown(r))


def nobody():
    workspace({"only": task("exit 9", True, remote="only"), "on": task(cached=True, needs=["only"])}, executors=())
    (WS / "p/vx.config.json").write_text((WS / "p/vx.config.json").read_text().replace("out/**", "out2/**", 1))
    r = vx("on", "--filter", "p")
    ok(r.returncode == 0 and "∅     0ms  @noop".encode() in r.stdout and b"1 only remote, done by nobody" in r.stdout,
       "without an executor for it one that is only remote does nothing", shown(r))  # fmt: skip
    ok(b"not saved: p#only, which it needs, was executed by nobody" in r.stdout, "and what needs it is not kept", shown(r))
    r = vx("on", "--dry")
    ok("∅ p#only  @noop, only for another machine".encode() in r.stdout, "a plan says so", shown(r))


def warm():
    workspace({"a": task("mkdir -p out; echo >out/f", True)})
    install("x", documented())
    vx("a")
    install("x", "#!/bin/sh\nexit 1\n")
    r = vx("a")
    ok(r.returncode == 0 and b"up-to-date" in r.stdout, "where all is up to date none is started", shown(r))
    (WS / "p/vx.config.json").write_text((WS / "p/vx.config.json").read_text().replace('"exec": {', '"exec": {"remote": false, '))
    r = vx("a")
    ok(r.returncode == 0 and b"up-to-date" in r.stdout, "exec.remote is in no key", shown(r))
    r = vx("a", "--sandbox")
    ok(not re.search(b"up-to-date|restored", r.stdout), "what an executor has made is no result of a sandbox", shown(r))


def request():
    workspace({"a": task("echo", True, env={"define": {"D": "ö"}, "passThrough": ["BAD"]}, timeout=5000)}, executors=["./tools/x"])
    (WS / "p/vx.config.json").write_text((WS / "p/vx.config.json").read_text().replace('"out/**"', '"out/**", "!out/*.tmp"'))
    scripted({"execute": [say(type="result", id="@", exitCode=0, durationMs=1500.5, where="host-17", cpuMs=3, peakRssBytes=4096)]}, "tools/x")
    bins = WS / "node_modules/.bin"
    bins.mkdir(parents=True)
    install("node_modules/.bin/python3", "#!/bin/sh\ntouch ../hijacked\n")
    r = vx("a", "--", "x y", PATH=f"{bins}:.:{ENV['PATH']}")
    m = executed("tools/x").get("p#a", {})
    ok(r.returncode == 0 and m and not (TOP / "hijacked").exists() and not (WS / "hijacked").exists(),
       "its interpreter is none of the workspace's", shown(r))  # fmt: skip
    fds = (WS / "tools/x.log").read_text().splitlines()[1]
    ok(re.fullmatch("0 1 2 [0-9]+ True", fds), "it has its pipes and a session, and nothing else", fds)
    ok(b"executed by x: host-17" in r.stdout and b"(1.5s)" in r.stdout, "where and how long is said", shown(r))
    env = m.pop("env", {})
    ok(re.fullmatch("[0-9a-f]{64}", m.pop("cacheKey", "")) and m == {
        "type": "execute", "id": 2, "taskId": "p#a", "workspaceRoot": str(WS), "cwd": str(WS / "p"), "command": "echo 'x y'",
        "forwardArgs": ["x y"], "envDefine": {"D": "ö"}, "outputs": {"files": ["out/**", "!out/*.tmp"], "workspaceFiles": []},
        "timeoutMs": 5000, "refresh": False, "remoteOnly": False}, "a request is as documented", m)  # fmt: skip
    ok(env.get("D") == "ö" and env["VX_RUN_TASK"] == "p#a" and str(bins) in env["PATH"], "with the task's own environment", env)
    (WS / "p/in").write_text("7")
    vx("a", "--force")
    ok([m["refresh"] for m in messages("tools/x") if m["type"] == "execute"] == [False, True], "--force is told")
    (WS / "p/in").write_text("8")
    env = {os.fsencode(k): os.fsencode(v) for k, v in ENV.items()}
    r = subprocess.run([BUILD / "vx", "run", "a"], cwd=WS / "p", env={**env, b"BAD": b"\xff"}, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, check=False)  # fmt: skip
    ok(r.returncode == 1 and b"p#a cannot be handed to an executor: its env is no UTF-8" in r.stdout, "what is no UTF-8 cannot be told", shown(r))
    scripted({"execute": [say(type="result", id="@", exitCode=0, durationMs=1, violations=[
        {"operation": "read", "path": "src/x"}, {"operation": "write", "path": "y"}])]}, "tools/x")  # fmt: skip
    r = vx("a")
    ok(r.returncode == 1 and b"VIOLATIONS (2)" in r.stdout and b"read src/x" in r.stdout and b"exit 1, 2 sandbox violations" in r.stdout,
       "violations fail the task", shown(r))  # fmt: skip
    r = vx("a")
    ok(b"up-to-date" not in r.stdout, "and nothing is kept of it", shown(r))


def named_wrongly():
    for command, why in (
        ("x", "'x' is looked up nowhere: write './…' for a file of the workspace, or an absolute path"),
        ("../x", "'../x' is looked up nowhere"),
        ("./../x", "'./../x': write the path of a file, without '.', '..' and '//' in it"),
        ("./a/", "write the path of a file"), ("/", "write the path of a file"), ("./x -v", "executor ./x -v: No such file"),
        ("./none", "executor ./none: No such file or directory"), ("./p", "executor ./p: is no executable file"),
        ("./plain", "executor ./plain: is no executable file"), ("./link", "executor ./link: there is a symbolic link on the way"),
        ("./dir/x", "executor ./dir/x: there is a symbolic link on the way"), ("./broken", "start "),
    ):  # fmt: skip
        workspace({"a": task()}, executors=[command])
        scripted({})
        (WS / "plain").write_text("")
        (WS / "link").symlink_to("x")
        (WS / "dir").symlink_to(".")
        install("broken", "#!/no/such\n")
        r = vx("a")
        ok(r.returncode == 2 and why.encode() in r.stdout and r.stdout.count(b"\n") == 1, f"{command}: {why}", shown(r))
    workspace({"a": task()}, executors=["./x", "./y"])
    scripted({})
    scripted({}, "y")
    r = vx("a")
    ok(r.returncode == 2 and b"two executors say that their name is 'x': ./x and ./y" in r.stdout, "two of one name", shown(r))
    workspace({"a": task()}, executors=[str(TOP / "outside")])
    scripted({})
    scripted({}, str(TOP / "outside"))
    r = vx("a")
    ok(r.returncode == 0 and list(executed(str(TOP / "outside"))) == ["p#a"], "an absolute path may be outside", shown(r))


def main():
    if sys.version_info < (3, 8):
        print("1..0 # SKIP python3 is older than 3.8")
        return 0
    try:
        for part in (example, wrong, outage, in_two, counted, unread, one_task_alone, stubborn, placement, nobody, warm, request, named_wrongly):
            part()
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
