"""The part of a report about sustained loads: how their speed held."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.statistics import Summary
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

from . import told

NOTE = (
    "A unit is an inference, or a token behind an answer's first. First minute: the first fifth of a short load; at "
    "the end: the last tenth. The plateau is the speed before it first falls by more than 5 % and stays below; a speed "
    "that wanders is not called throttled. `end` and `until then` are told where every block throttled; `sustained` is "
    f"the speed of the last third. Speed left: sustained over plateau. Medians over blocks. {wording.LEVELS}."
)
LITTLE_LEFT = 0.9


def section(summaries: Sequence[Summary]) -> Section:
    """Return the table; without rows where no block was a sustained load."""
    names = wording.naming(summaries)
    found = [(summary, summary.throttling) for summary in summaries if summary.throttling is not None]
    quantities = told.names_of("sustained", summaries)
    rows = [
        (
            wording.device(summary), wording.cell(summary, names), f"{one.load_s / 60:.1f} min",
            wording.ms(one.first_ms), wording.ms(one.last_ms),
            *told.texts(summary, quantities),
            "" if one.speed_left is None else f"{one.speed_left:.0%}",
            f"{one.throttled} of {one.told}" if one.told else "too few units",
        )
        for summary, one in found
    ]  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("load", True), Column("first minute ms", True, True),
        Column("at the end ms", True, True), *told.columns(quantities),
        Column("speed left", True), Column("throttled", True),
    )  # fmt: skip
    bad = frozenset(
        index for index, (_, one) in enumerate(found) if (one.speed_left or one.first_ms / one.last_ms) < LITTLE_LEFT
    )
    return Section("sustained", "Sustained load", NOTE, columns, tuple(rows), bad)
