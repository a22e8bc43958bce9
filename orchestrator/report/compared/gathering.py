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
    """Return the comparison of two experiments or nights with each metric's own margin. Raises UnknownName, NoData."""
    (a_of, a), (b_of, b) = (_side(ledger, name, labels) for name in names)
    if not (a and b):
        raise NoData(f"{names[0] if not a else names[1]}: no block of it is over", remedy="wait until it is")
    rows = comparison.with_engines(comparison.compare(a, b))
    serials = frozenset(each.serial for each in (*a, *b))
    return Content(*names, rows, experiments=(a_of, b_of), serials=serials)


def _side(ledger: Ledger, name: str, labels: Labels) -> tuple[tuple[str, ...], list[SideRow]]:
    """Return the experiments of a side and their blocks; a name with `@` is a night's."""
    if "@" not in name:
        row = ledger.experiment(name)
        return (row.id,), side_rows(ledger, row, labels(row))
    from orchestrator.nightly import Night
    from orchestrator.nightly.past import rows_of_night

    night = Night.model_validate_json(ledger.nights.one(name).body)
    return tuple(wave.experiment_id for wave in night.waves), rows_of_night(ledger, night)
