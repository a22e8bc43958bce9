"""`farm run`, `farm status`, `farm watch`, `farm cancel`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from orchestrator.config import Settings
from orchestrator.errors import StableError
from orchestrator.model.record import Outcome
from orchestrator.report import wording

from . import live
from .farm_access import connect, find_experiment, open_inventory, open_ledger
from .lifecycle import settings_of
from .output import JsonOption, StateOption, log, out, print_json

if TYPE_CHECKING:
    from orchestrator.ledger import ExperimentRow, JobRow, Ledger
    from orchestrator.matrix import Exclusion
    from orchestrator.submit import Submission

PANEL = "Experiments"
ASK_ABOVE = 10_000
"""Jobs from which `farm run` asks back."""
ExperimentArgument = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="Its id, its name (the newest of that name), or `latest`.")
]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=PANEL)(run)
    app.command(rich_help_panel=PANEL)(status)
    app.command(rich_help_panel=PANEL)(watch)
    app.command(rich_help_panel=PANEL)(cancel)


def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="Experiment file (YAML).")],
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Watch it to its end; exit status 0 if all is ok.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Start another one where one like it is under way.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Submit a very large matrix without asking back.")] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit an experiment to the running farm; with --wait, watch it to its end.

    The same content is the same experiment: one that is not over is resumed (--again starts another one beside it),
    one that is over is run once more under a new id.

    Example: `farm run experiments/first.yaml --wait`
    """
    from orchestrator import spec as specs
    from orchestrator.submit import submit

    settings = settings_of(state)
    experiment = specs.load(spec)
    inventory = open_inventory(settings)
    confirm_size(experiment, len(inventory.devices()), yes=yes)
    with open_ledger(settings) as ledger:
        submission = submit(settings, ledger, inventory, experiment, spec.parent, again=again)
        tell(submission)
        if not wait:
            if as_json:
                print_json(_submission(submission))
            return
        counts = follow_to_end(settings, ledger, submission.experiment_id, experiment.name)
    found = outcomes(counts)
    if as_json:
        print_json({"experiment": submission.experiment_id, "outcomes": found})
    else:
        out().print(f"{submission.experiment_id}: {wording.outcomes(found)}")
    if not all_ok(found):
        raise typer.Exit(1)


def outcomes(counts: Mapping[str, int]) -> dict[str, int]:
    """Jobs that are over, by outcome: every outcome always, for programs."""
    return {outcome.value: counts.get(outcome.value, 0) for outcome in Outcome}


def all_ok(found: Mapping[str, int]) -> bool:
    """Whether no job ended in another way than well."""
    return not any(count for word, count in found.items() if word != Outcome.OK.value)


def present(counts: Mapping[str, int]) -> dict[str, int]:
    """Jobs by state or outcome, without those of which there are none."""
    return {word: count for word, count in counts.items() if count}


def confirm_size(experiment: Any, devices: int, *, yes: bool) -> None:
    """Ask back before a very large matrix is built; refuse where nobody can answer."""
    from orchestrator import matrix

    count = experiment.devices.count
    runs = matrix.size(experiment)
    jobs = runs * {"all": max(1, devices), "any": 1}.get(count, count if isinstance(count, int) else 1)
    if jobs <= ASK_ABOVE or yes:
        return
    size = f"{jobs:,} jobs: {' x '.join(axes(experiment, devices))}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StableError(f"this matrix comes to up to {size}", remedy="shorten an axis, or confirm it with --yes")
    log().print(f"This matrix comes to up to [bold]{size}[/].")
    if not typer.confirm("Submit it?", err=True):
        raise typer.Abort


def axes(experiment: Any, devices: int) -> list[str]:
    """Sizes of the axes, e.g. `backend 3`, blocks and devices included."""
    matrix = {name: values for name, values in experiment.matrix if values is not None and len(values) > 1}
    sizes = [f"{name} {len(values):,}" for name, values in matrix.items()]
    sizes.append(f"blocks {experiment.sampling.blocks:,}")
    if experiment.devices.count != "any":
        sizes.append(f"devices {devices if experiment.devices.count == 'all' else experiment.devices.count}")
    return sizes


def tell(submission: Submission) -> None:
    """Say on standard error what was submitted and what was left out."""
    console = log()
    expansion = submission.expansion
    verb = "resumed" if submission.resumed else "submitted"
    devices = {serial for job in expansion.jobs for serial in job.candidates}
    canaries = sum(job.role == "canary" for job in expansion.jobs)
    more = f", {canaries} of them canaries" if canaries else ""
    for job in expansion.reserve[:1]:
        more += f"; up to {job.sampling.max_blocks} blocks of a cell that needs them"
    console.print(
        f"{verb} [bold]{submission.experiment_id}[/]: {len(expansion.jobs)} jobs of {len(expansion.cells)} cells "
        f"on {len(devices)} devices{more}"
    )
    for line in exclusion_lines(expansion.exclusions, devices):
        console.print(_left_out(line))


def _left_out(line: str) -> RenderableType:
    return Padding(f"[yellow]left out[/] {escape(line)}", (0, 0, 0, 2), expand=False)


