"""Compute the phases of a block as windows of time, and the energy of one phase.

At the edges of a phase the power jumps. A reading near the edge may belong to the phase before: a gauge shows what was,
up to its refresh period and its averaging ago. So a phase is integrated from its own readings only: those of its first
two refresh periods are left out and made up for by those that follow, and the last reading holds until the phase ends.
Where the trace's clock is not sure, as much is left out at either end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from orchestrator.model.event import PhaseName, Power
from orchestrator.model.record import Record

from .gauge_readings import NS
from .trace import Trace, energy_j, time_mean_w
from .uncertainty import Budget, edge_j, noise_j, quantum_j

SETTLE_REFRESHES = 2.0
"""One for the hold until the next refresh, one for a gauge that averages over its refresh period."""
LONGEST_SETTLE = 1 / 3
"""Share of the phase. What a shorter phase than that still holds of the one before is uncertain."""


@dataclass(frozen=True, slots=True)
class Window:
    """A phase in seconds of the device's clock."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def centre_s(self) -> float:
        return (self.start_s + self.end_s) / 2


@dataclass(frozen=True, slots=True)
class Integral:
    """Energy of a phase and what it may be off, apart from the gain."""

    value_j: float
    budget: Budget
    length_s: float

    @property
    def mean_w(self) -> float:
        return self.value_j / self.length_s

    @property
    def mean_random_w(self) -> float:
        return self.budget.all_j / self.length_s


def phase_window(record: Record, phase: PhaseName) -> Window | None:
    """A phase as the agent told it; the load of an agent that tells none is from the first to the last timed sample."""
    for event in record.phases:
        if event.phase == phase and event.end_ns > event.start_ns:
            return Window(event.start_ns * NS, event.end_ns * NS)
    timed = [sample for sample in record.samples if sample.phase == "timed"]
    if phase != "load" or record.phases or not timed:
        return None
    return Window(timed[0].start_ns * NS, (timed[-1].start_ns + timed[-1].duration_ns) * NS)


class StageWindow(NamedTuple):
    """The epochs of one stage of a training, with what lies between them."""

    name: str
    epochs: int
    window: Window


def stage_windows(record: Record) -> list[StageWindow]:
    """Return the stages in order; none where the block trained nothing."""
    staged = groupby((each for each in record.samples if each.stage), key=lambda each: each.stage)
    return [
        StageWindow(name, len(own), Window(own[0].start_ns * NS, (own[-1].start_ns + own[-1].duration_ns) * NS))
        for name, each in staged
        if (own := list(each))
    ]


def measured_window(record: Record) -> Window | None:
    """The load; of a training the epochs of its last stage, whose times are told."""
    stages = stage_windows(record)
    return stages[-1].window if stages else phase_window(record, "load")


def rest_windows(record: Record) -> list[Window]:
    """The rests that there were, in order of time."""
    names: tuple[PhaseName, ...] = ("idle_before", "idle_after")
    return [window for name in names if (window := phase_window(record, name))]


def active_window(record: Record) -> Window | None:
    """Warm-up and load."""
    load, warmup = phase_window(record, "load"), phase_window(record, "warmup")
    return Window(warmup.start_s, load.end_s) if load and warmup else load


def block_window(record: Record) -> Window | None:
    """Return the window from the first phase's start to the last one's end."""
    if not record.phases:
        return phase_window(record, "load")
    return Window(min(p.start_ns for p in record.phases) * NS, max(p.end_ns for p in record.phases) * NS)


def readings_in(readings: Sequence[Power], window: Window | None) -> list[Power]:
    """Return the readings inside a window; before and after a block the supply may be on, and nobody minds."""
    return [p for p in readings if window and window.start_s <= p.t_ns * NS <= window.end_s]


def since_start_s(record: Record, reading: Power) -> float:
    """Time of a reading in the block."""
    window = block_window(record)
    return reading.t_ns * NS - (window.start_s if window else 0.0)


