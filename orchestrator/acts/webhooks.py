"""Acts on webhooks: have an address told what ends, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from orchestrator.model.errors import SpecError, UnknownName
from orchestrator.model.people import Role
from orchestrator.model.rights import Right

from .act import Acting, Done, act
from .people import check_project

ADMINISTERS = Right(Role.ADMINISTER, of="farm")
"""Whoever makes the farm's machine send something reaches what that machine reaches."""


@dataclass(frozen=True)
class Hooked(Done):
    id: str
    url: str
    project: str
    key: str
    """The key that signs, which is told this once, and in no audit."""

    @property
    def on(self) -> str:
        return self.id

    @property
    def secret(self) -> str:
        return self.key

    @property
    def lines(self) -> list[str]:
        of = f"what ends in the project {self.project}" if self.project else "what ends, and nights"
        return [f"the webhook {self.id} tells {urlsplit(self.url).hostname} {of}"]


@act(ADMINISTERS)
def add_webhook(acting: Acting, url: str, project: str = "") -> Hooked:
    """Have an address told what ends from now on: experiments of a project, or (empty) all experiments and nights.
    Raises SpecError, UnknownName."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        is_one = False
    if not is_one:
        raise SpecError(f"{url[:80]!r} is no address of a webhook", remedy="write e.g. https://ci.lab/hooks/farm")
    if project:
        check_project(acting.ledger, project)
    name, key = acting.ledger.people.webhooks.add(url, project, acting.actor.who)
    return Hooked(name, url, project, key)


@dataclass(frozen=True)
class Unhooked(Done):
    id: str
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [f"{'' if self.did else 'nothing to do: '}the webhook {self.id} is told no more"]


@act(ADMINISTERS)
def remove_webhook(acting: Acting, webhook: str) -> Unhooked:
    """Tell a webhook no more, also not what waits for it. Raises UnknownName."""
    found = acting.ledger.people.webhooks.one(webhook)
    if found is None:
        raise UnknownName(f"there is no webhook {webhook!r}", remedy="`farm webhooks list` says which there are")
    if found.ended_at is None:
        acting.ledger.people.webhooks.end(webhook)
    return Unhooked(webhook, found.ended_at is None)
