"""Store, find and cancel experiments; one is stored with all its jobs or not at all."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, insert, select, update

from orchestrator.model.errors import UnknownName
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.people import COMMON
from orchestrator.model.record import Outcome

from . import queries, templates
from .aggregates.queue import name_in
from .database import count_up
from .packed import read_row, readable, readable_rows
from .queue import changes, extension
from .queue.tallies import tallies, words
from .rows import OPEN, AnyRow, ExperimentRow, JobState, Origin
from .tables import ATTEMPTS, EXPERIMENTS, JOBS, NIGHTS, number_of
from .templates import NewJobs

if TYPE_CHECKING:
    from orchestrator.model.rights import Place

OF_SUITE = "suite:"
SPECS = 128
"""Specs that are kept as they were read: an experiment's never changes, and a page lists fifty."""
_SPEC = select(EXPERIMENTS.c.spec).where(EXPERIMENTS.c.id == bindparam("mine"))
_ITS_JOB = select(JOBS.c.experiment).where(JOBS.c.id == bindparam("mine")).scalar_subquery()
_PLACE = select(EXPERIMENTS.c.project, EXPERIMENTS.c.submitted_by).where(
    (EXPERIMENTS.c.id == bindparam("mine")) | (EXPERIMENTS.c.sequence == _ITS_JOB)
)
"""The place of a target, which each request asks that names one."""


def is_there(connection: Connection, experiment_id: str) -> bool:
    """Return whether the ledger has this experiment."""
    return connection.execute(select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.id == experiment_id)).first() is not None


def columns(
    number: int,
    experiment_id: str,
    experiment: Experiment,
    exclusions: Iterable[Exclusion] = (),
    by: str | None = None,
    project: str = COMMON,
    origin: Origin | None = None,
) -> dict[str, Any]:
    """The row of an experiment. `number`: in the order of submission."""
    return {
        "id": experiment_id,
        "sequence": number,
        "spec": experiment.model_dump_json(),
        "exclusions": json.dumps([asdict(exclusion) for exclusion in exclusions]),
        "submitted_at": time.time(),
        "submitted_by": user() if by is None else by[:100],
        "project": project,
        "origin": json.dumps(asdict(origin)) if origin is not None else "",
    }


def user() -> str:
    """Return who runs this process; empty where the machine has no name for them."""
    try:
        return getpass.getuser()[:100]
    except (OSError, KeyError):
        return ""


def rows_of(jobs: Sequence[Job], reserve: Sequence[Job]) -> NewJobs:
    """Jobs in their order, and those that are held: packed before the transaction, which others wait for."""
    return templates.prepare(((jobs, JobState.WAITING), (reserve, JobState.HELD)))


def submit(
    connection: Connection,
    experiment_id: str,
    experiment: Experiment,
    rows: NewJobs,
    exclusions: Iterable[Exclusion],
    by: str | None = None,
    project: str = COMMON,
) -> bool:
    """Store an experiment with its jobs; False, and nothing is changed, where it is there already.

    Of two that come at the same moment one waits here for the other's commit, and then finds it.
    """
    count_up(connection, "experiment", 0)
    if is_there(connection, experiment_id):
        return False
    number = count_up(connection, "experiment")
    row = columns(number, experiment_id, experiment, exclusions, by, project)
    connection.execute(insert(EXPERIMENTS).values(**row))
    templates.store(connection, number, rows)
    return True


def every(connection: Connection) -> list[ExperimentRow]:
    """Return all experiments in order of submission; what cannot be read is logged and skipped."""
    rows = connection.execute(select(EXPERIMENTS).order_by(EXPERIMENTS.c.sequence)).all()
    counts = queries.counts(connection, None)  # after the rows: what comes meanwhile is not over
    return readable_rows("experiment", rows, lambda row: _row(row, counts.get(row.id, {})))


def rows(connection: Connection, found: Sequence[AnyRow]) -> list[ExperimentRow]:
    """Return the experiments of these rows, each with its own counts; what cannot be read is logged and skipped."""
    counts = words(tallies(connection, [row.sequence for row in found]))
    return readable_rows("experiment", found, lambda row: _row(row, counts.get(row.sequence, {})))


def names(connection: Connection) -> dict[str, str]:
    """Id -> name in order of submission; looks at no job. What cannot be read is logged and skipped."""
    rows = connection.execute(select(EXPERIMENTS.c.id, EXPERIMENTS.c.spec).order_by(EXPERIMENTS.c.sequence))
    return dict(readable_rows("experiment", rows, lambda row: (row.id, name_in(row.spec))))


def one(connection: Connection, experiment_id: str) -> ExperimentRow:
    """Return one experiment. Raises UnknownName where there is none, naming close ones; Unreadable."""
    row = connection.execute(select(EXPERIMENTS).where(EXPERIMENTS.c.id == experiment_id)).first()
    if row is None:
        raise _unknown(connection, experiment_id)
    return _row(row, words(tallies(connection, [row.sequence])).get(row.sequence, {}))


