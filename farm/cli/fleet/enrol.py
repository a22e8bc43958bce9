"""`farm enrol`: measure the device profile now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from farm.access import settings_of
from farm.cli import completion
from farm.cli.output import HERE, Common, argument, log, option, out, print_json
from orchestrator.model.device import Api

if TYPE_CHECKING:
    from workers.enrolment.load_steps import Say

LOCK_WAIT_S = 30.0
"""The time for which a device may be busy before it is called so."""


def enrol(
    serial: Annotated[
        str, argument("SERIAL", "Device to enrol, by its serial or adb address.", autocompletion=completion.serials)
    ],
    quick: Annotated[
        bool, option("--quick", "Only find the power sources, which takes a second; do not calibrate under load.")
    ] = False,
    common: Common = HERE,
) -> None:
    """Find out which power sources a device has, calibrate its battery gauge by load steps, and store its profile.

    Works with and without a running farm; the device must be free. The farm runs the quick part by itself when it first
    sees a device, and the load steps before the first job that measures power. Run this command again after a change:
    another meter, a new battery, or a phone that was charging last time.

    Example: `farm enrol R58M123ABC`, `farm enrol local-cpu --quick --json`
    """
    from workers.enrolment import enrol as enrol_device
    from workers.infer import find_member
    from workers.session.session import session

    settings = settings_of(common.state)
    member = find_member(serial, Api.CPU, settings)
    with session(member, None, settings.state, lambda: None, lock_wait_s=LOCK_WAIT_S), _progress() as say:
        found = enrol_device(member, settings, lambda: None, say, quick=quick)
    from farm.cli.engine.profile import render

    if common.as_json:
        print_json(found)
    else:
        out().print(render(found))
    if found.gauge is None and member.facts.kind == "phone" and not quick:
        log().print(f"[yellow]the gauge is not calibrated:[/] {found.gauge_reason}")
        raise typer.Exit(1)


@contextmanager
def _progress() -> Iterator[Say]:
    columns = SpinnerColumn(), TextColumn("{task.description:<28}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=log(), transient=True) as progress:
        task = progress.add_task("starting", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)
