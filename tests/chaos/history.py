"""A run under faults as data: what was promised, what was done to the farm, what is left of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hit:
    """One fault that the nemesis let loose, in Unix time."""

    fault: str
    target: str
    """Serial of a phone, or the name of a part of the farm."""
    at: float
    until: float


@dataclass(frozen=True)
class Attempt:
    """One attempt, as the ledger has it."""

    job: str
    number: int
    token: int
    serial: str
    began: float
    ended: float | None
    outcome: str
    cause: str


@dataclass(frozen=True)
class Job:
    """One job, as the ledger has it."""

    id: str
    experiment: str
    state: str
    outcome: str
    cause: str


@dataclass(frozen=True)
class Measured:
    """One record, as the ledger has it."""

    job: str
    attempt: int
    token: int
    serial: str
    outcome: str
    timed: int
    """Samples."""


@dataclass(frozen=True)
class Run:
    """One run of an agent that a phone saw begin."""

    phone: str
    at: float
    marker: str
    """`SERIAL/JOB/ATTEMPT`, and what the worker puts behind it."""
    beside: tuple[str, ...]
    """Markers of the runs that were alive on the phone at that moment."""


@dataclass(frozen=True)
class History:
    """All that the checker looks at."""

    accepted: Mapping[str, int]
    """Experiment that a client was told is accepted -> its jobs."""
    samples: int
    """Timed samples of each block."""
    hits: tuple[Hit, ...]
    jobs: tuple[Job, ...]
    attempts: tuple[Attempt, ...]
    records: tuple[Measured, ...]
    runs: tuple[Run, ...]
    settings: Mapping[str, tuple[object, object]]
    """Phone -> its settings before the run and after it."""
    answers: Mapping[str, int] = field(default_factory=dict)
    """Method, route and status of what people were answered -> how often."""
    wrong: Sequence[str] = ()
    """The answers to people that are not so, in words."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Things that a farm at rest has none of (leases, spooled records, processes ...) -> how many there are."""
