"""A snapshot of the farm: which device runs what, what waits and why, how far an experiment is."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.answers import Wait, reason_lines, why_jobs_wait
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.ledger.rows import OPEN
from orchestrator.ledger.said.eligible_devices import devices_for_work
from orchestrator.model.device import Device, Health, Source
from orchestrator.model.live.announcement import Progress

Mood = Literal["working", "waiting", "free", "held", "bad"]


@dataclass(frozen=True)
class Lane:
    """One device in the live view."""

    device: Device
    progress: Progress | None
    leased: bool
    """It has work that may still be on its way to it."""
    why: str = ""
    """The reason why the next job that only this device may run waits, as the scheduler found."""
    done: int = 0
    total: int = 0
    """Jobs that only this device may run: those that are over, and all."""

    @property
    def shares_the_host(self) -> bool:
        """Its engine runs on this host's own cores, where runs take turns."""
        facts = self.device.facts
        return facts.source is Source.VIRTUAL or facts.serial == "local-cpu"

    @property
    def measures(self) -> bool:
        return self.progress is not None and self.progress.phase == "running"

    @property
    def waits_for_its_turn(self) -> bool:
        """Its agent has started, and waits for the cores of this host."""
        one = self.progress
        return self.shares_the_host and one is not None and one.phase == "waiting" and one.total > 0


@dataclass(frozen=True)
class Snapshot:
    """Everything that the live view shows."""

    lanes: tuple[Lane, ...]
    counts: Mapping[str, int]
    """Jobs by state or outcome."""
    waits: tuple[Wait, ...] = ()
    """The jobs that wait, by reason."""
    at: float = field(default_factory=time.time)

    @property
    def at_the_engine(self) -> Lane | None:
        """The lane whose engine runs on this host's cores now."""
        return next((lane for lane in self.lanes if lane.shares_the_host and lane.measures), None)

    @property
    def waiting(self) -> int:
        return self.counts.get("waiting", 0)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        """Jobs that are over, however they ended."""
        return self.total - sum(self.open.values())

    @property
    def open(self) -> dict[str, int]:
        """Jobs that are not over, by state."""
        return {state.value: self.counts.get(state.value, 0) for state in OPEN}

    @property
    def is_over(self) -> bool:
        return self.done == self.total

    @property
    def data(self) -> dict[str, Any]:
        """Return the snapshot for programs."""
        return {
            "done": self.done,
            "total": self.total,
            "outcomes": {word: count for word, count in self.counts.items() if count and word not in OPEN},
            "working": sum(lane.progress is not None for lane in self.lanes),
            "waiting": "; ".join(reason_lines(self.waits)),
        }


@dataclass(frozen=True)
class Now:
    """The present work of a device, in words."""

    mood: Mood
    word: str
    more: str = ""
    since: float | None = None
    """Unix time."""


def now_of(lane: Lane, at_the_engine: str = "") -> Now:
    """`at_the_engine`: name of who has the cores of the host, for which the lane may wait."""
    one = lane.progress
    if one is None:
        return _idle(lane)
    if lane.waits_for_its_turn:
        return Now("waiting", "waits its turn", f"after {at_the_engine}" if at_the_engine else "", one.since)
    if one.phase == "running":
        more = f"{one.done}/{one.total}" + (f" {one.learnt.text}" if one.learnt else "")
        return Now("working", one.phase, more, one.since)
    if one.phase == "waiting":
        return Now("waiting", "waits", "for the device", one.since)
    return Now("working", one.phase, "", one.since)


def _idle(lane: Lane) -> Now:
    """Return what a device without a session does."""
    state = lane.device.state
    if state.health is not Health.READY:
        return Now("held" if state.health is Health.HELD else "bad", state.health.value, state.reason)
    if lane.leased:
        return Now("working", "starting")
    if lane.why:
        return Now("waiting", "waits", lane.why)
    if lane.total and lane.done == lane.total:
        return Now("free", "done")
    return Now("free", "between jobs" if lane.done < lane.total else "free")


def take(ledger: Ledger, inventory: Inventory, leases: Leases, experiment_id: str | None = None) -> Snapshot:
    """Look once; of one experiment's jobs, or of all. Raises ServiceDown."""
    devices = devices_for_work(inventory.devices(), inventory.hosts(), ledger)
    waits = why_jobs_wait(ledger, inventory.waiting(), experiment_id)
    counts = ledger.device_counts(experiment_id)
    lanes = lanes_of(devices, leases.all(), inventory.progress(), waits, counts)
    return Snapshot(lanes=lanes, counts=ledger.counts(experiment_id), waits=waits)


def unnamed(progress: Progress) -> Progress:
    """Return a session without what it runs: for who may not view that."""
    return progress.model_copy(update={"job_id": "", "label": "", "last_ms": None, "learnt": None})


def lanes_of(
    devices: Iterable[Device],
    leased: Collection[str],
    progress: Iterable[Progress],
    waits: Sequence[Wait] = (),
    counts: Mapping[str, tuple[int, int]] | None = None,
) -> tuple[Lane, ...]:
    """Return lanes by serial. `counts`: device -> jobs that are over, and all, as `Ledger.device_counts` has them."""
    sessions = {one.serial: one for one in progress}
    own = {wait.devices[0]: wait.reason.text for wait in reversed(waits) if len(wait.devices) == 1}
    rest = next((wait.reason.text for wait in waits if not wait.devices), "")
    known = counts or {}

    def lane(d: Device) -> Lane:
        done, total = known.get(d.serial, (0, 0))
        why = own.get(d.serial, rest if done < total else "")
        return Lane(d, sessions.get(d.serial), d.serial in leased, why, done, total)

    return tuple(lane(d) for d in sorted(devices, key=lambda device: device.serial))
