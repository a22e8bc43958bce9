"""Queries of the ledger that change nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from sqlalchemy import Connection, bindparam, func, select

from orchestrator.model.job import AnyJob, Job
from orchestrator.model.live.lease import Assignment

from .database import padded
from .packed import readable_rows
from .queue.histories import attempt_rows, running_rows
from .queue.lanes import devices_of
from .queue.tallies import tallies, words
from .rows import OPEN, AnyRow, JobRow, JobState, RunningRow
from .tables import ARCHIVES, COUNTERS, EXPERIMENTS, JOBS, RECORDS, number_of
from .templates import JOB_PARTS, ORDINARY, JobReader, Measured, measured

JOB_COLUMNS = (
    *JOB_PARTS,
    JOBS.c.state,
    JOBS.c.outcome,
    JOBS.c.cause,
    JOBS.c.attempts,
    JOBS.c.ended_at,
)
_TEMPLATE_OF = select(JOBS.c.id, JOBS.c.template_id).where(JOBS.c.id.in_(bindparam("these", expanding=True)))


def running(connection: Connection) -> list[RunningRow]:
    """Attempts that began and have not ended, oldest token first."""
    return running_rows(connection, attempt_rows(connection))


def assignment(connection: Connection, row: RunningRow) -> Assignment:
    """The assignment of an attempt, as it was handed out. Raises Unreadable."""
    parts = _parts(connection, row.job_id)
    job: Job = JobReader(connection, [parts], ORDINARY).read(parts)
    return Assignment(
        serial=row.serial,
        host=row.host,
        job_id=row.job_id,
        job=job.with_candidates((row.serial,)),
        attempt=row.attempt,
        token=row.token,
        ttl_s=row.ttl_s,
    )


def job(connection: Connection, job_id: str) -> AnyJob:
    """One job. Raises Unreadable."""
    parts = _parts(connection, job_id)
    return JobReader(connection, [parts]).read(parts)


def _parts(connection: Connection, job_id: str) -> AnyRow:
    return connection.execute(select(*JOB_PARTS).where(JOBS.c.id == job_id)).one()


def counts(connection: Connection, experiment_id: str | None) -> dict[str, dict[str, int]]:
    """Experiment -> jobs by state, or by outcome where done."""
    names = _names(connection, experiment_id)
    return {names[number]: of for number, of in words(tallies(connection, list(names))).items()}


def _names(connection: Connection, experiment_id: str | None) -> dict[int, str]:
    known = select(EXPERIMENTS.c.sequence, EXPERIMENTS.c.id).order_by(EXPERIMENTS.c.sequence)
    mine = known if experiment_id is None else known.where(EXPERIMENTS.c.id == experiment_id)
    return {row.sequence: row.id for row in connection.execute(mine)}


def device_counts(connection: Connection, experiment_id: str | None = None) -> dict[str, tuple[int, int]]:
    """Device -> (jobs that are over, all jobs), of the jobs that only this device may run; without held ones."""
    mine = tallies(connection, list(_names(connection, experiment_id)))
    found = [each for each in mine if each.state is not JobState.HELD]
    devices = devices_of(connection, {each.lane for each in found})
    done, total = Counter[str](), Counter[str]()
    for each in found:
        if len(devices[each.lane]) == 1:
            (serial,) = devices[each.lane]
            done[serial] += each.jobs * (each.state not in OPEN)
            total[serial] += each.jobs
    return {serial: (done[serial], total[serial]) for serial in total}


def jobs(
    connection: Connection, experiment_id: str, states: Iterable[str] | None = None, *, most: int | None = None
) -> list[JobRow]:
    """Jobs of an experiment in order, of all or only these states; the first of them where `most` are wanted."""
    statement = select(*JOB_COLUMNS).where(JOBS.c.experiment == number_of(experiment_id))
    if states is not None:
        statement = statement.where(JOBS.c.state.in_([str(state) for state in states]))
    return job_rows(connection, connection.execute(statement.order_by(JOBS.c.sequence).limit(most)).all())


def measured_by(connection: Connection, job_ids: Collection[str]) -> dict[str, Measured]:
    """Job -> what it measures, of those of these jobs that are there and can be read."""
    rows = connection.execute(_TEMPLATE_OF, {"these": padded(set(job_ids))}).all()
    found = measured(connection, {row.template_id for row in rows})
    return {row.id: found[row.template_id] for row in rows if row.template_id in found}


def job_rows(connection: Connection, rows: Sequence[AnyRow]) -> list[JobRow]:
    """Rows of `JOB_COLUMNS`; what cannot be read is logged and skipped."""
    return readable_rows("job", rows, partial(job_row, JobReader(connection, rows)))


def job_row(reader: JobReader, row: AnyRow) -> JobRow:
    """A row of `JOB_COLUMNS`. Raises Unreadable."""
    return JobRow(
        job_id=row.id,
        job=reader.read(row),
        state=JobState(row.state),
        outcome=row.outcome,
        cause=row.cause,
        attempts=row.attempts,
        ended_at=row.ended_at,
    )


def pruned(connection: Connection, experiment_id: str) -> dict[str, int]:
    """File of an archive (empty: none) -> raw records of an experiment that only it holds."""
    mine = (RECORDS.c.experiment_id == experiment_id) & (func.length(RECORDS.c.body) == 0)
    counted = select(func.coalesce(ARCHIVES.c.file, ""), func.count()).select_from(RECORDS).outerjoin(ARCHIVES)
    rows = connection.execute(counted.where(mine).group_by(ARCHIVES.c.file))
    return {str(file): int(count) for file, count in rows}


def restored(connection: Connection) -> int:
    """The number of the last time that the ledger was put back from a copy; 0: it never was."""
    return sum(connection.scalars(select(COUNTERS.c.value).where(COUNTERS.c.name == "restored")))
