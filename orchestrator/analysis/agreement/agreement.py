"""Every variant of a workload against one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.errors import UnknownName
from orchestrator.model.base import Model
from orchestrator.model.device import Precision
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell
from orchestrator.model.record import Record

from .comparison import Comparison, compare
from .margins import MarginBin, margin_bins
from .variants import Answered, Variant, answered


class Row(Model):
    """A variant, and how it compares."""

    variant: Variant
    comparison: Comparison | None
    """None for the base itself, and where it and the base have no example in common."""


class Agreement(Model):
    """The predictions of one workload on its set."""

    workload: str
    labelled: bool
    base: Variant | None
    """None where there is no prediction yet."""
    rows: tuple[Row, ...]
    """All variants in the experiment's order, the base among them."""
    margins: tuple[MarginBin, ...]
    """Of the base."""


def agreements(
    records: Iterable[Record],
    cells: Mapping[str, Cell],
    experiment: Experiment,
    labels: Sequence[int] | None = None,
    base: str = "",
) -> tuple[Agreement, ...]:
    """One for each workload with a set; what is predicted by different ones is never compared.

    `cells`: those of all jobs, by id. `labels`: the right class of each example of the set. `base`: words of a
    variant's label and serials, each of them whole; the first variant that has them all, and predictions, is the base.
    Without it that is the first in fp32, or else the first of all. Raises UnknownName where no variant has the words.
    """
    found = answered(records, cells, experiment, labels)
    chosen = {workload: _base(own, base) for workload, own in found.items()}
    if base and found and not any(chosen.values()):
        raise _unknown(base, [one for own in found.values() for one in own])
    return tuple(_agreement(own, chosen[workload], labels) for workload, own in found.items())


def _base(variants: Sequence[Answered], words: str) -> Answered | None:
    told = [one for one in variants if one.answers]
    if words:
        return next((one for one in told if set(words.split()) <= _words(one.variant)), None)
    return next((one for one in told if one.variant.precision == Precision.FP32), told[0] if told else None)


def _words(variant: Variant) -> set[str]:
    return {*variant.label.split(), *variant.serials}


def _unknown(base: str, variants: Sequence[Answered]) -> UnknownName:
    known = "\n".join(f"    {' '.join((one.variant.label, *one.variant.serials))}" for one in variants if one.answers)
    return UnknownName(
        f"no variant with predictions has the words {base!r}; known:\n{known or '    none'}",
        remedy="give words of one of them, each as it is written there",
    )


def _agreement(variants: Sequence[Answered], base: Answered | None, labels: Sequence[int] | None) -> Agreement:
    rows = tuple(
        Row(
            variant=one.variant,
            comparison=None if base is None or one is base else compare(base.answers, one.answers, labels),
        )
        for one in variants
    )
    changed = {each.example for row in rows if row.comparison for each in row.comparison.changed}
    return Agreement(
        workload=variants[0].variant.workload,
        labelled=labels is not None,
        base=base.variant if base else None,
        rows=rows,
        margins=margin_bins(base.answers, changed) if base else (),
    )
