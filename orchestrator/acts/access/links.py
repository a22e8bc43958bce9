"""Acts on public links: let anybody who has one read a report, a comparison, a night, or the story of a job."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from orchestrator.acts.act import Acting, Done, Given, Settled, act, of_targets, on_pages
from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError
from orchestrator.model.people import Role
from orchestrator.model.rights import Actor, Link, Place, Right

from .kept import LASTS_S, LONGEST_S, end, minute

PUBLISHES = Right(Role.OPERATE, own=Role.SUBMIT)


@dataclass(frozen=True)
class Linked(Done):
    id: str
    target: str
    ends_at: float
    """Unix time."""
    path: str
    """The way to it on the farm's pages, with its secret."""
    TOLD_ONCE = "path"

    @property
    def on(self) -> str:
        return self.target

    @property
    def lines(self) -> list[str]:
        return [f"whoever has the link {self.id} reads {self.target} until {minute(self.ends_at)}"]


@on_pages
@act(PUBLISHES, at=of_targets)
def create_link(acting: Acting, target: str, until: float | None = None, note: str = "") -> Linked:
    """Make a link by which anybody reads what a target is, until then (Unix time; None: for 30 days; a year at most).

    Targets are an experiment (its report), two with a comma between, or two nights (their comparison), a job (its
    story), a night (its morning report), and `suite:NAME` (its newest night, with a badge and a feed). Raises
    UnknownName, SpecError.
    """
    now = time.time()
    ends_at = now + LASTS_S if until is None else until
    if not now < ends_at <= now + LONGEST_S:
        raise SpecError(
            "a public link ends within a year from now", remedy="give a time that is to come, or none: 30 days"
        )
    name, secret = acting.ledger.people.links.make(
        target, _project(acting.ledger, target), acting.actor.who, note, ends_at
    )
    return Linked(name, target, ends_at, f"/public/{secret}")


def _project(ledger: Ledger, target: str) -> str:
    """Return the project of what a link is to; of a comparison its first side's. Raises UnknownName, SpecError."""
    parts = target.split(",")
    projects = [ledger.place_of(each).project for each in parts]
    if len(parts) > 1 and len({*parts}) != 2:
        raise SpecError("a link compares two experiments, or two nights", remedy="name them as `A,B`")
    if len(parts) == 2 and not all("@" in each for each in parts) and ledger.listed.among(parts) != {*parts}:
        raise SpecError("a link compares two experiments, or two nights", remedy="name them as `A,B`")
    return projects[0]


def places_of(ledger: Ledger, link: Link) -> list[Place]:
    """Return the places of what a link shows: of a comparison those of both sides, each its maker's."""
    if "," not in link.target:
        return [Place(link.project, link.who)]
    return [Place(ledger.place_of(each).project, link.who) for each in link.target.split(",")]


def seen_by(ledger: Ledger, visible: Collection[str] | None) -> list[tuple[Link, list[Place]]]:
    """Return the links to what is in these projects alone (None: all), with the places of what each shows."""
    of_them = ((link, places_of(ledger, link)) for link in ledger.people.links.every())
    return [(link, of) for link, of in of_them if visible is None or all(each.project in visible for each in of)]


@dataclass(frozen=True)
class LinkRevoked(Settled):
    id: str
    target: str
    is_new: bool

    @property
    def says(self) -> str:
        return f"the link {self.id} to {self.target} leads nowhere"


def _of_link(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    link = ledger.people.links.one(given["link"])
    return [] if link is None else places_of(ledger, link)


@on_pages
@act(PUBLISHES, at=_of_link)
def revoke_link(acting: Acting, link: str) -> LinkRevoked:
    """Let a public link lead nowhere. Raises UnknownName."""
    found, is_new = end(acting.ledger.people.links, "link", link)
    return LinkRevoked(link, found.target, is_new)
