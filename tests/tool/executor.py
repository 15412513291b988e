#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An executor that does as it is told, wrong above all: by the file beside it, its own name and ".json".

{"describe": STEPS, "accepts": STEPS, "execute": STEPS, "cancel": STEPS, "end": STEPS, "takes": [task ids]}: what it does at
each message of vx, and when its input ends. A step that is an object {"say": …} is a message, with @ for the id;
the others are below. Every message that comes is a line of its name and ".log"; before them are its pid and its
descriptors."""

import json
import os
import signal
import sys

FDS = sorted(os.listdir("/proc/self/fd"))  # and the one of that
ME = os.path.abspath(sys.argv[0])
LOG = open(ME + ".log", "a", encoding="utf-8", buffering=1)  # noqa: SIM115 as long as it lives
with open(ME + ".json", encoding="utf-8") as f:
    SCRIPT = json.load(f)
DEFAULTS = {
    "describe": [{"say": {"type": "description", "protocol": 1, "name": "x"}}],
    "accepts": [{"say": {"type": "accepted", "id": "@", "accepts": "@takes"}}],
    "execute": [{"say": {"type": "result", "id": "@", "exitCode": 0, "durationMs": 1}}],
    "cancel": [],
    "end": [],
}


def write(data):
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        pass  # vx has killed it, or is about to


def filled(value, message):
    if value == "@":
        return message["id"]
    if value == "@takes":
        return "takes" not in SCRIPT or message["taskId"] in SCRIPT["takes"]
    if isinstance(value, dict):
        return {k: filled(v, message) for k, v in value.items()}
    return value


def hold():
    while True:
        signal.pause()


def step(one, message):
    ((what, value),) = one.items()
    if what == "say":
        write(json.dumps(filled(value, message)).encode() + b"\n")
    elif what == "raw":  # bytes as they are
        write(value.replace("@", str(message.get("id"))).encode("latin-1"))
    elif what == "fill":  # a line without an end
        write(b"x" * value)
    elif what == "flood":
        line = json.dumps(filled(value, message)).encode() + b"\n"
        while True:
            write(line * 100)
            if os.getppid() == 1:
                os._exit(0)
    elif what == "sh":
        os.system(value)  # noqa: S605
    elif what == "stderr":
        os.write(2, value.encode())
    elif what == "close":
        os.close(value)
    elif what == "exit":
        os._exit(value)
    elif what == "kill":
        os.kill(os.getpid(), value)
    elif what == "hold":
        hold()


def main():
    LOG.write(f"{os.getpid()}\n{' '.join(FDS)} {os.getpid() == os.getsid(0)}\n")
    for line in sys.stdin:
        LOG.write(line)
        message = json.loads(line)
        for one in SCRIPT.get(message["type"], DEFAULTS[message["type"]]):
            step(one, message)
    for one in SCRIPT.get("end", []):
        step(one, {})


main()
