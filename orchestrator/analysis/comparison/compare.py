"""Compare two sides: one row for each metric of each cell that either has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log1p

import numpy as np

from orchestrator.analysis.statistics import Interval
from orchestrator.analysis.statistics.canaries import CHANGE_SHARE
from orchestrator.analysis.student_t import Array

from .cell_rows import Examples, Figures, Row, rows_of_cell
from .compared import Compared
from .matching import Match, pairs_of
from .metrics import METRICS, Rules
from .ratio import Estimate, Layout, estimate_all
from .rows import SideRow
from .verdict import Verdict, bounds, holm, judge, needed, p_values

BY_TIME = ("latency", "setup")
OF_PHONE = "the phone itself changed between the nights, as its canaries did: compare both sides in one night"


@dataclass(frozen=True)
class _Group:
    """Rows that are estimated together."""

    rows: list[Row]
    found: Estimate
    p: Array | None
    """None where there are too few blocks for a verdict."""


def compare(
    a: Iterable[SideRow], b: Iterable[SideRow], rules: Rules | None = None, match: Match = "device"
) -> tuple[Compared, ...]:
    """Every metric of every cell of either side; verdicts hold for the whole table."""
    rules = rules or Rules()
    rows = [row for pair in pairs_of(a, b, match) for row in rows_of_cell(pair, rules, match)]
    groups = list(_groups(rows))
    for group in groups:
        _tell_ratios(group)
    tested = [(group, group.p) for group in groups if group.p is not None]
    if tested:
        adjusted = holm(np.concatenate([p for _, p in tested]))
        ends = np.cumsum([len(p) for _, p in tested])
        for (group, p), own in zip(tested, np.split(adjusted, ends[:-1]), strict=True):
            _tell_verdicts(group, p, own, rules, len(adjusted))
    return tuple(row.told for row in rows)


def _groups(rows: Iterable[Row]) -> Iterator[_Group]:
    alike: dict[Layout, list[tuple[Row, Figures]]] = {}
    for row in rows:
        if isinstance(row.found, Examples):
            yield _Group([row], row.found.estimate, np.array([row.found.p]))
        elif row.found is not None:
            alike.setdefault(row.found.design.layout, []).append((row, row.found))
    for layout, own in alike.items():
        found = estimate_all(
            layout, [each.a for _, each in own], [each.b for _, each in own], [each.point for _, each in own],
            [each.between for _, each in own], [each.rounding for _, each in own],
        )  # fmt: skip
        yield _Group([row for row, _ in own], found, p_values(found) if layout.enough else None)


def _tell_ratios(group: _Group) -> None:
    found, within = group.found, bounds(group.found)
    lows, highs = np.exp(np.maximum(-700, within.low)), np.exp(np.minimum(700, within.high))
    told = zip(group.rows, np.exp(found.point).tolist(), lows.tolist(), highs.tolist(), strict=True)
    for row, ratio, low, high in told:
        told_both = row.told.a is not None and row.told.b is not None
        row.told.ratio, row.told.method = ratio if told_both else None, found.method
        row.told.interval = Interval(low=low, high=high)


def _tell_verdicts(group: _Group, p: Array, adjusted: Array, rules: Rules, rows: int) -> None:
    """`rows`: of the whole table."""
    found = group.found
    margins = np.array([row.told.margin for row in group.rows])
    shares = np.array([row.share for row in group.rows])
    verdicts = judge(bounds(found, shares), margins, adjusted, shares * rules.level)
    needs = _needs(found, verdicts, margins, shares, rules.level, rows)
    told = zip(group.rows, verdicts, needs, p.tolist(), adjusted.tolist(), found.point.tolist(), strict=True)
    for (row, _, _, phone), verdict, units, its_p, adjusted_p, point in told:
        row.verdict, row.p, row.adjusted_p = verdict, its_p, adjusted_p
        row.blocks, row.nights = found.blocks, found.nights
        if verdict == "different" and row.metric in BY_TIME and _is_the_phones(phone, point):
            row.verdict, row.reason = "unknown", f"{OF_PHONE} ({exp(phone) - 1:+.0%} of their time)"
        elif verdict == "different":
            row.worse = (point > 0) == METRICS[row.metric].more_is_worse
        elif verdict == "unknown":
            _tell_needs(row, found, units)


def _is_the_phones(phone: float, point: float) -> bool:
    """Whether the canaries moved too, in the same direction and half as far."""
    return abs(phone) > log1p(CHANGE_SHARE) and phone * point > 0 and abs(phone) >= abs(point) / 2


def _needs(
    found: Estimate, verdicts: Sequence[Verdict], margins: Array, shares: Array, level: float, rows: int
) -> list[int | None]:
    """Of those that are unknown; None of the others."""
    unknown = np.flatnonzero([verdict == "unknown" for verdict in verdicts])
    units: list[int | None] = [None] * len(verdicts)
    if len(unknown):
        for place, number in zip(unknown.tolist(), needed(found, unknown, margins, level, rows, shares), strict=True):
            units[place] = number
    return units


def _tell_needs(row: Compared, found: Estimate, units: int | None) -> None:
    if units is None:
        row.reason = "no number of blocks settles it: compare more nights on each side, or both in one night"
    elif found.method == "nights":
        row.needs_nights, row.needs_blocks = units, units * found.unit_blocks
    else:
        row.needs_blocks = units
