"""Rows that are written after every step, and benchmarks that go on from them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.engine.kept_rows import KeptRows, add_options, kept_rows


def opened(path: Path, *words: str, repeats: int = 5, machine: str = "a") -> KeptRows:
    parser = argparse.ArgumentParser()
    add_options(parser)
    arguments = parser.parse_args(["-o", str(path), *words])
    return kept_rows(arguments, {"machine": machine, "repeats": repeats}, same=("repeats",))


def test_a_row_is_on_disk_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "new" / "raw.json"
    kept = opened(path)
    for index in range(2):
        kept.add({"network": "lenet", "repeat": index})
        assert json.loads(path.read_text()) == {"machine": "a", "repeats": 5, "found": kept.rows}
    assert list(path.parent.iterdir()) == [path]
    assert kept.has(network="lenet", repeat=1) and not kept.has(network="lenet", repeat=2)
    assert kept.of(network="lenet") == kept.rows


def test_resume_goes_on_and_says_on_which_machine(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    opened(path, "--resume").add({"repeat": 0})
    opened(path, "--resume", machine="b").add({"repeat": 1})
    raw = json.loads(path.read_text())
    assert raw["found"] == [{"repeat": 0}, {"repeat": 1}]
    assert raw["machine"] == "a" and raw["resumed"] == [{"machine": "b", "repeats": 5}]
    opened(path).add({"repeat": 7})
    assert json.loads(path.read_text())["found"] == [{"repeat": 7}]


def test_other_settings_are_another_file(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    opened(path).add({"repeat": 0})
    with pytest.raises(SystemExit, match=r"raw.json was measured with repeats 5, not 3: give another file"):
        opened(path, "--resume", repeats=3)
    assert json.loads(path.read_text())["found"] == [{"repeat": 0}]
