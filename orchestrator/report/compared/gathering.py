"""Gather the two sides of a comparison from a ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.analysis import comparison
from orchestrator.analysis.comparison import SideRow
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.errors import NoData

from .content import Content

Labels = Callable[[ExperimentRow], Sequence[int] | None]
"""Tells the right classes of an experiment's set; None: it has none."""


def side_rows(ledger: Ledger, row: ExperimentRow, labels: Sequence[int] | None) -> list[SideRow]:
    """Return the blocks of an experiment that are over, and what was excluded from it."""
    cells, sampling = ledger.cells(row.id), row.experiment.sampling
    answers = comparison.answers_of(ledger.figures(row.id, ["predictions"]), labels) if labels else {}
    rows = comparison.rows_of(ledger.briefs(row.id), cells, sampling.mode, answers, watched=sampling.is_watched)
    return comparison.alike([*rows, *comparison.excluded_rows(row.exclusions, rows)], row.experiment)


def of_two(ledger: Ledger, names: tuple[str, str], labels: Labels) -> Content:
    """Return the comparison of two experiments with each metric's own margin. Raises UnknownName, NoData."""
    found = [ledger.experiment(name) for name in names]
    a, b = (side_rows(ledger, row, labels(row)) for row in found)
    if not (a and b):
        raise NoData(f"{names[0] if not a else names[1]}: no block of it is over", remedy="wait until it is")
    rows = comparison.with_engines(comparison.compare(a, b))
    serials = frozenset(each.serial for each in (*a, *b))
    return Content(*names, rows, experiments=((names[0],), (names[1],)), serials=serials)
