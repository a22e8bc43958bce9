"""The size from which on one contender stays faster than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log


@dataclass(frozen=True)
class Point:
    """Times of one size, in ms; sizes and times are positive."""

    size: int
    gpu_ms: float
    cpu_ms: float

    @property
    def lead(self) -> float:
        """Logarithm of the CPU's time over the GPU's: positive where the GPU is faster."""
        return log(self.cpu_ms / self.gpu_ms)


@dataclass(frozen=True)
class Crossover:
    """`size` is infinite where the GPU is not faster at the largest size; what lies beyond is not known."""

    size: float
    is_bound: bool = False
    """The GPU is faster at every size measured: the crossover is at the smallest one or below it."""

    @property
    def words(self) -> str:
        if self.size == inf:
            return "none in range"
        return f"{self.size:.0f} or less" if self.is_bound else f"{self.size:.0f}"


def crossover(points: Sequence[Point]) -> Crossover:
    """Return where the last change to the GPU lies, by a straight line between logarithms of sizes and of ratios.

    A size at which the GPU leads counts only if it leads at all larger ones. Raises ValueError without points.
    """
    if not points:
        raise ValueError("no size was measured")
    ordered = sorted(points, key=lambda point: point.size)
    behind = [index for index, point in enumerate(ordered) if point.lead <= 0]
    if not behind:
        return Crossover(float(ordered[0].size), is_bound=True)
    if behind[-1] == len(ordered) - 1:
        return Crossover(inf)
    before, after = ordered[behind[-1]], ordered[behind[-1] + 1]
    share = before.lead / (before.lead - after.lead)
    return Crossover(exp(log(before.size) + share * log(after.size / before.size)))
