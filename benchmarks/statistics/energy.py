"""The coverage of an energy's interval, of 1, 3 and 10 blocks: how often it holds the truth.

    python -m benchmarks.statistics.energy --runs 200 -o results.json [--markdown TABLE.md] [--world ripple]

The blocks come from `simulated_power.py`, which shares nothing with the product but the shape of a record; the product
reads them as those of a phone. Each cell has 10 blocks, which are judged one by one, in threes, and together. Same
seed, same table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulated_power import WORLDS, World, block, drawn
from orchestrator.analysis.statistics import energy_uses
from orchestrator.energy import find_invalid
from orchestrator.figures import BlockFigures, figures_of
from orchestrator.model.device import Api
from orchestrator.model.experiment import Conditions, Workload
from orchestrator.model.job import Cell

SEED = 20261123
COUNTS = (1, 3, 10)
DISCHARGING = Conditions(supply="discharging")


def judge(world: World, runs: int, seed: int) -> dict[str, Any]:
    """Coverage, error and width by number of blocks, as shares of the truth; share of blocks that would not count."""
    rng = np.random.default_rng((seed, [each.name for each in WORLDS].index(world.name)))
    found: dict[int, list[tuple[float, bool, float, float]]] = {count: [] for count in COUNTS}
    alarms, doubted = 0, 0
    for _ in range(runs):
        cell = drawn(world, rng)
        blocks = [block(cell, rng) for _ in range(max(COUNTS))]
        rows = [_row(each.record, number) for number, each in enumerate(blocks)]
        alarms += bool(find_invalid(blocks[0].record, DISCHARGING))
        doubted += sum(bool(row.energy and row.energy.doubts) for row in rows)
        for count in COUNTS:
            for first in range(0, max(COUNTS) - count + 1, count):
                own = slice(first, first + count)
                truth_j = float(np.mean([each.truth_j for each in blocks[own]]))
                found[count].append(_compared(rows[own], truth_j))
    total = runs * max(COUNTS)
    return {"world": world.name, "alarms": alarms / runs, "doubted": doubted / total} | {
        str(count): {
            "covered": float(np.mean([each[1] for each in own])),
            "bias": float(np.mean([each[0] for each in own])),
            "rms": float(np.sqrt(np.mean([each[0] ** 2 for each in own]))),
            "half_width": float(np.median([each[2] for each in own])),
            "level": own[0][3],
        }
        for count, own in found.items()
    }


def _compared(rows: list[BlockFigures], truth_j: float) -> tuple[float, bool, float, float]:
    """Error, whether the truth is covered, half the interval's width, and its level."""
    figure = energy_uses(rows)[0].per_inference_j
    assert figure is not None
    within = figure.within
    covered = within.low <= truth_j <= within.high
    return figure.value / truth_j - 1, covered, within.half_width / truth_j, within.level


def _row(record: Any, number: int) -> BlockFigures:
    figures = figures_of(record, CELL)
    return figures.model_copy(update={"block": number, "started_at": float(number)})


CELL = Cell(workload=Workload(network="lenet"), backend=Api.CPU)
"""Any: what a block ran is nothing to its energy."""


def markdown(found: list[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| blocks | "
        + " | ".join(f"{count}: covered, error, interval" for count in COUNTS)
        + " | blocks with a doubt |"
    )
    yield "|---" * (len(COUNTS) + 2) + "|"
    for row in found:
        cells = [row[str(count)] for count in COUNTS]
        told = [f"{c['covered']:.0%}, {c['rms']:.2%}, ±{c['half_width']:.2%}" for c in cells]
        yield f"| {row['world']} | " + " | ".join(told) + f" | {row['doubted']:.0%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="cells of 10 blocks in each world")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--world", action="append", help="only those whose name contains this")
    parser.add_argument("-o", "--output", type=Path, help="JSON file")
    parser.add_argument("--markdown", type=Path, help="file for the table of docs/measuring.md")
    given = parser.parse_args()
    chosen = [world for world in WORLDS if not given.world or any(part in world.name for part in given.world)]
    found = []
    for world in chosen:
        found.append(judge(world, given.runs, given.seed))
        print(*markdown(found[-1:]), sep="\n", flush=True)
    if given.output:
        given.output.write_text(json.dumps({"runs": given.runs, "seed": given.seed, "worlds": found}, indent=1) + "\n")
    if given.markdown:
        given.markdown.write_text("\n".join(markdown(found)) + "\n")


if __name__ == "__main__":
    run_command(main)
