"""Moments of arrival, in order, without end where the process has none."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from orchestrator.queueing.spec import Arrivals, ClosedArrivals, Fixed, Gamma, TraceArrivals, Weibull
from orchestrator.queueing.spec.arrivals import (
    DeterministicArrivals,
    DiurnalArrivals,
    GammaArrivals,
    MmppArrivals,
    WeibullArrivals,
)

from .trace import trace_times

CHUNK = 4096


def arrival_times(arrivals: Arrivals, name: str, random: np.random.Generator) -> Iterator[float]:
    """Seconds since the start, of the class of this name; a closed loop's first requests come after a think time each.

    Raises TableError for a trace that cannot be read.
    """
    if isinstance(arrivals, ClosedArrivals):
        return iter(sorted(arrivals.think.draw(random, arrivals.clients).tolist()))
    if isinstance(arrivals, TraceArrivals):
        return iter(trace_times(arrivals, name))
    if isinstance(arrivals, MmppArrivals):
        return _modulated(arrivals, random)
    if isinstance(arrivals, DiurnalArrivals):
        return _diurnal(arrivals, random)
    mean = 1 / arrivals.rate
    if isinstance(arrivals, DeterministicArrivals):
        return _renewal(Fixed(kind="fixed", mean=mean), random)
    if isinstance(arrivals, GammaArrivals):
        return _renewal(Gamma(kind="gamma", mean=mean, cv=arrivals.cv), random)
    if isinstance(arrivals, WeibullArrivals):
        return _renewal(Weibull(kind="weibull", mean=mean, shape=arrivals.shape), random)
    return _poisson(arrivals.rate, random)


def _renewal(gaps: Fixed | Gamma | Weibull, random: np.random.Generator) -> Iterator[float]:
    now = 0.0
    while True:
        times = now + np.cumsum(gaps.draw(random, CHUNK))
        yield from times.tolist()
        now = float(times[-1])


def _poisson(rate: float, random: np.random.Generator) -> Iterator[float]:
    now = 0.0
    while True:
        times = now + np.cumsum(random.exponential(1 / rate, CHUNK))
        yield from times.tolist()
        now = float(times[-1])


def _modulated(arrivals: MmppArrivals, random: np.random.Generator) -> Iterator[float]:
    """Draw a Poisson number of arrivals per stay in a state, uniform in time."""
    now, state = 0.0, int(random.integers(len(arrivals.rates)))
    while True:
        stay = float(random.exponential(arrivals.stays[state]))
        count = int(random.poisson(arrivals.rates[state] * stay))
        yield from np.sort(random.uniform(now, now + stay, count)).tolist()
        now, state = now + stay, (state + 1) % len(arrivals.rates)


def _diurnal(arrivals: DiurnalArrivals, random: np.random.Generator) -> Iterator[float]:
    """Thinning: candidates at the highest rate, kept with the share that the rate then has of it."""
    highest = arrivals.rate * (1 + arrivals.swing)
    turn = 2 * math.pi / arrivals.period
    for at in _poisson(highest, random):
        if random.random() * highest < arrivals.rate * (1 + arrivals.swing * math.sin(turn * at)):
            yield at
