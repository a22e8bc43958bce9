"""Count in how many histories the candidate is blamed for what heat or a battery did: that part of `histories`, quick.

    python -m benchmarks.statistics.drifts --histories 400 -o benchmarks/results/DATE-MACHINE-drifts.json

Months of nights are drawn by `histories.py`. A candidate is blamed only where a ratio steps, so that histories none of
whose ratios does are not judged further; the others are by the product's `history`, with every night so far.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.histories import AFTER, CELLS, NIGHTS, PHONES, SCENARIOS, Scenario, World, seen, simulated
from orchestrator.analysis.change_points import LEVEL
from orchestrator.analysis.history import Figure
from orchestrator.analysis.history.steps import steps_of

SEED = 77
DRIFTS = [scenario for scenario in SCENARIOS if scenario.name in ("heat", "battery")]


@dataclass(frozen=True)
class Blamed:
    """Of one scenario: how many blame the candidate, of so many."""

    scenario: str
    size: float
    tails: bool
    histories: int
    histories_blaming: int
    cells: int
    cells_blaming: int


def blamed(scenario: Scenario, tails: bool, number: int, seed: int = SEED) -> Blamed:
    histories = cells = 0
    for drawn in range(number):
        random = np.random.default_rng((seed, drawn, int(100 * scenario.size), tails, len(scenario.name)))
        at = int(random.integers(14, NIGHTS - AFTER))
        nights, figures = simulated(random, World(tails=tails), scenario, 2, at)
        kept = {night.id for night in nights[: at + AFTER]}
        if any_steps([figure for figure in figures if figure.night in kept]):
            told = seen(nights, figures, at + AFTER).changes
            wrong = {(trail.device, trail.cell) for trail, change in told if change.cause == "candidate"}
            histories += bool(wrong)
            cells += len(wrong)
    return Blamed(scenario.name, scenario.size, tails, number, histories, number * PHONES * CELLS, cells)


def any_steps(figures: Sequence[Figure]) -> bool:
    """Whether the ratio of any cell steps, at the level that blames the candidate."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for each in figures:
        assert each.a is not None and each.b is not None
        ratios.setdefault((each.device, each.cell), []).append(float(np.log(each.b / each.a)))
    return any(steps_of(logs, LEVEL / len(ratios)).steps for logs in ratios.values())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=400, help="of each scenario")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(argv)
    begun, found = time.process_time(), []
    for scenario in DRIFTS:
        for tails in (False, True):
            found.append(asdict(blamed(scenario, tails, given.histories, given.seed)))
            print(" ".join(f"{name}={value}" for name, value in found[-1].items()), flush=True)
    if given.output is not None:
        told = {"seed": given.seed, "cpu_s": round(time.process_time() - begun, 1), "found": found}
        given.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    run_command(main)
