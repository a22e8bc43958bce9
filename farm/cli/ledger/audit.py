"""`farm audit`: who has done what to the farm."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from farm.access import open_ledger, settings_of
from farm.cli.output import JsonOption, StateOption, out, print_json

SHOWN = 50


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="The farm")(audit)


def audit(
    most: Annotated[int, typer.Option("--last", metavar="N", min=1, help="Number of acts.")] = SHOWN,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what people have done to the farm: when, who, by the command line, a page, a notebook or a schedule, what,
    to what. The newest act is first. Needs no running farm.

    Example: `farm audit --last 10`
    """
    from orchestrator.report.listing import Listing

    with open_ledger(settings_of(state)) as ledger:
        found = ledger.audit.newest(most)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [
        (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.at)), escape(each.who), each.door.value, each.act,
         escape(each.target), escape(each.said))
        for each in found
    ]  # fmt: skip
    heads = ("when", "who", "by", "act", "on", "result")
    out().print(Listing(heads, rows) if rows else "nobody has done anything yet")
