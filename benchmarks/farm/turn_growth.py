"""Draw how a turn of the scheduler grows with the phones, from what `benchmarks.farm.scheduler_turn` kept.

`python -m benchmarks.farm.turn_growth benchmarks/results/2026-11-23-two-cores-scheduler-turn.json -o growth.svg`
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.command_line import run_command

SERIES = (("changed_s", "after a hundred changes", "-"), ("idle_s", "after none", "--"))
LANES = {"any": "any phone a job", "each": "one phone a job"}
WANTED_MS = {"changed_s": 100, "idle_s": 10}
"""The bars that were set for 10000 phones and 100000 jobs."""


def drawn(rows: list[dict[str, float | str]]) -> Figure:
    """Milliseconds of the processor by phones, both on a logarithmic scale; a line each for what waits."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for column, what, style in SERIES:
        for colour, (lanes, words) in zip(("C0", "C1"), LANES.items(), strict=True):
            points = sorted((float(row["phones"]), 1e3 * float(row[column])) for row in rows if row["lanes"] == lanes)
            axes.plot(*zip(*points, strict=True), f"{colour}{style}o", label=f"{what}, {words}")
        axes.axhline(WANTED_MS[column], color="grey", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="phones", ylabel="a turn, ms of the processor (median)")
    jobs = sorted({(int(row["phones"]), int(row["jobs"])) for row in rows})
    axes.set_title("; ".join(f"{phones} phones: {waiting} jobs" for phones, waiting in jobs), fontsize=9)
    axes.legend(fontsize=8)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kept", type=Path, help="JSON of a run; the newest of its groups is drawn.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="SVG to write.")
    arguments = parser.parse_args()
    found = json.loads(arguments.kept.read_text())
    rows = list(found.values())[-1] if isinstance(found, dict) else found
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "turn"}):
        drawn(rows).savefig(arguments.output, metadata={"Date": None})
    return 0


if __name__ == "__main__":
    run_command(main)
