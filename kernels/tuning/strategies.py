"""Search of the candidates of one layer: all, the better half again and again, or as time allows."""

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
        """Timings of those that ran, from comparable measurements, the fastest first; the first choice among them."""
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
    """Repeats of the last round."""

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        left, repeats = list(choices), 1
        timings = _sorted(left, measure(left, repeats))
        while repeats < self.repeats and timings:
            half = max(2, -(-len(timings) // 2))
            left = _with_default(choices[0], [timing.choice for timing in timings[:half]], timings)
            repeats *= 2
            timings = _sorted(left, measure(left, repeats)) or timings
        return timings


@dataclass(frozen=True)
class Budgeted:
    """The candidates in order, as many at a time as should fit into the time that is left, by how long those before
    took; the first one is always measured, and the best ones with the default once more where there is time."""

    seconds: float
    repeats: int = 3
    batch: int = 8
    clock: Callable[[], float] = time.monotonic

    def search(self, choices: Sequence[Choice], measure: Measure) -> list[Timing]:
        ends_at, found = self.clock() + self.seconds, list[Timing]()
        done, count, each_s = 0, 1, 0.0
        while done < len(choices) and count:
            part, began = choices[done : done + count], self.clock()
            found += _sorted(part, measure(part, self.repeats))
            done, each_s = done + len(part), (self.clock() - began) / len(part)
            count = self._fitting(ends_at, each_s)
        found.sort(key=lambda timing: timing.ms)
        count = self._fitting(ends_at, 2 * each_s)
        if count < 2 or not found:
            return found
        best = _with_default(choices[0], [timing.choice for timing in found[: count - 1]], found)
        return _sorted(best, measure(best, 2 * self.repeats)) or found

    def _fitting(self, ends_at: float, each_s: float) -> int:
        """Return how many candidates of so long each should fit."""
        left_s = max(0.0, ends_at - self.clock())
        return self.batch if left_s >= self.batch * each_s else int(left_s / each_s)


STRATEGIES: dict[str, Callable[[float], Strategy]] = {
    "exhaustive": lambda _: Exhaustive(),
    "halving": lambda _: Halving(),
    "budgeted": Budgeted,
}
"""Strategies by name, from the seconds that one layer may take."""


def _with_default(default: Choice, choices: list[Choice], timings: Sequence[Timing]) -> list[Choice]:
    """Add the default where it runs at all, even if it is not among the best."""
    ran = any(timing.choice == default for timing in timings)
    return [*choices, default] if ran and default not in choices else choices


def _sorted(choices: Sequence[Choice], times: Sequence[float | None]) -> list[Timing]:
    ran = [Timing(choice, ms) for choice, ms in zip(choices, times, strict=True) if ms is not None]
    return sorted(ran, key=lambda timing: timing.ms)
