"""`farm run`, `farm status`, `farm watch`, `farm cancel`, `farm retry`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.cli import completion
from farm.cli.farm_access import (
    LATEST,
    connect,
    devices_of,
    find_experiment,
    open_inventory,
    open_ledger,
    reasons_of,
    settings_of,
)
from farm.cli.output import Interrupted, JsonOption, StateOption, log, out, print_json, say
from orchestrator.errors import ModelFileError, SpecError, UnknownName

from .outcomes import TIMED_OUT, all_ok, outcomes, present
from .submission import confirm_size, print_submission, submission_data

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.submission.submit import Submission

PANEL = "Experiments"
MOST_TOLD = 1000
"""Jobs that are not over, of those that `farm status --json` names."""
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="TIME", help=f"Stop waiting after this, e.g. '30 min', with exit status {TIMED_OUT}."
    ),
]
ExperimentArgument = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="Id, name (the newest of that name) or `latest`.",
        autocompletion=completion.experiments,
    ),
]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=PANEL)(run)
    app.command(rich_help_panel=PANEL)(status)
    app.command(rich_help_panel=PANEL)(watch)
    app.command(rich_help_panel=PANEL)(cancel)
    app.command(rich_help_panel=PANEL)(retry)


def run(
    spec: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="Experiment file.")],
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Watch it to its end; the exit status is 0 only if every job is ok.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Start another one, even if one with the same content is running.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Submit a very large matrix without asking first.")] = False,
    timeout: TimeoutOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit an experiment to the running farm; with --wait, watch it to its end.

    The content identifies an experiment. If one with the same content is not over, it is resumed (--again starts a
    second one); if it is over, it runs again under a new id.

    Example: `farm run experiments/first.yaml --wait`
    """
    from orchestrator import spec as specs
    from orchestrator.report import wording
    from orchestrator.submission.submit import submit

    from .waiting import end_data, follow_to_end, give_up, seconds_of

    limit_s = seconds_of(timeout)
    if limit_s is not None and not wait:
        raise typer.BadParameter("it belongs to --wait", param_hint="--timeout")
    settings = settings_of(state)
    experiment = specs.load(spec)
    inventory = open_inventory(settings)
    confirm_size(experiment, len(inventory.devices()), yes=yes)
    with open_ledger(settings) as ledger:
        try:
            submission = submit(settings, ledger, inventory, experiment, spec.parent, again=again)
        except (SpecError, ModelFileError) as e:
            raise specs.located(e, spec) from e
        print_submission(submission)
        if not wait:
            _submitted(submission, as_json=as_json)
            return
        last = follow_to_end(settings, ledger, submission.experiment_id, experiment.name, limit_s)
        stopped = ledger.stopped(submission.experiment_id).get(submission.experiment_id, [])
    found = outcomes(last.counts)
    if as_json:
        print_json(end_data(submission.experiment_id, last))
    else:
        counts = found if last.is_over else present(last.counts)
        out().print(f"{submission.experiment_id}: {wording.outcomes(counts)}")
    if not last.is_over:
        give_up(submission.experiment_id, last, timeout)
    for early in stopped:
        log().print(early.text, style="red", markup=False, soft_wrap=True, highlight=False)
    if stopped or not all_ok(found, searching=experiment.searches_limits):
        log().print(f"`farm status {submission.experiment_id}` says what went wrong, `farm results` what was measured")
        raise typer.Exit(1)


def _submitted(submission: Submission, *, as_json: bool) -> None:
    if as_json:
        print_json(submission_data(submission))
    else:
        out().print(submission.experiment_id, markup=False)
        log().print(f"`farm watch {submission.experiment_id}` shows it live, `farm results` what is measured so far")