def exclusion_lines(exclusions: Iterable[Exclusion], known: Iterable[str] = (), limit: int = 12) -> list[str]:
    """One line per reason. `known`: serials of the experiment's devices."""
    groups = wording.group_exclusions(exclusions, known)
    lines = [f"{group.combinations} on {group.devices}: {group.reason}" for group in groups]
    return lines if len(lines) <= limit else [*lines[:limit], f"... {len(lines) - limit} more: farm status says all"]


def _submission(submission: Submission) -> dict[str, Any]:
    expansion = submission.expansion
    return {
        "experiment": submission.experiment_id,
        "resumed": submission.resumed,
        "jobs": len(expansion.jobs),
        "cells": len(expansion.cells),
        "exclusions": [vars(each) for each in expansion.exclusions],
    }


def follow_to_end(settings: Settings, ledger: Ledger, experiment_id: str | None, title: str) -> Mapping[str, int]:
    """Show the live view on standard error until every job is over; the jobs by outcome."""
    from farm.following import follow
    from orchestrator.leases import Leases

    client = connect(settings)
    inventory, leases = open_inventory(settings), Leases(client)
    try:
        with live.view(log(), title) as show:
            return follow(ledger, inventory, leases, experiment_id, show).counts
    except KeyboardInterrupt:
        name = experiment_id or "EXPERIMENT"
        log().print(f"The farm goes on with it: `farm watch {name}` shows it again, `farm cancel {name}` ends it.")
        raise


def status(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="Id, name or `latest`; all without it.")
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the experiments of the ledger, or show one: jobs by state, exclusions, failures. Needs no running farm.

    Example: `farm status`, `farm status latest --json`
    """
    with open_ledger(settings_of(state)) as ledger:
        if experiment is None:
            rows = ledger.experiments()
            if as_json:
                print_json([row_data(row) for row in rows])
            else:
                out().print(_experiments(rows))
            return
        row = find_experiment(ledger, experiment)
        failures = [job for job in ledger.jobs(row.id, ("done", "cancelled")) if job.outcome != Outcome.OK.value]
    problems = [_problem(job) for job in failures]
    if as_json:
        print_json({**row_data(row), "exclusions": [vars(each) for each in row.exclusions], "not_ok": problems})
        return
    _show(row, problems)


def _problem(job: JobRow) -> dict[str, Any]:
    """A job that did not end well."""
    from orchestrator.ledger.rows import label

    return {
        "job": job.job_id,
        "label": label(job.job),
        "outcome": job.outcome or job.state.value,
        "cause": job.cause,
        "attempts": job.attempts,
        "devices": list(job.job.candidates),
    }


def row_data(row: ExperimentRow) -> dict[str, Any]:
    """An experiment of the ledger, in short."""
    return {
        "experiment": row.id,
        "name": row.experiment.name,
        "submitted_at": row.submitted_at,
        "finished": row.finished,
        "jobs": sum(row.counts.values()),
        "counts": present(row.counts),
    }


def _experiments(rows: Iterable[ExperimentRow]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("experiment", "name", "submitted", "jobs", "", "outcome"):
        table.add_column(column, justify="right" if column == "jobs" else "left")
    for row in rows:
        submitted = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.submitted_at))
        word = "[green]finished[/]" if row.finished else "[cyan]open[/]"
        total = str(sum(row.counts.values()))
        table.add_row(
            row.id, escape(row.experiment.name), submitted, total, word, wording.outcomes(present(row.counts))
        )
    return table


def _show(row: ExperimentRow, problems: list[dict[str, Any]]) -> None:
    console = out()
    console.print(_experiments([row]))
    for line in exclusion_lines(row.exclusions, limit=1000):
        console.print(_left_out(line))
    for problem in problems:
        where = ", ".join(problem["devices"])
        text = f"{problem['label']} on {where}: {problem['cause']} after {problem['attempts']} attempts"
        console.print(f"  [red]{problem['outcome']}[/] {escape(text)}", soft_wrap=True)


def watch(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="Id, name or `latest`; the whole farm without it.")
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show live which device runs what, what waits and why, until all jobs are over. Ctrl-C only stops watching.

    Example: `farm watch latest`
    """
    settings = settings_of(state)
    connect(settings)
    with open_ledger(settings) as ledger:
        row = None if experiment is None else find_experiment(ledger, experiment)
        title = row.experiment.name if row else "all experiments"
        counts = follow_to_end(settings, ledger, row.id if row else None, title)
    if as_json:
        print_json({"experiment": row.id if row else None, "outcomes": outcomes(counts)})
    else:
        out().print(f"{title}: {wording.outcomes(present(counts))}")


def cancel(
    target: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Experiment (id, name, `latest`) or job id.")],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel what is not over yet of an experiment, or one job. Sessions under way are stopped by their workers.

    Example: `farm cancel latest`
    """
    with open_ledger(settings_of(state)) as ledger:
        cancelled = ledger.cancel(_target(ledger, target))
    if as_json:
        print_json({"target": target, "cancelled": cancelled})
    else:
        out().print(f"cancelled {len(cancelled)} jobs")


def _target(ledger: Ledger, name: str) -> str:
    """An experiment's id by its id or name; anything else is taken as a job's id."""
    try:
        return find_experiment(ledger, name).id
    except StableError:
        return name
