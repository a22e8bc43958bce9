"""The material of an answer: who asks, and the farm that is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from redis import Redis

from orchestrator.acts import Actor, Site
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ServiceDown
from orchestrator.model.live.waiting import WaitReason
from orchestrator.model.rights import Place, Right


@dataclass(frozen=True)
class Sources:
    """The farm that answers. Nothing is opened before the first request."""

    ledger: Callable[[], Ledger]
    """The same each time; raises FarmError where it is away."""
    redis: Callable[[], Redis]
    """The same; raises ServiceDown where no farm runs."""
    site: Callable[[], Site]
    """The farm on which acts are done; raises FarmError where the ledger is away."""
    token: str
    """The farm's own token, which its owner shows."""


@dataclass(frozen=True)
class Asked:
    """The material of an answer."""

    sources: Sources
    actor: Actor

    @property
    def ledger(self) -> Ledger:
        """Raises FarmError where it is away."""
        return self.sources.ledger()

    def site(self) -> Site:
        return self.sources.site()

    def reasons(self) -> dict[str, WaitReason] | None:
        """Return why jobs wait, as the scheduler says; None where no farm runs."""
        from orchestrator.coordination.inventory import Inventory

        try:
            return Inventory(self.sources.redis()).waiting()
        except ServiceDown:
            return None

    def let(self, needs: Right, places: Iterable[Place] = (), what: str = "") -> None:
        """Raise NotAllowed where who asks has no right to it; UnknownName where they may not know that there is what
        they name."""
        needs.let(self.actor.who, self.actor.grants, places, what)
