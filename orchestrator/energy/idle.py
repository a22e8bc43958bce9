"""Predict the idle power under a load from the rests before and after it, with what the prediction may be off.

Idle power wanders, drifts, and after a load is raised by what that has heated, which is no idle power. Each of these is
a Gaussian process with a few possible sizes and times; the prediction is the best linear one (kriging: N. Cressie,
"Statistics for Spatial Data", 1993, ch. 3), averaged over the possibilities by how well they explain the rests. What
the heat and the choice among possibilities add is the same in every block: it is told apart, as systematic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orchestrator.model.errors import StableError

from .trace import Trace, cumulative_j
from .windows import LONGEST_SETTLE, Integral, Window, integral

Array = NDArray[np.float64]

PIECES = 12
"""A rest is cut into so many means."""
NEWS_OF_A_PIECE = 2
WANDER_S = (3.0, 12.0, 50.0)
"""Correlation times that wandering may have."""
WANDER_SIZES = (0.5, 1.0, 2.0, 4.0)
"""Standard deviations that it may have, in those of the pieces."""
HEAT_S = (10.0, 30.0, 90.0)
"""Times in which a heated phone may cool."""
HEAT_SHARE = 0.05
"""Standard deviation of what heat adds, as a share of the load's net power."""
DRIFT_W, DRIFT_SHARE = 0.05, 0.05
"""Standard deviation of a drift from rest to rest, the larger of both: by so much rests may differ at all."""

LEAST_W = 1e-6
"""The least deviation of pieces that all say the same."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle power at the time of the load."""

    mean_w: float
    random_w: float
    systematic_w: float
    """The same in every block."""
    change_w: float | None
    """Rest after less rest before; None where there is one only."""


