"""Load curves, and the largest rate that keeps to the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from orchestrator.model.base import Model
from orchestrator.model.errors import SpecError

from .experiment import run_and_measure
from .measures import Figure, Totals, interval, relaxation_s, short
from .measures.warm_up import SHARE
from .requests import Requests
from .simulation import simulate
from .spec import QueueingSpec, Target

STEPS = 10
"""Halvings: the rate is found to a thousandth of the span that is searched."""
LEAST_RUNS = 5
"""Runs of a rate, each with a seed of its own, that are judged together; on devices, searches."""
LOWEST, HIGHEST = 0.001, 1.5
"""The searched range, as shares of the capacity. Drops may carry more than all servers can serve."""
LOWEST_LIVE = 0.05
"""The lowest share on devices, where a run of hardly any request takes as long as another."""
FIRST_STEPS, NEXT_STEPS = 6, 4
"""Halvings on devices: of the first search, and of the others, which begin around what it found."""
AROUND = 1.25
"""The others begin at the rate divided by so much, and at the rate times so much, and go on outwards by the same."""
WIDENINGS = 3
"""The most widenings to a side."""
LATE = 0.01
"""The share of requests that may take longer than a p99."""
MOST_RUNS = 2 + FIRST_STEPS + (LEAST_RUNS - 1) * (1 + WIDENINGS + NEXT_STEPS)
"""The most runs on devices, in all."""


class Point(Model):
    """A load, and what came of it."""

    load: float
    """Offered, as a share of the capacity."""
    offered_per_s: float
    figures: Totals
    doubts: tuple[str, ...] = ()


class Capacity(Model):
    """The largest rate at which the target is met."""

    target: Target
    rate_per_s: Figure
    """Requests a second of the spec's mix; its interval leaves out one seed, or search, at a time. None where runs are
    short for their load: quiet ones pass for a higher capacity."""
    load: float
    """The same as a share of what all servers, always busy, can serve."""
    searches: int
    doubts: tuple[str, ...] = ()


class Trial(NamedTuple):
    """The counts of one run at a rate."""

    rate: float
    late: int
    """Served later than the target's p99."""
    dropped: int
    kept: int


def load_curve(spec: QueueingSpec, loads: Sequence[float]) -> Iterator[Point]:
    """The spec at several loads, the mix of its classes kept. Raises SpecError where it has no rates."""
    whole = spec.capacity()
    for load in loads:
        at = spec.at_rate(load * whole)
        found = run_and_measure(at)
        yield Point(load=load, offered_per_s=load * whole, figures=found.total, doubts=found.doubts)


def check_target(spec: QueueingSpec) -> Target:
    """The spec's target. Raises SpecError where it has none."""
    if spec.target is None:
        raise SpecError("the spec has no target", remedy="add e.g. `target: {p99: 50 ms, drops: 1 %}`")
    return spec.target


def find_capacity(spec: QueueingSpec) -> Capacity:
    """Search the largest rate by halving; at each, runs with several seeds are judged together. The same requests come
    faster or slower.

    Raises SpecError: no target or no rates; nothing in the span that is searched meets it, or everything does.
    """
    target, whole = check_target(spec), spec.capacity()
    seeds = np.random.SeedSequence(spec.seed).spawn(max(LEAST_RUNS, spec.replications))
    searches: list[list[Trial]] = [[] for _ in seeds]

    def meets(rate: float) -> bool:
        for seed, own in zip(seeds, searches, strict=True):
            fresh = np.random.SeedSequence(
                entropy=seed.entropy, spawn_key=seed.spawn_key
            )  # spawning changes a sequence
            own.append(_trial(spec, target, rate, simulate(spec.at_rate(rate), fresh).requests))
        return _severity(target, [own[-1] for own in searches]) <= 1

    _halve(meets, *_span(meets, target, LOWEST * whole, HIGHEST * whole), STEPS)
    return _capacity(spec, whole, searches)


def find_live_capacity(spec: QueueingSpec, whole: float, run: Callable[[QueueingSpec], Requests | None]) -> Capacity:
    """The same on devices, where a run takes its time and no two are alike: each search goes by its own runs, those
    after the first begin around what it found, and the rate is where all runs together say. At most `MOST_RUNS`.

    `whole`: requests a second that the devices can serve; `run` runs a spec once, by its own seed; None: not all
    were served in its time, which does not meet the target. Raises SpecError as `find_capacity`.
    """
    target = check_target(spec)
    searches: list[list[Trial]] = []
    first = 0.0
    for number in range(LEAST_RUNS):
        of, own = spec.model_copy(update={"seed": spec.seed + number}), list[Trial]()
        searches.append(own)

        def meets(rate: float, of: QueueingSpec = of, own: list[Trial] = own) -> bool:
            own.append(_trial(of, target, rate, run(of.at_rate(rate))))
            return _severity(target, own[-1:]) <= 1

        if not first:
            span = _span(meets, target, LOWEST_LIVE * whole, HIGHEST * whole)
            first = _halve(meets, *span, FIRST_STEPS)
        else:
            _halve(meets, *_around(meets, first), NEXT_STEPS)
    return _capacity(spec, whole, searches)


