"""Find where the speed of a sustained load leaves its first plateau, and what is left of it at the end.

The time that a block worked is cut into windows of equal length. The logarithms of their speeds are fitted by constant
pieces, least squares with a penalty for each piece (optimal partitioning: B. Jackson et al., "An algorithm for optimal
partitioning of data on an interval", IEEE Signal Processing Letters 12, 2005; the penalty is Schwarz' criterion, after
Y.-C. Yao, "Estimating the number of change-points via Schwarz' criterion", Statistics & Probability Letters 6, 1988).
The plateau ends before the first piece that is slower than all before it by more than `DROP`. What wanders by less is
the plateau's own; and nothing ends where the whole load slows down no more than a speed that wanders does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from orchestrator.energy import evidence_of_rise
from orchestrator.model.base import Model
from orchestrator.model.event import Sample

from .times import NS_PER_S

Column = NDArray[np.float64]

WINDOWS, FEWEST_WINDOWS = 200, 25
"""The most windows of a load, and the fewest that tell a course."""
UNITS_OF_WINDOW = 4
"""Inferences or tokens of a window, at least, on the average."""
SHORTEST = 4
"""Windows of a piece, at least: what is over sooner is no course of heat."""
NEAR = 2
"""Windows at either side of an edge among whose units its place is looked for."""
BETWEEN = 2 * SHORTEST
"""A piece of so many windows or fewer may be but the step from one level to the next."""
DROP = 0.05
"""The share by which a piece is slower than the plateau before it: measurement protocol, step 9."""
PENALTY = 3.0
"""Parameters that a further piece adds, in Schwarz' criterion: its level, its place, and one for resemblance."""
LAST_SHARE = 1 / 3
"""The speed that is sustained is that of the last third."""


class Plateau(Model):
    """The first plateau of a load, and what comes behind it. A unit is an inference, or a token behind an answer's
    first."""

    per_s: float
    """Units over the time that they took, until the plateau's end, or the load's."""
    end_s: float | None
    """Seconds since the load began; None where its speed never fell."""
    units: float | None
    """Units of the load until then."""
    sustained_per_s: float
    """Units over their time in the last third of the load."""


def plateau_of(timed: Sequence[Sample]) -> Plateau | None:
    """Return the plateau of timed samples in order; None where they are too few to tell."""
    spans = units_of(timed)
    count = min(WINDOWS, len(spans) // UNITS_OF_WINDOW)
    if count < FEWEST_WINDOWS:
        return None
    starts, ends, done = (np.array(column, dtype=np.float64) for column in zip(*spans, strict=True))
    took = (ends - starts) / NS_PER_S
    worked, units = (np.concatenate(([0.0], np.cumsum(column))) for column in (took, done))
    cuts = np.linspace(0.0, worked[-1], count + 1)
    speeds = np.log(np.diff(np.interp(cuts, worked, units)) / np.diff(cuts))
    edge = _edge(speeds)
    place = len(spans) if edge is None else _step(np.log(took / done), np.searchsorted(worked, cuts[list(edge)]))
    ended = place < len(spans)
    late = int(np.searchsorted(starts, ends[-1] - (ends[-1] - starts[0]) * LAST_SHARE))
    return Plateau(
        per_s=float(units[place] / worked[place]),
        end_s=float((ends[place - 1] - timed[0].start_ns) / NS_PER_S) if ended else None,
        units=float(units[place]) if ended else None,
        sustained_per_s=float((units[-1] - units[late]) / (worked[-1] - worked[late])),
    )


def units_of(timed: Sequence[Sample]) -> list[tuple[int, int, int]]:
    """Return start, end and number of the units of samples: of answers each token behind the first."""
    return [span for each in timed for span in _units(each) if span[1] > span[0]]


def _units(sample: Sample) -> list[tuple[int, int, int]]:
    if sample.token_ns:
        return [(before, at, sample.sequences) for before, at in pairwise(sample.token_ns)]
    end_ns = sample.start_ns + sample.duration_ns * sample.mean_of
    return [(sample.start_ns, end_ns, sample.token_count or sample.runs)]


def _edge(speeds: Column) -> tuple[int, int] | None:
    """Return the windows between which the plateau ends; None where it does not."""
    edges = _pieces(speeds) if evidence_of_rise(-speeds) > 1 else [0]
    for first, last in pairwise(edges[1:]):
        if speeds[first:last].mean() < speeds[:first].mean() + np.log1p(-DROP):
            behind = first if last - first > BETWEEN else last
            return first - NEAR, min(behind + NEAR, len(speeds))
    return None


def _step(values: Column, between: NDArray[np.int64]) -> int:
    """Return the place between two others where values change their level, by least squares."""
    low, high = map(int, between)
    if high - low < 2:  # one unit takes all these windows
        return high
    near = values[low:high] - values[low:high].mean()
    before = np.arange(1, len(near))
    return low + 1 + int(np.argmax(np.cumsum(near)[:-1] ** 2 / (before * (len(near) - before))))


def _pieces(values: Column) -> list[int]:
    """Return the edges of the pieces, the first 0 and the last the number of values."""
    count = len(values)
    variance = max(float(np.median(np.diff(values) ** 2)) / 0.455 / 2, 1e-12)  # of normal differences, whatever jumps
    penalty = PENALTY * variance * np.log(count)
    sums, squares = (np.concatenate(([0.0], np.cumsum(of))) for of in (values, values**2))
    best, before = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=int)
    best[0] = -penalty
    for last in range(SHORTEST, count + 1):
        first = np.arange(last - SHORTEST + 1)
        length = last - first
        spread = squares[last] - squares[first] - (sums[last] - sums[first]) ** 2 / length
        costs = best[first] + spread + penalty
        before[last] = int(costs.argmin())
        best[last] = costs[before[last]]
    edges = [count]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]
