"""A farm on which tests act, and who acts."""

from __future__ import annotations

from redis import Redis

from orchestrator.acts import Actor, Door, Site
from orchestrator.ledger import Ledger
from orchestrator.model.rights import WHOLE
from orchestrator.system.config import Settings

ME = Actor("me", Door.COMMAND_LINE, WHOLE)


def by(who: str, door: Door = Door.COMMAND_LINE) -> Actor:
    return Actor(who, door, WHOLE)


def site(farm: Settings, ledger: Ledger, redis: Redis) -> Site:
    return Site(farm, ledger, lambda: redis)
