"""A trace: power over time on one clock, with its integral and mean.

Momentary readings are joined by lines (time-weighted trapezoid) with both edges of a window interpolated; readings that
are means since the reading before (energy counters) are steps, of which the first and last count in part. A sum of
readings times the sampling period, or their plain mean, is right only where the spacing is even.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orchestrator.model.errors import NoData, TableError
from orchestrator.model.quantity import counted

Array = NDArray[np.float64]

GAP_PERIODS = 3.0
"""A longer gap between readings than so many sampling periods is no sampling any more: measurement protocol, step 9."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Readings of one source. Raises NoData where they are no trace: none, unpaired, unordered, not finite."""

    t_s: Array
    """Times in seconds, not falling."""
    power_w: Array
    """Power, positive while energy is used."""
    is_mean: bool = False
    """True if a reading is the mean since the reading before instead of a momentary one."""
    gain_uncertainty: float = 0.0
    """Standard uncertainty of the gain, as a share."""
    noise_w: float = 0.0
    """Standard deviation of one reading at a steady load, quantisation included; 0: not known."""
    refresh_s: float = 0.0
    """The time between news of the source; 0: at every reading. Readings in between are repetitions."""
    quantum_w: float = 0.0
    """Step between the values that the source can print; 0: not known or fine."""
    clock_s: float = 0.0
    """Half the width within which the offset of its clock lies."""

    def __post_init__(self) -> None:
        for name in ("t_s", "power_w"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        problem = _problem(self.t_s, self.power_w)
        if problem:
            raise TableError(f"this is no power trace: {problem}", remedy="check the columns and units of its source")

    @cached_property
    def spacing_s(self) -> float:
        """Median time between readings; 0 with a single one."""
        return float(np.median(np.diff(self.t_s))) if len(self.t_s) > 1 else 0.0

    @cached_property
    def until_j(self) -> Array:
        """Energy from the first reading until each reading."""
        means = self.power_w[1:] if self.is_mean else (self.power_w[1:] + self.power_w[:-1]) / 2
        return np.concatenate(([0.0], np.cumsum(means * np.diff(self.t_s))))

    @property
    def news_s(self) -> float:
        """Time between independent readings: the sampling period or the refresh period, whichever is longer."""
        return max(self.spacing_s, self.refresh_s)


def _problem(t_s: Array, power_w: Array) -> str:
    if t_s.ndim != 1 or t_s.shape != power_w.shape:
        return f"{counted(t_s.size, 'time')} for {counted(power_w.size, 'reading')}"
    if not len(t_s):
        return "it has no readings"
    if not (np.isfinite(t_s).all() and np.isfinite(power_w).all()):
        return "a time or a reading is not a finite number"
    falls = np.flatnonzero(np.diff(t_s) < 0)
    return f"time goes back after reading {falls[0]} ({t_s[falls[0]]:g} s)" if len(falls) else ""


def time_mean_w(trace: Trace, start_s: float | None = None, end_s: float | None = None) -> float:
    """Mean power over a window (by default the whole trace), every moment counted once. Raises NoData like
    `energy_j`; the mean over no time at all is the power at that time."""
    start = float(trace.t_s[0]) if start_s is None else start_s
    end = float(trace.t_s[-1]) if end_s is None else end_s
    if start == end:
        return float(np.interp(start, trace.t_s, trace.power_w))
    return energy_j(trace, start, end) / (end - start)


def energy_j(trace: Trace, start_s: float, end_s: float) -> float:
    """Energy between two times. Raises NoData where the window is reversed or the trace does not cover it.

    Over its ends a trace is continued with its first or last reading, for the length of a tolerable gap.
    """
    check_window(trace, start_s, end_s)
    until = cumulative_j(trace, np.array([start_s, end_s]))
    return float(until[1] - until[0])


def check_window(trace: Trace, start_s: float, end_s: float) -> None:
    """Raises NoData where the window is reversed or the trace does not cover it."""
    if end_s < start_s:
        raise NoData(f"the window ends at {end_s:g} s, before it begins at {start_s:g} s")
    first, last, slack = trace.t_s[0], trace.t_s[-1], max(GAP_PERIODS * trace.spacing_s, trace.refresh_s)
    if start_s < first - slack or end_s > last + slack:
        raise NoData(
            f"the trace covers {first:.3f} to {last:.3f} s, the window is {start_s:.3f} to {end_s:.3f} s",
            remedy="sample from before the window to after it",
        )


def cumulative_j(trace: Trace, at_s: Array) -> Array:
    """Energy from the first reading until each of the times; negative before it."""
    t_s, power_w, until = trace.t_s, trace.power_w, trace.until_j
    inside = np.clip(at_s, t_s[0], t_s[-1])
    if trace.is_mean:
        whole = np.interp(inside, t_s, until)
    else:
        before = np.searchsorted(t_s, inside, side="right") - 1
        there_w = np.interp(inside, t_s, power_w)
        whole = until[before] + (power_w[before] + there_w) / 2 * (inside - t_s[before])
    outside = np.where(at_s < t_s[0], power_w[0], power_w[-1]) * (at_s - inside)
    return np.asarray(whole + outside, dtype=np.float64)
