"""`farm job`: the story of one job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from farm.cli.output import HERE, Common, argument, out, print_json
from farm.doors import open_door

if TYPE_CHECKING:
    from orchestrator.answers import Story
    from orchestrator.answers.story import Try

STYLES = {"ok": "green", "invalid": "yellow", "cancelled": "dim"}


def job(
    job_id: Annotated[str, argument("JOB", "Id of the job, as `farm status EXPERIMENT --json` has it.")],
    common: Common = HERE,
) -> None:
    """Show the history of one job: every attempt with its device, cause and last lines, or why the job waits.

    Needs no running farm; only a running one knows why a job waits.

    Example: `farm job 3f2a9c --json`
    """
    from dashboards.answers import answers

    with open_door(common.state) as door:
        found = door.ask(answers.job, id=job_id)
    if common.as_json:
        print_json(found.data)
    else:
        show_story(found)


def show_story(found: Story) -> None:
    console = out()
    word = found.outcome or found.state
    console.print(f"[bold]{escape(found.label)}[/], [{STYLES.get(word, 'default')}]{word}[/]")
    console.print(f"  submitted {_clock(found.submitted_at)} in {found.experiment_id}", markup=False)
    for each in found.tries:
        _show_try(each)
    if found.waits is not None:
        console.print(f"  waits: {found.waits.text}", style="yellow", markup=False)


def _show_try(each: Try) -> None:
    console = out()
    lasted = "" if each.ended_at is None else f", {each.ended_at - each.started_at:.1f} s"
    word = each.outcome or "under way"
    why = f": {escape(each.cause)}" if each.cause else ""
    head = (
        f"  attempt {each.attempt}, {_clock(each.started_at)}, on {escape(each.serial)} of {escape(each.host)}{lasted}"
    )
    console.print(f"{head}, [{STYLES.get(word, 'red' if each.outcome else 'cyan')}]{word}[/]{why}")
    told = [*each.reasons, *(f"{code}: {detail}" for code, detail in each.invalid)]
    for line in (*told, *(f"| {line}" for line in each.log)):
        console.print(f"    {line}", markup=False)


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
