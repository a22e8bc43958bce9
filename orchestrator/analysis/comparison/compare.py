"""Compare two sides: one row for each metric of each cell that either has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
AS_NIGHTS_DO = 1.5
"""One night that lies no further off than so many times what any night of these devices moved by is no difference: a
phone that throttles from the first block on looks like a slower build (benchmarks/statistics/nights.py)."""


_Of = tuple[str, str, str]
"""Source, metric and basis."""


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
    moved = _moved(groups)
    tested = [(group, group.p) for group in groups if group.p is not None]
    if tested:
        adjusted = holm(np.concatenate([p for _, p in tested]))
        ends = np.cumsum([len(p) for _, p in tested])
        for (group, p), own in zip(tested, np.split(adjusted, ends[:-1]), strict=True):
            _tell_verdicts(group, p, own, rules, len(adjusted), moved)
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


def _moved(groups: Iterable[_Group]) -> Mapping[_Of, float]:
    """Return the logarithm by which any night of any device moved furthest, by what figures are of."""
    found: dict[_Of, float] = {}
    for group in groups:
        for row, move in zip(group.rows, () if group.found.moved is None else group.found.moved.tolist(), strict=False):
            found[_of(row)] = max(found.get(_of(row), 0.0), move)
    return found


def _of(row: Row) -> _Of:
    return row.told.source, row.told.metric, row.told.basis


def _tell_verdicts(
    group: _Group, p: Array, adjusted: Array, rules: Rules, rows: int, moved: Mapping[_Of, float]
) -> None:
    """`rows`: of the whole table. `moved`: by what figures are of, how far nights move by themselves."""
    found = group.found
    margins = np.array([row.told.margin for row in group.rows])
    shares = np.array([row.share for row in group.rows])
    verdicts = judge(bounds(found, shares), margins, adjusted, shares * rules.level)
    needs = _needs(found, verdicts, margins, shares, rules.level, rows)
    told = zip(group.rows, verdicts, needs, p.tolist(), adjusted.tolist(), found.point.tolist(), strict=True)
    for each, verdict, units, its_p, adjusted_p, point in told:
        row = each.told
        row.verdict, row.p, row.adjusted_p = verdict, its_p, adjusted_p
        row.blocks, row.nights = found.blocks, found.nights
        row.reason = _of_the_phone(each, found, point, moved.get(_of(each), 0.0)) if verdict == "different" else ""
        if row.reason:
            row.verdict = "unknown"
        elif verdict == "different":
            row.worse = (point > 0) == METRICS[row.metric].more_is_worse
        elif verdict == "unknown":
            _tell_needs(row, found, units)


def _of_the_phone(row: Row, found: Estimate, point: float, moved: float) -> str:
    """Why a difference may be the phone's own: its canaries moved too, in the same direction and half as far; or there
    are none, and a single night is no further off than nights of these devices are by themselves."""
    if row.phone is not None:
        is_its = abs(row.phone) > log1p(CHANGE_SHARE) and row.phone * point > 0 and abs(row.phone) >= abs(point) / 2
        return f"{OF_PHONE} ({exp(row.phone) - 1:+.0%} of their time)" if is_its and row.told.metric in BY_TIME else ""
    if found.method != "nights" or min(found.nights) > 1 or abs(point) > AS_NIGHTS_DO * moved:
        return ""
    row.told.needs_nights = 1
    most = f"{exp(moved) - 1:.0%}"
    return f"nights of these devices move by up to {most} by themselves: compare one night more, or with canaries"


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
