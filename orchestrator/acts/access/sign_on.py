"""The act of who comes from a provider of OpenID Connect: they are somebody here, and of the groups that it says."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.acts.act import Acting, Settled, act
from orchestrator.model.errors import NotAllowed
from orchestrator.model.people import Kind

from .people import let_in
from .projects import ADMINISTERS


@dataclass(frozen=True)
class Claimed:
    """Somebody, as a provider has proven who they are."""

    name: str
    """Their name here."""
    subject: str
    """The provider, and its name for them, which it gives nobody else."""
    groups: frozenset[str]
    """The groups here to which they belong, by what it says."""
    no_groups: frozenset[str]
    """The groups here to which, by that, they do not."""
    unknown: bool
    """True if whoever is not known here is let in."""


@dataclass(frozen=True)
class SignedOn(Settled):
    person: str
    joined: list[str]
    left: list[str]
    is_new: bool

    @property
    def says(self) -> str:
        groups = [f"of {each}" for each in self.joined] + [f"no more of {each}" for each in self.left]
        return ", ".join([f"{self.person} is who the provider says", *groups])


@act(ADMINISTERS)
def sign_on(acting: Acting, claimed: Claimed) -> SignedOn:
    """Take somebody for the person of their name, and let them belong to the groups that the provider says, of those
    that there are. Raises NotAllowed where they are not let in, or the name is another's of that provider."""
    people, name = acting.ledger.people, claimed.name
    found = people.one(name)
    if found is None and claimed.unknown:
        let_in(acting, name, Kind.PERSON)
        found = people.one(name)
    if found is None or found.ended_at is not None or found.kind is not Kind.PERSON:
        raise NotAllowed(f"nobody who is let in here is called {name[:80]!r}", remedy="ask who administers the farm")
    before = people.claim(name, claimed.subject)
    if before not in ("", claimed.subject):
        raise NotAllowed(
            f"another account of the provider is {name} here",
            remedy="ask who administers the farm: `farm people remove`, then `add`, gives the name to this one",
        )
    there = {each.name for each in people.every() if each.kind is Kind.GROUP and each.ended_at is None}
    joined = [each for each in sorted(claimed.groups & there) if people.groups.join(each, [name])]
    left = [each for each in sorted(claimed.no_groups & there) if people.groups.leave(each, [name])]
    return SignedOn(name, joined, left, bool(joined or left) or not before)
