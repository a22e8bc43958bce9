"""The difference between runs of one experiment on other days, which the blocks of one run cannot show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import log, sqrt
from statistics import fmean, median, variance

from orchestrator.figures.brief import Brief
from orchestrator.model.record import Outcome

FEWEST_RUNS = 3
MOST_RUNS = 10
"""The newest ones, which are looked at."""


def between_runs(runs: Iterable[Iterable[Brief]]) -> float | None:
    """Standard deviation of a cell's time on a device from run to run, as a share: pooled over those that three runs
    have; None where none has."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs:
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for block in run:
            if block.role == "work" and block.outcome == Outcome.OK and block.median_ms:
                times[block.serial, block.cell_id].append(block.median_ms)
        for key, own in times.items():
            found[key].append(log(median(own)))
    known = [variance(logs) for logs in found.values() if len(logs) >= FEWEST_RUNS]
    return sqrt(fmean(known)) if known else None
