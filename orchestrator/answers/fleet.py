"""A snapshot of the farm: which device runs what, what waits and why, how far an experiment is."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.answers import Wait, why_jobs_wait
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.ledger.rows import OPEN
from orchestrator.model.device import Device, Source
from orchestrator.model.live import Progress
from orchestrator.scheduling.eligible_devices import devices_for_work


@dataclass(frozen=True)
class Lane:
    """One device in the live view."""

    device: Device
    progress: Progress | None
    leased: bool
    """It has work that may still be on its way to it."""
    why: str = ""
    """Why the next job that only this device may run waits, as the scheduler found."""
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
        """Whose engine runs on this host's cores now."""
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


def take(ledger: Ledger, inventory: Inventory, leases: Leases, experiment_id: str | None = None) -> Snapshot:
    """Look once; of one experiment's jobs, or of all. Raises ServiceDown."""
    devices = sorted(devices_for_work(inventory.devices(), inventory.hosts(), ledger), key=lambda device: device.serial)
    held = leases.all()
    progress = {one.serial: one for one in inventory.progress()}
    waits = why_jobs_wait(ledger, inventory.waiting(), experiment_id)
    own = {wait.devices[0]: wait.reason.text for wait in reversed(waits) if len(wait.devices) == 1}
    counts = ledger.device_counts(experiment_id)
    return Snapshot(
        lanes=tuple(
            Lane(d, progress.get(d.serial), d.serial in held, own.get(d.serial, ""), *counts.get(d.serial, (0, 0)))
            for d in devices
        ),
        counts=ledger.counts(experiment_id),
        waits=waits,
    )
