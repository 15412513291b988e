#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every refusal has a test of its message.

A refusal is a text of kind USAGE or CONFIG in src/cli, src/graph, src/config and src/workspace: the format of an err_set or
json_error there, or a piece of text that such a one is put together from. A string in a test expects the one with which it
has the longest piece in common, at least FEW characters of it or all of a shorter piece. What nothing expects is listed here,
and is a failure unless tests/data/refusals.untested has the beginning of it, with the reason.
"""

import os
import re
import sys

TOP = os.environ["VX_SRCDIR"]
FEW = 12
DIRS = ["src/cli", "src/graph", "src/config", "src/workspace"]
PRINTERS = ["schema.c"]  # what they put together is no message
CALLS = re.compile(
    r"\b(err_set\(\s*e,\s*ERR_(?:USAGE|CONFIG)\s*,|json_error(?:_key)?\(|refuse\(|strbuf_addf?s?\(|arena_printf\(|FIELD_(?:FOREIGN|LATER|NOT|GONE))"
)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CONVERSION = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]|%%")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'"}


def unescape(s):
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[0]), s)


def code_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    # a literal first: what looks like a comment or a character in it is none
    parts = r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)+\''
    return re.sub(parts, lambda m: m[0] if m[0][0] == '"' else "0" + "\n" * m[0].count("\n"), text, flags=re.S)


def argument_end(text, at):
    """From within a call, the place of the parenthesis that ends it."""
    depth = 1
    while depth and at < len(text):
        if text[at] == '"':
            at = LITERAL.match(text, at).end() if LITERAL.match(text, at) else at + 1
            continue
        depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def joined(text):
    """Literals, those joined that stand one after the other."""
    out, last = [], None
    for m in LITERAL.finditer(text):
        if last is not None and not text[last : m.start()].strip(" \t\n"):
            out[-1] += m[1]
        else:
            out.append(m[1])
        last = m.end()
    return [unescape(s) for s in out]


def plain(s):
    """Without what a regular expression or a shell adds, so that both sides read the same."""
    return s.replace("\\", "").replace("`", ".").replace("'", '"')


class Message:
    def __init__(self, place, text):
        self.place, self.text = place, text
        self.pieces = [plain(p) for p in CONVERSION.split(text)]
        self.longest = max(self.pieces, key=len)
        self.is_expected = False


def messages():
    out = []
    for d in DIRS:
        for name in sorted(os.listdir(os.path.join(TOP, d))):
            if not name.endswith(".c") or name in PRINTERS:
                continue
            text = code_of(os.path.join(TOP, d, name))
            for m in CALLS.finditer(text):
                for s in joined(text[m.end() : argument_end(text, m.end())]):
                    if len(max(CONVERSION.split(s), key=len).strip()) >= FEW - 4 and " " in s.strip():
                        out.append(Message("%s/%s:%d" % (d, name, text.count("\n", 0, m.start()) + 1), s))
    return out


def expectations():
    for base, dirs, names in os.walk(os.path.join(TOP, "tests")):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(base, name)
            if path == os.path.abspath(__file__) or not name.endswith((".c", ".h", ".sh", ".py")):
                continue
            if name.endswith((".c", ".h")):
                yield from joined(code_of(path))
                continue
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for m in re.finditer(r"'([^'\n]*)'|\"((?:[^\"\\\n]|\\.)*)\"", text):
                yield m[1] if m[1] is not None else m[2]


def common(piece, text, least):
    """The length of the longest part of the piece that the text has, if that is `least` at least."""
    best = 0
    for i in range(len(piece) - least + 1):
        while i + max(best + 1, least) <= len(piece) and piece[i : i + max(best + 1, least)] in text:
            best = max(best + 1, least)
    return best


def mark(all_):
    grams = {}
    for m in all_:
        for p in m.pieces:
            for i in range(len(p) - 7):
                grams.setdefault(p[i : i + 8], set()).add(m)
    for text in {plain(s) for s in expectations()}:
        near = set()
        for i in range(len(text) - 7):
            near |= grams.get(text[i : i + 8], set())
        scores = []
        for m in near:
            n = max(common(p, text, min(len(p), 8)) for p in m.pieces if p)
            if n >= min(FEW, len(m.longest)):
                scores.append((n, m))
        top = max((n for n, _ in scores), default=0)
        for n, m in scores:
            m.is_expected |= n == top or m.longest in text


def main():
    all_ = messages()
    mark(all_)
    with open(os.path.join(TOP, "tests/data/refusals.untested"), encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if line.strip() and not line.startswith("#")]
    excused = {line.split("\t")[0]: 0 for line in lines}
    failed = n = 0

    def ok(good, name, detail=()):
        nonlocal failed, n
        n += 1
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", n, name))
        for d in detail:
            print("# " + d.replace("\n", " "))

    bare = [m for m in all_ if not m.is_expected]
    missing = []
    for m in bare:
        by = [b for b in excused if m.text.startswith(b)]
        for b in by:
            excused[b] += 1
        if not by:
            missing.append("%s: %s" % (m.place, m.text))
    ok(len(all_) > 150, "there are refusals (%d)" % len(all_))
    ok(not missing, "each has a test of its message", missing)
    ok(all("\t" in line for line in lines), "each that has none has a reason")
    ok(all(excused.values()), "and is there", [b for b, k in excused.items() if not k])
    print("1..%d" % n)
    return failed > 0


sys.exit(main())
