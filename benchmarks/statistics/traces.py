"""The coverage of the interval of a trace's mean power, by its length and by how alike its readings are.

    python -m benchmarks.statistics.traces --runs 400 -o results.json [--markdown TABLE.md]

Traces are first-order processes about a known mean; the product tells their mean with its interval, and doubts traces
of too few independent readings. Same seed, same table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulations import options, tell
from orchestrator.exchange.power_traces import Recording
from orchestrator.exchange.power_traces.comparison import compare

SEED = 20261123
COUNTS = (50, 300, 3000)
TIMES = (0, 3, 10, 30, 100)
"""Correlation time in readings; 0: independent."""
LEVEL_W, SPREAD_W = 2.0, 0.1


def trace(count: int, time: int, rng: np.random.Generator) -> np.ndarray:
    kept, noise = float(np.exp(-1 / time)) if time else 0.0, rng.normal(size=count)
    walk = np.empty(count)
    state = walk[0] = noise[0]
    for place in range(1, count):
        state = walk[place] = kept * state + np.sqrt(1 - kept**2) * noise[place]
    return LEVEL_W + SPREAD_W * walk


def judge(runs: int, seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    for count in COUNTS:
        for time in TIMES:
            found = [_one(trace(count, time, rng)) for _ in range(runs)]
            sure = [covered for covered, doubted in found if not doubted]
            yield {
                "readings": count,
                "time": time,
                "covered": float(np.mean([covered for covered, _ in found])),
                "doubted": float(np.mean([doubted for _, doubted in found])),
                "covered_sure": float(np.mean(sure)) if len(sure) >= runs / 10 else None,
            }


def _one(power_w: np.ndarray) -> tuple[bool, bool]:
    recording = Recording(Path("a.csv"), "csv", "power", np.arange(len(power_w)) * 0.1, power_w)
    found = compare([recording], [recording])
    mean = found.plain.load_power_w
    return mean.low <= LEVEL_W <= mean.high, any(doubt.code == "alike_readings" for doubt in found.doubts)


def markdown(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| readings, by correlation time in readings | " + " | ".join(map(str, TIMES)) + " |"
    yield "|---" * (len(TIMES) + 1) + "|"
    for count in COUNTS:
        own = [row for row in rows if row["readings"] == count]
        cells = [f"{row['covered']:.0%}"[:-1] + f" ({row['doubted']:.0%} doubted)" for row in own]
        yield f"| {count} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = options(__doc__, SEED, spreads=False)
    parser.add_argument("--runs", type=int, default=400, help="traces of each kind")
    given = parser.parse_args()
    rows = list(judge(given.runs, given.seed))
    tell({"runs": given.runs, "seed": given.seed, "traces": rows}, markdown(rows), given)
    print(*(f"{row['readings']} {row['time']}: without a doubt {row['covered_sure']}" for row in rows), sep="\n")


if __name__ == "__main__":
    run_command(main)
