"""`farm projects`: what owns experiments, and in which people have roles."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from farm.access import COMMAND_LINE, open_ledger, open_site, settings_of, user_by
from farm.cli.output import JsonOption, StateOption, out, print_json, show_done

group = typer.Typer(
    name="projects",
    help="Add and list projects, which own experiments and in which people have roles."
    "\n\nExample: `farm projects list` (`--state DIR`, `--json`)",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    group.command("list")(listed)
    group.command()(add)
    app.add_typer(group, rich_help_panel="The farm")


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What it is for.")] = "",
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a project. `farm run --project NAME` submits to it.

    Example: `farm projects add vision --note "models of cameras"`
    """
    from orchestrator import acts

    with open_site(settings_of(state)) as site:
        show_done(acts.people.add_project(site, user_by(COMMAND_LINE), name, note), as_json=as_json)


def listed(state: StateOption = None, as_json: JsonOption = False) -> None:
    """List the projects with their members; `common` has the experiments that name no other.

    Example: `farm projects list --json`
    """
    from orchestrator.report.listing import Listing

    with open_ledger(settings_of(state)) as ledger:
        found = ledger.people.projects()
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [
        (
            escape(each.name),
            escape(", ".join(f"{who} ({role})" for who, role in each.members.items())),
            escape(each.note),
        )
        for each in found
    ]
    out().print(Listing(("project", "members", "note"), rows))
