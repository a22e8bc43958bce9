"""Print experiments of the ledger, as a table or as JSON."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from farm.cli.output import out, print_json
from orchestrator.answers import Standing, Wait, reason_lines, wait_data
from orchestrator.report import wording
from orchestrator.report.listing import Head, Listing

from .exclusions import exclusion_line, exclusion_lines
from .outcomes import present

if TYPE_CHECKING:
    from orchestrator.ledger import ExperimentRow
    from orchestrator.model.stopped import Stopped


def row_data(row: ExperimentRow, waits: Iterable[Wait], stopped: Iterable[Stopped] = ()) -> dict[str, Any]:
    """An experiment of the ledger, in short, with what its jobs wait for."""
    return {
        "experiment": row.id,
        "name": row.experiment.name,
        "submitted_at": row.submitted_at,
        "finished": row.finished,
        "jobs": sum(row.counts.values()),
        "counts": present(row.counts),
        "waiting": wait_data(waits),
        "stopped": [each.model_dump(mode="json") for each in stopped],
    }


def table_of(rows: Iterable[ExperimentRow]) -> Listing:
    """A line each."""
    shown = []
    for row in rows:
        submitted = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.submitted_at))
        word = "[green]finished[/]" if row.finished else "[cyan]open[/]"
        total = str(sum(row.counts.values()))
        name = escape(row.experiment.name)
        shown.append((row.id, name, submitted, total, word, wording.outcomes(present(row.counts))))
    return Listing(("experiment", "name", "submitted", Head("jobs", True), "", "outcome"), shown)


def show_all(
    rows: Sequence[ExperimentRow], waits: Iterable[Wait], stopped: Mapping[str, Sequence[Stopped]], *, as_json: bool
) -> None:
    """Print all experiments, what their jobs wait for, and strategies that ended early."""
    own: dict[str, list[Wait]] = defaultdict(list)
    for wait in waits:
        own[wait.experiment_id].append(wait)
    if as_json:
        print_json([row_data(row, own[row.id], stopped.get(row.id, ())) for row in rows])
        return
    out().print(table_of(rows))
    for experiment_id, found in own.items():
        show_waits(found, f"{experiment_id}: ")
    for experiment_id, early in stopped.items():
        show_stopped(early, f"{experiment_id}: ")


def show_waits(waits: Iterable[Wait], title: str = "") -> None:
    """Print what jobs wait for."""
    for line in reason_lines(waits):
        out().print(f"  {title}{line}", style="yellow", soft_wrap=True, markup=False)


def show_stopped(stopped: Iterable[Stopped], title: str = "") -> None:
    """Print why strategies ended early, and what to do."""
    for each in stopped:
        out().print(f"  {title}{each.text}", style="red", soft_wrap=True, markup=False, highlight=False)


def show(found: Standing) -> None:
    """Print one, with what it waits for, when it ends, what was excluded from it and what did not end well."""
    console = out()
    console.print(table_of([found.row]))
    if found.ends is not None:
        console.print(f"  {found.ends.text}", soft_wrap=True, markup=False, highlight=False)
    show_waits(found.waits)
    show_stopped(found.stopped)
    for line in exclusion_lines(found.row.exclusions, limit=1000):
        console.print(exclusion_line(line))
    for problem in found.problems:
        where = ", ".join(problem.devices)
        attempts = f" after {problem.attempts} attempts" if problem.attempts > 1 else ""
        why = "; ".join(filter(None, [problem.cause, *problem.reasons]))
        text = f"{problem.label} on {where}{': ' if why else ''}{why}{attempts}"
        console.print(f"  [red]{problem.outcome}[/] {escape(text)}", soft_wrap=True)
