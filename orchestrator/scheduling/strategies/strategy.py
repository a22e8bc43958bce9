"""The interface of a strategy: it is told results, and asked for jobs until it is done.

The matrix is where every experiment begins. When all that a place was asked for is over, a strategy is made anew, told
everything that the ledger knows of the place, and asked what follows. So it keeps nothing between two questions:
another scheduler may ask the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.figures import BlockFigures
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.stopped import Stopped
from orchestrator.spec.expansion.run_order import Slot


@dataclass(frozen=True)
class Place:
    """The place of a decision: one experiment on one choice of devices."""

    experiment: Experiment
    experiment_id: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A job that is over."""

    job: Job
    outcome: str
    """A word of `Outcome`; empty where the job was cancelled."""
    cause: str = ""
    block: BlockFigures | None = None
    """Figures of the attempt that counts; None where there is no record, or it is a canary's."""


class Strategy(Protocol):
    """Made for one place."""

    def tell(self, results: Sequence[Result]) -> None:
        """All jobs of the place that are over, in the order of the queue. Told once, before it is asked."""
        ...

    def ask(self) -> Sequence[Slot]:
        """The jobs that follow, in the order in which a device runs them; none: it is done."""
        ...

    @property
    def done(self) -> bool:
        """True, after `ask`, if nothing can follow on what was asked for, whatever comes of it."""
        ...

    @property
    def stopped(self) -> Stopped | None:
        """The reason, after `ask`, why it ended, wholly or in part, without what it was asked for; None: it did not."""
        ...
