"""Print experiments of the ledger, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.markup import escape

from farm.cli.output import day, out
from orchestrator.answers import Ending, Wait, reason_lines
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.quantity import counted
from orchestrator.model.stopped import Stopped
from orchestrator.report import wording
from orchestrator.report.listing import Head, Listing

from .exclusions import exclusion_line, exclusion_lines
from .outcomes import present

Told = Mapping[str, Any]
"""An experiment, as `--json` has it."""


def table_of(found: Iterable[Told]) -> Listing:
    """A line each."""
    shown = []
    for each in found:
        submitted = day(each["submitted_at"])
        word = "[green]finished[/]" if each["finished"] else "[cyan]open[/]"
        name, by = escape(each["name"]), escape(each["submitter"])
        counts = wording.outcomes(present(each["counts"]))
        shown.append((each["experiment"], name, submitted, by, str(each["jobs"]), word, counts))
    return Listing(("experiment", "name", "submitted", "by", Head("jobs", True), "", "outcome"), shown)


def show_all(found: Sequence[Told]) -> None:
    """Print all experiments, what their jobs wait for, and strategies that ended early."""
    out().print(table_of(found) if found else "the ledger holds no experiment yet")
    for each in found:
        _show_waits(each, f"{each['experiment']}: ")
    for each in found:
        _show_stopped(each, f"{each['experiment']}: ")


def show_one(found: Told) -> None:
    """Print one, with what it waits for, when it ends, what was excluded from it and what did not end well."""
    console = out()
    console.print(table_of([found]))
    if found["origin"]:
        console.print(f"  {found['origin']}", markup=False, highlight=False)
    if found["ends"] is not None:
        console.print(f"  {Ending.of(found['ends']).text}", markup=False, highlight=False)
    _show_waits(found)
    _show_stopped(found)
    for line in exclusion_lines([Exclusion(**each) for each in found["exclusions"]], limit=1000):
        console.print(exclusion_line(line))
    for problem in found["not_ok"]:
        where = ", ".join(problem["devices"])
        attempts = f" after {counted(problem['attempts'], 'attempt')}" if problem["attempts"] > 1 else ""
        why = "; ".join(filter(None, [problem["cause"], *problem["reasons"]]))
        text = f"{problem['label']} on {where}{': ' if why else ''}{why}{attempts}"
        console.print(f"  [red]{problem['outcome']}[/] {escape(text)}")


def stopped_of(found: Iterable[Told]) -> list[Stopped]:
    """Return the strategies that ended early."""
    return [Stopped.model_validate(each) for each in found]


def _show_waits(found: Told, title: str = "") -> None:
    for line in reason_lines(Wait.of(found["experiment"], each) for each in found["waiting"]):
        out().print(f"  {title}{line}", style="yellow", markup=False)


def _show_stopped(found: Told, title: str = "") -> None:
    for each in stopped_of(found["stopped"]):
        out().print(f"  {title}{each.text}", style="red", markup=False, highlight=False)
