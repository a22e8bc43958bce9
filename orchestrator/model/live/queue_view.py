"""The queue as placement needs it: waiting jobs and shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.model.experiment import Conditions
from orchestrator.model.live.usage import Account
from orchestrator.model.people import COMMON


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits, as far as placement must know it."""

    job_id: str
    experiment_id: str
    label: str
    candidates: tuple[str, ...]
    conditions: Conditions
    priority: int
    order: tuple[int, int]
    """Order of submission: of the experiment, and within it."""
    failed_on: frozenset[str] = frozenset()
    """Devices on which earlier attempts were lost."""
    alone: bool = False
    """It may run only where its host runs nothing else: workers fell silent while it ran."""
    not_before: float = 0.0
    """Unix time before which it is not tried again."""
    submitted_at: float = 0.0
    """Unix time."""
    submitter: str = ""
    """The person who submitted the experiment; what they hold is free for it."""
    project: str = COMMON
    """The experiment's; what it has reserved is free for it."""
    policy: str | None = None
    """The policy of placement, where the experiment names one; None: the farm's."""
    deadline: float | None = None
    """Unix time."""
    said: frozenset[str] = frozenset()
    """The words of its experiment that older hosts do not know."""

    @property
    def account(self) -> Account:
        return Account(self.project, self.submitter)


@dataclass(frozen=True)
class Share:
    """The share of the farm that an experiment has."""

    running: int = 0
    served_at: float = 0.0
    """Unix time of its latest attempt."""
    serial: str = ""
    """Device of its latest attempt, where that is known."""
    expected_s: float | None = None
    """The time that its waiting jobs will take where it has all its devices; None: nobody knows, or asks."""
    energy: Mapping[str, float] = field(default_factory=dict)
    """Serial -> energy of what it computes there, as a share of what the mean device takes; empty: nobody asks."""
