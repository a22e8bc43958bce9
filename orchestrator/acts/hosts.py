"""Acts on hosts: let one join, drain it, give it work again, remove it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from orchestrator.answers.hosts import HostView, views
from orchestrator.coordination import access
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import HostState
from orchestrator.model.errors import DeviceBusy, SetupError, UnknownName
from orchestrator.model.people import Role
from orchestrator.model.quantity import counted
from orchestrator.model.record import Outcome
from orchestrator.model.rights import Right

from .act import Acting, Done, act, on_pages

OPERATES, ADMINISTERS = Right(Role.OPERATE, of="farm"), Right(Role.ADMINISTER, of="farm")
REMOVED = "host_removed"
"""The cause of attempts that a host had when it was removed."""


@dataclass(frozen=True)
class Stands(Done):
    host: HostView

    @property
    def on(self) -> str:
        return self.host.name

    @property
    def lines(self) -> list[str]:
        left = f", {counted(self.host.running, 'session')} left" if self.host.state == "draining" else ""
        return [f"{self.host.name} is {self.host.state}{left}"]

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self.host)


@on_pages
@act(OPERATES)
def drain_host(acting: Acting, name: str) -> Stands:
    """Give a host no new work; it finishes its sessions. Raises UnknownName."""
    return _say(acting, name, HostState.DRAINING)


@on_pages
@act(OPERATES)
def resume_host(acting: Acting, name: str) -> Stands:
    """Give a drained or removed host work again. Raises UnknownName."""
    return _say(acting, name, HostState.ACTIVE)


def check_name(name: str) -> None:
    """Raise SetupError where no host may be called so: its rights in Redis are made of its name."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
        raise SetupError(f"{name!r} is no name for a host", remedy="use letters, digits, `_` and `-`, 60 at most")


def _say(acting: Acting, name: str, state: HostState) -> Stands:
    _check_known(acting, name)
    acting.ledger.standing.say_of_host(name, state)
    return Stands(next(host for host in _views(acting) if host.name == name))


def _views(acting: Acting) -> list[HostView]:
    inventory = acting.inventory()
    announced = inventory.hosts() if inventory is not None else []
    return views(announced, acting.ledger.standing.hosts(), acting.ledger.running())


def _check_known(acting: Acting, name: str) -> None:
    names = [host.name for host in _views(acting)]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else "farm host list"
        raise UnknownName(f"no host {name!r} on this farm; there are: {', '.join(names) or 'none'}", remedy=hint)


@dataclass(frozen=True)
class Added(Done):
    host: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.host} may join this farm"]


@act(ADMINISTERS)
def add_host(acting: Acting, name: str, secret_sha256: str) -> Added:
    """Give a host access of its own, under a new secret. Raises SetupError where the name is none, ServiceDown where no
    farm runs."""
    check_name(name)
    if not re.fullmatch(r"[0-9a-f]{64}", secret_sha256):
        raise SetupError("the secret's SHA-256 has 64 digits", remedy="`farm host add` makes a secret")
    redis = acting.site.redis()
    acting.ledger.standing.admit_host(name, secret_sha256)
    acting.effects.append(lambda: access.admit(redis, name, secret_sha256))
    return Added(name)


@dataclass(frozen=True)
class Removed(Done):
    host: str
    state: str
    handed_back: int
    """Attempts that are tried again elsewhere, and cost their job nothing."""

    @property
    def lines(self) -> list[str]:
        again = f"; {counted(self.handed_back, 'job')} {'is' if self.handed_back == 1 else 'are'} tried again elsewhere"
        return [f"{self.host} is removed" + again * bool(self.handed_back)]


@act(ADMINISTERS)
def remove_host(acting: Acting, name: str, *, force: bool = False) -> Removed:
    """Take a host out of the farm. Raises DeviceBusy where it still runs something and `force` is not given,
    UnknownName, ServiceDown where no farm runs."""
    ledger, redis = acting.ledger, acting.site.redis()
    _check_known(acting, name)
    ledger.standing.admit_host(name, "")  # first: what is counted now grows no more
    in_hand = [row for row in ledger.running() if row.host == name]
    if in_hand and not force:
        what = ", ".join(f"{row.label} on {row.serial}" for row in in_hand[:3])
        raise DeviceBusy(
            f"host {name} still runs {counted(len(in_hand), 'session')}: {what}{' ...' * (len(in_hand) > 3)}",
            remedy=f"`farm host drain {name}` and wait, or --force: its jobs are then tried again elsewhere",
        )
    leases = Leases(redis)
    for row in in_hand:
        ledger.end_attempt(row.job_id, row.attempt, Outcome.LOST, REMOVED)
        acting.effects.append(partial(leases.release, row.serial, row.token))  # its session then finds out
    acting.effects.append(lambda: access.expel(redis, name))
    return Removed(name, HostState.REMOVED.value, len(in_hand))
