"""Simulate series with and without a step, and count how often `farm changes` tells it.

    python -m benchmarks.statistics.steps -o benchmarks/results/DATE-MACHINE-steps.json

Values have a standard deviation of 2 % and resemble the one before by the correlation r (AR(1)); `tails`: what each has
of its own has outliers (Student's t with three degrees of freedom). A step of 2.5 deviations is one of 5 %. What is
judged is the product's `orchestrator.analysis.change_points.change_points`.

Of levels that wander there are rows apart: noise of one deviation around a level that rises evenly, walks at random, or
comes back after a while (Ornstein-Uhlenbeck); its size is in deviations of the noise.

counted   false: series without a step in which a change point is told; unmarked: one that is not marked as what a level
          that wanders may look like; told: series with one in which any is; found:
          those that are told with their place at most one off; known: the same where r is known, as it nearly is where
          many series share it (`farm history`); best: the same of who is told r, both levels, the shape of the noise,
          and that there is one step, and names the place that is most likely at most one off: nobody can do better; of
          a change that is taken back after five values the ends that are found
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulations import keep, options, spread
from orchestrator.analysis.change_points import change_points

SPREAD = 2.0
LENGTHS = (12, 24, 60, 150)
ALIKE = ((0.0, False), (0.0, True), (0.4, False), (0.4, True), (0.6, False), (0.6, True), (-0.3, False), (0.7, False))
STEPS = ((30, 30), (15, 15), (8, 30), (20, 6), (20, 4), (20, 3))
SIZES = (1.5, 2.5, 4.0)
"""The sizes in standard deviations."""
TAKEN_BACK = ((0.0, 6.0), (0.0, 4.0), (0.4, 6.0))
"""r and size of a change of five values among fifty."""
WANDERING = (
    ("rises", 4.0, 0),
    ("walks", 0.2, 0),
    ("comes back", 0.5, 20),
    ("comes back", 1.0, 10),
    ("comes back", 1.5, 30),
    ("comes back", 2.0, 10),
    ("comes back", 2.0, 30),
    ("walks", 0.5, 0),
    ("walks", 1.0, 0),
)
"""The courses of a level: what it does, its size, and how many values it takes to come back."""
SHORT = (10, 12, 14)
"""Values of series with a step of five deviations anywhere."""
SETTLING = 20
"""Values before the first one."""


class Task(NamedTuple):
    """One row."""

    judge: Callable[..., dict[str, object]]
    seed: int
    number: int
    row: tuple[object, ...]


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(__doc__, 1)
    parser.add_argument("-n", "--series", type=int, default=1000, help="without a step")
    parser.add_argument("--steps", type=int, help="series with a step, of each size and place; default: a tenth of -n")
    given = parser.parse_args(argv)
    stepped = given.steps or max(1, given.series // 10)
    tasks = [
        *(Task(without, given.seed, given.series, (count, *alike)) for count in LENGTHS for alike in ALIKE),
        *(Task(wandering, given.seed, given.series, (count, *of)) for count in (10, *LENGTHS) for of in WANDERING),
        *(Task(short, given.seed, given.series, (count,)) for count in SHORT),
        *(Task(taken_back, given.seed, stepped, row) for row in TAKEN_BACK),
        *(Task(with_one, given.seed, stepped, row) for row in product(ALIKE[:-1], STEPS, SIZES)),
    ]
    keep(spread(judged, tasks, given.jobs), given, series=given.series, with_step=stepped)


def judged(task: Task) -> dict[str, object]:
    return task.judge(task.seed, task.number, *task.row)


def without(seed: int, number: int, count: int, alike: float, tails: bool) -> dict[str, object]:
    random = np.random.default_rng((seed, count, int(10 * alike) % 20, tails))
    told = [bool(places(simulated(random, count, alike, tails))) for _ in range(number)]
    return {"values": count, "r": alike, "tails": tails, "false": sum(told) / number}


def wandering(seed: int, number: int, count: int, kind: str, size: float, back: int) -> dict[str, object]:
    """Count in a level without a step, and in one with a step of six deviations in the middle."""
    random = np.random.default_rng((seed, count, int(10 * size), back))
    told = unmarked = found = 0
    for _ in range(number):
        values = random.standard_normal(count) + level(random, count, kind, size, back)
        points = change_points((100 + SPREAD * values).tolist()).points
        told += bool(points)
        unmarked += any(not each.may_wander for each in points)
        values[count // 2 :] += 6
        found += _near(places(100 + SPREAD * values), count // 2)
    counted = {"false": told, "unmarked": unmarked, "found": found}
    return {"values": count, "level": kind, "size": size, "back": back} | {k: v / number for k, v in counted.items()}


def level(random: np.random.Generator, count: int, kind: str, size: float, back: int) -> np.ndarray:
    if kind == "rises":
        return size * np.arange(count) / count
    walk = size * random.standard_normal(count)
    if kind == "walks":
        return np.cumsum(walk)
    kept = np.exp(-1 / back)
    for place in range(1, count):
        walk[place] = kept * walk[place - 1] + np.sqrt(1 - kept**2) * walk[place]
    return walk


def short(seed: int, number: int, count: int) -> dict[str, object]:
    """A step of five deviations in the middle, and one anywhere that leaves three values on each side."""
    random = np.random.default_rng((seed, count))
    middle = anywhere = 0
    for _ in range(number):
        values = 100 + SPREAD * random.standard_normal(count)
        at, step = int(random.integers(3, count - 2)), 5 * SPREAD
        middle += _near(places(values + step * (np.arange(count) >= count // 2)), count // 2)
        anywhere += _near(places(values + step * (np.arange(count) >= at)), at)
    return {"values": count, "size": 5.0, "found in the middle": middle / number, "anywhere": anywhere / number}


def with_one(
    seed: int, number: int, noise: tuple[float, bool], place: tuple[int, int], size: float
) -> dict[str, object]:
    (alike, tails), (before, after) = noise, place
    random = np.random.default_rng((seed, before, after, int(10 * alike) % 20, int(10 * size), tails))
    told = found = known = best = 0
    for _ in range(number):
        values = simulated(random, before + after, alike, tails)
        values[before:] += size * SPREAD
        own = places(values)
        told += bool(own)
        found += _near(own, before)
        known += _near(places(values, max(0.0, alike)), before)
        best += _near([best_place(values, alike, tails, size)], before)
    counted = {"told": told, "found": found, "known": known, "best": best}
    return {
        "before": before, "after": after, "r": alike, "tails": tails, "size": size,
        **{name: each / number for name, each in counted.items()},
    }  # fmt: skip


def taken_back(seed: int, number: int, alike: float, size: float) -> dict[str, object]:
    """Count both ends of a change that lasts five values."""
    random = np.random.default_rng((seed, 50, int(10 * alike), int(10 * size)))
    found = 0
    for _ in range(number):
        values = simulated(random, 50, alike, False)
        values[16:21] += size * SPREAD
        own = places(values)
        found += _near(own, 16) + _near(own, 21)
    return {"values": 50, "changed": [16, 21], "r": alike, "size": size, "found": found / (2 * number)}


def _near(places: Sequence[int], place: int) -> bool:
    return any(abs(each - place) <= 1 for each in places)


def best_place(values: np.ndarray, alike: float, tails: bool, size: float) -> int:
    """Return the place of a step of which all else is known, by the likelihood of what each value has of its own."""
    steps = np.arange(len(values)) >= np.arange(1, len(values))[:, None]
    walk = (values - 100) / SPREAD - size * steps
    own = (walk[:, 1:] - alike * walk[:, :-1]) / np.sqrt(1 - alike**2)
    cost = 2 * np.log1p(own**2).sum(axis=1) if tails else 0.5 * ((own**2).sum(axis=1) + walk[:, 0] ** 2)
    return 1 + int(np.argmax(np.convolve(np.exp(cost.min() - cost), np.ones(3), "same")))


def simulated(random: np.random.Generator, count: int, alike: float, tails: bool) -> np.ndarray:
    count += SETTLING
    own = random.standard_t(3, count) / np.sqrt(3) if tails else random.standard_normal(count)
    walk = np.empty(count)
    walk[0] = own[0]
    for place in range(1, count):
        walk[place] = alike * walk[place - 1] + np.sqrt(1 - alike**2) * own[place]
    return np.asarray(100 + SPREAD * walk[SETTLING:])


def places(values: np.ndarray, alike: float | None = None) -> list[int]:
    return [point.index for point in change_points(values.tolist(), alike=alike).points]


if __name__ == "__main__":
    run_command(main)
