"""`farm devices describe`, `inventory`: what people say of devices, and what these were."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from farm.cli import completion
from farm.cli.output import JsonOption, StateOption, argument, option, out, print_json, show_done
from farm.doors import open_door


def describe(
    serials: Annotated[list[str], argument("SERIAL...", "Devices to describe.", autocompletion=completion.serials)],
    labels: Annotated[
        list[str] | None, option("--label KEY=VALUE", "A label; `KEY=` takes it away. May be repeated.")
    ] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="A line shown with it; empty takes it away.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Whose it is; empty takes it away.")] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give devices labels, a note and an owner. Experiments choose by them: `where: '"rack=3" in labels'`.

    To keep work away for maintenance: `farm hold SERIAL --alone --for 3h --note "new battery"`.

    Example: `farm devices describe R58M123ABC --label rack=3 --owner anna --note "screen broken"`
    """
    from orchestrator import acts

    with open_door(state) as door:
        done = door.act(acts.describing.describe, serials, labels or [], note, owner)
    show_done(done, as_json=as_json)


def inventory(
    serial: Annotated[str | None, argument("SERIAL", "Only this device.", autocompletion=completion.serials)] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what devices were and since when: build, drivers, battery. A row for each change, the newest first.

    Needs no running farm. The last row of a device says since when the farm knows it.

    Example: `farm devices inventory R58M123ABC --json`
    """
    from dashboards.answers import answers
    from orchestrator.report.listing import Listing

    with open_door(state) as door:
        found = door.every(answers.inventory, serial=serial or "")
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [
        (
            escape(each.serial),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(each.seen_at)),
            escape(each.model),
            escape(each.build),
            escape(each.drivers),
            "" if each.battery_cycles is None else str(each.battery_cycles),
            escape(each.battery_health),
        )
        for each in found
    ]
    out().print(Listing(("device", "since", "model", "build", "drivers", "cycles", "battery"), rows))
