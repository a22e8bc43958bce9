"""`farm run`, `farm status`, `farm watch`, `farm cancel`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from orchestrator.answers import reason_lines, wait_data
from orchestrator.config import Settings
from orchestrator.errors import StableError
from orchestrator.model.quantity import parse_seconds
from orchestrator.model.record import Outcome
from orchestrator.report import wording

from . import live
from .experiment_rows import problem_data, row_data, show, show_all
from .farm_access import connect, find_experiment, open_inventory, open_ledger, reasons_of
from .lifecycle import settings_of
from .outcomes import TIMED_OUT, all_ok, outcomes, present
from .output import JsonOption, StateOption, log, out, print_json
from .submission import confirm_size, submission_data, tell

if TYPE_CHECKING:
    from farm.snapshot import Snapshot
    from orchestrator.ledger import Ledger

PANEL = "Experiments"
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="TIME", help=f"Stop waiting after this, e.g. '30 min', with exit status {TIMED_OUT}."
    ),
]
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
    timeout: TimeoutOption = None,
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

    limit_s = seconds_of(timeout)
    if limit_s is not None and not wait:
        raise typer.BadParameter("it belongs to --wait", param_hint="--timeout")
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
        last = follow_to_end(settings, ledger, submission.experiment_id, experiment.name, limit_s)
    found = outcomes(last.counts)
    if as_json:
        print_json(end_data(submission.experiment_id, last))
    else:
        out().print(f"{submission.experiment_id}: {wording.outcomes(found)}")
    if not last.is_over:
        give_up(submission.experiment_id, last, timeout)
    if not all_ok(found):
        log().print(f"`farm status {submission.experiment_id}` says what went wrong, `farm results` what was measured")
        raise typer.Exit(1)


def seconds_of(timeout: str | None) -> float | None:
    """Raises UsageError where it is no time."""
    try:
        return None if timeout is None else parse_seconds(timeout)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="--timeout") from e


def follow_to_end(
    settings: Settings, ledger: Ledger, experiment_id: str | None, title: str, limit_s: float | None = None
) -> Snapshot:
    """Show the live view on standard error until every job is over, or for `limit_s`; the last look."""
    from farm.following import follow
    from orchestrator.leases import Leases

    client = connect(settings)
    inventory, leases = open_inventory(settings), Leases(client)
    try:
        with live.view(log(), title) as show:
            return follow(ledger, inventory, leases, experiment_id, show, limit_s=limit_s)
    except KeyboardInterrupt:
        name = experiment_id or "EXPERIMENT"
        log().print(f"The farm goes on with it: `farm watch {name}` shows it again, `farm cancel {name}` ends it.")
        raise


def end_data(experiment_id: str | None, last: Snapshot) -> dict[str, Any]:
    """How jobs ended, and what is still open where a timeout came first."""
    return {
        "experiment": experiment_id,
        "outcomes": outcomes(last.counts),
        "timed_out": not last.is_over,
        "open": last.open,
        "waiting": wait_data(last.waits),
    }


def give_up(experiment_id: str | None, last: Snapshot, timeout: str | None) -> NoReturn:
    """Say what is not over and why, and end with the status of a timeout."""
    name = experiment_id or "EXPERIMENT"
    log().print(f"[bold]not over after {timeout}[/]: {last.total - last.done} of {last.total} jobs are open")
    for line in reason_lines(last.waits):
        log().print(f"  {line}", markup=False, soft_wrap=True)
    log().print(f"The farm goes on with it: `farm watch {name}` shows it again, `farm cancel {name}` ends it.")
    raise typer.Exit(TIMED_OUT)


def status(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="Id, name or `latest`; all without it.")
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the experiments of the ledger, or show one: jobs by state, why they wait, exclusions, failures.

    Needs no running farm; only a running one knows why jobs wait.

    Example: `farm status`, `farm status latest --json`
    """
    from orchestrator.answers import why_jobs_wait

    settings = settings_of(state)
    with open_ledger(settings) as ledger:
        if experiment is None:
            show_all(ledger.experiments(), why_jobs_wait(ledger, reasons_of(settings)), as_json=as_json)
            return
        row = find_experiment(ledger, experiment)
        waits = why_jobs_wait(ledger, reasons_of(settings), row.id)
        failures = [job for job in ledger.jobs(row.id, ("done", "cancelled")) if job.outcome != Outcome.OK.value]
        records = sorted(ledger.records_of(job.job_id for job in failures), key=lambda record: record.token)
    reasons = {record.job_id: record.reasons for record in records}
    problems = [problem_data(job, reasons.get(job.job_id, ())) for job in failures]
    if as_json:
        print_json({**row_data(row, waits), "exclusions": [vars(each) for each in row.exclusions], "not_ok": problems})
        return
    show(row, waits, problems)


def watch(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="Id, name or `latest`; the whole farm without it.")
    ] = None,
    timeout: TimeoutOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show live which device runs what, what waits and why, until all jobs are over. Ctrl-C only stops watching.

    Example: `farm watch latest`
    """
    limit_s = seconds_of(timeout)
    settings = settings_of(state)
    connect(settings)
    with open_ledger(settings) as ledger:
        row = None if experiment is None else find_experiment(ledger, experiment)
        title = row.experiment.name if row else "all experiments"
        last = follow_to_end(settings, ledger, row.id if row else None, title, limit_s)
    if as_json:
        print_json(end_data(row.id if row else None, last))
    else:
        out().print(f"{title}: {wording.outcomes(present(last.counts))}")
    if not last.is_over:
        give_up(row.id if row else None, last, timeout)


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
