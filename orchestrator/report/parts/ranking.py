"""The ranking as texts: a table for each model, the same for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.analysis.ranking import Ranked, is_ranked, ranked_of
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

if TYPE_CHECKING:
    from orchestrator.ledger import ExperimentRow, Ledger

NEWEST = 200
"""Experiments that are looked at: the newest ones."""
COLUMNS = (
    Column("device"), Column("engine"), Column("version"), Column("backend"), Column("options"),
    Column("median ms", True), Column("interval", True), Column("energy", True), Column("interval of it", True),
    Column("verified"),
)  # fmt: skip
NOTE = (
    "The newest resolved figure of each device, model, engine and version, backend and precision; of several "
    "configurations the fastest. Only inferences one by one count. Energies by different sources do not compare."
)


def ranked_in(ledger: Ledger, row: ExperimentRow) -> list[Ranked]:
    """Read what one experiment adds to the ranking."""
    if not is_ranked(row.experiment):
        return []
    return ranked_of(row.id, row.experiment, ledger.cells(row.id), ledger.figures(row.id))


def left_out(rows: Sequence[ExperimentRow], total: int, found: Sequence[Ranked]) -> list[str]:
    """Return how many experiments are not in the ranking, and why, in words. `rows`: those looked at, of `total`."""
    timed = [row.id for row in rows if is_ranked(row.experiment)]
    empty = set(timed) - {each.experiment_id for each in found}
    told = {
        "did not time inferences one by one": len(rows) - len(timed),
        "had no block that went well": len(empty),
        "older than these were not looked at": total - len(rows),
    }
    return [f"Left out: {wording.counted(number, 'experiment')} {why}." for why, number in told.items() if number]


class Group(NamedTuple):
    """The rows of one model, each with its texts."""

    model: str
    rows: Sequence[Ranked]
    texts: Sequence[tuple[str, ...]]


def groups(rows: Sequence[Ranked]) -> list[Group]:
    """Rows in the order of the ranking, model by model."""
    of_model = [(model, list(own)) for model, own in groupby(rows, key=lambda row: row.model)]
    return [Group(model, own, [_texts(row) for row in own]) for model, own in of_model]


def sections(rows: Sequence[Ranked]) -> list[Section]:
    """The tables for a terminal, in which the last column names the experiment."""
    columns = (*COLUMNS, Column("experiment"))
    return [
        Section(
            "ranking", each.model, "", columns,
            tuple((*texts, row.experiment_id) for row, texts in zip(each.rows, each.texts, strict=True)),
        )
        for each in groups(rows)
    ]  # fmt: skip


def _texts(row: Ranked) -> tuple[str, ...]:
    word = wording.source_word(row.source)
    median, interval = wording.figure(row.latency.median_ms, row.latency.interval_ms, row.latency.unresolved)
    options = [each for each in wording.label_options(row.configuration) if not each.startswith("engine=")]
    return (
        " ".join(filter(None, (row.device, wording.short_name(row.phone), word if word.isupper() else ""))),
        row.engine or "not told", row.version, f"{row.backend} {row.precision}", " ".join(options),
        median, interval, *wording.energy(row.energy), "yes" if row.verified else "no",
    )  # fmt: skip
