"""Acts on public links: let anybody who has one read the report of an experiment, or the story of a job."""

from __future__ import annotations

import time
from dataclasses import dataclass

from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError, UnknownName
from orchestrator.model.people import Role
from orchestrator.model.rights import Actor, Place, Right

from .act import Acting, Done, Given, act, of_targets, on_pages

DAY_S = 86_400.0
LASTS_S, LONGEST_S = 30 * DAY_S, 366 * DAY_S
PUBLISHES = Right(Role.OPERATE, own=Role.SUBMIT)


@dataclass(frozen=True)
class Linked(Done):
    id: str
    target: str
    ends_at: float
    """Unix time."""
    path: str
    """The way to it on the farm's pages, with its secret: told this once, and in no audit."""

    @property
    def on(self) -> str:
        return self.target

    @property
    def secret(self) -> str:
        return self.path

    @property
    def lines(self) -> list[str]:
        end = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.ends_at))
        return [f"whoever has the link {self.id} reads {self.target} until {end}"]


@on_pages
@act(PUBLISHES, at=of_targets)
def create_link(acting: Acting, target: str, until: float | None = None, note: str = "") -> Linked:
    """Make a link by which anybody reads the report of an experiment, or the story of a job, until then (Unix time;
    None: for 30 days; a year at most). Raises UnknownName, SpecError."""
    now = time.time()
    ends_at = now + LASTS_S if until is None else until
    if not now < ends_at <= now + LONGEST_S:
        raise SpecError(
            "a public link ends within a year from now", remedy="give a time that is to come, or none: 30 days"
        )
    place = acting.ledger.place_of(target)
    name, secret = acting.ledger.people.links.make(target, place.project, acting.actor.who, note, ends_at)
    return Linked(name, target, ends_at, f"/public/{secret}")


@dataclass(frozen=True)
class LinkRevoked(Done):
    id: str
    target: str
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [f"{'' if self.did else 'nothing to do: '}the link {self.id} to {self.target} leads nowhere"]


def _of_link(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    link = ledger.people.links.one(given["link"])
    return [] if link is None else [Place(link.project, link.who)]


@on_pages
@act(PUBLISHES, at=_of_link)
def revoke_link(acting: Acting, link: str) -> LinkRevoked:
    """Let a public link lead nowhere. Raises UnknownName."""
    found = acting.ledger.people.links.one(link)
    if found is None:
        raise UnknownName(f"there is no link {link!r}", remedy="`farm links list` says which there are")
    if found.revoked_at is None:
        acting.ledger.people.links.revoke(link)
    return LinkRevoked(link, found.target, found.revoked_at is None)
