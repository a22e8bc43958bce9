"""Load curves, and the largest rate that keeps to the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from orchestrator.analysis.student_t import half_width
from orchestrator.errors import SpecError
from orchestrator.model.base import Model

from .experiment import run_and_measure
from .measures import Figure, Totals
from .requests import Requests
from .simulation import simulate
from .spec import QueueingSpec, Target

STEPS = 10
"""Halvings: the rate is found to a thousandth of the span that is searched."""
LEAST_RUNS = 5
"""Searches, each with a seed of its own, that an interval takes."""
LOWEST, HIGHEST = 0.001, 1.5
"""Of the capacity: what is searched. Drops may carry more than all servers can serve."""
LOWEST_LIVE = 0.05
"""On devices, where a run of hardly any request takes as long as another."""
FIRST_STEPS, NEXT_STEPS = 6, 4
"""Halvings on devices: of the first search, and of the others, which begin around what it found."""
AROUND = 1.25
"""The others begin at the rate divided by so much, and at the rate times so much, and go on outwards by the same."""
WIDENINGS = 3
"""At most so often to a side."""
MOST_RUNS = 2 + FIRST_STEPS + (LEAST_RUNS - 1) * (1 + WIDENINGS + NEXT_STEPS)
"""On devices, in all."""


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
    """Requests a second of the spec's mix; its interval is between searches with seeds of their own."""
    load: float
    """The same as a share of what all servers, always busy, can serve."""
    searches: int


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
    """Search the largest rate by halving, anew for each seed; the same requests come faster or slower.

    Raises SpecError: no target or no rates; nothing in the span that is searched meets it, or everything does.
    """
    target, whole = check_target(spec), spec.capacity()

    def search(seed: np.random.SeedSequence) -> float:
        def meets(rate: float) -> bool:
            fresh = np.random.SeedSequence(
                entropy=seed.entropy, spawn_key=seed.spawn_key
            )  # spawning changes a sequence
            return _meets(spec, target, simulate(spec.at_rate(rate), fresh).requests)

        return _halve(meets, *_span(meets, target, LOWEST * whole, HIGHEST * whole), STEPS)

    seeds = np.random.SeedSequence(spec.seed).spawn(max(LEAST_RUNS, spec.replications))
    return _capacity(target, whole, [search(seed) for seed in seeds])


def find_live_capacity(spec: QueueingSpec, whole: float, run: Callable[[QueueingSpec], Requests | None]) -> Capacity:
    """The same on devices, where a run takes its time and no two are alike: the searches after the first begin around
    what it found. At most `MOST_RUNS`.

    `whole`: requests a second that the devices can serve; `run` runs a spec once, by its own seed; None: not all
    were served in its time, which does not meet the target. Raises SpecError as `find_capacity`.
    """
    target = check_target(spec)
    rates: list[float] = []
    for number in range(LEAST_RUNS):
        of = spec.model_copy(update={"seed": spec.seed + number})

        def meets(rate: float, of: QueueingSpec = of) -> bool:
            requests = run(of.at_rate(rate))
            return requests is not None and _meets(of, target, requests)

        if not rates:
            span = _span(meets, target, LOWEST_LIVE * whole, HIGHEST * whole)
            rates.append(_halve(meets, *span, FIRST_STEPS))
        else:
            rates.append(_halve(meets, *_around(meets, rates[0]), NEXT_STEPS))
    return _capacity(target, whole, rates)


def _capacity(target: Target, whole: float, rates: Sequence[float]) -> Capacity:
    """Of independent searches, at least two."""
    count, found = len(rates), np.array(rates)
    mean, half = float(found.mean()), half_width(float(found.std(ddof=1)) / count**0.5, count - 1)
    figure = Figure(value=mean, low=max(0.0, mean - half), high=mean + half)
    return Capacity(target=target, rate_per_s=figure, load=mean / whole, searches=count)


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
    """From a rate outwards to one that meets the target and one that does not, or `WIDENINGS` further at most."""
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


def _meets(spec: QueueingSpec, target: Target, requests: Requests) -> bool:
    """Judged by the figures of one run; requests that were dropped have no sojourn, and count as drops."""
    kept = requests.between(_warm(spec), spec.duration)
    done = kept.done.sojourn_s
    drops = 1 - len(done) / len(kept) if len(kept) else 0.0
    return drops <= target.drops and (not len(done) or float(np.quantile(done, 0.99)) <= target.p99)


def _warm(spec: QueueingSpec) -> float:
    """A tenth where the spec gives no time: a cut that moves with the rate would make the search jump."""
    if isinstance(spec.warm_up, float):
        return spec.warm_up
    return spec.duration / 10 if spec.warm_up == "mser5" else 0.0
