"""Energy of requests, from what the phones' gauges told while they served."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.energy.gauge_readings import gauge_readings
from orchestrator.energy.sources import calibration_of
from orchestrator.energy.trace import Trace, cumulative_j
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.telemetry import Reading
from orchestrator.queueing.requests import COLUMNS, DONE, Column, Course

NS = 1e-9
DISCHARGING = "Discharging"
ALL_BUSY = 0.9
"""Share of the time from which on a phone that serves has next to no other power to be mixed up with."""
ENERGY, SERVER, OUTCOME = (COLUMNS.index(name) for name in ("energy_j", "server", "outcome"))


def trace_of(readings: Sequence[Reading], gauge: GaugeCalibration | None) -> Trace | None:
    """A phone's power by its own clock; None where it does not tell, or was charged: then its gauge sees no load."""
    told = [each for each in readings if each.current_ua is not None]
    found = calibration_of(gauge, [(each.current_ua, each.status) for each in told])
    seen = gauge_readings(told, found)
    if len(seen.t_s) < 2 or any(each.status != DISCHARGING for each in told):
        return None
    return Trace(t_s=seen.t_s, power_w=seen.raw * found.discharge_a_per_unit * seen.volts)


def why_coarse(windows: Sequence[tuple[int, int]], trace: Trace) -> str:
    """Return why the gauge cannot tell what a request took from what the phone took beside it; empty where it can,
    and where hardly anything lay beside."""
    news_s = trace.t_s[np.flatnonzero(np.diff(trace.power_w)) + 1]
    served_s = np.array([end - begin for begin, end in windows]) * NS
    if len(news_s) < 2 or not len(served_s) or served_s.sum() > ALL_BUSY * (trace.t_s[-1] - trace.t_s[0]):
        return ""
    period_s, usual_s = float(np.median(np.diff(news_s))), float(np.median(served_s))
    if usual_s >= period_s:
        return ""
    return (
        f"its gauge has news every {period_s:.2g} s, and it served for {usual_s:.2g} s at a time: energy a request is "
        "mixed with that of its rests; with idle servers it is right"
    )


def fill_energy(rows: Column, windows: Sequence[Sequence[tuple[int, int]]], traces: Sequence[Trace | None]) -> None:
    """Rows name their server and, as their energy, the number of the window in which it served them; they get their
    share of the window's energy. NaN where the phone tells none, or did not serve."""
    done = rows[:, OUTCOME] == DONE
    rows[~done, ENERGY] = np.nan
    for server, (own, trace) in enumerate(zip(windows, traces, strict=True)):
        mine = done & (rows[:, SERVER] == server) & np.isfinite(rows[:, ENERGY])
        number = rows[mine, ENERGY].astype(int)
        if trace is None or not own:
            rows[mine, ENERGY] = np.nan
            continue
        edges_s = np.array(own) * NS
        inside = (edges_s[:, 0] >= trace.t_s[0]) & (edges_s[:, 1] <= trace.t_s[-1])
        spent_j = np.where(inside, energy_between(trace, edges_s[:, 0], edges_s[:, 1]), np.nan)
        rows[mine, ENERGY] = (spent_j / np.maximum(1, np.bincount(number, minlength=len(own))))[number]


def fill_course(course: Course, offsets_s: Sequence[float], traces: Sequence[Trace | None]) -> None:
    """The energy of all servers over the course, where each tells it; `offsets_s`: phones' clocks at the start."""
    told = [trace for trace in traces if trace is not None]
    if not told or len(told) < len(traces):
        return
    at_s = np.array(course.at)
    total = sum(
        energy_between(trace, np.full(len(at_s), offset), at_s + offset)
        for trace, offset in zip(told, offsets_s, strict=True)
    )
    course.energy_j = np.asarray(total).tolist()


def energy_between(trace: Trace, begin_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Joules between moments, those outside the trace cut to it."""
    low, high = trace.t_s[0], trace.t_s[-1]
    return cumulative_j(trace, np.clip(end_s, low, high)) - cumulative_j(trace, np.clip(begin_s, low, high))
