"""Compute the uncertainty of an integral of power over one window, term by term.

Standard uncertainties, combined as the root of the sum of squares (JCGM 100, "Guide to the expression of uncertainty in
measurement"). The gain's share is kept apart: it is the same in every block of a device, so comparisons on one device
leave it out, and no repetition makes it smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from orchestrator.model.power import Estimate

from .trace import Trace, check_window, cumulative_j, energy_j, time_mean_w

COVERAGE = 1.959963984540054
"""Half-width of the 95 % interval of a normal distribution, in standard deviations."""
BATCHES = 20
"""A window is cut into so many parts to see how much its power wanders."""
FEWEST_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Budget:
    """Standard uncertainties of an energy, J."""

    noise_j: float = 0.0
    """The noise of readings at random, counted as often as the source had something new to say."""
    quantum_j: float = 0.0
    """Rounding that noise does not average out."""
    edge_j: float = 0.0
    """The energy that hangs on when exactly the power changed at the window's edges."""

    @property
    def systematic_j(self) -> float:
        """The part that is the same in every block, so that no repetition makes it smaller."""
        return math.hypot(self.quantum_j, self.edge_j)

    @property
    def all_j(self) -> float:
        """All but the gain."""
        return math.hypot(self.noise_j, self.systematic_j)


def estimate(value: float, std: float, systematic: float = 0.0) -> Estimate:
    """A figure with its 95 % interval from its standard uncertainty, of which a part is systematic."""
    half = COVERAGE * std
    return Estimate(value=value, low=value - half, high=value + half, std=std, systematic=systematic)


def integrate_j(trace: Trace, start_s: float, end_s: float) -> Estimate:
    """Energy of a window with its 95 % interval, gain included. Raises NoData like `energy_j`.

    Edges: the time at which a change of the power shows is uncertain by one refresh period, evenly spread, so that each
    edge adds refresh period x power difference / sqrt(12).
    """
    value = energy_j(trace, start_s, end_s)
    budget = Budget(noise_j(trace, start_s, end_s), quantum_j(trace, end_s - start_s), edge_j(trace, start_s, end_s))
    return estimate(value, math.hypot(budget.all_j, value * trace.gain_uncertainty))


def noise_j(trace: Trace, start_s: float, end_s: float) -> float:
    """Return the noise by a reading's known noise, or by how much the power wanders in the window: the larger one.

    Readings that come faster than the source refreshes repeat themselves and count once.
    """
    length_s = end_s - start_s
    known = trace.noise_w * math.sqrt(length_s * min(trace.news_s, length_s)) if length_s > 0 else 0.0
    return max(known, wander_j(trace, start_s, end_s))


def wander_j(trace: Trace, start_s: float, end_s: float) -> float:
    """Return the noise by successive differences of equal parts' means (von Neumann 1941; batch means): sees noise
    and slow wandering, but no steady drift, which the integral follows. 0 where the window is too short to tell."""
    check_window(trace, start_s, end_s)
    length_s = end_s - start_s
    count = BATCHES if trace.news_s == 0 else min(BATCHES, int(length_s / trace.news_s / 2))
    if count < FEWEST_BATCHES or length_s <= 0:
        return 0.0
    cuts = np.linspace(start_s, end_s, count + 1)
    parts_j = np.diff(cumulative_j(trace, cuts))
    return math.sqrt(count * float(np.mean(np.diff(parts_j) ** 2)) / 2)


def quantum_j(trace: Trace, length_s: float) -> float:
    """Rounding to a coarse quantum is an error that stays where the noise is too small to dither it.

    With normal noise s the mean of a rounded value is off by a sum of harmonics of amplitude
    quantum / (pi k) exp(-2 (pi k s / quantum)^2) (Widrow and Kollar, "Quantization Noise", 2008); without noise that
    is quantum / sqrt(12).
    """
    if trace.quantum_w == 0:
        return 0.0
    dither = max(0.0, (trace.noise_w / trace.quantum_w) ** 2 - 1 / 12)
    harmonics = np.arange(1, 100)
    squares = np.exp(-4 * (math.pi * harmonics) ** 2 * dither) / (2 * (math.pi * harmonics) ** 2)
    return trace.quantum_w * length_s * math.sqrt(float(np.sum(squares)))


def edge_j(trace: Trace, start_s: float, end_s: float) -> float:
    """Both edges: refresh period (or spacing) / sqrt(12) and the clock's offset, times the power difference there."""
    late_s = math.hypot(trace.news_s / math.sqrt(12), trace.clock_s / math.sqrt(3))
    return late_s * math.hypot(_jump_w(trace, start_s), _jump_w(trace, end_s))


def _jump_w(trace: Trace, at_s: float) -> float:
    """Difference of the mean power shortly before and after a time; 0 at the trace's ends."""
    near_s = 2 * trace.news_s
    before_s, after_s = max(at_s - near_s, float(trace.t_s[0])), min(at_s + near_s, float(trace.t_s[-1]))
    if not before_s < at_s < after_s:
        return 0.0
    return abs(time_mean_w(trace, at_s, after_s) - time_mean_w(trace, before_s, at_s))
