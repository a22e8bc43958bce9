"""A session: the device is ours alone, free of stale agents, in the wanted condition; and as it was afterwards."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ConditionNotMet, FarmError, LeaseLost
from orchestrator.model.device import DeviceState
from orchestrator.model.experiment import Conditions

from .agent import stop_agents
from .conditions import GATES
from .facts import read_state
from .fleet import Member
from .lock import device_lock
from .restore import SavedSettings

log = logging.getLogger(__name__)
LOCK_WAIT_S = 60.0
"""How long a session waits for the one before it to put the device in order."""


@dataclass
class Session:
    """What the block runs in."""

    member: Member
    check: Callable[[], None]
    """Called before each step on the device. Raises LeaseLost or JobCancelled."""
    state_before: DeviceState | None = None
    state_after: DeviceState | None = None
    started_at: float = 0.0


@contextmanager
def session(
    member: Member,
    conditions: Conditions | None,
    state: Path,
    check: Callable[[], None],
    *,
    lock_wait_s: float | None = None,
) -> Iterator[Session]:
    """Lock, end stale agents, undo what a crashed session left, check the gates, switch; at the end switch back.

    Without `conditions` nothing is gated or switched, and a workstation never is.
    Raises DeviceBusy, ConditionNotMet, LeaseLost. A session that has lost its lease touches the device no more: what it
    changed is journalled, and the next session puts it back.
    """
    connection, serial = member.connection, member.facts.serial
    with device_lock(state, serial, wait_s=LOCK_WAIT_S if lock_wait_s is None else lock_wait_s):
        check()
        stop_agents(member, member.marker)
        saved = SavedSettings(state, connection)
        saved.restore()
        held = Session(member, check, started_at=time.time())
        held.state_before = read_state(connection, member.facts.kind)
        gated = conditions if member.facts.kind == "phone" else None
        if gated:
            check_gates(serial, held.state_before, gated)
        lost = False
        try:
            check()
            if gated:
                saved.prepare(gated)
            yield held
            held.state_after = _state_after(member)
        except LeaseLost:
            lost = True
            raise
        finally:
            if not lost:
                _put_back(serial, saved)


def check_gates(serial: str, state: DeviceState, conditions: Conditions) -> None:
    """Raises ConditionNotMet with all that is not met, and the longest time to wait."""
    unmet: list[ConditionNotMet] = []
    for gate in GATES:
        try:
            gate.check(state, conditions)
        except ConditionNotMet as e:
            unmet.append(e)
    if unmet:
        raise ConditionNotMet(
            "; ".join(str(e.args[0]) for e in unmet),
            device=serial,
            remedy="; ".join(e.remedy or "" for e in unmet),
            retry_after_s=max(e.retry_after_s for e in unmet),
        )


def _state_after(member: Member) -> DeviceState | None:
    """None where the device is away by now: what was measured counts all the same."""
    try:
        return read_state(member.connection, member.facts.kind)
    except FarmError as e:
        log.warning("%s: its state after the block is unknown: %s", member.facts.serial, e)
        return None


def _put_back(serial: str, saved: SavedSettings) -> None:
    try:
        saved.restore()
    except FarmError as e:  # the journal stays: the next session tries again
        log.warning("%s: its settings could not be put back yet: %s", serial, e)
