"""Detect that other processes than the agent kept the cores busy during a block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from orchestrator.model.event import Power
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .gauge_readings import NS
from .windows import phase_window, readings_in

BUSY_ELSEWHERE = 0.1
"""Share of all cores that others may use: our own bound, below one busy core of eight."""
BUSY_WINDOW_S = 3.0
"""The time over which the mean is taken."""
FEWEST = 5
STANDARD_ERRORS = 2.0
"""The mean must exceed the bound by more than its scatter; with fewer readings nothing is said."""


def find_background(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    """Others' share of the cores at rest, and above that at rest under load. A workstation runs the farm itself and
    has its own doubt."""
    if record.device.kind == "workstation":
        return
    rests = [phase_window(record, "idle_before"), phase_window(record, "idle_after")]
    at_rest = [share for p in readings_in(readings, rests[0]) if (share := _others(p)) is not None]
    usual = max(0.0, mean(at_rest)) if at_rest else 0.0  # a median would follow one side of the scatter
    for name, window, bound in (
        ("at rest", rests[0], BUSY_ELSEWHERE),
        ("under load", phase_window(record, "load"), BUSY_ELSEWHERE + usual),
        ("at rest", rests[1], BUSY_ELSEWHERE),
    ):
        busiest = _busiest(readings_in(readings, window))
        if busiest is not None and busiest > bound:
            text = f"others used at least {busiest:.0%} of all cores {name} over {BUSY_WINDOW_S:g} s"
            detail = f"{text}, at most {bound:.0%}"
            yield Invalidity(code=InvalidCode.BACKGROUND_LOAD, detail=detail)
            return


def _others(reading: Power) -> float | None:
    """Return others' share, not cut off at 0: both are counted in own ticks, and only the mean tells anything."""
    if reading.cpu_busy is None or reading.own_busy is None:
        return None
    return reading.cpu_busy - reading.own_busy


def _busiest(readings: Sequence[Power]) -> float | None:
    """Highest mean of others' share over `BUSY_WINDOW_S`, of parts that are at least half as long, less what the
    scatter of the readings explains. None with fewer than `FEWEST` readings."""
    parts: dict[int, list[float]] = {}
    for p in readings:
        if (share := _others(p)) is not None:
            parts.setdefault(int((p.t_ns - readings[0].t_ns) * NS / BUSY_WINDOW_S), []).append(share)
    fullest = max(map(len, parts.values()), default=0)
    known = [part for part in parts.values() if 2 * len(part) >= fullest and len(part) >= FEWEST]
    return max((mean(part) - STANDARD_ERRORS * stdev(part) / math.sqrt(len(part)) for part in known), default=None)
