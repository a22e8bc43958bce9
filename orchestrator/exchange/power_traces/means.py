"""The mean power of recordings with its uncertainty: plain (as studies publish it) and weighted by time.

One recording: neighbouring readings are alike, so n of them are worth n / tau independent ones. tau is the integrated
autocorrelation time with Sokal's window (the first lag above 5 tau; A. D. Sokal, "Monte Carlo Methods in Statistical
Mechanics", 1997), or that of a first-order process with the correlation that was seen, whichever is longer: of a short
trace both come out too low, which is known of the second and made up for (Marriott & Pope, Biometrika 41, 1954).
Several recordings: the mean of their means; its uncertainty is their spread between each other, or what they say
themselves where that is more. 95 % intervals by Student's t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.analysis.student_t import half_width, welch_freedom
from orchestrator.model.power import Estimate

from .points import Series
from .recording import Recording

WINDOW = 5.0
HALF = 0.5
MOST_CORRELATION = 0.95
MOST_BATCHES = 1 << 18


@dataclass(frozen=True)
class Figure:
    """A value with its standard uncertainty and the degrees of freedom behind that."""

    value: float
    std: float
    freedom: float

    def minus(self, other: Figure) -> Figure:
        """The difference of independent figures."""
        freedom = welch_freedom((self.std, self.freedom), (other.std, other.freedom))
        return Figure(self.value - other.value, float(np.hypot(self.std, other.std)), freedom)

    def times(self, exact: float) -> Figure:
        return Figure(self.value * exact, self.std * abs(exact), self.freedom)

    def estimate(self) -> Estimate:
        half = half_width(self.std, self.freedom)
        return Estimate(value=self.value, low=self.value - half, high=self.value + half, std=self.std)


def plain_mean(recording: Recording) -> Figure:
    """The mean of the readings, each counting the same. The value is that of all readings, its spread of the points."""
    spread = _weighted(recording.power_w, np.ones(len(recording.power_w)))
    return replace(spread, value=recording.facts.plain_w)


def time_mean(recording: Recording) -> Figure:
    """The integral by trapezoids over the time of the recording; readings of one time count as their mean."""
    times, first, counts = np.unique(recording.t_s, return_index=True, return_counts=True)
    power = np.add.reduceat(recording.power_w, first) / counts
    if len(times) < 2:
        return plain_mean(recording)
    steps = np.diff(times)
    weights = np.concatenate(([steps[0]], steps[:-1] + steps[1:], [steps[-1]]))
    return replace(_weighted(power, weights), value=recording.facts.time_w)


def mean_of(figures: Sequence[Figure]) -> Figure:
    """The mean of independent recordings of one thing."""
    if len(figures) == 1:
        return figures[0]
    count = len(figures)
    value = float(np.mean([figure.value for figure in figures]))
    between = float(np.std([figure.value for figure in figures], ddof=1) / np.sqrt(count))
    within = float(np.sqrt(sum(figure.std**2 for figure in figures))) / count
    if between >= within:
        return Figure(value, between, count - 1)
    return Figure(value, within, welch_freedom(*((figure.std / count, figure.freedom) for figure in figures)))


def _weighted(values: Series, weights: Series) -> Figure:
    """Weighted mean; its uncertainty from the weighted deviations, which keep the order in time."""
    weights = weights / weights.mean()
    value = float((values * weights).mean())
    deviations = _batches(weights * (values - value))
    worth = max(len(deviations) / autocorrelation_time(deviations), 2.0)
    return Figure(value, float(np.sqrt(np.mean(deviations**2) / (worth - 1))), worth - 1)


def _batches(deviations: Series) -> Series:
    """Return the means of neighbours, of very many deviations: they say the same of the mean's uncertainty."""
    size = -(-len(deviations) // MOST_BATCHES)
    whole = len(deviations) // size * size
    return np.asarray(deviations[:whole].reshape(-1, size).mean(axis=1)) if size > 1 else deviations


def autocorrelation_time(deviations: Series) -> float:
    """Return how many successive readings say as much as one independent one; at least 1."""
    count = len(deviations)
    variance = float(np.mean(deviations**2))
    if count < 4 or variance == 0:
        return 1.0
    padded = 1 << (2 * count - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(deviations, padded)) ** 2
    correlation = np.fft.irfft(spectrum)[: count // 2] / (count * variance)
    times = 2 * np.cumsum(correlation) - 1
    beyond = np.flatnonzero(np.arange(len(times)) >= WINDOW * times)
    return max(1.0, float(times[beyond[0] if len(beyond) else -1]), _first_order_time(correlation, count))


def _first_order_time(correlation: Series, count: int) -> float:
    """Return the first-order process's time, by the correlation at the lag where it has halved, without its bias."""
    below = np.flatnonzero(correlation < HALF)
    lag = int(below[0]) if len(below) else len(correlation) - 1
    seen = max(0.0, float(correlation[lag]))
    kept = min(MOST_CORRELATION, seen + (1 + 3 * seen) * lag / count) ** (1 / lag)
    return float((1 + kept) / (1 - kept))
