"""Detect a frozen battery gauge: readings that stay the same for longer than chance allows.

A quiet gauge with coarse steps may print the same for a minute at rest and be well. So what counts as long is learnt
from the same block: how often successive refreshes agree elsewhere in the same kind of phase. And whatever the noise,
a reading that stays the same from well before the load begins (or ends) until well after was not renewed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby, pairwise

from orchestrator.model.power import GaugeCalibration
from orchestrator.model.quantity import counted
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .gauge_readings import NS, gauge_readings
from .sources import calibration
from .windows import Window, active_window, rest_windows

FALSE_ALARM = 1e-6
"""Chance that a block of a healthy gauge is called frozen by the length of a run."""
FEWEST_PAIRS = 20
"""Pairs of refreshes from which the chance of agreement can be learnt."""
LONGER_THAN_NEXT = 2.0
"""The factor by which the longest run must exceed the next: how often a quiet gauge agrees depends on where between
two steps the current lies."""
ACROSS_REFRESHES = 5.0
"""Refresh periods on either side of the edge of the load for which the reading stayed the same."""

Point = tuple[float, tuple[int, int]]
"""Time in s, and (current, voltage) as printed."""


def find_frozen(record: Record) -> Iterator[Invalidity]:
    """Yield at most one reason."""
    gauge = calibration(record)
    refresh_s = gauge.refresh_ns * NS
    points = _refreshed(record, gauge, refresh_s)
    active, rests = active_window(record), rest_windows(record)
    if active is None or len(points) < 2:
        return
    quantum = math.gcd(*(current for _, (current, _) in points))
    noise = gauge.noise_a / gauge.ampere_per_unit if record.gauge and gauge.noise_a else None
    for reason in (
        _across(points, active, ACROSS_REFRESHES * refresh_s),
        _too_long(points, rests, None, quantum),
        _too_long(points, [active], noise, quantum),
    ):
        if reason:
            yield Invalidity(code=InvalidCode.GAUGE_FROZEN, detail=reason)
            return


def _refreshed(record: Record, gauge: GaugeCalibration, refresh_s: float) -> list[Point]:
    """Readings at least one refresh period apart: of a gauge that is well, each has been renewed since the last."""
    points: list[Point] = []
    found = gauge_readings(record.power, gauge)
    for t_s, current, place in zip(found.t_s.tolist(), found.raw.tolist(), found.place.tolist(), strict=True):
        if not points or t_s - points[-1][0] >= refresh_s * (1 - 1e-6):
            points.append((t_s, (current, record.power[place].voltage_uv or 0)))
    return points


def _across(points: list[Point], active: Window, margin_s: float) -> str:
    for name, edge_s in (("began", active.start_s), ("ended", active.end_s)):
        near = [p for p in points if abs(p[0] - edge_s) <= 2 * margin_s]
        for _, group in groupby(near, key=lambda point: point[1]):
            same = [t_s for t_s, _ in group]
            if active.length_s >= margin_s and min(edge_s - same[0], same[-1] - edge_s) >= margin_s:
                return f"the same reading for {same[-1] - same[0]:.1f} s while the load {name}"
    return ""


def _too_long(points: list[Point], windows: list[Window], noise: float | None, quantum: int) -> str:
    """`noise` of a reading and `quantum` in the gauge's unit; the noise serves where there are too few other readings
    to learn it from."""
    pairs = [pair for w in windows for pair in pairwise(p for p in points if w.start_s <= p[0] <= w.end_s)]
    runs = sorted((list(run) for same, run in groupby(pairs, key=_agree) if same), key=len)
    if not runs:
        return ""
    longest, next_length = runs[-1], len(runs[-2]) if len(runs) > 1 else 0
    others = [pair for pair in pairs if not longest[0][0][0] <= pair[0][0] <= longest[-1][0][0]]
    expected = 1.0 if noise is None else _chance(noise, quantum)
    if len(others) >= FEWEST_PAIRS:
        share = (sum(map(_agree, others)) + 1) / (len(others) + 2)
        expected = max(share, _chance(_scatter(others), quantum))
    if expected >= 1 or len(longest) <= LONGER_THAN_NEXT * next_length:
        return ""
    if len(longest) <= math.log(FALSE_ALARM / len(pairs)) / math.log(expected):
        return ""
    lasted_s = longest[-1][1][0] - longest[0][0][0]
    news = counted(len(longest), "refresh", "refreshes")
    return f"the same reading for {lasted_s:.1f} s, {news}, where {expected:.0%} agree by chance"


def _agree(pair: tuple[Point, Point]) -> bool:
    return pair[0][1] == pair[1][1]


def _scatter(pairs: list[tuple[Point, Point]]) -> float:
    """Standard deviation of a current, from successive differences."""
    return math.sqrt(sum((later[1][0] - earlier[1][0]) ** 2 for earlier, later in pairs) / len(pairs) / 2)


def _chance(noise: float, quantum: int) -> float:
    """Return how likely two readings of normal noise are on one step, at worst: where the current lies amid a step."""
    if quantum == 0 or noise**2 <= quantum**2 / 12:
        return 1.0
    deviation = math.sqrt(noise**2 - quantum**2 / 12)
    if deviation > 2 * quantum:
        return quantum / (2 * math.sqrt(math.pi) * deviation)
    edges = [math.erf((step + 0.5) * quantum / deviation / math.sqrt(2)) / 2 for step in range(-12, 12)]
    return sum((upper - lower) ** 2 for lower, upper in pairwise(edges))
