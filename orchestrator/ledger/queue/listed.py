"""Jobs and attempts one by one and page by page, as a person looks at them. One transaction a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Connection, Select, bindparam, func, or_, select

from orchestrator.ledger import experiments
from orchestrator.ledger.database import Database, padded
from orchestrator.ledger.queries import JOB_COLUMNS, job_row
from orchestrator.ledger.queue.groups import members
from orchestrator.ledger.queue.tallies import having, tallies
from orchestrator.ledger.rows import OPEN, AnyRow, ExperimentRow, JobRow, JobState, block_label
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, FIGURES, JOBS, NAMED_JOBS, TEMPLATES, number_of
from orchestrator.ledger.templates import JobReader
from orchestrator.model.base import like
from orchestrator.model.device import Source
from orchestrator.model.errors import UnknownName

TO_RUN = (JobState.WAITING, JobState.PLACED, JobState.RUNNING)
NEWEST = 50_000
"""Attempts of the farm among which those of one device are looked for: the newest ones."""


@dataclass(frozen=True)
class AttemptRow:
    """An attempt, whether it is over or not."""

    job_id: str
    experiment_id: str
    label: str
    attempt: int
    token: int
    serial: str
    host: str
    started_at: float
    ended_at: float | None
    outcome: str
    cause: str
    median_ms: float | None
    """The median of its timed samples, where it went well."""
    source: Source | None
    """The source of what it measured; None: there are no figures of it."""


@dataclass(frozen=True)
class ListedJob:
    """A job in a list."""

    job_id: str
    experiment_id: str
    label: str
    word: str
    """Its state or, where it is done, its outcome."""
    cause: str
    attempts: int
    serial: str
    """Device of its newest attempt; empty: there was none."""
    ended_at: float | None


class OpenJob(NamedTuple):
    """A job that is not over."""

    job: str
    label: str
    """The name of all its blocks."""
    state: str


@dataclass(frozen=True)
class JobPage:
    """A part of a list of jobs."""

    rows: tuple[ListedJob, ...]
    total: int


class Listed:
    """Every method raises ServiceDown where the database is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def job(self, job_id: str) -> JobRow:
        """Raises UnknownName where there is none, Unreadable."""
        with self._database.read() as connection:
            row = connection.execute(select(*JOB_COLUMNS).where(JOBS.c.id == job_id)).first()
            if row is not None:
                return job_row(JobReader(connection, [row]), row)
        raise UnknownName(f"there is no job {job_id!r}", remedy="`farm status EXPERIMENT` names those that failed")

    def attempts(self, job_id: str) -> list[AttemptRow]:
        """All at one job, in order."""
        with self._database.read() as connection:
            rows = connection.execute(_ATTEMPTS.where(ATTEMPTS.c.job_id == job_id).order_by(ATTEMPTS.c.attempt))
            return [_attempt(row) for row in rows]

    def of_device(self, serial: str, most: int, projects: Collection[str] | None = None) -> list[AttemptRow]:
        """The newest attempts on a device, the newest first; of these projects, or of any."""
        with self._database.read() as connection:
            oldest = connection.execute(_OLDEST).scalar() or 0
            wanted = _OF_A_DEVICE if projects is None else _OF_A_DEVICE.where(*_in(projects))
            rows = connection.execute(wanted, {"device": serial, "oldest": oldest, "most": most})
            return [_attempt(row) for row in rows]

    def jobs(self, experiment_id: str | None, words: Sequence[str], first: int, most: int) -> JobPage:
        """Jobs of an experiment or of all, in order of submission: of these states or outcomes, or of any."""
        with self._database.read() as connection:
            if experiment_id is None:
                of_jobs, order = [_told(words)] if words else [], (JOBS.c.experiment, JOBS.c.sequence)
                total = int(connection.scalar(select(func.count()).select_from(JOBS).where(*of_jobs)) or 0)
                page = select(JOBS.c.id).where(*of_jobs).order_by(*order).offset(first).limit(most)
                return _page(connection, list(connection.scalars(page)), total)
            numbers = list(connection.scalars(select(EXPERIMENTS.c.sequence).where(EXPERIMENTS.c.id == experiment_id)))
            found = [each for each in tallies(connection, numbers) if not words or each.word in words]
            alike = {(each.experiment, each.state, each.outcome) for each in found}
            named = [_first(connection, *each, first + most) for each in alike]
            ids = [each for _, each in sorted(row for rows in named for row in rows)]
            return _page(connection, ids[first : first + most], sum(each.jobs for each in found))

    def unfinished(self, experiment_id: str, most: int) -> list[OpenJob]:
        """The first jobs of an experiment that are to be run or run, in order of submission."""
        mine = JOBS.c.experiment == number_of(experiment_id), JOBS.c.state.in_(TO_RUN)
        found = select(JOBS.c.id, TEMPLATES.c.label, JOBS.c.state).select_from(NAMED_JOBS).where(*mine)
        with self._database.read() as connection:
            return [OpenJob(*row) for row in connection.execute(found.order_by(JOBS.c.sequence).limit(most)).all()]

    def experiments(
        self, first: int, most: int, *, projects: Collection[str] | None = None, submitter: str = ""
    ) -> tuple[list[ExperimentRow], int]:
        """Experiments, the newest first, and how many there are: of these projects and of this person, or of any. What
        cannot be read is logged and left out."""
        of = [EXPERIMENTS.c.submitted_by == submitter] * bool(submitter)
        of += _in(projects)
        newest = select(EXPERIMENTS).where(*of).order_by(EXPERIMENTS.c.sequence.desc()).offset(first).limit(most)
        with self._database.read() as connection:
            total = int(connection.scalar(select(func.count()).select_from(EXPERIMENTS).where(*of)) or 0)
            return experiments.rows(connection, connection.execute(newest).all()), total

    def projects(self, beginning: str) -> dict[str, str]:
        """Return the project of each experiment whose id begins so; looks at no job."""
        with self._database.read() as connection:
            alike = EXPERIMENTS.c.id.startswith(beginning, autoescape=True)
            rows = connection.execute(select(EXPERIMENTS.c.id, EXPERIMENTS.c.project).where(alike))
            return {row.id: row.project for row in rows}

    def among(self, ids: Collection[str], projects: Collection[str] | None = None) -> set[str]:
        """Return those of these ids that are experiments, of these projects or of any."""
        with self._database.read() as connection:
            found = select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.id.in_(padded(list(ids))), *_in(projects))
            return set(connection.scalars(found))

    def open_experiments(self, most: int, projects: Collection[str] | None = None) -> tuple[list[ExperimentRow], int]:
        """The oldest of those with a job that is not over, and how many there are; of these projects, or of any."""
        mine = select(JOBS.c.id).where(JOBS.c.experiment == EXPERIMENTS.c.sequence, JOBS.c.state.in_(OPEN))
        found = select(EXPERIMENTS.c.sequence).where(mine.exists(), *_in(projects)).order_by(EXPERIMENTS.c.sequence)
        with self._database.read() as connection:
            numbers = connection.scalars(found).all()
            shown = select(EXPERIMENTS).where(EXPERIMENTS.c.sequence.in_(padded(numbers[:most])))
            rows = connection.execute(shown.order_by(EXPERIMENTS.c.sequence)).all()
            return experiments.rows(connection, rows), len(numbers)

    def waiting_among(self, job_ids: Iterable[str]) -> list[list[str]]:
        """Return which of these jobs wait, together those of one experiment and choice of devices."""
        with self._database.read() as connection:
            return list(members(connection, job_ids).values())

    def waiting(self, first: int, most: int, projects: Collection[str] | None = None) -> JobPage:
        """Jobs that wait, in order of priority and submission; of these projects, or of any."""
        with self._database.read() as connection:
            of = set(connection.scalars(select(EXPERIMENTS.c.sequence).where(*_in(projects))))
            wanted = [each for each in having(connection, JobState.WAITING) if each in of]
            waiting = Counter[tuple[int, int]]()
            for each in tallies(connection, wanted):
                waiting[-each.priority, each.experiment] += each.jobs * (each.state is JobState.WAITING)
            ids, before = list[str](), 0
            for (priority, number), jobs in sorted(waiting.items()):
                skip, left = max(0, first - before), most - len(ids)
                if skip < jobs and left > 0:
                    mine = JOBS.c.experiment == number, JOBS.c.state == JobState.WAITING, JOBS.c.priority == -priority
                    part = select(JOBS.c.id).where(*mine).order_by(JOBS.c.sequence).offset(skip).limit(left)
                    ids += connection.scalars(part)
                before += jobs
            return _page(connection, ids, before)


