"""Results of one plan are told apart by nothing that was varied: they say so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from orchestrator.analysis.statistics import Summary
from orchestrator.model.job import Cell
from orchestrator.model.record import DoubtCode

from .records import cell, record, summarised


def results(plans: Mapping[str, str], cells: Mapping[str, Cell], serials: tuple[str, ...] = ("A",)) -> list[Summary]:
    """Summarise one block of each cell on each device; it ran the plan that stands by the cell's name."""
    records = [
        made.model_copy(update={"provenance": made.provenance.model_copy(update={"program_hash": plan})})
        for serial in serials
        for name, plan in plans.items()
        for made in (record(cells[name], [1.0, 1.0], serial=serial),)
    ]
    return summarised(records, {each.cell_id: each for each in cells.values()})


def doubts(found: list[Summary]) -> list[str]:
    return [doubt.detail for each in found for doubt in each.doubts if doubt.code is DoubtCode.SAME_PLAN]


@pytest.mark.parametrize(
    ("axis", "values", "told"),
    [
        ("granularity", (4, 8), True),
        ("tuned", (True, False), True),
        ("threads", (1, 2), False),  # the agent is told it beside the plan
        ("affinity", ("big", "little"), False),
    ],
)
def test_two_cells_of_one_plan(axis: str, values: tuple[object, object], told: bool) -> None:
    cells = {str(value): cell().model_copy(update={"options": {axis: value}}) for value in values}
    found = doubts(results(dict.fromkeys(cells, "aa"), cells))
    labels = [each.label for each in cells.values()]
    assert sorted(found) == (sorted(f"the plan is that of `{label}`" for label in labels) if told else [])
    assert doubts(results(dict(zip(cells, ("aa", "bb"), strict=True)), cells)) == []


def test_devices_are_apart() -> None:
    cells = {"x": cell()}
    assert doubts(results({"x": "aa"}, cells, serials=("A", "B"))) == []
