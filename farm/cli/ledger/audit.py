"""`farm audit`: who has done what to the farm."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from farm.cli.output import JsonOption, StateOption, out, print_json
from farm.doors import open_door

SHOWN = 50


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="The farm")(audit)


def audit(
    most: Annotated[int, typer.Option("--last", metavar="N", min=1, help="Number of acts.")] = SHOWN,
    who: Annotated[str, typer.Option("--who", metavar="NAME", help="Only acts of this person.")] = "",
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what people have done to the farm, or were refused: when, who, by the command line, a page, a notebook, the
    API or a schedule, from where, what, to what. The newest act is first. Needs no running farm.

    Example: `farm audit --last 10`
    """
    from dashboards.answers import answers
    from orchestrator.report.listing import Listing

    with open_door(state) as door:
        found = door.ask(answers.audit, most=most, who=who, refused=refused or None).items
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [
        (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.at)), escape(each.who), each.door.value,
         escape(each.origin), each.act, escape(each.target), escape(each.said))
        for each in found
    ]  # fmt: skip
    heads = ("when", "who", "by", "from", "act", "on", "result")
    out().print(Listing(heads, rows) if rows else "nobody has done anything yet")
