"""Keep the held jobs of strategies, and apply the decision about them.

A held job is open, so its experiment is not finished; it is not placed either. When nothing else of its lane (its
experiment and choice of devices) is open, a strategy decides which jobs follow. The decision names the held jobs
that it was made for: of two made at once the second finds others, and does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, partial

from sqlalchemy import Connection, Integer, ScalarSelect, Select, bindparam, delete, func, select, update

from orchestrator.ledger import templates
from orchestrator.ledger.guard.column_types import unreadable
from orchestrator.ledger.packed import readable
from orchestrator.ledger.queries import JOB_COLUMNS, job_rows
from orchestrator.ledger.queue import changes
from orchestrator.ledger.queue.lanes import known_candidates
from orchestrator.ledger.rows import OPEN, AnyRow, JobRow, JobState, Lane
from orchestrator.ledger.tables import CHOICES, EXPERIMENTS, JOBS, LANES, number_of
from orchestrator.model.job import Job
from orchestrator.model.stopped import Stopped

BUSY = tuple(state for state in OPEN if state is not JobState.HELD)


def undecided(connection: Connection, limit: int = 20) -> list[Lane]:
    """Return lanes in which only held jobs are open, so that it can be decided whether more blocks follow. Reads no
    other jobs than open ones, by an index."""
    return [_lane(connection, row) for row in connection.execute(_undecided(), {"most": limit}).all()]


@cache
def _undecided() -> Select[tuple[int, str, str, int]]:
    """Asked in each turn in which something ended: made once."""
    held = JOBS.c.state == JobState.HELD
    reserved = select(JOBS.c.lane_id).where(held).distinct().subquery()
    busy = select(JOBS.c.id).where(JOBS.c.state.in_(BUSY), JOBS.c.lane_id == LANES.c.id)
    ended = (
        select(LANES.c.id, EXPERIMENTS.c.id.label("experiment_id"), CHOICES.c.candidates, LANES.c.choice_id)
        .join(reserved, reserved.c.lane_id == LANES.c.id)
        .join(EXPERIMENTS, EXPERIMENTS.c.sequence == LANES.c.experiment)
        .join(CHOICES, CHOICES.c.id == LANES.c.choice_id)
        .where(~busy.exists())
    )
    return ended.order_by(LANES.c.id).limit(bindparam("most", type_=Integer))


def _lane(connection: Connection, row: AnyRow) -> Lane:
    of_lane = (JOBS.c.lane_id == row.id) & (JOBS.c.state == JobState.HELD)
    held = connection.scalars(select(JOBS.c.id).where(of_lane))
    return Lane(row.id, row.experiment_id, known_candidates(row.choice_id, row.candidates), frozenset(held))


def jobs(connection: Connection, lane: Lane) -> list[JobRow]:
    """All jobs of a lane in order."""
    statement = select(*JOB_COLUMNS).where(JOBS.c.lane_id == lane.lane_id).order_by(JOBS.c.sequence)
    return job_rows(connection, connection.execute(statement).all())


def extend(
    connection: Connection, lane: Lane, add: Sequence[Job], reserve: Sequence[Job] = (), stopped: Stopped | None = None
) -> bool:
    """Replace a lane's held jobs by `add`, which wait from now on in this order, and `reserve`, which are held.
    `stopped`: why its strategy ended without what it was asked for.

    False, and nothing is changed, where the lane is not any more as it was when it was given: somebody else has
    decided, or cancelled it.
    """
    is_open = (JOBS.c.lane_id == lane.lane_id) & JOBS.c.state.in_(OPEN)
    rows = connection.execute(select(JOBS.c.id, JOBS.c.state).where(is_open).with_for_update()).all()
    if {row.id for row in rows} != lane.held or any(row.state != JobState.HELD for row in rows):
        return False
    number = number_of(lane.experiment_id)
    experiment, last = connection.execute(select(number)).scalar_one(), _newest(connection, number)[0]
    connection.execute(delete(JOBS).where(JOBS.c.id.in_(lane.held)))
    new = templates.prepare(((add, JobState.WAITING), (reserve, JobState.HELD)), last + 1)
    templates.store(connection, experiment, new)
    changes.note_lanes(connection, [lane.lane_id])  # also where nothing follows
    text = stopped.model_dump_json(exclude={"devices"}) if stopped else ""
    connection.execute(update(LANES).where(LANES.c.id == lane.lane_id).values(stopped=text))
    return True


def _newest(connection: Connection, experiment: int | ScalarSelect[int]) -> tuple[int, int]:
    """Return the largest sequence and block of an experiment's jobs that can be read."""
    known = (JOBS.c.experiment == experiment) & ~unreadable(JOBS, connection.dialect.name, ("sequence", "block"))
    largest = select(func.coalesce(func.max(JOBS.c.sequence), 0), func.coalesce(func.max(JOBS.c.block), 0))
    last, block = connection.execute(largest.where(known)).one()
    return last, block


def stopped_of(connection: Connection, experiment_id: str | None = None) -> dict[str, list[Stopped]]:
    """Strategies that ended without what they were asked for, by experiment; of one or of all."""
    statement = (
        select(EXPERIMENTS.c.id, LANES.c.id.label("lane_id"), LANES.c.stopped, LANES.c.choice_id, CHOICES.c.candidates)
        .join(EXPERIMENTS, EXPERIMENTS.c.sequence == LANES.c.experiment)
        .join(CHOICES, CHOICES.c.id == LANES.c.choice_id)
        .where(LANES.c.stopped != "")
        .order_by(LANES.c.id)
    )
    if experiment_id is not None:
        statement = statement.where(EXPERIMENTS.c.id == experiment_id)
    found: dict[str, list[Stopped]] = {}
    for row in connection.execute(statement):
        stopped = readable(f"why lane {row.lane_id} stopped", partial(Stopped.model_validate_json, row.stopped))
        if stopped is not None:
            devices = known_candidates(row.choice_id, row.candidates)
            found.setdefault(row.id, []).append(stopped.model_copy(update={"devices": devices}))
    return found


def ask_again(connection: Connection, experiment: int, lane_ids: Collection[int]) -> None:
    """Hold a job of lanes that have none, so that the strategy is asked when what is open there is over."""
    of_lanes = JOBS.c.experiment == experiment, JOBS.c.lane_id.in_(lane_ids)
    held = set(connection.scalars(select(JOBS.c.lane_id).where(*of_lanes, JOBS.c.state == JobState.HELD)))
    last, block = _newest(connection, experiment)
    first = select(func.min(JOBS.c.sequence)).where(*of_lanes, JOBS.c.lane_id.not_in(held)).group_by(JOBS.c.lane_id)
    rows = select(*JOB_COLUMNS).where(JOBS.c.experiment == experiment, JOBS.c.sequence.in_(first))
    again = [row.job.with_block(block + 1) for row in job_rows(connection, connection.execute(rows).all())]
    templates.store(connection, experiment, templates.prepare(((again, JobState.HELD),), last + 1))
    connection.execute(update(LANES).where(LANES.c.id.in_(lane_ids)).values(stopped=""))
