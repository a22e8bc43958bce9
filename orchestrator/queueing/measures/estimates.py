"""Plain sums over a stretch of a run: a figure is what they come to, over what there is of its unit."""

from __future__ import annotations

import numpy as np

from orchestrator.queueing.requests import FULL, LATE, LOST, Column, Requests, Run
from orchestrator.queueing.spec import QueueingSpec

Sums = dict[str, tuple[float, float]]
"""Name -> a sum, and over what: sums of several stretches add up."""
TIMES = ("waiting_s", "service_s", "sojourn_s", "first_token_s", "token_s")


def sums_of(requests: Requests, begin: float, end: float, servers: int) -> Sums:
    """Return the sums of the requests that were meant to arrive in a stretch of time."""
    done = requests.done
    length, asked = end - begin, float(len(requests))
    outcome, energy_j = requests.column("outcome"), done.column("energy_j")
    told_j = energy_j[~np.isnan(energy_j)]
    found = {
        "utilisation": (float(done.column("served_s").sum()), length * servers),
        "queue_length": (_sum_waiting(requests), length),
        "drop_share": (float(((outcome == FULL) | (outcome == LATE)).sum()), asked),
        "lost_share": (float((outcome == LOST).sum()), asked),
        "deadline_miss_share": (float(requests.column("late").sum()), asked),
        "throughput_per_s": (float(len(done)), length),
        "tokens_per_s": (float(done.column("tokens").sum()), length),
        "energy_j_per_request": (float(told_j.sum()), float(len(told_j))),
    }
    for name, values in times_of(requests).items():
        found[f"{name}.mean"] = (float(values.sum()), float(len(values)))
    return found


def times_of(requests: Requests) -> dict[str, Column]:
    """Return the times of the requests that were served, by name of the time."""
    done = requests.done
    values = (done.waiting_s, done.column("served_s"), done.sojourn_s, done.first_token_s, done.token_s)
    return dict(zip(TIMES, values, strict=True))


def sums_over_course(run: Run, begin: float, end: float, spec: QueueingSpec) -> Sums:
    """Return what servers did and how long the queue was between two moments, from the course: of all classes."""
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
    served = float(len(run.requests.between(begin, end).done))
    return {
        "utilisation": (sum(busy_s), (end - begin) * spec.server_count),
        "queue_length": (float(waited[1] - waited[0]), end - begin),
        "energy_with_idle_j_per_request": (energy_j, served),
    }


def _modelled_j(busy_s: list[float], length_s: float, spec: QueueingSpec) -> float:
    powers = [group.power for group in spec.servers for _ in range(group.count)]
    return sum(
        each * power.busy_w + (length_s - each) * power.idle_w
        for each, power in zip(busy_s, powers, strict=True)
        if power is not None
    )


def _sum_waiting(requests: Requests) -> float:
    """Sum waits from admission on, also of those dropped after a wait; to the nanosecond, below which is rounding."""
    waited = requests.column("ended") - requests.column("admitted") - requests.column("served_s")
    return float(np.round(waited - requests.column("travel_s"), 9).sum())