def status(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Id, name (the newest of that name) or `latest`; without it all are listed.",
            autocompletion=completion.experiments,
        ),
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the experiments of the ledger, or show one: its jobs, why they wait, when it ends, exclusions, failures.

    Needs no running farm; only a running one knows why jobs wait and when they will be over.

    Example: `farm status`, `farm status latest --json`
    """
    from farm.cli.fleet.hosts import closed_hosts
    from orchestrator.answers import how_far, why_jobs_wait
    from orchestrator.ledger.rows import label

    from .experiment_rows import row_data, show, show_all

    settings = settings_of(state)
    with open_ledger(settings) as ledger:
        for held in ledger.standing.quarantined_hosts():
            say(f"host {held.serial} gets no work: {held.reason}; {held.remedy}")
        for why in closed_hosts(settings, ledger):
            say(why)
        if experiment is None:
            waits = why_jobs_wait(ledger, reasons_of(settings))
            show_all(ledger.experiments(), waits, ledger.stopped(), as_json=as_json)
            return
        row = find_experiment(ledger, experiment)
        found = how_far(ledger, row, reasons_of(settings), lambda: devices_of(settings, ledger))
        left = ledger.jobs(row.id, ("waiting", "placed", "running"), most=MOST_TOLD) if as_json else []
    if as_json:
        exclusions = [vars(each) for each in row.exclusions]
        more = {"ends": found.ends and found.ends.data, "exclusions": exclusions}
        not_ok = [each.data for each in found.problems]
        unfinished = [{"job": each.job_id, "label": label(each.job), "state": each.state.value} for each in left]
        print_json({**row_data(row, found.waits, found.stopped), **more, "unfinished": unfinished, "not_ok": not_ok})
        return
    show(found)


def watch(
    experiment: ExperimentArgument = LATEST,
    everything: Annotated[bool, typer.Option("--all", help="All experiments of the farm.")] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print a line of JSON at each change, for programs, and nothing else.")
    ] = False,
    timeout: TimeoutOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show live which device runs what, what waits and why, until all jobs are over. Ctrl-C only stops watching.

    Example: `farm watch`, `farm watch --all`
    """
    from orchestrator.report import wording

    from .waiting import end_data, follow_to_end, give_up, seconds_of

    limit_s = seconds_of(timeout)
    settings = settings_of(state)
    connect(settings)
    with open_ledger(settings) as ledger:
        row = None if everything else find_experiment(ledger, experiment)
        title = row.experiment.name if row else "all experiments"
        try:
            last = follow_to_end(settings, ledger, row.id if row else None, title, limit_s, stream=stream)
        except Interrupted as e:
            if stream or as_json:
                raise
            log().print(f"{e}")  # whoever only looks has ended as they wished
            return
    if stream:
        pass
    elif as_json:
        print_json(end_data(row.id if row else None, last))
    else:
        out().print(f"{title}: {wording.outcomes(present(last.counts))}")
    if not last.is_over:
        give_up(row.id if row else None, last, timeout)


def cancel(
    target: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Id, name (the newest of that name) or `latest`; or the id of one job.",
            autocompletion=completion.experiments,
        ),
    ],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel what is not over yet of an experiment, or one job. Sessions under way are stopped by their workers.

    Exit status 1 where there was nothing left to cancel.

    Example: `farm cancel latest`
    """
    with open_ledger(settings_of(state)) as ledger:
        found = _target(ledger, target)
        cancelled = ledger.cancel(found)
    if as_json:
        print_json({"target": target, "cancelled": cancelled})
    elif cancelled:
        out().print(f"cancelled {len(cancelled)} jobs")
    if not cancelled:
        log().print(f"nothing was cancelled: no job of {escape(found)} is open")
        raise typer.Exit(1)


def retry(
    target: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT|JOB",
            help="Id, name (the newest of that name) or `latest`; or the id of one job.",
            autocompletion=completion.experiments,
        ),
    ],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put the lost, failed and killed jobs of an experiment back into the queue, or one such job, with their whole
    budget.

    What they left so far stays: attempts go on counting, records are kept, and a training goes on from its last
    checkpoint. Of an experiment with a strategy a kill is a result: only the id of its job tries that one again. Exit
    status 1 where there was nothing to retry.

    Example: `farm retry latest`
    """
    with open_ledger(settings_of(state)) as ledger:
        found = _target(ledger, target)
        waiting = ledger.retry(found)
    if as_json:
        print_json({"target": target, "retried": waiting})
    elif waiting:
        out().print(f"{len(waiting)} jobs wait again")
    if not waiting:
        log().print(f"nothing to retry: no job of {escape(found)} is lost, failed or killed")
        raise typer.Exit(1)


def _target(ledger: Ledger, name: str) -> str:
    """An experiment's id by its id or name; anything else is taken as a job's id."""
    try:
        return find_experiment(ledger, name).id
    except UnknownName:
        return name
