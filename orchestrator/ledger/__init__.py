"""The ledger: the only truth about experiments, jobs, attempts and records.

One transaction a call; threads may share it. Every attempt gets a fencing token that only grows. A record is kept once
per (job, attempt), and only from the job's newest token; a job whose attempt was lost waits again until its retry
budget is used up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from types import TracebackType

from sqlalchemy import insert, select, update

from orchestrator.errors import StableError
from orchestrator.matrix import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.placement import Share, WaitingJob

from . import attempts, extension, health, imports, queries
from .database import Database, count_up
from .imports import Imported
from .rows import OPEN, AnyRow, ExperimentRow, JobRow, JobState, Kept, Lane, Quarantine, RunningRow, job_columns, unpack
from .tables import EXPERIMENTS, JOBS, RECORDS

BATCH = 200


class Ledger:
    """`url` is a SQLAlchemy URL. Raises SetupError where it cannot be used, ServiceDown where the database is away.

    `retries` is the number of counted losses after which a job is lost for good, `quarantine_after` the number of
    consecutive losses that put a device into quarantine; after each it rests `rest_s` longer. The first quarantine
    lasts `quarantine_s`, each following one twice as long.
    """

    def __init__(
        self,
        url: str,
        *,
        retries: int = 3,
        quarantine_after: int = 3,
        rest_s: float = 5.0,
        quarantine_s: float = 60.0,
    ) -> None:
        self._database = Database(url)
        self._retries, self._quarantine_after = retries, quarantine_after
        self._rest_s, self._quarantine_s = rest_s, quarantine_s
        self._specs: dict[str, Experiment] = {}

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    # experiments

    def submit(
        self,
        experiment_id: str,
        experiment: Experiment,
        jobs: Sequence[Job],
        exclusions: Iterable[Exclusion] = (),
        reserve: Sequence[Job] = (),
    ) -> bool:
        """Store an experiment with its jobs, all or nothing; False where it is there already (nothing is changed).

        A device runs its jobs in this order. `reserve`: jobs that are held until `extend` decides about them.
        """
        rows = [job_columns(job, index) for index, job in enumerate(jobs)]
        rows += [job_columns(job, index, JobState.HELD) for index, job in enumerate(reserve, len(jobs))]
        with self._database.write() as connection:
            if queries.experiment_rows(connection, experiment_id):
                return False
            sequence = count_up(connection, "experiment")
            connection.execute(
                insert(EXPERIMENTS).values(
                    id=experiment_id,
                    sequence=sequence,
                    spec=experiment.model_dump_json(),
                    exclusions=queries.exclusions_to_json(exclusions),
                    submitted_at=time.time(),
                )
            )
            statement = insert(JOBS).values(experiment_sequence=sequence)
            for start in range(0, len(rows), BATCH):
                connection.execute(statement, rows[start : start + BATCH])
        return True

    def experiments(self) -> list[ExperimentRow]:
        """All experiments in order of submission."""
        with self._database.read() as connection:
            counts = queries.counts(connection, None)
            rows = queries.experiment_rows(connection, None)
        return [_experiment_row(row, counts.get(row.id, {})) for row in rows]

    def experiment(self, experiment_id: str) -> ExperimentRow:
        """One experiment. Raises StableError where there is none, naming close ones."""
        with self._database.read() as connection:
            rows = queries.experiment_rows(connection, experiment_id)
            counts = queries.counts(connection, experiment_id)
        if not rows:
            raise self._no_experiment(experiment_id)
        return _experiment_row(rows[0], counts.get(experiment_id, {}))

    def counts(self, experiment_id: str | None = None) -> dict[str, int]:
        """Number of jobs by state (held, waiting, placed, running, cancelled) or, where done, by outcome."""
        with self._database.read() as connection:
            found = queries.counts(connection, experiment_id)
        total: dict[str, int] = {}
        for by_word in found.values():
            for word, count in by_word.items():
                total[word] = total.get(word, 0) + count
        return total

    def device_counts(self, experiment_id: str | None = None) -> dict[str, tuple[int, int]]:
        """Device -> (jobs that are over, all jobs), of the jobs that only this device may run."""
        with self._database.read() as connection:
            return queries.device_counts(connection, experiment_id)

    def cancel(self, target: str) -> list[str]:
        """Cancel the open jobs of an experiment, or one job; returns the ids of those that were cancelled."""
        with self._database.write() as connection:
            known = connection.execute(
                select(JOBS.c.id).where((JOBS.c.experiment_id == target) | (JOBS.c.id == target)).limit(1)
            ).first()
            statement = (
                update(JOBS)
                .where((JOBS.c.experiment_id == target) | (JOBS.c.id == target), JOBS.c.state.in_(OPEN))
                .values(state=JobState.CANCELLED, ended_at=time.time())
                .returning(JOBS.c.id)
            )
            cancelled = [row.id for row in connection.execute(statement)]
            if known is None and not queries.experiment_rows(connection, target):
                raise self._no_experiment(target)
        return sorted(cancelled)

    # jobs and attempts

    def jobs(self, experiment_id: str, states: Iterable[str] | None = None) -> list[JobRow]:
        """Jobs of an experiment in order, of all or only these states."""
        statement = select(*queries.JOB_BODY_COLUMNS).where(JOBS.c.experiment_id == experiment_id)
        if states is not None:
            statement = statement.where(JOBS.c.state.in_([str(state) for state in states]))
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(JOBS.c.sequence)).all()
        return [queries.job_row(row) for row in rows]

    def waiting(self, limit: int = 5000) -> list[WaitingJob]:
        """Jobs that could be placed now, the first of each experiment and choice of devices."""
        with self._database.read() as connection:
            return queries.waiting(connection, limit, lambda experiment_id: self._spec(experiment_id))

    def shares(self) -> dict[str, Share]:
        """What each experiment has of the farm, for fairness."""
        with self._database.read() as connection:
            return queries.shares(connection)

    def undecided(self, limit: int = 20) -> list[Lane]:
        """Where only held jobs are left, so that it can be decided whether more blocks follow."""
        with self._database.read() as connection:
            return extension.undecided(connection, limit)

    def extend(self, lane: Lane, add: Sequence[Job], reserve: Sequence[Job] = ()) -> bool:
        """Decide about a lane: `add` waits from now on, in this order; `reserve` is held; other held jobs are dropped.

        False, and nothing is changed, where the lane is not any more as it was when it was given: somebody else has
        decided, or cancelled it.
        """
        with self._database.write() as connection:
            return extension.extend(connection, lane, add, reserve)

    def lane_jobs(self, lane: Lane) -> list[JobRow]:
        """All jobs of a lane in order."""
        with self._database.read() as connection:
            return extension.jobs(connection, lane)

    def begin_attempt(self, job_id: str, serial: str, host: str, ttl_s: float) -> Assignment | None:
        """Begin an attempt under a new fencing token; None where the job does not wait any more."""
        with self._database.write() as connection:
            return attempts.begin(connection, job_id, serial, host, ttl_s)

    def mark_running(self, job_ids: Iterable[str]) -> None:
        """These placed jobs were claimed by a worker."""
        ids = list(job_ids)
        if not ids:
            return
        with self._database.write() as connection:
            statement = update(JOBS).where(JOBS.c.id.in_(ids), JOBS.c.state == JobState.PLACED)
            connection.execute(statement.values(state=JobState.RUNNING))

    def running(self) -> list[RunningRow]:
        """Attempts under way, oldest token first."""
        with self._database.read() as connection:
            return queries.running(connection)

    def assignment(self, row: RunningRow) -> Assignment:
        """The assignment of an attempt under way, as it was handed out."""
        with self._database.read() as connection:
            return queries.assignment(connection, row)

    def end_attempt(self, job_id: str, attempt: int, outcome: Outcome, cause: str) -> JobState | None:
        """End an attempt that left no record; the job waits again within its budget.

        Returns the job's state after it; None where the attempt had ended already.
        """
        with self._database.write() as connection:
            return attempts.end(connection, job_id, attempt, outcome, cause, self._retries, self._quarantine_after)

    # records

    def keep(self, record: Record) -> Kept:
        """Keep a record once per (job, attempt), from the job's newest token only, and conclude its attempt."""
        with self._database.write() as connection:
            return attempts.keep(connection, record, self._retries, self._quarantine_after)

    def records(
        self, experiment_id: str, *, outcomes: Iterable[str] | None = None, serial: str | None = None
    ) -> Iterator[Record]:
        """Records of an experiment in order of their start, read in batches."""
        statement = select(RECORDS.c.job_id, RECORDS.c.attempt).where(RECORDS.c.experiment_id == experiment_id)
        if outcomes is not None:
            statement = statement.where(RECORDS.c.outcome.in_([str(outcome) for outcome in outcomes]))
        if serial is not None:
            statement = statement.where(RECORDS.c.serial == serial)
        order = (RECORDS.c.started_at, RECORDS.c.job_id, RECORDS.c.attempt)
        with self._database.read() as connection:
            keys = connection.execute(statement.order_by(*order)).all()
        for start in range(0, len(keys), BATCH):
            yield from self._records([(job_id, attempt) for job_id, attempt in keys[start : start + BATCH]])

    def records_of(self, job_ids: Iterable[str]) -> Iterator[Record]:
        """All records of these jobs, read in batches."""
        wanted = sorted(job_ids)
        for start in range(0, len(wanted), BATCH):
            statement = select(RECORDS.c.body).where(RECORDS.c.job_id.in_(wanted[start : start + BATCH]))
            with self._database.read() as connection:
                bodies = connection.scalars(statement).all()
            yield from (Record.model_validate_json(unpack(body)) for body in bodies)

    def _records(self, keys: list[tuple[str, int]]) -> Iterator[Record]:
        """Unpacked one after the other: a batch of long records is large only while it is packed."""
        statement = select(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.body)
        with self._database.read() as connection:
            rows = connection.execute(statement.where(RECORDS.c.job_id.in_({job_id for job_id, _ in keys}))).all()
        bodies = {(row.job_id, row.attempt): row.body for row in rows}
        for key in keys:
            yield Record.model_validate_json(unpack(bodies.pop(key)))

    def adopt(self, experiment_id: str, experiment: Experiment, found: Iterable[Imported]) -> bool:
        """Store what somebody else measured, all or nothing; False where the experiment is there already."""
        with self._database.write() as connection:
            if queries.experiment_rows(connection, experiment_id):
                return False
            imports.adopt(connection, experiment_id, experiment, found)
        return True

    # devices

    def quarantined(self) -> list[Quarantine]:
        with self._database.read() as connection:
            return health.quarantined(connection, self._quarantine_after, self._quarantine_s)

    def resting(self) -> dict[str, float]:
        """Devices that get no work for a while after a loss -> until when (Unix time)."""
        with self._database.read() as connection:
            return health.resting(connection, self._rest_s)

    def clear_quarantine(self, serial: str) -> bool:
        """Give a device work again and forget its losses; False where it was not in quarantine."""
        with self._database.write() as connection:
            return health.clear(connection, serial)

    def parole(self, serial: str) -> bool:
        """Give a device work again on probation: one more loss puts it back. False where it was not in quarantine."""
        with self._database.write() as connection:
            return health.parole(connection, serial)

    def _spec(self, experiment_id: str) -> Experiment:
        if experiment_id not in self._specs:
            self._specs[experiment_id] = self.experiment(experiment_id).experiment
        return self._specs[experiment_id]

    def _no_experiment(self, experiment_id: str) -> StableError:
        with self._database.read() as connection:
            known = list(
                connection.scalars(select(EXPERIMENTS.c.id).order_by(EXPERIMENTS.c.sequence.desc()).limit(1000))
            )
        near = get_close_matches(experiment_id, known, n=3) or known[:3]
        hint = f"did you mean {' or '.join(near)}?" if near else "the ledger holds no experiment yet"
        return StableError(f"there is no experiment or job {experiment_id!r}", remedy=hint)


def _experiment_row(row: AnyRow, counts: dict[str, int]) -> ExperimentRow:
    return ExperimentRow(
        id=row.id,
        experiment=Experiment.model_validate_json(row.spec),
        exclusions=queries.exclusions_from_json(row.exclusions),
        submitted_at=row.submitted_at,
        counts=counts,
    )


__all__ = ["ExperimentRow", "Imported", "JobRow", "JobState", "Kept", "Lane", "Ledger", "Quarantine", "RunningRow"]
