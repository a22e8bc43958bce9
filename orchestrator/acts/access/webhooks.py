"""Acts on webhooks: have an address told what ends, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from orchestrator.acts.act import Acting, Done, Settled, act
from orchestrator.model.errors import SpecError
from orchestrator.model.people import Role
from orchestrator.model.rights import Right

from .kept import end
from .projects import check_project

ADMINISTERS = Right(Role.ADMINISTER, of="farm")
"""Whoever makes the farm's machine send something reaches what that machine reaches."""


@dataclass(frozen=True)
class Hooked(Done):
    id: str
    url: str
    project: str
    key: str
    """The key that signs."""
    TOLD_ONCE = "key"

    @property
    def on(self) -> str:
        return self.id

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
class Unhooked(Settled):
    id: str
    is_new: bool

    @property
    def says(self) -> str:
        return f"the webhook {self.id} is told no more"


@act(ADMINISTERS)
def remove_webhook(acting: Acting, webhook: str) -> Unhooked:
    """Tell a webhook no more, also not what waits for it. Raises UnknownName."""
    return Unhooked(webhook, end(acting.ledger.people.webhooks, "webhook", webhook)[1])
