"""Acts on experiments and jobs: cancel, retry, and store what a night has chosen; `submission.py` has `submit`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.quantity import counted

from .act import Acting, Done, act, on_pages, some
from .submission.submit import wake_scheduler


@dataclass(frozen=True)
class Cancelled(Done):
    target: str
    cancelled: list[str]
    """Ids of jobs."""

    @property
    def did(self) -> bool:
        return bool(self.cancelled)

    @property
    def lines(self) -> list[str]:
        if not self.did:
            return [f"nothing was cancelled: no job of {self.target} is open"]
        return [f"cancelled {counted(len(self.cancelled), 'job')}"]


@on_pages
@act
def cancel(acting: Acting, *targets: str) -> Cancelled:
    """Cancel the open jobs of experiments, or single jobs. Workers stop sessions under way. Raises UnknownName."""
    return Cancelled(some(targets), [job_id for target in targets for job_id in acting.ledger.cancel(target)])


@dataclass(frozen=True)
class Retried(Done):
    target: str
    retried: list[str]
    """Ids of jobs."""

    @property
    def did(self) -> bool:
        return bool(self.retried)

    @property
    def lines(self) -> list[str]:
        if not self.did:
            return [f"nothing to retry: no job of {self.target} is lost, failed or killed"]
        return [f"{counted(len(self.retried), 'job')} wait{'s' * (len(self.retried) == 1)} again"]


@on_pages
@act
def retry(acting: Acting, target: str) -> Retried:
    """Put the lost, failed and killed jobs of an experiment, or one job, back into the queue. Raises UnknownName."""
    return Retried(target, acting.ledger.retry(target))


@dataclass(frozen=True)
class Stored(Done):
    experiment: str
    jobs: int
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def lines(self) -> list[str]:
        return [f"submitted {self.experiment}: {counted(self.jobs, 'job')}"]


@act
def submit_jobs(
    acting: Acting,
    experiment_id: str,
    experiment: Experiment,
    jobs: Sequence[Job],
    exclusions: Iterable[Exclusion] = (),
) -> Stored:
    """Submit jobs that are chosen already, as those of a night; of the same id nothing is stored twice."""
    is_new = acting.ledger.submit(experiment_id, experiment, jobs, exclusions, by=acting.actor.who)
    acting.effects.append(lambda: wake_scheduler(acting))
    return Stored(experiment_id, len(jobs), is_new)
