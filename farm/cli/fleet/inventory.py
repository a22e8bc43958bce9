"""`farm devices describe`, `inventory`: what people say of devices, and what these were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.cli import completion
from farm.cli.output import HERE, Common, argument, day, do, option, show_every

if TYPE_CHECKING:
    from orchestrator.ledger.said.history import DeviceWas


def describe(
    serials: Annotated[list[str], argument("SERIAL...", "Devices to describe.", autocompletion=completion.serials)],
    labels: Annotated[
        list[str] | None, option("--label KEY=VALUE", "A label; `KEY=` takes it away. May be repeated.")
    ] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="A line shown with it; empty takes it away.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Whose it is; empty takes it away.")] = None,
    common: Common = HERE,
) -> None:
    """Give devices labels, a note and an owner. Experiments choose by them: `where: '"rack=3" in labels'`.

    To keep work away for maintenance: `farm hold SERIAL --alone --for 3h --note "new battery"`.

    Example: `farm devices describe R58M123ABC --label rack=3 --owner anna --note "screen broken"`
    """
    do("describe", serials, labels or [], note, owner, common=common)


def inventory(
    serial: Annotated[str | None, argument("SERIAL", "Only this device.", autocompletion=completion.serials)] = None,
    common: Common = HERE,
) -> None:
    """List what devices were and since when: build, drivers, battery. A row for each change, the newest first.

    Needs no running farm. The last row of a device says since when the farm knows it.

    Example: `farm devices inventory R58M123ABC --json`
    """
    heads = ("device", "since", "model", "build", "drivers", "cycles", "battery")
    show_every("/inventory", heads, _row, common=common, given={"serial": serial or ""})


def _row(each: DeviceWas) -> tuple[str, ...]:
    of = (escape(each.serial), day(each.seen_at), escape(each.model), escape(each.build), escape(each.drivers))
    return (*of, "" if each.battery_cycles is None else str(each.battery_cycles), escape(each.battery_health))
