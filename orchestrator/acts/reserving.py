"""Acts on reservations: devices for a person, a group or a project, for a time, or for good: a project's pool."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.ledger import Hold, Ledger
from orchestrator.model.errors import SpecError, UnknownName
from orchestrator.model.people import COMMON, Role
from orchestrator.model.rights import Actor, Place, Right

from .act import Acting, Done, Given, act, on_pages, some
from .devices import OPERATES, check_free, check_known

PERSON, PROJECT = "person:", "project:"


@dataclass(frozen=True)
class Reserved(Done):
    reservations: list[Hold]

    @property
    def on(self) -> str:
        return some([each.serial for each in self.reservations])

    @property
    def lines(self) -> list[str]:
        return [f"{each.serial} is {each.said} (number {each.id})" for each in self.reservations]


@on_pages
@act(OPERATES)
def reserve(
    acting: Acting,
    serials: Sequence[str],
    begins: float | None = None,
    until: float | None = None,
    name: str = "",
    note: str = "",
) -> Reserved:
    """Reserve devices, all or none, from then (Unix time; None: now) until then for a person, a group or a project
    (empty: who acts). For a project without an end: they are its pool.

    `name`: `person:NAME` or `project:NAME` where a person and a project are called the same. Raises SpecError where no
    device is named, the end is not to come, or a person's or a group's has none; UnknownName for a device, person,
    group or project that the farm does not know; DeviceBusy where somebody else has one for that time.
    """
    wanted, now = sorted(set(serials)), time.time()
    if not wanted:
        raise SpecError("no device is named", remedy="name one or more; `farm devices` lists them")
    if until is not None and until <= max(begins or 0.0, now):
        raise SpecError("the reservation would be over already", remedy="give an end that is to come, after its begin")
    check_known(acting, wanted)
    person, project = holder(acting.ledger, name or f"{PERSON}{acting.actor.who}", acting.actor.who)
    if not project and until is None:
        raise SpecError(
            f"{person} has no device for good",
            remedy="give its end; without one devices are a project's pool, and a group may have a role there",
        )
    like = Hold("", person or acting.actor.who, now, until, note, project=project, begins=begins or now)
    check_free(acting.ledger.standing.reserve(wanted, like))
    made = [each for each in acting.ledger.standing.reservations() if each.begins == like.begins]
    return Reserved([each for each in made if each.serial in wanted and each.whose == like.whose])


def holder(ledger: Ledger, name: str, who: str) -> tuple[str, str]:
    """Return the person or group, or the project of a name; the other one is empty. `who` acts. Raises UnknownName,
    SpecError."""
    people = {each.name for each in ledger.people.every() if each.ended_at is None} | {who}
    projects = {each.name for each in ledger.people.projects()} | {COMMON}
    as_person = name.removeprefix(PERSON) if not name.startswith(PROJECT) else ""
    as_project = name.removeprefix(PROJECT) if not name.startswith(PERSON) else ""
    is_person, is_project = as_person in people, as_project in projects
    if is_person and is_project:
        told = f"both a person and a project are called {name!r}"
        raise SpecError(told, remedy=f"say `{PERSON}{name}` or `{PROJECT}{name}`")
    if not (is_person or is_project):
        known = ", ".join(sorted(projects))
        raise UnknownName(
            f"there is no person, group or project {name!r}", remedy=f"projects: {known}; or `farm people list`"
        )
    return (as_person, "") if is_person else ("", as_project)


@dataclass(frozen=True)
class Unreserved(Done):
    reservation: Hold

    @property
    def on(self) -> str:
        return self.reservation.serial

    @property
    def lines(self) -> list[str]:
        one = self.reservation
        return [f"{one.serial} is no more {one.said}"]


def _of_reservation(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    """Return the people who have what is reserved."""
    there = [each for each in ledger.standing.reservations() if each.is_reserved]
    return [place for each in there if each.id == given["number"] for place in each.places]


@on_pages
@act(Right(Role.OPERATE, own=Role.SUBMIT, of="farm"), at=_of_reservation)
def unreserve(acting: Acting, number: int) -> Unreserved:
    """End a reservation, whether it has begun or not; one's own, or anybody's. Raises UnknownName."""
    there = {each.id: each for each in acting.ledger.standing.reservations() if each.is_reserved}
    if number not in there:
        known = ", ".join(map(str, there)) or "none"
        raise UnknownName(f"there is no reservation {number}; there are: {known}", remedy="farm devices reservations")
    acting.ledger.standing.end_reservation(number)
    return Unreserved(there[number])
