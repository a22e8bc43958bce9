"""`farm engines`."""

from __future__ import annotations

import typer
from rich.markup import escape

from farm.access import open_inventory, settings_of
from farm.cli.output import JsonOption, StateOption, out, print_json


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="The farm")(engines)


def engines(state: StateOption = None, as_json: JsonOption = False) -> None:
    """List what can run on the devices of the running farm: each engine, its workloads, and the devices that have it.

    An experiment names one as `matrix.engine`. A host announces the engines of the farm, and those of FARM_ENGINES.

    Example: `farm engines --json`
    """
    from orchestrator.report.listing import Listing

    found = open_inventory(settings_of(state)).devices()
    takes = {each.name: each.takes for device in found for each in device.engines}
    having = {name: sorted(d.serial for d in found if name in {each.name for each in d.engines}) for name in takes}
    if as_json:
        print_json([{"engine": name, "takes": takes[name], "devices": having[name]} for name in sorted(takes)])
        return
    rows = [
        (name, ", ".join(takes[name]), "all" if len(having[name]) == len(found) else escape(", ".join(having[name])))
        for name in sorted(takes)
    ]
    out().print(Listing(("engine", "workloads", "devices"), rows))
