"""An M/M/1 queue of the tests' own, by Lindley's recursion over whole arrays."""

from __future__ import annotations

import numpy as np

from orchestrator.queueing.requests import COLUMNS, Column, Course, Requests, Run

POINTS = 200


def waits(arrivals: Column, services: Column) -> Column:
    """Return what each request of a single server waits, first come first served."""
    steps = np.concatenate(([0.0], np.cumsum(services[:-1] - np.diff(arrivals))))
    return np.asarray(steps - np.minimum.accumulate(steps))


def mm1_run(random: np.random.Generator, rate: float, mean_s: float, duration_s: float) -> Run:
    """One run that begins empty."""
    count = int(rate * duration_s + 10 * (rate * duration_s) ** 0.5 + 10)
    arrivals = np.cumsum(random.exponential(1 / rate, count))
    arrivals = arrivals[arrivals < duration_s]
    services = random.exponential(mean_s, len(arrivals))
    started = arrivals + waits(arrivals, services)
    rows = np.zeros((len(arrivals), len(COLUMNS)))
    told = {"intended": arrivals, "admitted": arrivals, "started": started, "ended": started + services,
            "served_s": services}  # fmt: skip
    for name, values in told.items():
        rows[:, COLUMNS.index(name)] = values
    return Run(Requests(rows), _course(arrivals, started, services, duration_s), duration_s, 0.0, 0)


def _course(arrivals: Column, started: Column, services: Column, duration_s: float) -> Course:
    at = np.linspace(duration_s / POINTS, duration_s, POINTS)
    moments = np.column_stack((started, started + services)).ravel()
    served = np.column_stack((np.cumsum(services) - services, np.cumsum(services))).ravel()
    waited = _time_since(arrivals, at) - _time_since(started, at)
    waiting = np.searchsorted(arrivals, at) - np.searchsorted(started, at)
    return Course(at.tolist(), waiting.tolist(), waited.tolist(), np.interp(at, moments, served)[:, None].tolist())


def _time_since(events: Column, at: Column) -> Column:
    """Sum up, by moment, the time since each event that was before it."""
    before = np.searchsorted(events, at)
    return np.asarray(before * at - np.concatenate(([0.0], np.cumsum(events)))[before])
