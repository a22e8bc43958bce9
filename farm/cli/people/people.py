"""`farm people`: who may use the farm, and their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from farm.access import settings_of
from farm.cli.output import HERE, Common, argument, ask_secret, do, group_of, option, show_done, show_every
from farm.doors import open_door
from orchestrator.model.people import Kind, Role
from orchestrator.model.rights import Person

if TYPE_CHECKING:
    from farm.doors.door import Door
    from orchestrator.acts import Done
    from orchestrator.system.config import Settings

NameArgument = Annotated[str, argument("NAME", "Name of the person, program or group.")]
PeopleArgument = Annotated[list[str], argument("NAME...", "Names of people or programs.")]
GroupArgument = Annotated[str, argument("GROUP", "Name of the group.")]
RoleOption = Annotated[Role | None, option("--role", "The role to give; a role before it is replaced.")]
ProjectOption = Annotated[str, option("--project NAME", "The project of the role.", show_default="the whole farm")]


def add(
    name: NameArgument,
    role: RoleOption = None,
    project: ProjectOption = "",
    service: Annotated[bool, option("--service", "It is a program, such as a build server.")] = False,
    common: Common = HERE,
) -> None:
    """Let somebody in, and give them a role. For another project, or another role, call it again.

    Example: `farm people add anna --role submit --project vision`
    """
    from dashboards.answers import answers
    from orchestrator import acts

    with open_door(common.state) as door:
        service = service or any(each.name == name and each.kind is Kind.SERVICE for each in door.every(answers.people))
        done = door.act(acts.people.add_person, name, service=service)
        _grant(door, done, role, project, as_json=common.as_json)


def _grant(door: Door, done: Done, role: Role | None, project: str, *, as_json: bool) -> None:
    """Give who was let in a role, too, and show both as one."""
    from orchestrator import acts

    if role is None:
        show_done(done, as_json=as_json)
        return
    granted = door.act(acts.people.grant_role, done.data["person"], role, project)
    show_done(granted, as_json=as_json, is_new=done.data["is_new"])


def group_(name: GroupArgument, role: RoleOption = None, project: ProjectOption = "", common: Common = HERE) -> None:
    """Add a group, and give it a role, which all who belong to it have. `farm people remove` ends it.

    Example: `farm people group cameras --role submit --project vision`
    """
    from orchestrator import acts

    with open_door(common.state) as door:
        done = door.act(acts.groups.add_group, name)
        _grant(door, done, role, project, as_json=common.as_json)


def join(group: GroupArgument, people: PeopleArgument, common: Common = HERE) -> None:
    """Let people or programs belong to a group: they have its roles beside their own.

    Example: `farm people join cameras anna berta`
    """
    do("join group", group, people, common=common)


def leave(group: GroupArgument, people: PeopleArgument, common: Common = HERE) -> None:
    """Let people or programs belong to a group no more. Their own roles stay.

    Example: `farm people leave cameras anna`
    """
    do("leave group", group, people, common=common)


def revoke(name: NameArgument, project: ProjectOption = "", common: Common = HERE) -> None:
    """Take away the role of a person or a group in a project, or in the farm. Their other roles and tokens stay.

    Example: `farm people revoke anna --project vision`
    """
    do("revoke role", name, project, common=common)


def password(
    name: NameArgument,
    prompt: Annotated[bool, option("--prompt", "Ask for the password here, and make no link.")] = False,
    common: Common = HERE,
) -> None:
    """Make a link by which somebody sets their password for the pages, once, within three days.

    Example: `farm people password anna`
    """
    from pydantic import SecretStr

    from orchestrator import acts

    settings = settings_of(common.state)
    with open_door(common.state) as door:
        if prompt:
            text = ask_secret("Password", "leave --prompt out, and send the link", twice=True)
            show_done(door.act(acts.passwords.set_password, name, SecretStr(text)), as_json=common.as_json)
            return
        done, link = invite(door, name, settings)
    show_done(done, as_json=common.as_json, once=link, link=link)


def invite(door: Door, name: str, settings: Settings) -> tuple[Done, str]:
    """Make the link by which somebody sets their password, once; return it behind its act. Raises FarmError."""
    from farm import endpoints
    from orchestrator import acts

    done = door.act(acts.passwords.invite_person, name)
    return done, f"{endpoints.address_of(settings)}/password#{done.data['token']}"


def remove(name: NameArgument, common: Common = HERE) -> None:
    """Take all roles and tokens of a person, or end a group. Their experiments, and what they did, keep their name.

    Example: `farm people remove anna`
    """
    do("remove person", name, common=common)


def list_(common: Common = HERE) -> None:
    """List the people and groups with their roles in the farm and in projects.

    Example: `farm people list --json`
    """
    heads, none = ("who", "what", "roles", "groups", ""), "nobody: this farm is its owner's alone"
    show_every("/people", heads, _row, common=common, none=none, data=_data)


def _row(each: Person) -> tuple[str, ...]:
    left = "left" if each.ended_at else ""
    return (escape(each.name), each.kind.value, escape(_roles(each)), escape(", ".join(each.groups)), left)


def _roles(person: Person) -> str:
    own = [f"{person.own.farm} in the farm"] if person.own.farm else []
    return ", ".join([*own, *(f"{role} in {name}" for name, role in sorted(person.own.projects.items()))]) or "none"


def _data(person: Person) -> dict[str, object]:
    own = {"farm": person.own.farm, "projects": dict(person.own.projects), "groups": list(person.groups)}
    return {"name": person.name, "kind": person.kind, **own, "since": person.since, "ended_at": person.ended_at}


group = group_of(
    "people",
    (list_, group_, add, join, leave, revoke, password, remove),
    "Let people use the farm over the network, and give them roles: view, submit, operate, administer."
    "\n\nExample: `farm people list` (`--state DIR`, `--json`)",
)
