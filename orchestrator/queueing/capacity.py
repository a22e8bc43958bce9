"""Load curves, and the largest rate that keeps to the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from orchestrator.analysis.student_t import half_width
from orchestrator.errors import SpecError
from orchestrator.model.base import Model

from .experiment import run_and_measure
from .measures import Figure, Totals
from .simulation import simulate
from .spec import QueueingSpec, Target

STEPS = 10
"""Halvings: the rate is found to a thousandth of the span that is searched."""
LEAST_RUNS = 5
"""Searches, each with a seed of its own, that an interval takes."""
HIGHEST = 1.5
"""Of the capacity: what is searched. Drops may carry more than all servers can serve."""


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


def find_capacity(spec: QueueingSpec) -> Capacity:
    """Search the largest rate by halving, anew for each seed; the same requests come faster or slower.

    Raises SpecError: no target or no rates; nothing in the span that is searched meets it, or everything does.
    """
    if spec.target is None:
        raise SpecError("the spec has no target", remedy="add e.g. `target: {p99: 50 ms, drops: 1 %}`")
    whole = spec.capacity()
    count = max(LEAST_RUNS, spec.replications)
    found = np.array([_search(spec, spec.target, whole, s) for s in np.random.SeedSequence(spec.seed).spawn(count)])
    mean, half = float(found.mean()), half_width(float(found.std(ddof=1)) / count**0.5, count - 1)
    figure = Figure(value=mean, low=max(0.0, mean - half), high=mean + half)
    return Capacity(target=spec.target, rate_per_s=figure, load=mean / whole, searches=count)


def _search(spec: QueueingSpec, target: Target, whole: float, seed: np.random.SeedSequence) -> float:
    low, high = 0.001 * whole, HIGHEST * whole
    if not _meets(spec.at_rate(low), target, seed):
        raise SpecError(
            f"p99 <= {target.p99:g} s and drops <= {target.drops:g} is not met even at {low:.3g} requests/s",
            remedy="a looser target, or faster servers: service alone may take longer than the target allows",
        )
    if _meets(spec.at_rate(high), target, seed):
        raise SpecError(
            f"the target is met even at {high:.3g} requests/s, {HIGHEST:g} times the capacity",
            remedy="a tighter target, or a longer duration: the queue has no time to grow",
        )
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _meets(spec.at_rate(middle), target, seed) else (low, middle)
    return (low + high) / 2


def _meets(spec: QueueingSpec, target: Target, seed: np.random.SeedSequence) -> bool:
    """Judged by the figures of one run; requests that were dropped have no sojourn, and count as drops."""
    fresh = np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)  # spawning changes a sequence
    kept = simulate(spec, fresh).requests.between(_warm(spec), spec.duration)
    done = kept.done.sojourn_s
    drops = 1 - len(done) / len(kept) if len(kept) else 0.0
    return drops <= target.drops and (not len(done) or float(np.quantile(done, 0.99)) <= target.p99)


def _warm(spec: QueueingSpec) -> float:
    """A tenth where the spec gives no time: a cut that moves with the rate would make the search jump."""
    if isinstance(spec.warm_up, float):
        return spec.warm_up
    return spec.duration / 10 if spec.warm_up == "mser5" else 0.0
