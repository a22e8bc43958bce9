"""Medians and spreads of interleaved rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Steady:
    """Steady state over rounds: every round is one turn of a contender, its value the median of its samples."""

    median_ms: float
    """The median of the rounds' medians."""
    least_ms: float
    most_ms: float
    rounds: int
    samples: int
    """The samples of all rounds together."""

    @property
    def spread(self) -> float:
        """Half the range of the rounds, as a share of the median."""
        return (self.most_ms - self.least_ms) / 2 / self.median_ms


def steady(rounds: Sequence[Sequence[float]]) -> Steady:
    """`rounds`: samples in ms of each round. Raises ValueError where there are none."""
    medians = [median(samples) for samples in rounds if samples]
    if not medians:
        raise ValueError("no round has a sample")
    return Steady(median(medians), min(medians), max(medians), len(medians), sum(map(len, rounds)))


def turns(contenders: Sequence[str], rounds: int) -> list[list[str]]:
    """Return who is measured when: A B C, C B A, A B C ... so that a drift hits all alike."""
    return [list(contenders) if index % 2 == 0 else list(reversed(contenders)) for index in range(rounds)]


def timed(call: Callable[[], Any], seconds: float) -> float:
    """The median time of a call, in milliseconds."""
    found: list[float] = []
    end = time.monotonic() + seconds
    while len(found) < 5 or time.monotonic() < end:
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1e3)
    return median(found)
