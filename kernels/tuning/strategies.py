"""How the candidates of one convolution are searched: all, the better half again and again, or as time allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernels.options import Choice

Measure = Callable[[Sequence[Choice], int], Sequence[float | None]]
"""choices, repetitions -> the median ms of each; None where it could not be run."""


@dataclass(frozen=True)
class Timing:
    choice: Choice
    ms: float


class Strategy(Protocol):
    """One way to spend time on candidates."""

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        """Timings of those that ran, from comparable measurements, the fastest first."""
        ...


@dataclass(frozen=True)
class Exhaustive:
    """Every candidate, `repeats` times."""

    repeats: int = 5

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        return _sorted(choices, measure(choices, self.repeats))


@dataclass(frozen=True)
class Halving:
    """Successive halving (Jamieson and Talwalkar, 2016): all once, the better half twice, the better quarter ...; the
    default, which comes first, stays to the end."""

    repeats: int = 8
    """Of the last round."""

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        left, repeats = list(choices), 1
        timings = _sorted(left, measure(left, repeats))
        while len(left) > 4 and repeats < self.repeats:
            left = [timing.choice for timing in timings[: -(-len(timings) // 2)]]
            if choices[0] not in left and any(timing.choice == choices[0] for timing in timings):
                left.append(choices[0])
            repeats *= 2
            timings = _sorted(left, measure(left, repeats))
        return timings


@dataclass(frozen=True)
class Budgeted:
    """The candidates in order, a few at a time, until the time is spent; the first ones are always measured."""

    seconds: float
    repeats: int = 3
    batch: int = 8

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        ends_at = time.monotonic() + self.seconds
        found: list[Timing] = []
        for start in range(0, len(choices), self.batch):
            part = choices[start : start + self.batch]
            found += _sorted(part, measure(part, self.repeats))
            if time.monotonic() >= ends_at:
                break
        return sorted(found, key=lambda timing: timing.ms)


STRATEGIES: dict[str, Callable[[float], Strategy]] = {
    "exhaustive": lambda _: Exhaustive(),
    "halving": lambda _: Halving(),
    "budgeted": Budgeted,
}
"""By name, from the seconds that one convolution may take."""


def _sorted(choices: Sequence[Choice], times: Sequence[float | None]) -> list[Timing]:
    ran = [Timing(choice, ms) for choice, ms in zip(choices, times, strict=True) if ms is not None]
    return sorted(ran, key=lambda timing: timing.ms)
