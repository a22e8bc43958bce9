"""Frozen rows that the ledger returns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any

from sqlalchemy import Row

from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.usage import NOBODY, Account
from orchestrator.model.people import Door
from orchestrator.model.rights import Place

AnyRow = Row[*tuple[Any, ...]]

DAY_S = 86400.0


class JobState(StrEnum):
    HELD = "held"
    """Stands for the jobs that may follow by results, until that is decided; it is never run."""
    WAITING = "waiting"
    PLACED = "placed"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


OPEN = (JobState.HELD, JobState.WAITING, JobState.PLACED, JobState.RUNNING)
"""States of a job that is not over."""


class KeepResult(StrEnum):
    """The fate of a record that was offered."""

    NEW = "new"
    DUPLICATE = "duplicate"
    STALE = "stale"
    """The record is of an attempt that a newer one of its job has replaced."""


@dataclass(frozen=True)
class WaitingGroup:
    """Waiting jobs of one experiment that the same devices may run."""

    experiment_id: str
    candidates: tuple[str, ...]
    """Empty: several choices of devices in one group."""
    jobs: int
    looked_at: tuple[str, ...]
    """Ids of those that were asked for by id, those last that were never tried."""


@dataclass(frozen=True)
class Origin:
    """The lab in which an experiment was measured, which is not this one."""

    lab: str
    experiment: str
    """Its id there."""
    submitted_at: float
    """Unix time."""
    submitter: str
    exported_at: float
    version: str
    """The pocketfarm that wrote the bundle."""

    @property
    def text(self) -> str:
        """`imported: measured in the lab berlin as first-1, 2026-11-23`."""
        day = time.strftime("%Y-%m-%d", time.localtime(self.submitted_at))
        return f"imported: measured in the lab {self.lab} as {self.experiment}, {day}"


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment, and how far it is."""

    id: str
    experiment: Experiment
    exclusions: tuple[Exclusion, ...]
    submitted_at: float
    submitter: str
    """The name of who submitted it; empty: not known."""
    project: str
    counts: Mapping[str, int]
    """Jobs by state (held, waiting, placed, running, cancelled) or, where done, by outcome."""
    origin: Origin | None = None
    """None: it is this farm's own."""

    @property
    def finished(self) -> bool:
        return not any(self.counts.get(state) for state in OPEN)


@dataclass(frozen=True)
class JobRow:
    """A job, and how far it is."""

    job_id: str
    job: Job
    state: JobState
    outcome: str
    """Set where done."""
    cause: str
    """The cause of the latest loss or failure."""
    attempts: int
    ended_at: float | None


@dataclass(frozen=True)
class Lane:
    """The jobs of an experiment for one choice of devices, at the moment when it is to be decided whether more follow:
    all are over but the held ones."""

    lane_id: int
    experiment_id: str
    candidates: tuple[str, ...]
    held: frozenset[str]
    """Job ids."""


@dataclass(frozen=True)
class RunningRow:
    """An attempt that began and has not ended."""

    job_id: str
    experiment_id: str
    label: str
    attempt: int
    token: int
    serial: str
    host: str
    ttl_s: float
    started_at: float
    state: JobState
    """State of its job: placed, running, or cancelled while the session still stops."""
    alone: bool = False
    """Its host runs nothing beside it: workers fell silent while it ran."""
    account: Account = NOBODY
    """The project and the submitter of its experiment."""


@dataclass(frozen=True)
class DeadRecord:
    """A body sent as a record that could not be stored: kept as it came until it is replayed or dropped."""

    id: str
    name: str
    """`JOB:ATTEMPT`, as far as it is known."""
    reason: str
    """The reason why it could not be stored."""
    host: str
    """The host from which it came; empty: not told."""
    set_aside_at: float
    """Unix time."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class AuditRow:
    """An act that was done, or refused."""

    at: float
    """Unix time."""
    who: str
    door: Door
    act: str
    target: str
    """The things that it was done to: an experiment, a job, devices, a host, a suite."""
    said: str
    """The sentences that it told its person, or why it was refused."""
    origin: str
    """The address or the machine from which it came."""
    refused: bool
    """True if who asked had no right to it; nothing was done."""


class HostState(StrEnum):
    """The state that a person has given a host."""

    ACTIVE = "active"
    DRAINING = "draining"
    """It finishes what it runs, and gets nothing new."""
    REMOVED = "removed"
    """It is none of the farm's any more, and gets nothing."""


