"""Find by the load's edges how late a source shows what happens: the phone's clock tells exactly when they were.

A gauge that averages for longer than it refreshes, or is late, still shows the load when the rest has begun; a meter's
samples reach the host after a delay of which nothing else tells (protocol, step 12).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from orchestrator.model.errors import StableError

from .trace import Trace, time_mean_w
from .windows import SETTLE_REFRESHES, Window

LONGEST_LAG_S, LAG_REFRESHES = 5.0, 8.0
"""The time after the load for which a gauge is watched, the larger of both; as long again for what it settles to."""
USUAL_REFRESHES = 1.5
"""A mean of the last refresh is half of one late, and holds for another."""
SETTLED = 5.0
"""Time constants after which an exponential mean has settled to 1 %."""
NOISES = 2.0
MOST_DELAY_S = 1.0
"""A later meter is not found."""
EDGE = 0.3
"""Share of the step from rest to load at which an edge is seen: a load may rest a little between two inferences."""
CLEAR = 6.0
"""Standard deviations of a reading that the step must have at that share."""


def settle_s(trace: Trace, load: Window, rest: Window | None) -> float:
    """Return for how long after an edge the trace still shows the phase before; from the load's end."""
    usual_s = SETTLE_REFRESHES * trace.refresh_s
    if rest is None or trace.is_mean or trace.refresh_s == 0:
        return usual_s
    look_s = min(max(LONGEST_LAG_S, LAG_REFRESHES * trace.refresh_s), rest.length_s / 3, load.length_s / 3)
    try:
        high_w = time_mean_w(trace, load.end_s - look_s, load.end_s)
        late_w = time_mean_w(trace, rest.start_s, rest.start_s + look_s)
        low_w = time_mean_w(trace, rest.start_s + look_s, rest.start_s + 2 * look_s)
    except StableError:
        return usual_s
    step_w = abs(high_w - low_w)
    noise_w = trace.noise_w * math.sqrt(2 * trace.news_s / look_s)
    if step_w <= 2 * NOISES * noise_w:
        return usual_s
    lag_s = look_s * abs(late_w - low_w) / step_w - NOISES * look_s * noise_w / step_w
    return usual_s + SETTLED * max(0.0, lag_s - USUAL_REFRESHES * trace.refresh_s)


def in_time(trace: Trace, active: Window) -> tuple[Trace, float]:
    """The trace of a meter as the edges of what was active show it, and by how much it was late: 0 where they agree
    with its clock, or do not show."""
    edges = [
        delay
        for at_s, side in ((active.start_s, 1.0), (active.end_s, -1.0))
        if (delay := _delay_s(trace, at_s, side)) is not None
    ]
    if len(edges) < 2:
        return trace, 0.0
    delay_s, apart_s = (edges[0] + edges[1]) / 2, abs(edges[1] - edges[0]) / 2
    known_s = trace.spacing_s + apart_s
    if abs(delay_s) <= trace.clock_s + known_s:
        return trace, 0.0
    return replace(trace, t_s=trace.t_s - delay_s, clock_s=known_s), delay_s


def _delay_s(trace: Trace, edge_s: float, side: float) -> float | None:
    """Return how late an edge is in the trace; `side`: 1 where the power rises. None where it does not show."""
    try:
        before_w = time_mean_w(trace, edge_s - 3 * MOST_DELAY_S, edge_s - MOST_DELAY_S)
        after_w = time_mean_w(trace, edge_s + MOST_DELAY_S, edge_s + 3 * MOST_DELAY_S)
    except StableError:
        return None
    low_w, high_w = (before_w, after_w) if side > 0 else (after_w, before_w)
    rest = (
        (edge_s - 3 * MOST_DELAY_S, edge_s - MOST_DELAY_S)
        if side > 0
        else (edge_s + MOST_DELAY_S, edge_s + 3 * MOST_DELAY_S)
    )
    at_rest = trace.power_w[(trace.t_s >= rest[0]) & (trace.t_s < rest[1])]
    bound_w = low_w + EDGE * (high_w - low_w)
    if len(at_rest) < 3 or bound_w - low_w <= CLEAR * float(np.std(at_rest)):
        return None
    near = (trace.t_s >= edge_s - MOST_DELAY_S) & (trace.t_s <= edge_s + MOST_DELAY_S)
    above_s = trace.t_s[near & (trace.power_w > bound_w)]
    if not len(above_s):
        return None
    middle_s = trace.spacing_s / 2 if trace.is_mean else 0.0
    found_s = float(above_s[0] if side > 0 else above_s[-1]) - middle_s
    return found_s - side * trace.spacing_s / 2 - edge_s
