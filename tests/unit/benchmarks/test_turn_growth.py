"""The plot of the scheduler's turns shows what was kept, and says where it came from."""

from __future__ import annotations

import json

import pytest

from benchmarks.farm.turn_growth import drawn
from tests.source_tree import ROOT

KEPT = ROOT / "benchmarks" / "results" / "2026-11-23-two-cores-scheduler-turn.json"


def test_each_line_has_the_kept_figures() -> None:
    rows = list(json.loads(KEPT.read_text()).values())[-1]
    (axes,) = drawn(rows).axes
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    for lanes, words in (("any", "any phone a job"), ("each", "one phone a job")):
        mine = sorted((row for row in rows if row["lanes"] == lanes), key=lambda row: row["phones"])
        assert [row["phones"] for row in mine] == [100, 1000, 10000]
        for column, what in (("changed_s", "after a hundred changes"), ("idle_s", "after none")):
            line = lines[f"{what}, {words}"]
            assert list(line.get_xdata()) == [row["phones"] for row in mine]
            assert list(line.get_ydata()) == pytest.approx([1e3 * row[column] for row in mine])
    assert "10000 phones: 100000 jobs" in axes.get_title()
