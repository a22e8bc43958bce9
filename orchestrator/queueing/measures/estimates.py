"""Plain estimates over a stretch of a run."""

from __future__ import annotations

import math

import numpy as np

from orchestrator.queueing.requests import FULL, LATE, LOST, Column, Requests, Run
from orchestrator.queueing.spec import QueueingSpec

PARTS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
LEAST_BEYOND = 10
"""Values that must lie beyond a quantile for an interval of it."""


def estimates(requests: Requests, begin: float, end: float, servers: int) -> dict[str, float]:
    """Of the requests that were meant to arrive in a stretch of time; NaN where there are none."""
    done = requests.done
    length = end - begin
    outcome, energy_j = requests.column("outcome"), done.column("energy_j")
    found = {
        "utilisation": float(done.column("served_s").sum()) / length / servers,
        "queue_length": _sum_waiting(requests) / length,
        "drop_share": _mean((outcome == FULL) | (outcome == LATE)),
        "lost_share": _mean(outcome == LOST),
        "deadline_miss_share": _mean(requests.column("late")),
        "throughput_per_s": len(done) / length,
        "energy_j_per_request": _mean(energy_j[~np.isnan(energy_j)]),
    }
    times = {"waiting_s": done.waiting_s, "service_s": done.column("served_s"), "sojourn_s": done.sojourn_s}
    for name, values in times.items():
        found[f"{name}.mean"] = _mean(values)
        quantiles = np.quantile(values, list(PARTS.values())).tolist() if len(values) else [math.nan] * len(PARTS)
        found |= {f"{name}.{part}": value for part, value in zip(PARTS, quantiles, strict=True)}
    return found


def over_course(run: Run, begin: float, end: float, spec: QueueingSpec) -> dict[str, float]:
    """What servers did and how long the queue was between two moments, from the course: of all classes."""
    course = run.course
    at = np.array([0.0, *course.at])
    waited = np.interp((begin, end), at, [0.0, *course.waited_s])
    busy = np.array([[0.0] * spec.server_count, *course.busy_s])
    spent = [np.interp((begin, end), at, each) for each in busy.T]
    busy_s = [float(last - first) for first, last in spent]
    if course.energy_j:
        told = np.interp((begin, end), at, [0.0, *course.energy_j])
        energy_j = float(told[1] - told[0])
    else:
        energy_j = _modelled_j(busy_s, end - begin, spec)
    return {
        "utilisation": sum(busy_s) / (end - begin) / spec.server_count,
        "queue_length": float(waited[1] - waited[0]) / (end - begin),
        "energy_j": energy_j,
    }


def _modelled_j(busy_s: list[float], length_s: float, spec: QueueingSpec) -> float:
    powers = [group.power for group in spec.servers for _ in range(group.count)]
    return sum(
        each * power.busy_w + (length_s - each) * power.idle_w
        for each, power in zip(busy_s, powers, strict=True)
        if power is not None
    )


def _sum_waiting(requests: Requests) -> float:
    """From admission on, also of those that were dropped after a wait; to the nanosecond, below which is rounding."""
    waited = requests.column("ended") - requests.column("admitted") - requests.column("served_s")
    return float(np.round(waited - requests.column("travel_s"), 9).sum())


def _mean(values: Column | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return float(np.mean(values)) if len(values) else math.nan
