"""The error of a gauge of moments when inferences repeat in step with its refreshes: it sees the same part of each.

The moments of its readings are put on the course of the inferences. Where they are spread over it evenly, its mean is
that of the power; where they come together, it is off by as much as the power varies there. A gauge that averages over
its refreshes does no such thing; it shows what it is at the load's edges, by a reading between those of load and rest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from orchestrator.model.record import Record

from .gauge_readings import NS
from .trace import Trace
from .windows import Window

RIPPLE = 0.25
"""Standard deviation of the power within an inference, as a share of it, where nothing shows more or less."""
HARMONICS = (1, 2, 3)
CHANCE = 3.0
"""Moments that are spread at random come together by 1 / their number: so many times that is no coincidence."""
UNSEEN = 0.1
"""The share from which on readings come so close together that they do not show what they leave out."""
BETWEEN = 0.1, 0.6
"""Shares of the step from rest to load that no moment of either shows."""
NOISES = 6.0


def aliased_share(record: Record, trace: Trace, active: Window, load: Window) -> float:
    """Return how far the load's mean may be off, as a share and standard uncertainty. `active`: warm-up and load."""
    inside = (trace.t_s >= load.start_s) & (trace.t_s < load.end_s)
    samples = [(s.start_ns * NS, s.inferences) for s in record.samples]
    if trace.is_mean or inside.sum() < 3 or len(samples) < 2 or any(count > 1 for _, count in samples):
        return 0.0
    at_s, power_w = trace.t_s[inside], trace.power_w[inside]
    starts_s, mean_w = np.array([start_s for start_s, _ in samples]), float(power_w.mean())
    part = np.interp(at_s, starts_s, np.arange(len(starts_s)))
    averages = trace.refresh_s > 0 and _averages(trace, active)
    lasts = trace.refresh_s / float(np.median(np.diff(starts_s))) if averages else 0.0
    passed = [abs(np.exp(2j * math.pi * m * part).mean() * np.sinc(m * lasts)) ** 2 / m**2 for m in HARMONICS]
    together = max(passed) - CHANCE / len(at_s)
    if together <= 0 or mean_w <= 0:
        return 0.0
    if together > UNSEEN or averages:
        return math.sqrt(together) * RIPPLE
    return math.sqrt(together) * min(RIPPLE, _scatter_w(trace, at_s, power_w) / mean_w / math.sqrt(1 - together))


def _scatter_w(trace: Trace, at_s: NDArray[np.float64], power_w: NDArray[np.float64]) -> float:
    """Return the scatter of readings under the load, beyond their noise; at least what the noise may hide."""
    line = np.polyval(np.polyfit(at_s, power_w, 1), at_s)
    seen, noise = float(np.var(power_w - line)), trace.noise_w**2
    return math.sqrt(max(0.0, seen - noise) + 2 * noise * math.sqrt(2 / len(at_s)))


def _averages(trace: Trace, active: Window) -> bool:
    """Return whether a reading at an edge of what was active lies where no moment does."""
    near_s = 2 * trace.news_s
    for edge_s, rest in ((active.start_s, -1), (active.end_s, 1)):
        levels = [_mean_w(trace, edge_s + side * near_s, edge_s + side * 5 * near_s) for side in (rest, -rest)]
        if levels[0] is None or levels[1] is None or levels[1] <= levels[0]:
            continue
        at_edge = trace.power_w[(trace.t_s > edge_s - near_s / 2) & (trace.t_s < edge_s + near_s)]
        share, noise = (at_edge - levels[0]) / (levels[1] - levels[0]), trace.noise_w / (levels[1] - levels[0])
        if ((share > max(BETWEEN[0], NOISES * noise)) & (share < BETWEEN[1] - NOISES * noise)).any():
            return True
    return False


def _mean_w(trace: Trace, one_s: float, other_s: float) -> float | None:
    inside = trace.power_w[(trace.t_s >= min(one_s, other_s)) & (trace.t_s <= max(one_s, other_s))]
    return float(inside.mean()) if len(inside) else None
