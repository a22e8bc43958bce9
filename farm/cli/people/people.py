"""`farm people`: who may use the farm, and their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.access import settings_of
from farm.cli.output import JsonOption, StateOption, show_done, show_list
from farm.doors import open_door
from orchestrator.model.people import Role
from orchestrator.model.rights import Person

if TYPE_CHECKING:
    from farm.doors.door import Door
    from orchestrator.acts import Done
    from orchestrator.system.config import Settings

group = typer.Typer(
    name="people",
    help="Let people use the farm over the network, and give them roles: view, submit, operate, administer."
    "\n\nExample: `farm people list` (`--state DIR`, `--json`)",
    no_args_is_help=True,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person or program.")]
ProjectOption = Annotated[
    str, typer.Option("--project", metavar="NAME", help="The project of the role.", show_default="the whole farm")
]


def register(app: typer.Typer) -> None:
    group.command("list")(listed)
    group.command()(add)
    group.command()(revoke)
    group.command()(password)
    group.command()(remove)
    app.add_typer(group, rich_help_panel="The farm")


def add(
    name: NameArgument,
    role: Annotated[Role | None, typer.Option("--role", help="The role to give; a role before it is replaced.")] = None,
    project: ProjectOption = "",
    service: Annotated[bool, typer.Option("--service", help="It is a program, such as a build server.")] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let somebody in, and give them a role. For another project, or another role, call it again.

    Example: `farm people add anna --role submit --project vision`
    """
    from dashboards.answers import answers
    from orchestrator import acts

    with open_door(state) as door:
        service = service or any(each.name == name and each.is_service for each in door.every(answers.people))
        done = door.act(acts.people.add_person, name, service=service)
        if role is not None:
            granted = door.act(acts.people.grant_role, name, role, project)
            show_done(granted, as_json=as_json, is_new=done.data["is_new"])
            return
    show_done(done, as_json=as_json)


def revoke(
    name: NameArgument, project: ProjectOption = "", state: StateOption = None, as_json: JsonOption = False
) -> None:
    """Take away the role of somebody in a project, or in the farm. Their other roles and their tokens stay.

    Example: `farm people revoke anna --project vision`
    """
    from orchestrator import acts

    with open_door(state) as door:
        show_done(door.act(acts.people.revoke_role, name, project), as_json=as_json)


def password(
    name: NameArgument,
    prompt: Annotated[bool, typer.Option("--prompt", help="Ask for the password here, and make no link.")] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a link by which somebody sets their password for the pages, once, within three days.

    Example: `farm people password anna`
    """
    from pydantic import SecretStr

    from orchestrator import acts

    settings = settings_of(state)
    with open_door(state) as door:
        if prompt:
            text = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
            show_done(door.act(acts.passwords.set_password, name, SecretStr(text)), as_json=as_json)
            return
        done, link = invite(door, name, settings)
    show_done(done, as_json=as_json, once=link, link=link)


def invite(door: Door, name: str, settings: Settings) -> tuple[Done, str]:
    """Make the link by which somebody sets their password, once; return it behind its act. Raises FarmError."""
    from farm import endpoints
    from orchestrator import acts

    done = door.act(acts.passwords.invite_person, name)
    return done, f"{endpoints.address_of(settings)}/password#{done.data['token']}"


def remove(name: NameArgument, state: StateOption = None, as_json: JsonOption = False) -> None:
    """Take all roles and tokens of somebody. Their experiments, and what they did, keep their name.

    Example: `farm people remove anna`
    """
    from orchestrator import acts

    with open_door(state) as door:
        show_done(door.act(acts.people.remove_person, name), as_json=as_json)


def listed(state: StateOption = None, as_json: JsonOption = False) -> None:
    """List the people with their roles in the farm and in projects.

    Example: `farm people list --json`
    """
    from dashboards.answers import answers

    with open_door(state) as door:
        found = door.every(answers.people)
    none = "nobody: this farm is its owner's alone"
    show_list(found, ("who", "what", "roles", ""), _row, as_json=as_json, none=none, data=_data)


def _row(each: Person) -> tuple[str, ...]:
    return (escape(each.name), each.kind.value, escape(_roles(each)), "left" if each.ended_at else "")


def _roles(person: Person) -> str:
    own = [f"{person.grants.farm} in the farm"] if person.grants.farm else []
    return ", ".join([*own, *(f"{role} in {name}" for name, role in sorted(person.grants.projects.items()))]) or "none"


def _data(person: Person) -> dict[str, object]:
    grants = {"farm": person.grants.farm, "projects": dict(person.grants.projects)}
    return {"name": person.name, "kind": person.kind, **grants, "since": person.since, "ended_at": person.ended_at}