def inferences_in(record: Record, window: Window) -> int:
    """Timed inferences of which the greater part ran inside the window; of a stream all or none."""
    timed = ((s.middle_ns, s.runs) for s in record.samples if s.phase == "timed")
    return sum(count for middle, count in timed if window.start_s <= middle * NS <= window.end_s)


def integral(trace: Trace, window: Window, settle_s: float = 0.0) -> Integral:
    """Energy of a phase. Raises NoData where the trace does not cover it. `settle_s`: for so long, where that is more
    than two refresh periods, the gauge still shows the phase before (`lag.py`)."""
    whole_j, length_s = energy_j(trace, window.start_s, window.end_s), window.length_s
    head_s = min(max(SETTLE_REFRESHES * trace.refresh_s, settle_s) + trace.clock_s, LONGEST_SETTLE * length_s)
    tail_s = min(trace.clock_s, LONGEST_SETTLE * length_s)
    start_s, end_s = window.start_s + head_s, window.end_s - tail_s
    own = None if trace.is_mean else _between(trace, start_s, end_s)
    if own is None:
        noise, edge = noise_j(trace, window.start_s, window.end_s), edge_j(trace, window.start_s, window.end_s)
        budget = Budget(noise, quantum_j(trace, length_s), edge)
        return Integral(whole_j, budget, length_s)
    ends_j = energy_j(own, start_s, start_s + head_s) + energy_j(own, end_s - tail_s, end_s)
    noise = noise_j(own, start_s, end_s) * math.sqrt((length_s + 2 * (head_s + tail_s)) / (end_s - start_s))
    edge = math.hypot(_drift_j(own, start_s, end_s, head_s), _carried_j(trace, own, window, head_s))
    budget = Budget(noise, quantum_j(own, length_s), edge)
    return Integral(energy_j(own, start_s, end_s) + ends_j, budget, length_s)


def _between(trace: Trace, start_s: float, end_s: float) -> Trace | None:
    """The readings inside; None where they are too few or leave out too much of the window."""
    inside = (trace.t_s >= start_s) & (trace.t_s < end_s)
    if inside.sum() < 2:
        return None
    own = replace(trace, t_s=trace.t_s[inside], power_w=trace.power_w[inside])
    near_s = max(own.spacing_s, trace.refresh_s) * 2
    return own if own.t_s[0] - start_s <= near_s and end_s - own.t_s[-1] <= near_s else None


def _carried_j(trace: Trace, own: Trace, window: Window, head_s: float) -> float:
    """Return what the gauge may still hold of the phase before, where this one is too short to leave out a whole
    refresh; it counts twice, because these readings also make up for those that were left out."""
    held_s, before_s = trace.refresh_s - head_s, max(window.start_s - trace.refresh_s, float(trace.t_s[0]))
    if held_s <= 0 or before_s >= window.start_s:
        return 0.0
    before_w = time_mean_w(trace, before_s, window.start_s)
    last_w = time_mean_w(own, window.end_s - head_s, window.end_s)
    return 2 * held_s / math.sqrt(3) * abs(last_w - before_w)


def _drift_j(own: Trace, start_s: float, end_s: float, settle_s: float) -> float:
    """Return what a change of the power within the phase does: the gauge shows it up to a refresh period late, and
    the first settled readings stand for those before them."""
    piece_s = max(settle_s, own.news_s)
    if end_s - start_s < 3 * piece_s:
        return 0.0
    cuts_s = (start_s, start_s + piece_s, start_s + 2 * piece_s)
    first_w, next_w = (time_mean_w(own, cut_s, cut_s + piece_s) for cut_s in cuts_s[:2])
    last_w = time_mean_w(own, end_s - piece_s, end_s)
    late_j = (own.news_s + own.clock_s) / math.sqrt(3) * abs(last_w - first_w)
    return math.hypot(late_j, settle_s / math.sqrt(3) * abs(next_w - first_w))
