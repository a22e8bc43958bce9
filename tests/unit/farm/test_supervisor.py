"""The supervisor and parts that do not come up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from farm.parts import part, redis_server
from farm.parts.part import Part
from farm.supervisor import Supervisor
from orchestrator.model.errors import SetupError
from tests.waiting import eventually

FAILS = (sys.executable, "-I", "-S", "-c", "print('no port'); raise SystemExit(3)")
STAYS = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")


@pytest.mark.parametrize("needed", [True, False])
def test_a_farm_comes_up_without_a_part_that_it_does_not_need(tmp_path: Path, needed: bool) -> None:
    said: list[tuple[str, str]] = []
    parts = [
        Part("pages", FAILS, is_ready=lambda: False, needed=needed),
        Part("last", STAYS, is_ready=lambda: True),
    ]
    supervisor = Supervisor(parts, {}, tmp_path, lambda part, what, _: said.append((part, what)))
    try:
        if needed:
            with pytest.raises(SetupError, match=r"pages did not start(.|\n)*no port"):
                supervisor.start()
            assert said == [("pages", "died")]
        else:
            supervisor.start()
            assert said == [("pages", "died"), ("last", "ready")]
    finally:
        supervisor.stop()


def test_parts_start_beside_each_other(tmp_path: Path) -> None:
    """The first is ready when the second says something, and the third waits for both."""
    said, written = list[str](), tmp_path / "written"
    writes = (sys.executable, "-I", "-S", "-c", f"open({str(written)!r}, 'w'); import time; time.sleep(600)")
    parts = [
        Part("worker", STAYS, is_ready=written.exists),
        Part("beat", writes, is_ready=lambda: "worker" in said, beside=True),
        Part("last", STAYS, is_ready=lambda: True, before_start=lambda: said.append("before the last")),
    ]
    supervisor = Supervisor(parts, {}, tmp_path, lambda part, what, _: said.append(part))
    try:
        supervisor.start()
        assert said == ["worker", "beat", "before the last", "last"]
    finally:
        supervisor.stop()


def test_a_starved_machine_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is none tells it, too."""
    monkeypatch.setattr(part, "ANSWER_S", 0.2)
    for text, why in (("#!/bin/sh\nexec sleep 60\n", "not within 0.2 s"), ("", "Exec format error")):
        program = tmp_path / "redis-server"
        program.write_text(text)
        program.chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(SetupError, match=rf"--version` does not answer: {why}(.|\n)*too much to do"):
            redis_server.find()


def test_what_was_not_there_is_tried_again(tmp_path: Path) -> None:
    """The cause may be a port that another farm, started at the same time, has just taken."""
    first, ready = tmp_path / "first", tmp_path / "ready"
    text = f"""import pathlib, sys, time
first, ready = map(pathlib.Path, {(str(first), str(ready))!r})
if not first.exists():
    first.touch()
    sys.exit(3)
ready.touch()
time.sleep(600)"""
    said: list[tuple[str, str]] = []
    part = Part("pages", (sys.executable, "-I", "-S", "-c", text), is_ready=ready.exists, needed=False)
    supervisor = Supervisor([part], {}, tmp_path, lambda part, what, _: said.append((part, what)))
    try:
        supervisor.start()
        eventually(lambda: supervisor.look() or said[-1:] == [("pages", "ready")])
        assert said[0] == ("pages", "died")
    finally:
        supervisor.stop()
