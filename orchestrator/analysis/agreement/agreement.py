"""Compare the predictions of every result of a workload with those of one of them, the base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Precision
from orchestrator.model.errors import UnknownName
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell

from .cell_results import Answered, CellResult, answered
from .comparison import Comparison, compare
from .margins import MarginBin, margin_bins


class Row(Model):
    """A result, and how it compares."""

    result: CellResult
    comparison: Comparison | None
    """None for the base itself, and where it and the base have no example in common."""


class Agreement(Model):
    """The predictions of one workload on its set."""

    workload: str
    labelled: bool
    base: CellResult | None
    """None where there is no prediction yet."""
    rows: tuple[Row, ...]
    """All results in the experiment's order, the base among them."""
    margins: tuple[MarginBin, ...]
    """The base's margins, in bins."""


def agreements(
    blocks: Iterable[BlockFigures],
    cells: Mapping[str, Cell],
    experiment: Experiment,
    labels: Sequence[int] | None = None,
    base: str = "",
) -> tuple[Agreement, ...]:
    """One for each workload with a set; what is predicted by different ones is never compared.

    `blocks`: with what rows hold apart.
    `cells`: those of all jobs, by id. `labels`: the right class of each example of the set. `base`: words of a
    result's label and serials, each of them whole; the first result that has them all, and predictions, is the base.
    Without it that is the first in fp32, or else the first of all. Raises UnknownName where no result has the words.
    """
    found = answered(blocks, cells, experiment, labels)
    chosen = {workload: _base(own, base) for workload, own in found.items()}
    if base and found and not any(chosen.values()):
        raise _unknown(base, [one for own in found.values() for one in own])
    return tuple(_agreement(own, chosen[workload], labels) for workload, own in found.items())


def _base(results: Sequence[Answered], words: str) -> Answered | None:
    usable = [one for one in results if one.answers]
    if words:
        return next((one for one in usable if set(words.split()) <= _name_words(one.result)), None)
    return next((one for one in usable if one.result.precision == Precision.FP32), usable[0] if usable else None)


def _name_words(result: CellResult) -> set[str]:
    return {*result.label.split(), *result.serials}


def _unknown(base: str, results: Sequence[Answered]) -> UnknownName:
    known = "\n".join(f"    {' '.join((one.result.label, *one.result.serials))}" for one in results if one.answers)
    return UnknownName(
        f"no result with predictions has the words {base!r}; known:\n{known or '    none'}",
        remedy="give words of one of them, each as it is written there",
    )


def _agreement(results: Sequence[Answered], base: Answered | None, labels: Sequence[int] | None) -> Agreement:
    rows = tuple(
        Row(
            result=one.result,
            comparison=None if base is None or one is base else compare(base.answers, one.answers, labels),
        )
        for one in results
    )
    changed = {each.example for row in rows if row.comparison for each in row.comparison.changed}
    return Agreement(
        workload=results[0].result.workload,
        labelled=labels is not None,
        base=base.result if base else None,
        rows=rows,
        margins=margin_bins(base.answers, changed) if base else (),
    )