@dataclass(frozen=True)
class HostRow:
    """A host of which a person has said something."""

    name: str
    state: HostState
    since: float
    """Unix time."""
    secret_sha256: str = ""
    """The hash of what it shows to Redis and to the farm's web part; empty: it has no access of its own."""


@dataclass(frozen=True)
class Quarantine:
    serial: str
    """The serial of a device, or the name of a host."""
    reason: str
    since: float
    """Unix time."""
    until: float
    """Unix time from which a device that is well gets work again, on probation."""
    released_by: str = ""
    """Name that `farm release` wants, where that is another: of the device's host."""

    @property
    def remedy(self) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(self.until))
        return f"tried again from {clock}, or at once with `farm release {self.released_by or self.serial}`"


@dataclass(frozen=True)
class Hold:
    """A person, a group of them, or a project has a device for themselves."""

    serial: str
    who: str
    """The person, the group, or who reserved it for a project."""
    since: float
    """Unix time at which that was said."""
    until: float | None
    """Unix time; None: until somebody releases it."""
    note: str
    alone: bool = False
    """True if not even the experiments of who holds it are let through."""
    project: str = ""
    """The project that has it; empty: a person has."""
    begins: float = 0.0
    """Unix time; 0: it was taken at once, and not reserved."""
    id: int = 0
    people: tuple[str, ...] = ()
    """The names of who belongs to the group that has it."""

    @property
    def is_reserved(self) -> bool:
        return bool(self.begins or self.project)

    @property
    def is_pool(self) -> bool:
        """The device is of the project's pool: for good, beside what people take of it."""
        return bool(self.project) and self.until is None

    @property
    def is_to_come(self) -> bool:
        return self.begins > time.time()

    @property
    def holders(self) -> tuple[str, ...]:
        """Return the names of the people who have it; none where a project has."""
        return () if self.project else (self.who, *self.people)

    @property
    def places(self) -> list[Place]:
        """Return what an act on the device is done to: something that its holders own."""
        return [Place("", each) for each in self.holders]

    @property
    def whose(self) -> str:
        return f"for {self.project or self.who}" if self.is_reserved else f"by {self.who}"

    @property
    def text(self) -> str:
        """`by anna until 17:00: new battery`; with the day where that is not within a day."""
        since = f" from {_clock(self.begins)}" if self.is_to_come else ""
        until = "" if self.until is None else f" until {_clock(self.until)}"
        return f"{self.whose}{since}{until}" + (f": {self.note}" if self.note else "")

    @property
    def said(self) -> str:
        """`held by anna`, `reserved for vision until 17:00`."""
        return f"{'reserved' if self.is_reserved else 'held'} {self.text}"

    def admits(self, account: Account) -> bool:
        """Return whether experiments of an account may run on the device."""
        mine = account.project == self.project if self.project else account.person and account.person in self.holders
        return bool(mine) and not self.alone

    def collides(self, other: Hold) -> bool:
        """Return whether two cannot be on one device: at the same time, of different holders. A pool is beside what
        people have, and of one project."""
        apart = self.begins >= (other.until or inf) or other.begins >= (self.until or inf)
        same = (self.project, self.project or self.who) == (other.project, other.project or other.who)
        beside = (self.is_pool or other.is_pool) and not (self.project and other.project)
        return not (apart or same or beside)


def _clock(unix_s: float) -> str:
    return time.strftime("%H:%M" if unix_s - time.time() < DAY_S else "%Y-%m-%d %H:%M", time.localtime(unix_s))


def label(job: Job) -> str:
    """The name for people of a job's blocks: `lenet opencl fp32`, `canary`."""
    return job.role if job.role == "canary" else job.cell.label


def block_label(label: str, block: int) -> str:
    """A block's name for people: `lenet opencl fp32 #2`, `canary #0`."""
    return f"{label} #{block}"
