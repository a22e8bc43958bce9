"""The end of the benchmarks' commands when nobody reads them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import ROOT

RECORDED = "benchmarks/results/2026-11-21-h200-engine.json"
SILENT = {Path("benchmarks/engine/peers/__main__.py")}
"""Started by us alone, over a pipe of ours."""


@pytest.mark.parametrize(
    "words", [("engine", "--table", RECORDED), ("energy_coverage", "--help")], ids=["long", "short"]
)
def test_a_reader_who_leaves_is_no_error(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    argv = [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:]]
    try:
        done = subprocess.run(
            argv, cwd=ROOT, env=buffered, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr.decode()) == (1, "")


def test_a_reader_who_stays_reads_the_table_and_the_status() -> None:
    argv = [sys.executable, "-m", "benchmarks.engine"]
    shown = subprocess.run([*argv, "--table", RECORDED], cwd=ROOT, capture_output=True, timeout=60, check=True)
    assert b"| network |" in shown.stdout
    wrong = subprocess.run([*argv, "--samples", "1"], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert wrong.returncode == 2 and b"--samples" in wrong.stderr


def test_every_command_is_guarded() -> None:
    commands = {path.relative_to(ROOT): _started(path) for path in (ROOT / "benchmarks").rglob("*.py")}
    bare = {path for path, started in commands.items() if started not in ("", "run_command(main)")}
    assert bare == SILENT
    assert len([started for started in commands.values() if started]) > 10


def _started(path: Path) -> str:
    """Return what `python -m` runs of it."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test):
            return "; ".join(map(ast.unparse, statement.body))
    return ""
