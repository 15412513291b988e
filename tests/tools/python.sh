#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # what tools.sh reads
# Python in a sandbox: a virtual environment, and pytest in it.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/tools/tools.sh"
require_program python3
python3 -c 'import pytest' 2>/dev/null || cannot "no pytest here"
python3 -c 'import ensurepip' 2>/dev/null || cannot "no ensurepip here (python3-venv)"

# --- venv --------------------------------------------------------------------------------------

tool venv 'python3 -m venv' 'python3 -m venv --system-site-packages .venv' '' '".venv/**"'
works .venv/bin/python .venv/bin/pip .venv/pyvenv.cfg
ok "venv: it runs" .venv/bin/python -c 'import sys, pytest; assert sys.prefix != sys.base_prefix'
# (What takes the time is pip.)
COMMAND='python3 -m venv --system-site-packages --without-pip .venv'
not_without .venv 'write venv/\.venv/.*'
derived

# --- pytest ------------------------------------------------------------------------------------

tool pytest 'pytest' '../venv/.venv/bin/python -m pytest -q' '"pyproject.toml", "twice/**", "tests/**"' ''
MORE=', "dependsOn": ["venv#t"]'
printf '%s\n' __pycache__ .pytest_cache >.gitignore
printf '[tool.pytest.ini_options]\npythonpath = ["."]\n' >pyproject.toml
echo 'def twice(n): return 2 * n' | put twice/__init__.py
put tests/test_twice.py <<'P'
from twice import twice
def test_twice(tmp_path):
    (tmp_path / "n").write_text(str(twice(21)))
    assert (tmp_path / "n").read_text() == "42"
P
works
ok "pytest: its caches are kept" test -d .pytest_cache -a -d twice/__pycache__ -a -d tests/__pycache__
not_without twice 'read pytest/twice/__init__.py'
not_without .pytest_cache 'write pytest/\.pytest_cache.*'
rm -r .pytest_cache twice/__pycache__ tests/__pycache__
derived '[0-9]+ writes to tool caches discarded: pytest/.*'
not_ok "pytest: --sandbox: they are thrown away" test -e .pytest_cache -o -e twice/__pycache__

SANDBOX='{ "allow": { "read": ["pyproject.toml", "twice", "tests", "../venv/.venv"] } }'
COMMAND='PYTHONDONTWRITEBYTECODE=1 ../venv/.venv/bin/python -m pytest -q -p no:cacheprovider'
config "$SANDBOX"
run run pytest#t
silent "without caches"
finish
