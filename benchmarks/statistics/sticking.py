"""Simulate cells whose blocks stick: to a level, to the block before, or to a slow wave; count what is said of them.

    python -m benchmarks.statistics.sticking -o benchmarks/results/DATE-MACHINE-sticking.json

The simulator shares nothing with the product: the truth is the median of all blocks that there could be, of which one
run sees a few that follow each other. What is judged is the product's interval of the median, its doubt that blocks are
alike, and its verdict on the cell.

counted   cover: runs whose interval holds the truth; doubted: runs with the doubt, or with a verdict `drifting` or
          `bimodal`; alike: with the doubt alone; cover without: of those without any; one side: runs all of whose
          blocks lie on one side of the truth, in which nothing could show that there is another
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulations import keep, options, spread
from orchestrator.analysis.statistics.intervals import median_interval
from orchestrator.analysis.statistics.serial import alike_doubt
from orchestrator.analysis.statistics.stability import Verdict, stability
from orchestrator.figures import times_of

TRUTH_MS = 10.0
BETWEEN, WITHIN, SAMPLES = 0.015, 0.002, 25
"""Standard deviations of blocks and of inferences, shares; inferences of a block."""
BLOCKS = (7, 10, 15, 20, 30)
GAP = 5.0
"""Distance of two levels, in standard deviations of blocks."""
Draw = Callable[[np.random.Generator, int], np.ndarray]


def correlated(correlation: float) -> Draw:
    def draw(random: np.random.Generator, count: int) -> np.ndarray:
        found = random.standard_normal(count)
        for place in range(1, count):
            kept = np.sqrt(1 - correlation**2) * found[place]
            found[place] = correlation * found[place - 1] + kept
        return found

    return draw


def staying(chance: float) -> Draw:
    """Two levels, as likely; from block to block it stays on its own so often."""

    def draw(random: np.random.Generator, count: int) -> np.ndarray:
        moves = random.random(count) >= chance
        upper = (random.integers(2) + np.cumsum(moves)) % 2
        return GAP * (upper - 0.5) + random.standard_normal(count)

    return draw


def wave(period: float, height: float) -> Draw:
    def draw(random: np.random.Generator, count: int) -> np.ndarray:
        phase = random.random() + np.arange(count) / period
        return height * np.sin(2 * np.pi * phase) + random.standard_normal(count)

    return draw


WORLDS: dict[str, Draw] = {
    "independent": correlated(0.0),
    "skewed": lambda random, count: random.lognormal(0, 0.5, count) - 1,
    "outliers (t2)": lambda random, count: random.standard_t(2, count) / 2,
    "AR(0.6)": correlated(0.6),
    "AR(0.8)": correlated(0.8),
    "levels, stays 80 %": staying(0.8),
    "levels, stays 90 %": staying(0.9),
    "wave of 24 blocks, height 2": wave(24, 2),
    "wave of 24 blocks, height 5": wave(24, 5),
    "wave of 48 blocks, height 3": wave(48, 3),
}


class Task(NamedTuple):
    world: str
    blocks: int
    seed: tuple[int, ...]


class Counts(NamedTuple):
    """The counts of one run."""

    covered: bool
    alike: bool
    verdict: bool
    one_side: bool


def judged(task: Task) -> Counts:
    random = np.random.default_rng(task.seed)
    middles = TRUTH_MS * (1 + BETWEEN * WORLDS[task.world](random, task.blocks))
    samples = middles[:, None] * np.exp(WITHIN * random.standard_normal((task.blocks, SAMPLES)))
    medians = np.median(samples, axis=1).tolist()
    interval = median_interval(medians)
    assert interval is not None
    times = [found for each in samples.tolist() if (found := times_of(each)) is not None]
    verdict = stability(times).verdict
    return Counts(
        covered=interval.low <= TRUTH_MS <= interval.high,
        alike=alike_doubt(medians) is not None,
        verdict=verdict in (Verdict.DRIFTING, Verdict.BIMODAL),
        one_side=min(medians) > TRUTH_MS or max(medians) < TRUTH_MS,
    )


def rows(seed: int, number: int, jobs: int) -> Iterator[dict[str, object]]:
    lines = [(world, blocks) for world in WORLDS for blocks in BLOCKS]
    tasks = [Task(*line, (seed, place, run)) for place, line in enumerate(lines) for run in range(number)]
    found = spread(judged, tasks, jobs, together=50)
    for world, blocks in lines:
        runs = [next(found) for _ in range(number)]
        silent = [run.covered for run in runs if not (run.alike or run.verdict)]
        yield {
            "world": world,
            "blocks": blocks,
            "cover": sum(run.covered for run in runs) / number,
            "doubted": 1 - len(silent) / number,
            "alike": sum(run.alike for run in runs) / number,
            "cover without": sum(silent) / len(silent) if silent else None,
            "one side": sum(run.one_side for run in runs) / number,
        }


def main() -> None:
    parser = options(__doc__, 1)
    parser.add_argument("-n", "--runs", type=int, default=2000)
    given = parser.parse_args()
    keep(rows(given.seed, given.runs, given.jobs), given, runs=given.runs)


if __name__ == "__main__":
    run_command(main)
