"""`farm run`, `farm status`, `farm watch`, `farm cancel`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.config import Settings
from orchestrator.errors import StableError
from orchestrator.model.record import Outcome
from orchestrator.report import wording

from . import live
from .experiment_rows import problem_data, row_data, show, table_of
from .farm_access import connect, find_experiment, open_inventory, open_ledger
from .lifecycle import settings_of
from .outcomes import all_ok, outcomes, present
from .output import JsonOption, StateOption, log, out, print_json
from .submission import confirm_size, submission_data, tell

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger

PANEL = "Experiments"
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
                print_json(submission_data(submission))
            return
        counts = follow_to_end(settings, ledger, submission.experiment_id, experiment.name)
    found = outcomes(counts)
    if as_json:
        print_json({"experiment": submission.experiment_id, "outcomes": found})
    else:
        out().print(f"{submission.experiment_id}: {wording.outcomes(found)}")
    if not all_ok(found):
        log().print(f"`farm status {submission.experiment_id}` says what went wrong, `farm results` what was measured")
        raise typer.Exit(1)


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
                out().print(table_of(rows))
            return
        row = find_experiment(ledger, experiment)
        failures = [job for job in ledger.jobs(row.id, ("done", "cancelled")) if job.outcome != Outcome.OK.value]
        records = sorted(ledger.records_of(job.job_id for job in failures), key=lambda record: record.token)
    reasons = {record.job_id: record.reasons for record in records}
    problems = [problem_data(job, reasons.get(job.job_id, ())) for job in failures]
    if as_json:
        print_json({**row_data(row), "exclusions": [vars(each) for each in row.exclusions], "not_ok": problems})
        return
    show(row, problems)


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
