"""`farm demo`, interrupted: whatever it had started has ended, and a second Ctrl-C does not tear that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.processes import marked
from tests.servers import required

from .test_up import calm

ROOT = Path(__file__).resolve().parents[3]


SCRIPT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["farm"]
MODULE, FUNCTION = SCRIPT.split(":")
INSTALLED = ["-c", f"import sys; from {MODULE} import {FUNCTION}; sys.exit({FUNCTION}())"]
"""Python's arguments that do what the installed `farm` does."""


def interrupted(folder: Path, words: str, times: int, program: Sequence[str]) -> tuple[int, str]:
    """Start a demo and interrupt it once these words are said by it or its farm; exit status and what it said."""
    log, up = folder / "demo.log", folder / "state" / "logs" / "up.log"
    command = [sys.executable, *program, "demo", "--state", str(folder / "state")]
    with log.open("w") as file:
        demo = subprocess.Popen(command, cwd=ROOT, env=calm(), stdout=file, stderr=file, start_new_session=True)
    try:
        limit = time.monotonic() + 300
        while words not in log.read_text() + (up.read_text() if up.exists() else ""):
            assert demo.poll() is None and time.monotonic() < limit, log.read_text()
            time.sleep(0.02)
        for _ in range(times):
            os.killpg(demo.pid, signal.SIGINT)
            time.sleep(0.2)
        return demo.wait(120), log.read_text()
    finally:
        if demo.poll() is None:
            demo.kill()
            demo.wait(10)


@pytest.mark.parametrize(
    ("words", "times", "program"),
    [("phones ", 1, ["-m", "farm.cli"]), ("submitted", 3, INSTALLED)],
    ids=["start", "run"],
)
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, words: str, times: int, program: Sequence[str]) -> None:
    required("redis-server"), required("adb")
    status, said = interrupted(tmp_path, words, times, program)
    assert status == 130
    assert "the next `farm demo` goes on from there" in said
    assert "Traceback" not in said
    assert marked(tmp_path / "state") == []