def _in(projects: Collection[str] | None) -> list[ColumnElement[bool]]:
    return [] if projects is None else [EXPERIMENTS.c.project.in_(sorted(projects))]


def _told(words: Sequence[str]) -> ColumnElement[bool]:
    done = (JOBS.c.state == JobState.DONE) & JOBS.c.outcome.in_(words)
    return or_(JOBS.c.state.in_(words), done)


def _first(connection: Connection, number: int, state: str, outcome: str, most: int) -> list[tuple[int, str]]:
    """Return the first jobs of an experiment that are alike: sequence and id."""
    mine = JOBS.c.experiment == number, JOBS.c.state == state, JOBS.c.outcome == outcome
    rows = connection.execute(select(JOBS.c.sequence, JOBS.c.id).where(*mine).order_by(JOBS.c.sequence).limit(most))
    return [(row.sequence, row.id) for row in rows]


def _page(connection: Connection, ids: Sequence[str], total: int) -> JobPage:
    found = {row.id: row for row in connection.execute(_LISTED, {"these": padded(ids)}).all()}
    tried = padded([row.id for row in found.values() if row.attempts])
    serials = {row.job_id: row.serial for row in connection.execute(_TRIED_ON, {"these": tried}).all()} if tried else {}
    return JobPage(tuple(_listed(found[each], serials.get(each, "")) for each in ids if each in found), total)


