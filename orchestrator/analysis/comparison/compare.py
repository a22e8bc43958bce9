"""Compare two sides: one row for each metric of each cell that either has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from statistics import median
from typing import NamedTuple

import numpy as np

from orchestrator.analysis.statistics.canaries import CHANGE_SHARE
from orchestrator.analysis.student_t import Array

from .cell_rows import Examples, Figures, Row, rows_of_cell
from .compared import Compared
from .matching import Match, pairs_of
from .metrics import METRICS, Rules
from .ratio import LEAST_FREEDOM, Estimate, Layout, estimate_all
from .rows import SideRow
from .verdict import Verdict, bounds, holm, intervals_of, judge, needed, p_values, why_untold

BY_TIME = ("latency", "setup")
OF_PHONE = "the phone itself changed between the nights, as its canaries did: compare both sides in one night"
ONE_NIGHT = "so few nights tell no throttling from a change; compare more, or both sides in one night, or"
LIKE_ONE = 0.6
"""All that a phone ran moved with a row where their median did by this share of it: more than one row of two does."""
AS_NIGHTS_DO = 1.5
"""One night that lies no further off than so many times what any night of these devices moved by is no difference: a
phone that throttles from the first block on looks like a slower build (benchmarks/statistics/nights.py)."""


_Of = tuple[str, str, str]
"""Source, metric and basis."""


class _Moves(NamedTuple):
    """The logarithms by which devices moved by themselves, by what figures are of."""

    furthest: Mapping[_Of, float]
    """The furthest move: between nights of any row; within a night of all rows of a device: throttling slows all."""
    alone: Mapping[tuple[_Of, str], float]
    """The median by which all that a device ran moved further from side to side than the same on the others."""


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
    moves = _moves(groups)
    tested = [(group, group.p) for group in groups if group.p is not None]
    if tested:
        adjusted = holm(np.concatenate([p for _, p in tested]))
        ends = np.cumsum([len(p) for _, p in tested])
        for (group, p), own in zip(tested, np.split(adjusted, ends[:-1]), strict=True):
            _tell_verdicts(group, p, own, rules, len(adjusted), moves)
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
    found = group.found
    told = zip(group.rows, np.exp(found.point).tolist(), intervals_of(found), why_untold(found), strict=True)
    for row, ratio, interval, why_not in told:
        told_both = row.told.a is not None and row.told.b is not None and why_not is None
        row.told.ratio, row.told.method = ratio if told_both else None, found.method
        row.told.interval, row.told.unresolved = None if why_not else interval, why_not


def _moves(groups: Iterable[_Group]) -> _Moves:
    rows: dict[tuple[_Of, str, int], list[Array]] = {}
    points: dict[tuple[_Of, tuple[object, ...]], dict[str, float]] = {}
    for number, (group, moved) in enumerate((each, each.found.moved) for each in groups):
        for place, (row, move) in enumerate(zip(group.rows, () if moved is None else moved, strict=False)):
            device = row.told.device if group.found.method == "blocks" else str(place)
            rows.setdefault((_of(row), device, number), []).append(move)
            told = row.told
            cell = told.network, told.backend, told.precision, *told.options.items()
            points.setdefault((_of(row), cell), {})[told.device] = float(group.found.point[place])
    furthest: dict[_Of, float] = {}
    for (of, *_), moves in rows.items():
        furthest[of] = max(furthest.get(of, 0.0), float(np.abs(np.median(moves, axis=0)).max()))
    apart: dict[tuple[_Of, str], list[float]] = {}
    for (of, _), own in points.items():
        for device, point in own.items():
            others = [each for name, each in own.items() if name != device]
            apart.setdefault((of, device), []).append(point - median(others or [0.0]))
    return _Moves(furthest, {key: median(each) for key, each in apart.items()})


def _of(row: Row) -> _Of:
    return row.told.source, row.told.metric, row.told.basis


def _tell_verdicts(group: _Group, p: Array, adjusted: Array, rules: Rules, rows: int, moves: _Moves) -> None:
    """`rows`: of the whole table."""
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
        row.reason = _of_the_phone(each, found, point, moves) if verdict == "different" else ""
        if row.reason:
            row.verdict = "unknown"
        elif verdict == "different":
            row.worse = (point > 0) == METRICS[row.metric].more_is_worse
        elif verdict == "unknown":
            _tell_needs(row, found, units)


def _of_the_phone(row: Row, found: Estimate, point: float, moves: _Moves) -> str:
    """Return why a difference may be the phone's own: canaries moved too, in the same direction and half as far; or
    there are none, a single night is no further off than these devices are alone, or all that it ran moved alike."""
    if row.phone is not None:
        is_its = row.told.metric in BY_TIME and abs(row.phone) > log1p(CHANGE_SHARE) and _follows(point, row.phone)
        return f"{OF_PHONE} ({exp(row.phone) - 1:+.0%} of their time)" if is_its else ""
    few = found.method == "blocks"
    if not METRICS[row.told.metric].between or (not few and (found.method != "nights" or min(found.nights) > 1)):
        return ""
    furthest = moves.furthest.get(_of(row), 0.0)
    row.told.needs_nights = -(-(LEAST_FREEDOM + 2 - sum(found.nights)) // 2) if few else 1
    if abs(point) <= AS_NIGHTS_DO * furthest:
        where, mend = ("within a night", ONE_NIGHT) if few else ("from night to night", "compare one night more, or")
        return f"{where} these devices move by up to {exp(furthest) - 1:.0%} by themselves: {mend} with canaries"
    alone = moves.alone.get((_of(row), row.told.device), 0.0)
    if few and _follows(point, alone, LIKE_ONE):
        return f"all that this phone ran moved by {exp(alone) - 1:+.1%}, no other did: {ONE_NIGHT} with canaries"
    row.told.needs_nights = None
    return ""


def _follows(point: float, phone: float, share: float = 0.5) -> bool:
    return phone * point > 0 and abs(phone) >= share * abs(point)


def _needs(
    found: Estimate, verdicts: Sequence[Verdict], margins: Array, shares: Array, level: float, rows: int
) -> list[int | None]:
    """Return the units that each unknown row needs; None for the others."""
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
