"""The part of a report about sustained loads: how their speed held."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.statistics import Summary, told_of
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

NOTE = (
    "A unit is an inference, or a token behind an answer's first. Speed left: time of a unit in the first minute (in "
    "the first fifth of a short load) over that of the last tenth. The plateau is the speed before it first falls by "
    "more than 5 %; `end` and `until then` are told where every block throttled; `sustained` is the speed of the last "
    f"third. Medians over blocks. {wording.LEVELS}."
)
TOLD = {
    "plateau": ("plateau units/s", True), "plateau end": ("end s", True), "until throttled": ("until then", False),
    "sustained": ("sustained units/s", True),
}  # fmt: skip
"""Quantities with their columns, and whether a terminal has room for their intervals."""
LITTLE_LEFT = 0.9


def section(summaries: Sequence[Summary]) -> Section:
    """Return the table; without rows where no block was a sustained load."""
    names = wording.naming(summaries)
    found = [(summary, summary.throttling) for summary in summaries if summary.throttling is not None]
    rows = []
    for summary, one in found:
        told = {each.metric: wording.told(each) for each in told_of(summary)}
        rows.append(
            (
                wording.device(summary), wording.cell(summary, names), f"{one.load_s / 60:.1f} min",
                wording.ms(one.first_ms), wording.ms(one.last_ms), f"{one.speed_left:.0%}",
                *(text for name in TOLD for text in told.get(name, ("", ""))), f"{one.throttled} of {one.blocks}",
            )
        )  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("load", True), Column("first minute ms", True, True),
        Column("at the end ms", True, True), Column("speed left", True),
        *(each for head, in_terminal in TOLD.values()
          for each in (Column(head, True), Column("interval", True, not in_terminal))),
        Column("throttled", True),
    )  # fmt: skip
    bad = frozenset(index for index, (_, one) in enumerate(found) if one.speed_left < LITTLE_LEFT)
    return Section("sustained", "Sustained load", NOTE, columns, tuple(rows), bad)
