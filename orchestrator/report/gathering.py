"""Gather from the ledger what the report of an experiment shows."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from orchestrator.ledger.rows import OPEN

from .content import build

if TYPE_CHECKING:
    from orchestrator.ledger import Apart, ExperimentRow, Ledger

    from .content import Content


def gather(
    ledger: Ledger, row: ExperimentRow, labels: tuple[int, ...] | None = None, *, layers: bool = True
) -> Content:
    """An experiment's report content.

    `labels`: the right classes of its set. `layers`: with times and memory layer by layer, which the page and JSON
    show, and the table only where published figures are of layers.
    """
    jobs = ledger.jobs(row.id)
    cells = ledger.cells(row.id)
    own: dict[str, Counter[str]] = defaultdict(Counter)
    for job in jobs:
        if len(job.job.candidates) == 1 and job.state != "held":
            own[job.job.candidates[0]][job.outcome or job.state.value] += 1
    by_layer = layers or (row.experiment.published is not None and row.experiment.published.by_layer)
    apart: list[Apart] = ["per_layer"] if by_layer else []
    if any(cell.workload.dataset for cell in cells.values()):
        apart.append("predictions")
    over = [job.job for job in jobs if job.state not in OPEN and job.job.role == "work"]
    return build(
        row.id,
        row.experiment,
        cells=cells,
        blocks=ledger.figures(row.id, apart),
        outcomes={word: count for word, count in row.counts.items() if count},
        exclusions=row.exclusions,
        made=Counter((job.candidates[0], job.cell.cell_id) for job in over if len(job.candidates) == 1),
        jobs=own,
        labels=labels,
        stopped=ledger.stopped(row.id).get(row.id, ()),
        between_runs=_between_runs(ledger, row),
        origin=row.origin.text if row.origin else "",
        now=time.time(),
    )


def _between_runs(ledger: Ledger, row: ExperimentRow) -> float | None:
    """Return the difference between the newest runs of the same name, this one among them."""
    from orchestrator.analysis.statistics import MOST_RUNS, between_runs

    own = [key for key, name in ledger.experiment_names().items() if name == row.experiment.name]
    return between_runs(ledger.briefs(each) for each in own[-MOST_RUNS:]) if len(own) > 1 else None


def report_page(content: Content, ledger: Ledger, pages: str = "") -> str:
    """The report as one self-contained HTML page. `pages`: the address of the farm's pages, where it is known."""
    from orchestrator.analysis.statistics import newest_attempts

    from .charts.drawn_blocks import drawn_blocks  # matplotlib comes with it
    from .html import render

    return render(content, newest_attempts(ledger.records_of(drawn_blocks(content.blocks))), pages)
