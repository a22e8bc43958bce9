"""Rows and events as other versions wrote them, and briefs whatever their provenance has in common."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.figures.brief import Brief
from orchestrator.ledger.figures import packing
from orchestrator.model.event import Phase

MARKS = st.text('a{},:"[]\\', max_size=6)


class Row(NamedTuple):
    experiment_id: str
    job_id: str
    cell_id: str
    serial: str
    source: str
    outcome: str
    started_at: float
    brief: str


VALUES, PROVENANCE = st.dictionaries(MARKS, st.floats(0, 9)), st.dictionaries(MARKS, MARKS)
UNCERTAINTIES = st.dictionaries(MARKS, st.lists(st.floats(0, 9), min_size=2, max_size=2))


@given(st.lists(st.tuples(VALUES, UNCERTAINTIES, PROVENANCE), max_size=6))
def test_rows_share_a_provenance_only_where_it_is_the_same(told: list[tuple[Any, ...]]) -> None:
    known: dict[str, dict[str, str]] = {}
    for parts in told + told:
        first = ("e", "j", "c", "s", "phone", "ok", 1.0)
        rest: tuple[Any, ...] = (1, 2, "work", "m", 2.0, "", None, None, False, False, *parts)
        row: Any = Row(*first, json.dumps(rest, separators=(",", ":")))
        assert packing.brief(row, known) == Brief(*(*first, *rest))


@given(st.integers(0, 2**63 - 1))
def test_a_phase_of_before_there_were_counts_is_read(spent_ns: int) -> None:
    now = Phase(seq=1, t_ns=2, phase="load", start_ns=1, end_ns=2, counts={"cpu_ns": spent_ns})
    said = json.loads(now.model_dump_json())
    said |= {"cpu_ns": said.pop("counts")["cpu_ns"]}
    assert Phase.model_validate_json(json.dumps(said)) == now