@dataclass(frozen=True, slots=True)
class RestChange:
    """The change from the rest before the load to the rest after it."""

    change_w: float
    random_w: float
    """Standard uncertainty of the change."""
    mean_w: float


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Means of short windows at rest."""

    start_s: Array
    end_s: Array
    mean_w: Array
    noise_w: Array
    """Standard deviation by the noise of readings."""

    @property
    def length_s(self) -> Array:
        return self.end_s - self.start_s

    @property
    def centre_s(self) -> Array:
        return (self.start_s + self.end_s) / 2


def rest_change(trace: Trace, rests: Sequence[Window], settle_s: float = 0.0) -> RestChange | None:
    """None where the trace does not cover both rests. `settle_s`: see `windows.integral`."""
    found = [_integral(trace, rest, settle_s) for rest in rests]
    if len(found) < 2 or found[0] is None or found[-1] is None:
        return None
    before, after = found[0], found[-1]
    random_w = math.hypot(before.mean_random_w, after.mean_random_w)
    return RestChange(after.mean_w - before.mean_w, random_w, (before.mean_w + after.mean_w) / 2)


def idle_under(trace: Trace, rests: Sequence[Window], load: Window, load_w: float, settle_s: float) -> Idle | None:
    """None where the trace covers no rest. `load_w`: mean power under the load."""
    known = [(rest, found) for rest in rests if (found := _integral(trace, rest, settle_s)) is not None]
    if not known:
        return None
    pieces = _pieces(trace, [rest for rest, _ in known], settle_s)
    mean_w, random_w, heat_w = _predict(pieces, load, max(0.0, load_w - float(pieces.mean_w.mean())))
    quantum_w = max(found.budget.quantum_j / found.length_s for _, found in known)
    change = rest_change(trace, rests, settle_s)
    return Idle(mean_w, random_w, math.hypot(heat_w, quantum_w), change.change_w if change else None)


def _integral(trace: Trace, rest: Window, settle_s: float) -> Integral | None:
    try:
        return integral(trace, rest, settle_s)
    except StableError:
        return None


def _pieces(trace: Trace, rests: Sequence[Window], settle_s: float) -> _Pieces:
    """Return the pieces of each rest without its beginning, where the gauge still shows what was."""
    starts, ends, means, noises = [], [], [], []
    for rest in rests:
        most_s = LONGEST_SETTLE * rest.length_s
        start_s, end_s = rest.start_s + min(settle_s + trace.clock_s, most_s), rest.end_s - min(trace.clock_s, most_s)
        count = min(PIECES, max(1, int((end_s - start_s) / max(trace.news_s, 1e-9) / NEWS_OF_A_PIECE)))
        own = _inside(trace, start_s, end_s)
        cuts_s = np.linspace(start_s, end_s, count + 1)
        length_s = cuts_s[1] - cuts_s[0]
        noise_w = _noise_w(own) * math.sqrt(min(1.0, max(own.news_s, 1e-9) / length_s))
        starts.append(cuts_s[:-1])
        ends.append(cuts_s[1:])
        means.append(np.diff(cumulative_j(own, cuts_s)) / length_s)
        noises.append(np.full(count, noise_w))
    return _Pieces(*(np.concatenate(each) for each in (starts, ends, means, noises)))


def _inside(trace: Trace, start_s: float, end_s: float) -> Trace:
    inside = (trace.t_s >= start_s) & (trace.t_s <= end_s)
    if trace.is_mean or inside.sum() < 2:
        return trace
    return replace(trace, t_s=trace.t_s[inside], power_w=trace.power_w[inside])


def _noise_w(trace: Trace) -> float:
    """Return the noise of a reading: as known, or from successive differences."""
    differences = np.diff(trace.power_w)
    seen_w = math.sqrt(float(np.mean(differences**2)) / 2) if len(differences) else 0.0
    return max(seen_w, trace.noise_w)


@dataclass(frozen=True, slots=True)
class _Case:
    """One possibility of what idle power does."""

    k: Array
    """Covariance of the pieces."""
    to: Array
    """The covariance of each with the mean under the load."""
    target: float
    """Variance of that mean."""
    heat: Array
    """The deviation that heat adds to each piece."""
    prior: float


def _predict(pieces: _Pieces, load: Window, net_w: float) -> tuple[float, float, float]:
    """Mean, random and systematic standard uncertainty of the idle power over the load; universal kriging of a level
    that is not known."""
    cases = _cases(pieces, load, net_w)
    k, to, heat = (np.stack([getattr(case, name) for case in cases]) for name in ("k", "to", "heat"))
    ones, seen = np.ones_like(to), np.broadcast_to(pieces.mean_w, to.shape)
    solved = np.linalg.solve(k, np.stack([ones, seen, to], axis=-1))
    of_ones, of_seen, of_to = (solved[..., column] for column in range(3))
    known = of_ones.sum(axis=1)
    level = of_seen.sum(axis=1) / known
    weights = of_to + of_ones * ((1 - of_to.sum(axis=1)) / known)[:, None]
    squares = (seen * of_seen).sum(axis=1) - level**2 * known
    fit = -(np.linalg.slogdet(k)[1] + np.log(known) + squares) / 2
    share = np.exp(fit - fit.max()) * [case.prior for case in cases]
    share = share / share.sum()
    error = np.array([case.target for case in cases]) - 2 * (weights * to).sum(axis=1)
    error = error + np.einsum("ij,ijk,ik->i", weights, k, weights)
    by_heat, mean = (weights * heat).sum(axis=1) ** 2, weights @ pieces.mean_w
    middle = float(share @ mean)
    systematic = float(share @ (by_heat + (mean - middle) ** 2))
    return middle, math.sqrt(max(0.0, float(share @ (error - by_heat)))), math.sqrt(systematic)


def _cases(pieces: _Pieces, load: Window, net_w: float) -> list[_Case]:
    """Every wander with and without a drift, and with heat or without it."""
    noise = np.diag(np.maximum(pieces.noise_w, LEAST_W) ** 2)
    last = pieces.end_s <= load.start_s
    both = bool(last.any() and not last.all())
    span_s = float(pieces.centre_s[-1] - pieces.centre_s[0])
    drift_w = max(DRIFT_W, DRIFT_SHARE * abs(float(pieces.mean_w.mean())))
    slope = drift_w * (pieces.centre_s - load.centre_s) / span_s if both else np.zeros_like(pieces.mean_w)
    drifts = [np.zeros_like(slope), slope] if both else [slope]
    nothing = np.zeros_like(slope)
    tails = [nothing, *(HEAT_SHARE * net_w * _tail(pieces, load, time_s) for time_s in HEAT_S)]
    wanders = _wanders(pieces, load)
    return [
        _Case(
            noise + k + np.outer(drift, drift) + np.outer(heat, heat),
            to,
            target,
            heat,
            prior * (3 if heat is nothing else 1),
        )
        for (k, to, target, prior), drift, heat in product(wanders, drifts, tails)
    ]


def _wanders(pieces: _Pieces, load: Window) -> list[tuple[Array, Array, float, float]]:
    """Covariance of the pieces, of each with the load's mean, variance of that, and prior share: of none, and of
    Ornstein-Uhlenbeck processes, which together are as likely."""
    count = len(pieces.mean_w)
    spread_w2 = float(pieces.mean_w.var()) + float(np.mean(pieces.noise_w**2))
    found = [(np.zeros((count, count)), np.zeros(count), 0.0, float(len(WANDER_S) * len(WANDER_SIZES)))]
    starts, ends = np.append(pieces.start_s, load.start_s), np.append(pieces.end_s, load.end_s)
    for time_s in WANDER_S:
        of_one = _covariance(starts, ends, time_s)
        for size in WANDER_SIZES:
            whole = of_one * spread_w2 * size**2
            found.append((whole[:-1, :-1], whole[:-1, -1], float(whole[-1, -1]), 1.0))
    return found


def _covariance(start_s: Array, end_s: Array, time_s: float) -> Array:
    """Return the covariance of an Ornstein-Uhlenbeck process's means, variance 1, over windows that do not overlap."""
    lengths = (end_s - start_s) / time_s
    gaps = np.maximum(start_s[:, None] - end_s[None, :], start_s[None, :] - end_s[:, None]) / time_s
    of_one = -np.expm1(-lengths) / lengths
    apart = np.exp(-np.maximum(gaps, 0.0)) * np.outer(of_one, of_one)
    np.fill_diagonal(apart, 2 * (lengths + np.expm1(-lengths)) / lengths**2)
    return np.asarray(apart)


def _tail(pieces: _Pieces, load: Window, time_s: float) -> Array:
    """Share of the heat of the load's end that each piece has; those before the load have none."""
    since = np.maximum(pieces.start_s - load.end_s, 0.0) / time_s, np.maximum(pieces.end_s - load.end_s, 0.0) / time_s
    after = (np.exp(-since[0]) - np.exp(-since[1])) * time_s / pieces.length_s
    return np.asarray(after)
