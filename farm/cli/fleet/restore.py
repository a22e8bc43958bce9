"""`farm restore`: put back what a crash left changed on phones."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from farm.cli import completion
from farm.cli.farm_access import existing_settings
from farm.cli.output import JsonOption, StateOption, log, print_json
from orchestrator.errors import UnknownName

REMEDY = "`farm restore` alone puts back all that is left; `farm devices` lists the devices"


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="The farm")(restore)


def restore(
    serials: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SERIAL",
            help="Devices to restore; default: all that have something to restore.",
            autocompletion=completion.serials,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All devices that have something to restore.")] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore what a crashed session left changed on phones: cut supplies, settings. Needs no running farm.

    A running worker does the same when it reaches a phone. A device with a running session is not touched. Exit status
    1 if something could not be restored, or if a device that you name has nothing to restore.

    Example: `farm restore`, `farm restore R58M123ABC --json`
    """
    from workers.discovery.crash_recovery import left_behind, restore_devices

    settings = existing_settings(state)
    left, named = left_behind(settings.state), () if everything else tuple(serials or ())
    if unknown := [serial for serial in named if serial not in left]:
        known = f"something is left on {', '.join(left)}" if left else "nothing is left on any device"
        raise UnknownName(f"nothing is left to put back on {', '.join(unknown)}; {known}", remedy=REMEDY)
    done = restore_devices(settings, named or left)
    if as_json:
        print_json({"restored": [vars(each) for each in done]})
    for each in done:
        put_back = ", ".join((*("supply switched on",) * each.supply, *each.settings)) or "nothing was put back"
        log().print(f"{escape(each.serial)}: {put_back}" + f"; [red]left: {escape(each.left)}[/]" * bool(each.left))
    if not done:
        log().print("nothing is left to put back")
    if any(each.left for each in done):
        raise typer.Exit(1)
