"""Acts on experiments and jobs: cancel, retry, read output again, store what a night chose. `submission/` submits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.ledger import Ledger
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.people import COMMON, Role
from orchestrator.model.quantity import counted
from orchestrator.model.record import EarlierReading, Record
from orchestrator.model.rights import Right

from .act import Acting, Done, act, of_project, of_targets, on_pages, some
from .submission.submit import wake_scheduler

CHANGES = Right(Role.OPERATE, own=Role.SUBMIT)
"""The right to change what was submitted: one's own with the role that submits."""


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
@act(CHANGES, at=of_targets)
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
@act(CHANGES, at=of_targets)
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


@act(Right(Role.SUBMIT), at=of_project)
def submit_jobs(
    acting: Acting,
    experiment_id: str,
    experiment: Experiment,
    jobs: Sequence[Job],
    exclusions: Iterable[Exclusion] = (),
    *,
    project: str = COMMON,
) -> Stored:
    """Submit jobs that are chosen already, as those of a night; of the same id nothing is stored twice."""
    who = acting.actor.who
    is_new = acting.ledger.submit(experiment_id, experiment, jobs, exclusions, by=who, project=project)
    acting.effects.append(lambda: wake_scheduler(acting))
    return Stored(experiment_id, len(jobs), is_new)


Again = Callable[[Record, Job], Record | None]
"""Reads the output of a record again; None where that tells the same, or cannot be done."""


@dataclass(frozen=True)
class Reread(Done):
    target: str
    changed: list[dict[str, Any]]
    """Each record whose reading is another one: what it told, and what it tells now."""

    @property
    def did(self) -> bool:
        return bool(self.changed)

    @property
    def lines(self) -> list[str]:
        if not self.did:
            return [f"nothing to change: all output of {self.target} reads as before"]
        return [f"read output again: {counted(len(self.changed), 'record')} changed, the earlier readings are kept"]


@act(CHANGES, at=of_targets)
def reread(acting: Acting, targets: Sequence[str], again: Again) -> Reread:
    """Read the kept output of experiments again, and keep what it tells now beside what it told. Raises UnknownName."""
    changed = acting.ledger.replace(list(read_again(acting.ledger, targets, again)))
    told = [reading_of(record.readings[-1], record) for record in changed]
    return Reread(some(targets), told)


def read_again(ledger: Ledger, targets: Sequence[str], again: Again) -> Iterator[tuple[Record, Record]]:
    """Yield each record that tells something else now, before and after; nothing is changed."""
    for target in targets:
        row = ledger.experiment(target)
        jobs = {each.job_id: each.job for each in ledger.jobs(row.id)}
        for record in ledger.records(row.id):
            job = jobs.get(record.job_id)
            if job is not None and (found := again(record, job)) is not None:
                yield record, found


def reading_of(before: EarlierReading | Record, after: Record) -> dict[str, Any]:
    """Return what a reading tells, before and after, for programs."""
    told = {name: [str(getattr(each, name)) for each in (before, after)] for name in ("outcome", "cause")}
    samples = [len(each.samples) for each in (before, after)]
    place = {"experiment": after.experiment_id, "job": after.job_id, "attempt": after.attempt}
    return {**place, **told, "samples": samples}
