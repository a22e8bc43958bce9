"""Count in how many histories the candidate is blamed for what heat or a battery did: that part of `histories`, quick.

    python -m benchmarks.statistics.drifts --histories 400 -o benchmarks/results/DATE-MACHINE-drifts.json

Months of nights are drawn by `histories.py`. A candidate is blamed only where a ratio steps, so that histories none of
whose ratios does are not judged further; the others are by the product's `history`, with every night so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.histories import AFTER, CELLS, NIGHTS, PHONES, SCENARIOS, Scenario, World, seen, simulated
from benchmarks.statistics.simulations import keep, options, spread
from orchestrator.analysis.change_points import LEVEL
from orchestrator.analysis.history import Figure
from orchestrator.analysis.history.steps import steps_of

SEED = 77
DRIFTS = [scenario for scenario in SCENARIOS if scenario.name in ("heat", "battery")]


class Task(NamedTuple):
    scenario: Scenario
    tails: bool
    seed: int
    drawn: int


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(__doc__, SEED)
    parser.add_argument("--histories", type=int, default=400, help="of each scenario")
    given = parser.parse_args(argv)
    keep(rows(given.seed, given.histories, given.jobs), given)


def rows(seed: int, number: int, jobs: int) -> Iterator[dict[str, object]]:
    kinds = [(scenario, tails) for scenario in DRIFTS for tails in (False, True)]
    tasks = [Task(*kind, seed, drawn) for kind in kinds for drawn in range(number)]
    found = spread(cells_blaming, tasks, jobs, together=5)
    for scenario, tails in kinds:
        cells = list(islice(found, number))
        yield {
            "scenario": scenario.name, "size": scenario.size, "tails": tails,
            "histories": number, "histories_blaming": sum(map(bool, cells)),
            "cells": number * PHONES * CELLS, "cells_blaming": sum(cells),
        }  # fmt: skip


def cells_blaming(task: Task) -> int:
    """Return in how many cells of one history the candidate is blamed."""
    scenario, tails = task.scenario, task.tails
    random = np.random.default_rng((task.seed, task.drawn, int(100 * scenario.size), tails, len(scenario.name)))
    at = int(random.integers(14, NIGHTS - AFTER))
    nights, figures = simulated(random, World(tails=tails), scenario, 2, at)
    kept = {night.id for night in nights[: at + AFTER]}
    if not any_steps([figure for figure in figures if figure.night in kept]):
        return 0
    told = seen(nights, figures, at + AFTER).changes
    return len({(trail.device, trail.cell) for trail, change in told if change.cause == "candidate"})


def any_steps(figures: Sequence[Figure]) -> bool:
    """Return whether the ratio of any cell steps, at the level that blames the candidate."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for each in figures:
        assert each.a is not None and each.b is not None
        ratios.setdefault((each.device, each.cell), []).append(float(np.log(each.b / each.a)))
    return any(steps_of(logs, LEVEL / len(ratios)).steps for logs in ratios.values())


if __name__ == "__main__":
    run_command(main)
