"""Keep who belongs to which group, and read people with the roles that they have by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import AnyRow
from orchestrator.model.people import Kind, Role
from orchestrator.model.rights import Grants, Person

from .tables import GROUPED, MEMBERS, PEOPLE


class Groups:
    """The groups of a ledger, which are rows among its people; one transaction a call. Raises ServiceDown."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def join(self, group: str, people: Iterable[str]) -> list[str]:
        """Let people belong to a group; return those who did not."""
        with self._database.write() as connection:
            there = set(connection.scalars(select(GROUPED.c.person).where(GROUPED.c.of_group == group)))
            new = [each for each in dict.fromkeys(people) if each not in there]
            if new:
                connection.execute(insert(GROUPED), [{"of_group": group, "person": each} for each in new])
        return new

    def leave(self, group: str, people: Sequence[str]) -> list[str]:
        """Let people belong to a group no more; return those who did."""
        mine = (GROUPED.c.of_group == group) & GROUPED.c.person.in_(people)
        with self._database.write() as connection:
            gone = set(connection.scalars(select(GROUPED.c.person).where(mine)))
            connection.execute(delete(GROUPED).where(mine))
        return [each for each in dict.fromkeys(people) if each in gone]


def belonging(connection: Connection, groups: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return who belongs to each of these groups that has anybody, by name."""
    found = defaultdict[str, tuple[str, ...]](tuple)
    mine = select(GROUPED).where(GROUPED.c.of_group.in_(sorted(groups))).order_by(GROUPED.c.person)
    for row in connection.execute(mine):
        found[row.of_group] += (row.person,)
    return found


def acts_as(name: ColumnElement[str], person: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a name is a person's own, or that of a group to which they belong."""
    return or_(name == person, name.in_(select(GROUPED.c.of_group).where(GROUPED.c.person == person)))


def people(connection: Connection, names: Sequence[str] | None = None) -> list[Person]:
    """Return people and groups by name, these or all, with their roles."""
    of, mine = select(GROUPED).order_by(GROUPED.c.of_group), select(PEOPLE).order_by(PEOPLE.c.name)
    if names is not None:
        of, mine = of.where(GROUPED.c.person.in_(names)), mine.where(PEOPLE.c.name.in_(names))
    groups = defaultdict[str, list[str]](list)
    for row in connection.execute(of):
        groups[row.person].append(row.of_group)
    found = connection.execute(mine).all()
    others = {each for own in groups.values() for each in own} - {row.name for row in found}
    roles = _roles(connection, {row.name for row in found} | others)
    return [_person(row, roles, groups[row.name]) for row in found]


def _roles(connection: Connection, names: Iterable[str]) -> dict[str, list[tuple[str, Role]]]:
    """Return the roles that were given to each name, each with its project (empty: the farm)."""
    roles, wanted = defaultdict[str, list[tuple[str, Role]]](list), list(names)
    for name, role in connection.execute(select(PEOPLE.c.name, PEOPLE.c.role).where(PEOPLE.c.name.in_(wanted))):
        roles[name] += [("", Role(role))] if role else []
    for row in connection.execute(select(MEMBERS).where(MEMBERS.c.person.in_(wanted))):
        roles[row.person].append((row.project, Role(row.role)))
    return roles


def _person(row: AnyRow, roles: dict[str, list[tuple[str, Role]]], groups: list[str]) -> Person:
    every = [given for name in (row.name, *groups) for given in roles[name]]
    own = Grants.of(roles[row.name])
    return Person(row.name, Kind(row.kind), own, row.since, row.ended_at, tuple(groups), Grants.of(every))
