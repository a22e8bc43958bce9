"""The hosts that there are, what each has in hand, and why one gets no work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.ledger import HostRow, HostState, RunningRow
from orchestrator.ledger.said.eligible_devices import misfit
from orchestrator.model.live.announcement import HostAnnouncement


@dataclass(frozen=True)
class HostView:
    """One host for people."""

    name: str
    state: str
    """ready, draining, drained, removed, unfit, or silent: nobody announces it."""
    why: str
    """The reason why it gets no work, and what to do; empty: it does."""
    running: int
    """Attempts that it has in hand."""
    sessions: int
    """The number of sessions it runs at once; 0: it does not say."""
    version: str
    protocol: int
    spooled: int
    """Records on its disk that the ledger does not have yet."""


def views(
    announced: Iterable[HostAnnouncement], known: Iterable[HostRow], running: Iterable[RunningRow]
) -> list[HostView]:
    """Every host that announces itself, or of which somebody has said something, by name."""
    alive, said = {host.host: host for host in announced}, {row.name: row.state for row in known}
    in_hand = Counter(row.host for row in running)
    return [_view(name, alive.get(name), said.get(name), in_hand[name]) for name in sorted({*alive, *said, *in_hand})]


def _view(name: str, host: HostAnnouncement | None, said: HostState | None, running: int) -> HostView:
    misfits = misfit(host) if host else ""
    if said is HostState.REMOVED:
        state, why = "removed", f"`farm host resume {name}` takes it in again"
    elif said is HostState.DRAINING:
        state, why = "draining" if running else "drained", f"`farm host resume {name}` gives it work again"
    elif host is None:
        state, why = (
            "silent",
            "nobody announces it: start its worker, or see in its log why it does not reach this Redis",
        )
    else:
        state, why = ("unfit", misfits) if misfits else ("ready", "")
    known = host or HostAnnouncement(host=name, worker="", pid=0)
    return HostView(name, state, why, running, known.sessions, known.version, known.protocol, known.spooled)