def _listed(row: AnyRow, serial: str) -> ListedJob:
    word = row.outcome if row.state == JobState.DONE else row.state
    label = block_label(row.label, row.block)
    return ListedJob(row.id, row.experiment_id, label, word, row.cause, row.attempts, serial, row.ended_at)


_THESE: BindParameter[Any] = bindparam("these", expanding=True)
_SHOWN = (JOBS.c[name] for name in ("id", "block", "state", "outcome", "cause", "attempts", "ended_at"))
_LISTED = (
    select(*_SHOWN, EXPERIMENTS.c.id.label("experiment_id"), TEMPLATES.c.label)
    .select_from(NAMED_JOBS)
    .where(JOBS.c.id.in_(_THESE))
)
_TRIED_ON = (
    select(ATTEMPTS.c.job_id, ATTEMPTS.c.serial).where(ATTEMPTS.c.job_id.in_(_THESE)).order_by(ATTEMPTS.c.attempt)
)


def _attempts() -> Select[Any]:
    of_job = NAMED_JOBS.join(ATTEMPTS, JOBS.c.id == ATTEMPTS.c.job_id)
    own = (FIGURES.c.job_id == ATTEMPTS.c.job_id) & (FIGURES.c.attempt == ATTEMPTS.c.attempt)
    named = (EXPERIMENTS.c.id.label("experiment_id"), TEMPLATES.c.label, JOBS.c.block)
    return select(ATTEMPTS, *named, FIGURES.c.median_ms, FIGURES.c.source).select_from(of_job.outerjoin(FIGURES, own))


_ATTEMPTS = _attempts()
_OLDEST = select(ATTEMPTS.c.token).order_by(ATTEMPTS.c.token.desc()).limit(1).offset(NEWEST)
_OF_A_DEVICE = (
    _ATTEMPTS.where(ATTEMPTS.c.serial == bindparam("device"), ATTEMPTS.c.token > bindparam("oldest"))
    .order_by(ATTEMPTS.c.token.desc())
    .limit(bindparam("most"))
)


def _attempt(row: AnyRow) -> AttemptRow:
    return like(
        AttemptRow,
        row,
        label=block_label(row.label, row.block),
        source=Source(row.source) if row.source else None,
    )
