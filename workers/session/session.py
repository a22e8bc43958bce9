"""A session: lock a device, end stale agents, meet the conditions, and put everything back at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import FarmError, LeaseLost
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import ConditionProof
from workers.connection.ahead import Ahead
from workers.connection.base import DeviceConnection
from workers.devices.device_lock import device_lock
from workers.devices.fleet import Member, stop_agents, stop_command
from workers.devices.probe import read_state, state_commands

from .conditions import awake
from .owner import Orderly, Ownership, Then, claimant_of, owned
from .preconditions import check_gates, proofs_of
from .saved_settings import SavedSettings
from .supply import SupplyJournal

log = logging.getLogger(__name__)
LOCK_WAIT_S = 60.0
"""The time that a session waits for the one before it to put the device in order."""
POWERED_WAIT_S = 60.0
"""The time that it waits for a phone to come back whose supply a crash had left cut."""
Watch = Callable[[str, DeviceState], DeviceState]
"""Serial and state that was just read -> the state with its slope, where the phone was watched."""


def alone(member: Member, state: Path) -> AbstractContextManager[None]:
    """The device for a few questions, while no session holds it. Raises DeviceBusy."""
    return device_lock(state, member.facts.serial, wait_s=LOCK_WAIT_S)


class Seen(NamedTuple):
    """The device between two blocks."""

    state: DeviceState
    proofs: tuple[ConditionProof, ...]
    """The proofs of the block that is over."""


@dataclass
class Session:
    """The session in which blocks run, one after the other."""

    member: Member
    check: Callable[[], None]
    """Called before each step on the device. Raises LeaseLost or JobCancelled."""
    supply: SupplyJournal
    ahead: Ahead
    saved: SavedSettings
    watch: Callable[[DeviceState], DeviceState]
    gated: Conditions | None
    """None: any state of the device will do."""
    reference_c: float | None
    """Temperature of the battery at rest."""
    state_before: DeviceState | None = None
    state_after: DeviceState | None = None
    started_at: float = 0.0
    proofs: list[ConditionProof] = field(default_factory=list)
    """One of each condition; complete when the session is over."""
    tidy: list[Sequence[str]] = field(default_factory=list)
    """Commands that are run after the block, unless the device is no longer ours."""
    left: list[Sequence[str]] = field(default_factory=list)
    """The commands still to be run when another block begins: in whatever trip comes next."""
    prepared: tuple[ConditionProof, ...] = ()
    """The proofs of the settings, as they were switched for all its blocks."""
    has_no_agents: bool = False
    """Said by whoever runs agents in it: each has told that it is over."""

    def gates(self, state: DeviceState) -> list[ConditionProof]:
        """Return the proofs of a device that was just read."""
        return proofs_of(state, self.gated) if self.gated else []

    def look(self, then: Sequence[Sequence[str]], undoing: Sequence[Sequence[str]]) -> Seen | None:
        """Look at the device between two blocks, as it is now; None where no other block is to follow. In the same trip
        it runs commands that prepare the next one, answered through `ahead`; the others remove what these made, if it
        does not begin."""
        return _look(self, then, undoing)

    def closing(self, _: object = None) -> list[Sequence[str]]:
        """Return what is asked after the last block, for the trip that runs it."""
        return [*self.tidy, *_asked_back(self)]

    def coming(self, then: Sequence[Sequence[str]], undoing: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """Return what `look` will ask after the block that is to run, for the trip that runs it: then there is nothing
        left to ask."""
        commands = [*self.tidy, *_seen_by(self), *then]
        self.tidy.extend(undoing)
        return commands

    def go_on(self, seen: Seen) -> None:
        """Another block begins, with the device as it was seen after the one before."""
        self.state_before, self.state_after, self.tidy, self.left = seen.state, None, self.left, []
        self.proofs = [*self.gates(seen.state), *self.prepared]


@contextmanager
def session(
    member: Member,
    conditions: Conditions | None,
    state: Path,
    check: Callable[[], None],
    *,
    lock_wait_s: float | None = None,
    watch: Watch = lambda _, state: state,
    reference_c: float | None = None,
    farm: str = "",
    token: int = 0,
    orderly: Orderly | None = None,
) -> Iterator[Session]:
    """Lock, claim the phone, put back what a crashed session changed, end stale agents, check the gates, switch; at the
    end switch back.

    A phone is kept awake; without `conditions` nothing else is gated or switched, and on a workstation nothing ever is.
    `reference_c`: temperature of the battery at rest. `farm`, `token`: whose lease this is. `orderly`: what is known of
    earlier sessions of this process: no stale agents are looked for where nobody can have left any.

    Raises DeviceBusy (where another host has the phone: HeldElsewhere), ConditionNotMet, Unsupported, LeaseLost. A
    session that has lost its lease touches the device no more, but for a supply that it had cut: what it changed is
    journalled, and the next session puts it back.
    """
    connection, serial = member.connection, member.facts.serial
    with device_lock(state, serial, wait_s=LOCK_WAIT_S if lock_wait_s is None else lock_wait_s), ExitStack() as stack:
        check()
        ahead = Ahead(connection)
        saved = SavedSettings(state, ahead)
        gated = conditions if member.facts.kind == "phone" else None
        held = Session(
            member, check, SupplyJournal(state, serial), ahead, saved, partial(watch, serial), gated, reference_c,
            started_at=time.time(),
        )  # fmt: skip
        if held.supply.restore(connection):
            await_device(connection, check)
        owner, stop = None, stop_command(member, member.marker)
        if member.facts.kind == "phone":
            left = orderly.take(serial) if orderly else None
            asked = [*saved.asks, *state_commands(connection), *awake.SAVED]
            then = Then(ahead, lambda before: asked if before == left else [stop, *asked])
            owner = stack.enter_context(owned(connection, claimant_of(state, member.facts.host, farm, token), then))
            check = held.check = _both(check, owner)
        if owner is None or owner.before != left:
            stop_agents(replace(member, connection=ahead), member.marker)
        saved.restore()
        held.state_before = held.watch(read_state(ahead, member.facts.kind))
        if gated:
            check_gates(serial, held.state_before, gated, reference_c)
        lost = False
        try:
            check()
            if member.facts.kind == "phone":
                held.prepared = saved.prepare(conditions or Conditions())
            held.proofs = [*held.gates(held.state_before), *held.prepared]
            yield held
            _look_back(held, ahead)
        except LeaseLost:
            lost = True
            raise
        finally:
            if lost:  # the supply alone: nobody else switches it before this lock is free
                _quietly(serial, lambda: held.supply.restore(connection))
            else:
                if orderly and owner and held.has_no_agents:
                    orderly.note(serial, owner.claimed)
                if held.tidy:  # the block has failed
                    _quietly(serial, lambda: connection.shells(held.tidy))
                held.proofs = _put_back(serial, held)
                _quietly(serial, ahead.settle)


def _both(check: Callable[[], None], owner: Ownership) -> Callable[[], None]:
    def both() -> None:
        check()
        owner.check()

    return both


def await_device(connection: DeviceConnection, check: Callable[[], None], wait_s: float | None = None) -> None:
    """Returns once the device answers, or when the wait is over: the next command then says what is wrong."""
    end = time.monotonic() + (POWERED_WAIT_S if wait_s is None else wait_s)
    while time.monotonic() < end:
        check()
        try:
            connection.shell(["true"], deadline_s=5.0)
            return
        except FarmError:
            connection.reconnect()
            time.sleep(0.5)


def _look(held: Session, then: Sequence[Sequence[str]], undoing: Sequence[Sequence[str]]) -> Seen | None:
    """Tidy up after a block, and look whether the gates are open for another."""
    kind, serial, ahead = held.member.facts.kind, held.member.facts.serial, held.ahead
    try:
        held.check()
        before, asked = held.tidy, [*_seen_by(held), *then]
        if ahead.has(asked):  # the trip that ran the block has asked
            held.left = [command for command in before if not ahead.has([command])]
        else:
            held.tidy = [*before, *undoing]
            ahead.ask([*before, *asked], deadline_s=60.0)
            held.left = []
        held.tidy = [*held.left, *undoing]
        state = held.watch(read_state(ahead, kind))
        proofs = [awake.at_end(ahead, each) if each.name == awake.NAME else each for each in held.proofs]
        if held.gated:
            check_gates(serial, state, held.gated, held.reference_c)
    except LeaseLost:
        raise
    except FarmError as e:
        log.info("%s: no further block in this session: %s", serial, e)
        return None
    return Seen(state, tuple(proofs))


def _seen_by(held: Session) -> list[list[str]]:
    """Return what is asked for the state of the device between two blocks."""
    commands = state_commands(held.ahead)
    return [*commands, awake.POWER] if held.member.facts.kind == "phone" else commands[:1]


def _look_back(held: Session, ahead: Ahead) -> None:
    """The device and what kept it awake, as they are after the block."""
    asked = _asked_back(held)
    if asked and ahead.has(asked):  # the trip that ran the block has asked
        ahead.defer([command for command in held.tidy if not ahead.has([command])])
        held.tidy = []
    with suppress(FarmError):  # whatever is asked next says so
        if held.tidy or not ahead.has(asked):
            ahead.ask([*held.tidy, *asked])
            held.tidy = []
    held.state_after = _state_after(replace(held.member, connection=ahead))
    held.proofs = [awake.at_end(ahead, each) if each.name == awake.NAME else each for each in held.proofs]


def _asked_back(held: Session) -> list[list[str]]:
    """Return what is asked for a phone after the last block, and for what is to be put back."""
    return [*_seen_by(held), *held.saved.asks] if held.member.facts.kind == "phone" else []


def _state_after(member: Member) -> DeviceState | None:
    """None where the device is away by now: what was measured counts all the same."""
    try:
        return read_state(member.connection, member.facts.kind)
    except FarmError as e:
        log.warning("%s: its state after the block is unknown: %s", member.facts.serial, e)
        return None


def _put_back(serial: str, held: Session) -> list[ConditionProof]:
    """The supply first, then the settings; returns the proofs, which tell what was put back."""
    restored: set[str] = set()
    left: set[str] = set()
    try:
        left = set(held.saved.changed)
        held.supply.restore(held.member.connection)
        restored = set(held.saved.restore())
    except FarmError as e:  # the journals stay: the next session tries again
        log.warning("%s: not everything could be put back yet: %s", serial, e)
        restored = left - set(_still_changed(held.saved))
    return [
        proof.model_copy(update={"restored": proof.name in restored}) if proof.name in left else proof
        for proof in held.proofs
    ]


def _quietly(serial: str, act: Callable[[], object]) -> None:
    try:
        act()
    except FarmError as e:  # the journal stays
        log.warning("%s: %s", serial, e)


def _still_changed(saved: SavedSettings) -> tuple[str, ...]:
    try:
        return saved.changed
    except FarmError:
        return ()
