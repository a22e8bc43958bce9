"""The devices of this host: what discovery found, and which session has which. Thread-safe."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass, replace

from kernels.errors import checkpoint
from orchestrator.model.device import Device, DeviceFacts, DeviceState, Health
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.errors import DeviceAway
from workers.connection.base import DeviceConnection

from .install import run
from .temperature_history import TemperatureHistory

MAX_DEFER_S = 60.0
"""Another experiment may want less of the device: no prediction keeps it away for longer."""


@dataclass(frozen=True)
class Member:
    """A device that is ready to be driven."""

    connection: DeviceConnection
    facts: DeviceFacts
    agent: str
    """Path of the verified agent on the device."""
    agent_sha256: str = ""
    environment: tuple[str, ...] = ()
    """`NAME=VALUE` for the agent."""
    cache: str = "cache"
    """Folder of the programs that the agent has built, in the device's: each driver that is chosen has its own."""

    @property
    def marker(self) -> str:
        """The mark of every agent of ours on this device, so that a later session can end it.

        A phone has one serial wherever it hangs. `local-cpu` is what every farm calls its own host: two farms on one
        machine must not end each other's agents.
        """
        if self.facts.kind == "phone":
            return f"{self.facts.serial}/"
        return f"{self.facts.serial}@{hashlib.sha256(self.connection.folder.encode()).hexdigest()[:8]}/"


@dataclass(frozen=True)
class _Entry:
    facts: DeviceFacts
    state: DeviceState
    member: Member | None = None
    enrolment: Enrolment | None = None


class Fleet:
    """Serial -> what is known. A device without a member is known, but cannot be given work."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._running: dict[str, tuple[str, str, int, int]] = {}
        self._histories: dict[str, TemperatureHistory] = {}

    def watched(self, serial: str, state: DeviceState) -> DeviceState:
        """A state that was just read, with the battery's slope where the phone was watched for long enough."""
        with self._lock:
            history = self._histories.setdefault(serial, TemperatureHistory())
            if state.battery_temp_c is not None:
                history.note(state.seen_at, state.battery_temp_c)
            return state.model_copy(update={"battery_slope_c_per_min": history.slope_c_per_min()})

    def enrol(self, member: Member, state: DeviceState) -> None:
        """A device was probed: it may work from now on."""
        with self._lock:
            self._entries[member.facts.serial] = _Entry(member.facts, state, member)
            self._lock.notify_all()

    def set_enrolment(self, serial: str, enrolment: Enrolment | None) -> None:
        """The device profile, announced with the device."""
        with self._lock:
            if entry := self._entries.get(serial):
                self._entries[serial] = replace(entry, enrolment=enrolment)

    def set_state(self, facts: DeviceFacts, state: DeviceState) -> None:
        """Set a device's state. Facts that were known before are kept, and so is a time that it was deferred to."""
        with self._lock:
            old = self._entries.get(facts.serial, _Entry(facts, state))
            if state.health == Health.READY and (old.state.ready_at or 0.0) > time.time():
                state = state.model_copy(update={"ready_at": old.state.ready_at, "reason": old.state.reason})
            self._entries[facts.serial] = replace(old, state=state)
            self._lock.notify_all()

    def defer(self, serial: str, ready_at: float, reason: str) -> None:
        """A condition is not met: the device is predicted to be ready at this Unix time, but asked again before long.

        Placement compares battery and heat with each job's own conditions; this keeps the others from trying in vain.
        """
        update = {"ready_at": min(ready_at, time.time() + MAX_DEFER_S), "reason": reason}
        with self._lock:
            if entry := self._entries.get(serial):
                self._entries[serial] = replace(entry, state=entry.state.model_copy(update=update))

    def forget(self, serial: str) -> None:
        with self._lock:
            self._entries.pop(serial, None)

    def member(self, serial: str, *, wait_s: float = 0.0) -> Member:
        """A device that can be driven; one that is unknown or being probed is waited for (the worker may be new).

        Raises DeviceAway for a device that is not (or no longer) usable here.
        """
        end = time.monotonic() + wait_s
        with self._lock:
            while not self._is_decided(serial) and (left_s := end - time.monotonic()) > 0:
                self._lock.wait(min(left_s, 0.2))
                checkpoint()
            entry = self._entries.get(serial)
        if entry is None or entry.member is None:
            why = entry.state.reason if entry else "it is not connected to this host"
            raise DeviceAway(f"the device cannot be used: {why}", device=serial, remedy="see `farm devices`")
        return entry.member

    def _is_decided(self, serial: str) -> bool:
        entry = self._entries.get(serial)
        return entry is not None and (entry.member is not None or entry.state.health != Health.PROBING)

    def known(self, serial: str) -> bool:
        with self._lock:
            return serial in self._entries

    def devices(self) -> list[Device]:
        """Everything known, as it is announced now."""
        now = time.time()
        with self._lock:
            entries = list(self._entries.values())
        return [
            Device(facts=e.facts, state=e.state.model_copy(update={"seen_at": now}), enrolment=e.enrolment)
            for e in entries
        ]

    def start(self, serial: str, job_id: str, attempt: int, token: int) -> None:
        """A session begins, or goes on to this attempt."""
        with self._lock:
            self._running[serial] = (serial, job_id, attempt, token)

    def end(self, serial: str, token: int) -> None:
        """A session ended; that of a newer token stays."""
        with self._lock:
            if self._running.get(serial, ("", "", 0, 0))[3] == token:
                del self._running[serial]

    def running(self) -> tuple[tuple[str, str, int, int], ...]:
        with self._lock:
            return tuple(self._running.values())


def stop_agents(member: Member, marker_prefix: str) -> None:
    """End every agent on the device whose marker starts so."""
    run(member.connection, *stop_command(member, marker_prefix), deadline_s=20.0)


def stop_command(member: Member, marker_prefix: str) -> list[str]:
    """Return the command that `stop_agents` runs."""
    return [member.agent, "stop", "--marker-prefix", marker_prefix]
