"""Set everything that an experiment's file has as published beside what its devices measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator.analysis.agreement import Agreement
from orchestrator.analysis.best import Best
from orchestrator.analysis.comparison.backends import PaysFrom
from orchestrator.analysis.figures import BlockFigures
from orchestrator.analysis.limits import Limit
from orchestrator.analysis.statistics import Mode
from orchestrator.model.experiment import Finding, Published, PublishedTable
from orchestrator.model.job import Cell

from .figure import Figure, OurDevice, figures_of
from .judgement import (
    NOT_COMPARABLE,
    Beside,
    Judged,
    Reproduction,
    beside,
    counted,
    judge_best,
    judge_count,
    judge_finding,
    judge_line,
    judge_ratio,
)
from .ours import Finder, Ours

NOBODY = OurDevice("", "", "")


def reproduce(
    published: Published | None,
    blocks: Iterable[BlockFigures],
    cells: Mapping[str, Cell],
    mode: Mode = "steady",
    *,
    pays: Sequence[PaysFrom] = (),
    agreements: Sequence[Agreement] = (),
    limits: Sequence[Limit] = (),
) -> Reproduction | None:
    """None where nothing with keys is published, or nothing of ours went well.

    A device of a published model is set beside that one's figures only, any other beside everything. `pays`: for
    findings of a crossover. `agreements`: for predictions that changed. `limits`: for
    those of devices.
    """
    if published is None or not (published.tables or published.findings):
        return None
    finder = Finder(blocks, cells, mode, limits)
    return counted(
        [
            each
            for device in finder.devices
            for each in (
                *_tables(published, finder, device, cells, agreements),
                *(_finding(finding, finder, device, pays) for finding in published.findings),
            )
        ]
    )


def _tables(
    published: Published, finder: Finder, device: OurDevice, cells: Mapping[str, Cell], agreements: Sequence[Agreement]
) -> Iterator[Beside]:
    named = device.named_in(published)
    for table in published.tables:
        lines: dict[str, list[Figure]] = {}
        for one in figures_of(table):
            if not named or one.device in (named, ""):
                lines.setdefault(one.line, []).append(one)
        for line in lines.values():
            for figure, (ours, judged) in _judged_line(table, line, finder, device, cells, agreements):
                yield beside(figure, device, ours, judged, same_model=bool(named) and figure.device == named)


def _judged_line(
    table: PublishedTable,
    line: Sequence[Figure],
    finder: Finder,
    device: OurDevice,
    cells: Mapping[str, Cell],
    agreements: Sequence[Agreement],
) -> list[tuple[Figure, tuple[Ours, Judged]]]:
    if table.compare == "cells":
        return [(figure, _alone(figure, finder, device, cells, agreements)) for figure in line]
    ours = [_of_line(figure, finder, device) for figure in line]
    judged = judge_line(list(zip(line, ours, strict=True)))
    return list(zip(line, zip(ours, judged, strict=True), strict=True))


def _of_line(figure: Figure, finder: Finder, device: OurDevice) -> Ours:
    if figure.metric in ("other", "best", "speed_up", "changed_predictions"):
        return Ours(
            None, why_not="no figure of the farm stands for it" if figure.metric == "other" else "stands for itself"
        )
    return finder.measured(figure.metric, device, figure.keys)


def _alone(
    figure: Figure, finder: Finder, device: OurDevice, cells: Mapping[str, Cell], agreements: Sequence[Agreement]
) -> tuple[Ours, Judged]:
    if figure.metric == "speed_up":
        return _speed_up(figure, finder, device)
    if figure.metric == "best":
        return _best(figure, finder.best(device, figure.keys, figure.table.axis))
    if figure.metric == "changed_predictions":
        return _changed(figure, device, cells, agreements)
    ours = _of_line(figure, finder, device)
    return ours, Judged(NOT_COMPARABLE, ours.why_not or "an absolute figure of another device has no shape")


def _speed_up(figure: Figure, finder: Finder, device: OurDevice) -> tuple[Ours, Judged]:
    fast = finder.time(device, figure.keys)
    slow = finder.time(device, {**figure.keys, **figure.table.over})
    if fast.value is None or slow.value is None:
        why = fast.why_not or f"what it is over: {slow.why_not}"
        return Ours(None, why_not=why), Judged(NOT_COMPARABLE, why)
    judged = judge_ratio(figure.value, fast, slow, over="as fast")
    return Ours(slow.value / fast.value, cell=f"{fast.cell} over {slow.cell}"), judged


def _best(figure: Figure, found: Best | str) -> tuple[Ours, Judged]:
    if isinstance(found, str):
        return Ours(None, why_not=found), Judged(NOT_COMPARABLE, found)
    return Ours(float(found.best)), judge_best(figure.value, found)


def _changed(
    figure: Figure, device: OurDevice, cells: Mapping[str, Cell], agreements: Sequence[Agreement]
) -> tuple[Ours, Judged]:
    """Whether any prediction changed; one that did, of however many, is another finding."""
    for row in (row for one in agreements for row in one.rows):
        cell = cells.get(row.result.cell_id)
        fits = cell is not None and str(cell.precision) == figure.keys.get("precision")
        if fits and cell and row.comparison and device.serial in row.result.serials:
            changed = len(row.comparison.changed)
            judged = judge_count(figure.value, changed, row.comparison.same.of)
            return Ours(float(changed), cell=cell.label), judged
    why = "no such predictions, or nothing to compare them with"
    return Ours(None, why_not=why), Judged(NOT_COMPARABLE, why)


def _finding(finding: Finding, finder: Finder, device: OurDevice, pays: Sequence[PaysFrom]) -> Beside:
    ours = Ours(None)
    if not finding.expect:
        judged = Judged(NOT_COMPARABLE, "told in words; nothing that this experiment measures shows it")
    elif finding.expect == "crosses":
        judged = _crossing(finding, device, pays)
    else:
        of = finder.measured(finding.metric, device, finding.of)
        over = finder.measured(finding.metric, device, {**finding.of, **finding.over})
        judged = judge_finding(finding.expect, of, over)
        ours = of
    return Beside(
        table="", row=finding.text, column="", metric=finding.metric, unit="", published_on="", published=None,
        serial=device.serial, source=device.source, cell=ours.cell, verdict=judged.verdict, why=judged.why,
    )  # fmt: skip


def _crossing(finding: Finding, device: OurDevice, pays: Sequence[PaysFrom]) -> Judged:
    wanted = (finding.operation, str(finding.of.get("backend")), device.serial)
    for one in pays:
        if (one.operation, one.backend, one.serial) == wanted:
            if one.lead_at == len(one.sizes):
                return Judged("different", f"behind up to {one.sizes[-1]}")
            if one.lead_at == 0:
                return Judged("different", f"ahead from {one.sizes[0]}, the smallest")
            return Judged("reproduced", f"ahead from {one.sizes[one.lead_at]}, not yet at {one.sizes[one.lead_at - 1]}")
    return Judged(NOT_COMPARABLE, f"{finding.operation} was not measured at two sizes on both")