def place_of(connection: Connection, target: str) -> Place:
    """Return the project and the submitter of an experiment or job; of a night or (`suite:NAME`) of all nights of a
    suite, the farm (no project). Raises UnknownName."""
    from orchestrator.model.rights import Place  # only acts of others than the owner, and the API, ask for it

    if (row := connection.execute(_PLACE, {"mine": target}).first()) is None:
        night = (NIGHTS.c.id == target) | (OF_SUITE + NIGHTS.c.suite == target)
        if connection.execute(select(NIGHTS.c.id).where(night).limit(1)).first() is not None:
            return Place("")
        raise _unknown(connection, target)
    return Place(row.project, row.submitted_by)


def spec(connection: Connection, experiment_id: str) -> Experiment | None:
    """Return what was asked for, without a look at its jobs; None, logged, where it cannot be read."""

    def read() -> Experiment:
        return _read_spec(connection.scalar(_SPEC, {"mine": experiment_id}) or "")

    return readable(f"experiment {experiment_id}", read)


def cancel(connection: Connection, target: str) -> list[str]:
    """Cancel the open jobs of an experiment, or one job; their ids. Raises UnknownName where there is neither."""
    meant = (JOBS.c.experiment == number_of(target)) | (JOBS.c.id == target)
    known = connection.execute(select(JOBS.c.id).where(meant).limit(1)).first()
    if known is None and not is_there(connection, target):
        raise _unknown(connection, target)
    statement = (
        update(JOBS)
        .where(meant, JOBS.c.state.in_(OPEN))
        .values(state=JobState.CANCELLED, ended_at=time.time())
        .returning(JOBS.c.id, JOBS.c.lane_id)
    )
    rows = connection.execute(statement).all()
    if rows:
        changes.note_lanes(connection, {row.lane_id for row in rows})
        cancelled = select(JOBS.c.id).where(meant, JOBS.c.state == JobState.CANCELLED)
        changes.note_attempts(connection, ATTEMPTS.c.ended_at.is_(None) & ATTEMPTS.c.job_id.in_(cancelled))
    return sorted(row.id for row in rows)


def retry(connection: Connection, target: str) -> list[str]:
    """Put the lost, failed and killed jobs of an experiment, or one such job, back into the queue; their ids.

    Where a strategy decides, a kill is an answer: of such an experiment the lost and failed ones. The strategy is asked
    again when they are over. They have their whole budget again; their attempts and records
    stay. What another lab measured is not run here. Raises UnknownName where there is neither.
    """
    meant = (JOBS.c.experiment == number_of(target)) | (JOBS.c.id == target)
    known = connection.execute(select(JOBS.c.id).where(meant).limit(1)).first()
    if known is None and not is_there(connection, target):
        raise _unknown(connection, target)
    meant &= JOBS.c.experiment.in_(select(EXPERIMENTS.c.sequence).where(EXPERIMENTS.c.origin == ""))
    statement = (
        update(JOBS)
        .where(meant, JOBS.c.state == JobState.DONE, JOBS.c.outcome.in_(_to_retry(connection, target)))
        .values(state=JobState.WAITING, outcome="", cause="", failures=0, not_before=0.0, ended_at=None)
        .returning(JOBS.c.id, JOBS.c.lane_id, JOBS.c.experiment)
    )
    rows = connection.execute(statement).all()
    lanes = {row.lane_id for row in rows}
    changes.note_lanes(connection, lanes)
    if rows and _may_grow(connection, rows[0].experiment):
        extension.ask_again(connection, rows[0].experiment, lanes)
    return sorted(row.id for row in rows)


def _to_retry(connection: Connection, target: str) -> tuple[Outcome, ...]:
    experiment = spec(connection, target) if is_there(connection, target) else None
    decides = experiment is not None and experiment.strategy is not None
    return (Outcome.LOST, Outcome.FAILED) if decides else (Outcome.LOST, Outcome.FAILED, Outcome.KILLED)


def _may_grow(connection: Connection, number: int) -> bool:
    name = connection.execute(select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.sequence == number)).scalar_one()
    experiment = spec(connection, name)
    return experiment is not None and experiment.may_grow


@lru_cache(maxsize=SPECS)
def _read_spec(text: str) -> Experiment:
    return Experiment.model_validate_json(text)


def _row(row: AnyRow, counts: dict[str, int]) -> ExperimentRow:
    return read_row(
        f"experiment {row.id}",
        lambda: ExperimentRow(
            id=row.id,
            experiment=_read_spec(row.spec),
            exclusions=tuple(Exclusion(**fields) for fields in json.loads(row.exclusions)),
            submitted_at=row.submitted_at,
            submitter=row.submitted_by,
            project=row.project,
            counts=counts,
            origin=Origin(**json.loads(row.origin)) if row.origin else None,
        ),
    )


def _unknown(connection: Connection, experiment_id: str) -> UnknownName:
    newest = select(EXPERIMENTS.c.id).order_by(EXPERIMENTS.c.sequence.desc()).limit(1000)
    known = list(connection.scalars(newest))
    near = get_close_matches(experiment_id, known, n=3) or known[:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "the ledger holds no experiment yet"
    return UnknownName(f"there is no experiment or job {experiment_id!r}", remedy=hint)