def _capacity(spec: QueueingSpec, whole: float, searches: Sequence[Sequence[Trial]]) -> Capacity:
    """Return where all trials together just meet the target, and where they do without each search."""
    target, count = check_target(spec), len(searches)
    rate = _crossing(target, [trial for own in searches for trial in own])
    others = [[trial for own in searches if own is not left for trial in own] for left in searches]
    ends = interval(rate, np.array([_crossing(target, trials) for trials in others]), neighbours=False)
    load = rate / whole
    doubts = short(count, spec.duration, _warm(spec), relaxation_s(1 / whole, load)) if load < 1 else []
    low, high = ends if ends is not None and not doubts else (None, None)
    figure = Figure(value=rate, low=low, high=high)
    return Capacity(target=target, rate_per_s=figure, load=load, searches=count, doubts=tuple(doubts))


def _crossing(target: Target, trials: Sequence[Trial]) -> float:
    """The rate from which on trials miss the target; shares of late and dropped requests never fall with the rate."""
    from scipy.optimize import isotonic_regression  # a second of its own

    rates = sorted({trial.rate for trial in trials})
    told = np.array([_shares([trial for trial in trials if trial.rate == rate]) for rate in rates])
    late, dropped = (isotonic_regression(told[:, column], weights=np.maximum(told[:, 2], 1)).x for column in (0, 1))
    allowed = max(target.drops, 1e-9)
    severity = np.log(np.clip(np.maximum(late / LATE, dropped / allowed), 1e-3, 1e3))
    above = int(np.searchsorted(severity, 0.0, side="right"))  # never falls
    if above in (0, len(rates)):
        return rates[min(above, len(rates) - 1)]
    share = -severity[above - 1] / (severity[above] - severity[above - 1])
    return float(rates[above - 1] + share * (rates[above] - rates[above - 1]))


def _shares(trials: Sequence[Trial]) -> tuple[float, float, int]:
    """Return, over all trials of a rate, the late share of those served, the dropped share of all, and how many."""
    late, dropped, kept = (sum(column) for column in list(zip(*trials, strict=True))[1:])
    return late / max(kept - dropped, 1), dropped / max(kept, 1), kept


def _severity(target: Target, trials: Sequence[Trial]) -> float:
    """Return how many times as much is late, or dropped, as may be."""
    late, dropped, _ = _shares(trials)
    return max(late / LATE, dropped / target.drops if target.drops else math.inf if dropped else 0.0)


def _span(meets: Callable[[float], bool], target: Target, low: float, high: float) -> tuple[float, float]:
    """The same, once it is sure that the lower one meets the target and the higher one does not."""
    if not meets(low):
        raise SpecError(
            f"p99 <= {target.p99:g} s and drops <= {target.drops:g} is not met even at {low:.3g} requests/s",
            remedy="a looser target, or faster servers: service alone may take longer than the target allows",
        )
    if meets(high):
        raise SpecError(
            f"the target is met even at {high:.3g} requests/s, {HIGHEST:g} times the capacity",
            remedy="a tighter target, or a longer duration: the queue has no time to grow",
        )
    return low, high


def _around(meets: Callable[[float], bool], rate: float) -> tuple[float, float]:
    """Widen from a rate to one that meets the target and one that does not, or `WIDENINGS` further at most."""
    low, high = rate / AROUND, rate * AROUND
    for _ in range(WIDENINGS):
        if meets(low):
            break
        low, high = low / AROUND, low
    else:
        return low, high
    if high > rate:  # nothing below it missed
        for _ in range(WIDENINGS):
            if not meets(high):
                break
            low, high = high, high * AROUND
    return low, high


def _halve(meets: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return (low + high) / 2


def _trial(spec: QueueingSpec, target: Target, rate: float, requests: Requests | None) -> Trial:
    """Count a run without the warm-up; dropped requests have no sojourn, and count as drops. A run that gave up was
    late with all."""
    if requests is None:
        expected = max(1, round(rate * spec.duration))
        return Trial(rate, expected, 0, expected)
    kept = requests.between(_warm(spec), spec.duration)
    sojourn_s = kept.done.sojourn_s
    return Trial(rate, int((sojourn_s > target.p99).sum()), len(kept) - len(sojourn_s), len(kept))


def _warm(spec: QueueingSpec) -> float:
    """Return what is left out of each run: the same at every rate, for a cut that moves would make the search jump."""
    if isinstance(spec.warm_up, float):
        return spec.warm_up
    return 0.0 if spec.warm_up == "none" else SHARE * spec.duration
