"""Wait for the end of an experiment: with a live view or lines, with a time limit, as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import typer

from farm.cli.output import Interrupted, log, say
from orchestrator.answers import reason_lines, wait_data
from orchestrator.model.quantity import counted, parse_seconds

from . import live
from .outcomes import TIMED_OUT, outcomes

if TYPE_CHECKING:
    from farm.doors import Door
    from orchestrator.answers.fleet import Snapshot


def seconds_of(timeout: str | None) -> float | None:
    """Raises UsageError where it is no time."""
    try:
        return None if timeout is None else parse_seconds(timeout)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="--timeout") from e


def follow_to_end(
    door: Door,
    experiment_id: str | None,
    title: str,
    limit_s: float | None = None,
    *,
    stream: bool = False,
) -> Snapshot:
    """Show the live view on standard error until every job is over, or for `limit_s`; the last look.

    `stream`: lines of JSON on standard output instead.
    """
    looks = door.looks(experiment_id, limit_s)
    try:
        with live.stream() if stream else live.view(log(), title) as show:
            for snapshot in looks:
                show(snapshot)
            return snapshot
    except KeyboardInterrupt:
        raise Interrupted(_goes_on(experiment_id)) from None


def end_data(experiment_id: str | None, last: Snapshot) -> dict[str, Any]:
    """Return how jobs ended, and what is still open where a timeout came first."""
    return {
        "experiment": experiment_id,
        "outcomes": outcomes(last.counts),
        "timed_out": not last.is_over,
        "open": last.open,
        "waiting": wait_data(last.waits),
    }


def give_up(experiment_id: str | None, last: Snapshot, timeout: str | None) -> NoReturn:
    """Say what is not over and why, and end with the status of a timeout."""
    log().print(f"[bold]not over after {timeout}[/]: {last.total - last.done} of {counted(last.total, 'job')} open")
    for line in reason_lines(last.waits):
        say(f"  {line}")
    log().print(_goes_on(experiment_id))
    raise typer.Exit(TIMED_OUT)


def _goes_on(experiment_id: str | None) -> str:
    name = experiment_id or "EXPERIMENT"
    return f"the farm goes on with it: `farm watch {name}` shows it again, `farm cancel {name}` ends it"
