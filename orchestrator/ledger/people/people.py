"""Keep who may use the farm, and in which projects."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, literal_column, select, update

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import AnyRow, JobState
from orchestrator.ledger.tables import EXPERIMENTS, JOBS, RECORDS
from orchestrator.model.live.usage import Account, Used
from orchestrator.model.people import COMMON, Kind, Role
from orchestrator.model.rights import USUAL, Person, Project, Terms

from .answers import Answers
from .groups import Groups, people
from .links import Links
from .tables import GROUPED, LINKS, MEMBERS, PEOPLE, PROJECTS, TOKENS
from .tokens import Tokens
from .usage import used

if TYPE_CHECKING:
    from .passwords import Passwords
    from .webhooks import Webhooks

_IS_GROUP = PEOPLE.c.kind == literal_column(f"'{Kind.GROUP}'")
_ANYBODY = select(PEOPLE.c.name).where(PEOPLE.c.ended_at.is_(None), ~_IS_GROUP)
_ANYBODY_AT_ONCE = f"{_ANYBODY} LIMIT 1"
_TERMS = ("share", "phone_hours", "most_waiting", "storage_gib")


class People:
    """People, projects and tokens of a ledger; one transaction a call. All methods raise ServiceDown if it is away."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.tokens, self.answers, self.links = Tokens(database), Answers(database), Links(database)
        self.groups = Groups(database)

    @cached_property
    def passwords(self) -> Passwords:
        """The passwords; Argon2 is loaded where somebody asks."""
        from .passwords import Passwords

        return Passwords(self._database)

    @cached_property
    def webhooks(self) -> Webhooks:
        """The webhooks; read where somebody asks."""
        from .webhooks import Webhooks

        return Webhooks(self._database)

    def are_let_in(self) -> bool:
        """Return whether anybody may use the farm beside the owner of its machine."""
        with self._database.read() as connection:
            return connection.execute(_ANYBODY.limit(1)).first() is not None

    def are_let_in_at_once(self) -> bool | None:
        """The same without waiting; None: it cannot be told so."""
        return self._database.finds_at_once(_ANYBODY_AT_ONCE)

    def every(self) -> list[Person]:
        """Return all people and groups by name, those that left among them."""
        with self._database.read() as connection:
            return people(connection)

    def one(self, name: str) -> Person | None:
        with self._database.read() as connection:
            return next(iter(people(connection, [name])), None)

    def add(self, name: str, kind: Kind) -> None:
        """Let somebody in, or a group, without any role; one who left is the same person again."""
        with self._database.write() as connection:
            back = update(PEOPLE).where(PEOPLE.c.name == name).values(kind=kind, ended_at=None)
            if not connection.execute(back).rowcount:
                row = {"name": name, "kind": kind, "role": "", "since": time.time()}
                connection.execute(insert(PEOPLE).values(**row))

    def end(self, name: str) -> None:
        """Take all roles, groups, the password, tokens and links of somebody, whose name stays."""
        gone = {"ended_at": time.time(), "role": "", "password": "", "subject": ""}
        with self._database.write() as connection:
            connection.execute(update(PEOPLE).where(PEOPLE.c.name == name).values(**gone))
            connection.execute(delete(MEMBERS).where(MEMBERS.c.person == name))
            connection.execute(delete(GROUPED).where((GROUPED.c.person == name) | (GROUPED.c.of_group == name)))
            Tokens.end_all(connection, TOKENS.c.person == name)
            Links.end_all(connection, LINKS.c.who == name)

    def claim(self, name: str, subject: str) -> str:
        """Note who somebody is at a provider, unless another one is noted; return what was noted before."""
        mine = PEOPLE.c.name == name
        with self._database.write() as connection:
            before = connection.scalar(select(PEOPLE.c.subject).where(mine)) or ""
            if not before:
                connection.execute(update(PEOPLE).where(mine).values(subject=subject))
        return before

    def grant(self, name: str, role: Role | None, project: str = "") -> None:
        """Give a person or a group this role alone in a project, or (empty) in the farm; None: take it."""
        with self._database.write() as connection:
            if not project:
                connection.execute(update(PEOPLE).where(PEOPLE.c.name == name).values(role=role or ""))
                return
            connection.execute(delete(MEMBERS).where(MEMBERS.c.person == name, MEMBERS.c.project == project))
            if role is not None:
                connection.execute(insert(MEMBERS).values(person=name, project=project, role=role))

    def projects(self) -> list[Project]:
        """Return all projects by name, `common` among them."""
        with self._database.read() as connection:
            members = defaultdict[str, dict[str, Role]](dict)
            for row in connection.execute(select(MEMBERS).order_by(MEMBERS.c.person)):
                members[row.project][row.person] = Role(row.role)
            found = {COMMON: Project(COMMON, 0.0, "", members[COMMON])} | {
                row.name: Project(row.name, row.since, row.note, members[row.name], _terms(row))
                for row in connection.execute(select(PROJECTS))
            }
        return [found[name] for name in sorted(found)]

    def add_project(self, name: str, note: str, terms: Terms = USUAL) -> None:
        with self._database.write() as connection:
            row = {"name": name, "since": time.time(), "note": note, **vars(terms)}
            connection.execute(insert(PROJECTS).values(**row))

    def set_project(self, name: str, note: str, terms: Terms) -> None:
        """Give a project another note and other terms; `common` may have none yet."""
        with self._database.write() as connection:
            change = update(PROJECTS).where(PROJECTS.c.name == name).values(note=note, **vars(terms))
            if not connection.execute(change).rowcount:
                row = {"name": name, "since": 0.0, "note": note, **vars(terms)}
                connection.execute(insert(PROJECTS).values(**row))

    def terms(self) -> dict[str, Terms]:
        """Return the terms of the projects that have a row, by name."""
        with self._database.read() as connection:
            rows = connection.execute(select(PROJECTS.c.name, *(PROJECTS.c[each] for each in _TERMS)))
            return {row.name: _terms(row) for row in rows}

    def waiting(self, projects: Collection[str]) -> dict[str, int]:
        """Return the number of the jobs of each of these projects that wait, where there are any."""
        mine = JOBS.join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment)
        counted = select(EXPERIMENTS.c.project, func.count()).select_from(mine).group_by(EXPERIMENTS.c.project)
        with self._database.read() as connection:
            wait = counted.where(EXPERIMENTS.c.project.in_(projects), JOBS.c.state == JobState.WAITING)
            return {row.project: row[1] for row in connection.execute(wait)}

    def stored(self, projects: Collection[str]) -> dict[str, tuple[list[str], int]]:
        """Return of each of these projects the texts of its experiments, which name their files, and the bytes of its
        raw records."""
        mine = EXPERIMENTS.c.project.in_(projects)
        specs = select(EXPERIMENTS.c.id, EXPERIMENTS.c.project, EXPERIMENTS.c.spec).where(mine)
        of_mine = RECORDS.c.experiment_id.in_(select(EXPERIMENTS.c.id).where(mine))
        sizes = select(RECORDS.c.experiment_id, func.sum(RECORDS.c.bytes)).where(of_mine)
        found, of = {each: (list[str](), 0) for each in projects}, dict[str, str]()
        with self._database.read() as connection:
            for row in connection.execute(specs):
                found[row.project][0].append(row.spec)
                of[row.id] = row.project
            for experiment, size in connection.execute(sizes.group_by(RECORDS.c.experiment_id)):
                if (project := of.get(experiment)) is not None and isfinite(size or 0):  # else it cannot be read
                    texts, before = found[project]
                    found[project] = texts, before + int(size or 0)
        return found

    def used(self, now: float) -> dict[Account, Used]:
        """Return the phone-time of each account, as it counts at a Unix time."""
        with self._database.read() as connection:
            return used(connection, now)


def _terms(row: AnyRow) -> Terms:
    return Terms(*(getattr(row, each) for each in _TERMS))
