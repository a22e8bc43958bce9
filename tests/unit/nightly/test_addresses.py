"""Whom a suite tells is checked when a person schedules it, and can be tried."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from farm.cli import main

SUITE = """
name: nightly
experiments: [lenet.yaml]
sides: {{candidate: {{axes: {{precision: fp16}}}}}}
budget: 90 min
schedule: "02:30"
tell: {tell}
"""
GOOD = ("team", "json://127.0.0.1:9/x", "mailtos://me:hidden@example.org")
BAD = ("nobody", "Team", "jsn://127.0.0.1/x", "http//x", "me@", "slack://")


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.setenv("FARM_TELL", json.dumps({"team": "json://me:hidden@127.0.0.1:9/hook"}))
    monkeypatch.setenv("FARM_STATE", str(tmp_path / "farm"))

    def run(tell: list[str], *arguments: str) -> tuple[int, str]:
        suite = tmp_path / "suite.yaml"
        suite.write_text(SUITE.format(tell=json.dumps(tell)))
        code = main(["nightly", *arguments, str(suite)])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_a_suite_with_a_wrong_address_is_not_scheduled(command, seed: int) -> None:  # type: ignore[no-untyped-def]
    chosen = random.Random(seed)
    wrong = chosen.sample(BAD, chosen.randint(1, 3))
    to = [*chosen.sample(GOOD, chosen.randint(0, 2)), *wrong]
    chosen.shuffle(to)
    for action in ([], ["schedule"], ["--test-tell"]):
        code, said = command(to, *action)
        assert code != 0 and "FARM_TELL" in said and "hidden" not in said, said
        assert all(each.partition(":")[0] in said for each in wrong), said
    assert command(list(GOOD), "schedule")[0] == 0


def test_a_test_message_says_what_did_not_arrive(command) -> None:  # type: ignore[no-untyped-def]
    code, said = command(["team"], "--test-tell")  # nothing listens there
    assert code == 1 and "team: " in said and "hidden" not in said
    assert command(["team"], "schedule", "--test-tell")[0] == 2
