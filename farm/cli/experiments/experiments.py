"""`farm run`, `farm status`, `farm watch`, `farm cancel`, `farm retry`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.access import LATEST
from farm.cli import completion
from farm.cli.output import HERE, Common, Interrupted, argument, log, option, out, print_json, say, show_done
from farm.doors import experiment_or_job, open_door
from orchestrator.model.people import COMMON

from .outcomes import TIMED_OUT, all_ok, outcomes, present
from .submission import confirm_size, print_submission

if TYPE_CHECKING:
    from orchestrator.acts import Done

TimeoutOption = Annotated[
    str | None, option("--timeout TIME", f"Stop waiting after this, e.g. '30 min', with exit status {TIMED_OUT}.")
]
ExperimentArgument = Annotated[
    str,
    argument("EXPERIMENT", "Id, name (the newest of that name) or `latest`.", autocompletion=completion.experiments),
]
_TARGET = "Id, name (the newest of that name) or `latest`; or the id of one job."
TargetArgument = Annotated[str, argument("EXPERIMENT|JOB", _TARGET, autocompletion=completion.experiments)]


def run(
    spec: Annotated[Path, argument("FILE.yaml", "Experiment file.")],
    wait: Annotated[
        bool, option("--wait, -w", "Watch it to its end; the exit status is 0 only if every job is ok.")
    ] = False,
    again: Annotated[
        bool, option("--again", "Start another one, even if one with the same content is running.")
    ] = False,
    project: Annotated[str, option("--project NAME", "The project that owns it.", show_default=COMMON)] = COMMON,
    yes: Annotated[bool, option("--yes, -y", "Submit a very large matrix without asking first.")] = False,
    timeout: TimeoutOption = None,
    common: Common = HERE,
) -> None:
    """Submit an experiment to the running farm; with --wait, watch it to its end.

    The content identifies an experiment. If one with the same content is not over, it is resumed (--again starts a
    second one); if it is over, it runs again under a new id.

    Example: `farm run experiments/first.yaml --wait`
    """
    from dashboards.answers import answers
    from orchestrator import spec as specs
    from orchestrator.report import wording

    from .experiment_rows import stopped_of
    from .waiting import end_data, follow_to_end, give_up, seconds_of

    limit_s = seconds_of(timeout)
    if limit_s is not None and not wait:
        raise typer.BadParameter("it belongs to --wait", param_hint="--timeout")
    experiment = specs.load(spec)
    with open_door(common.state, running=True) as door:
        confirm_size(experiment, door.ask(answers.devices, most=1).total, yes=yes)
        submission = door.submit(spec, again=again, project=project)
        print_submission(submission)
        if not wait:
            _submitted(submission, as_json=common.as_json)
            return
        experiment_id = submission.data["experiment"]
        last = follow_to_end(door, experiment_id, experiment.name, limit_s)
        stopped = door.ask(answers.experiment, id=experiment_id)["stopped"]
    found = outcomes(last.counts)
    if common.as_json:
        print_json(end_data(experiment_id, last))
    else:
        counts = found if last.is_over else present(last.counts)
        out().print(f"{experiment_id}: {wording.outcomes(counts)}")
    if not last.is_over:
        give_up(experiment_id, last, timeout)
    for early in stopped_of(stopped):
        log().print(early.text, style="red", markup=False, soft_wrap=True, highlight=False)
    if stopped or not all_ok(found, searching=experiment.searches_limits):
        log().print(f"`farm status {experiment_id}` says what went wrong, `farm results` what was measured")
        raise typer.Exit(1)


def _submitted(submission: Done, *, as_json: bool) -> None:
    if as_json:
        print_json(submission.data)
        return
    experiment_id = submission.data["experiment"]
    out().print(experiment_id, markup=False)
    log().print(f"`farm watch {experiment_id}` shows it live, `farm results` what is measured so far")


def status(
    experiment: Annotated[
        str | None,
        argument(
            "EXPERIMENT",
            "Id, name (the newest of that name) or `latest`; without it all are listed.",
            autocompletion=completion.experiments,
        ),
    ] = None,
    common: Common = HERE,
) -> None:
    """List the experiments of the ledger, or show one: its jobs, why they wait, when it ends, exclusions, failures.

    Needs no running farm; only a running one knows why jobs wait and when they will be over.

    Example: `farm status`, `farm status latest --json`
    """
    from dashboards.answers import answers

    from .experiment_rows import show_all, show_one

    with open_door(common.state) as door:
        for why in door.ask(answers.closed_hosts):
            say(why)
        if experiment is None:
            listed = [each.model_dump() for each in reversed(door.every(answers.experiments))]
            show = print_json if common.as_json else show_all
            show(listed)
            return
        found = door.ask(answers.experiment, id=door.find(experiment).experiment)
    if common.as_json:
        print_json(found)
    else:
        show_one(found)


def watch(
    experiment: ExperimentArgument = LATEST,
    everything: Annotated[bool, option("--all", "All experiments of the farm.")] = False,
    stream: Annotated[
        bool, option("--stream", "Print a line of JSON at each change, for programs, and nothing else.")
    ] = False,
    timeout: TimeoutOption = None,
    common: Common = HERE,
) -> None:
    """Show live which device runs what, what waits and why, until all jobs are over. Ctrl-C only stops watching.

    Example: `farm watch`, `farm watch --all`
    """
    from orchestrator.report import wording

    from .waiting import end_data, follow_to_end, give_up, seconds_of

    limit_s = seconds_of(timeout)
    with open_door(common.state, running=True) as door:
        row = None if everything else door.find(experiment)
        title = row.name if row else "all experiments"
        experiment_id = row.experiment if row else None
        try:
            last = follow_to_end(door, experiment_id, title, limit_s, stream=stream)
        except Interrupted as e:
            if stream or common.as_json:
                raise
            log().print(f"{e}")  # whoever only looks has ended as they wished
            return
    if stream:
        pass
    elif common.as_json:
        print_json(end_data(experiment_id, last))
    else:
        out().print(f"{title}: {wording.outcomes(present(last.counts))}")
    if not last.is_over:
        give_up(experiment_id, last, timeout)


def cancel(target: TargetArgument, common: Common = HERE) -> None:
    """Cancel what is not over yet of an experiment, or one job. Sessions under way are stopped by their workers.

    Exit status 1 where there was nothing left to cancel.

    Example: `farm cancel latest`
    """
    from orchestrator import acts

    with open_door(common.state) as door:
        done = door.act(acts.experiments.cancel, experiment_or_job(door, target))
    show_done(done, as_json=common.as_json, to=out(), target=target)


def retry(target: TargetArgument, common: Common = HERE) -> None:
    """Put the lost, failed and killed jobs of an experiment back into the queue, or one such job, with their whole
    budget.

    What they left so far stays: attempts go on counting, records are kept, and a training goes on from its last
    checkpoint. Of an experiment with a strategy a kill is a result: only the id of its job tries that one again. Exit
    status 1 where there was nothing to retry.

    Example: `farm retry latest`
    """
    from orchestrator import acts

    with open_door(common.state) as door:
        done = door.act(acts.experiments.retry, experiment_or_job(door, target))
    show_done(done, as_json=common.as_json, to=out(), target=target)
