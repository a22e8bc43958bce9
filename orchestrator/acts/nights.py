"""Acts on nights: begin one, let a suite run by its schedule, end that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrator.model.errors import UnknownName
from orchestrator.model.people import Role
from orchestrator.model.rights import Right

from .act import Acting, Done, act

OPERATES = Right(Role.OPERATE, of="farm")


@dataclass(frozen=True)
class Begun(Done):
    night: str
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def lines(self) -> list[str]:
        return [f"night {self.night} begins"]


@act(OPERATES)
def begin_night(acting: Acting, night: str, suite: str, due_at: float, body: bytes) -> Begun:
    """Begin a night; one that is there already is not changed."""
    return Begun(night, acting.ledger.nights.begin(night, suite, due_at, body))


@dataclass(frozen=True)
class Scheduled(Done):
    suite: str
    file: str
    cron: str
    next: float
    """Unix time of its first night."""

    @property
    def lines(self) -> list[str]:
        first = datetime.fromtimestamp(self.next).isoformat(" ", "minutes")
        return [f"{self.suite} runs from now on by itself ({self.cron}), first at {first}"]


@act(OPERATES)
def schedule_suite(acting: Acting, suite: str, file: str, cron: str, body: bytes, first: float) -> Scheduled:
    """Let a suite run by itself; its schedule before is replaced. `first`: when it is due first."""
    acting.ledger.nights.schedule(suite, file, cron, body)
    return Scheduled(suite, file, cron, first)


@dataclass(frozen=True)
class Unscheduled(Done):
    suite: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.suite} does not run by itself any more"]


@act(OPERATES)
def unschedule_suite(acting: Acting, suite: str) -> Unscheduled:
    """Stop running a suite by its schedule. Raises UnknownName where it has none."""
    if not acting.ledger.nights.unschedule(suite):
        known = ", ".join(each.suite for each in acting.ledger.nights.schedules()) or "none"
        raise UnknownName(f"no suite {suite!r} runs by itself", remedy=f"those that do: {known}")
    return Unscheduled(suite)
