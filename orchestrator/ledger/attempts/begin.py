"""Begin attempts at waiting jobs, each under a growing fencing token, singly or a line of them at once; note which of
them were claimed."""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from sqlalchemy import BindParameter, ColumnElement, Connection, bindparam, func, insert, select, update

from orchestrator.ledger.database import count_up, padded
from orchestrator.ledger.queue import changes, lanes
from orchestrator.ledger.rows import AnyRow, JobState
from orchestrator.ledger.said import holds
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS
from orchestrator.ledger.templates import ORDINARY, JobReader
from orchestrator.model.errors import Unreadable
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.usage import Account
from orchestrator.model.record import Outcome

log = logging.getLogger(__name__)
_WAITING = (
    select(JOBS)
    .where(JOBS.c.id.in_(bindparam("these", expanding=True)), JOBS.c.state == JobState.WAITING)
    .order_by(JOBS.c.id)
    .with_for_update()
)
_UNTRIED_OF_LANE = (JOBS.c.lane_id == bindparam("lane"), JOBS.c.state == JobState.WAITING, JOBS.c.attempts == 0)
_SOME = select(JOBS.c.id).where(*_UNTRIED_OF_LANE).limit(bindparam("most")).subquery()
_COUNTED = select(func.count()).select_from(_SOME)
_UNTRIED = select(JOBS).where(*_UNTRIED_OF_LANE).order_by(JOBS.c.sequence).limit(bindparam("most")).with_for_update()
_BEGUN = insert(ATTEMPTS)
_PLACED = (
    update(JOBS)
    .where(JOBS.c.id == bindparam("mine"))
    .values(state=JobState.PLACED, attempts=bindparam("attempt_"), token=bindparam("token_"))
)
_SERVED = (
    update(EXPERIMENTS)
    .where(EXPERIMENTS.c.sequence.in_(bindparam("these", expanding=True)))
    .values(served_at=bindparam("now"))
)
_SUBMITTED = select(EXPERIMENTS.c.sequence, EXPERIMENTS.c.project, EXPERIMENTS.c.submitted_by).where(
    EXPERIMENTS.c.sequence.in_(bindparam("these", expanding=True))
)
_THESE: BindParameter[str] = bindparam("these", expanding=True)
_RUNNING = update(JOBS).where(JOBS.c.id.in_(_THESE), JOBS.c.state == JobState.PLACED).values(state=JobState.RUNNING)
_UNDER_WAY_CHANGED = (
    update(ATTEMPTS)
    .where(ATTEMPTS.c.job_id.in_(_THESE), ATTEMPTS.c.ended_at.is_(None))
    .values(changed=bindparam("change"))
)


@dataclass(frozen=True)
class Start:
    """An attempt that is to begin: a job on a device of a host."""

    job_id: str
    serial: str
    host: str
    more: int = 0
    """The number of jobs of its lane that may follow it there in one session."""


def begin(connection: Connection, starts: Sequence[Start], ttl_s: float) -> list[Assignment]:
    """Begin attempts at waiting jobs, each under a new token; without those whose job does not wait any more, or whose
    device somebody holds who does not let it in. Each has those in line that follow it."""
    most = sum(1 + start.more for start in starts)
    first = count_up(connection, "token", most) - most + 1  # locked from here: no hold begins meanwhile
    held = holds.held(connection, (start.serial for start in starts))
    rows = {row.id: row for row in connection.execute(_WAITING, {"these": padded([start.job_id for start in starts])})}
    starts = [start for start in starts if start.job_id in rows]
    if held:
        accounts = _accounts(connection, {rows[start.job_id].experiment for start in starts})
        starts = [s for s in starts if all(each.admits(accounts[rows[s.job_id].experiment]) for each in held[s.serial])]
    lines = _lines(connection, starts, rows)
    every = [rows[start.job_id] for start in starts] + [row for line in lines.values() for row in line]
    reader = JobReader(connection, every, ORDINARY)
    found: list[tuple[Start, list[tuple[AnyRow, Job]]]] = []
    for start in starts:
        line = (rows[start.job_id], *lines.get(start.job_id, ()))
        read = [(row, _read(connection, reader, row, start.serial)) for row in line]
        head = read[0][1]
        if head is not None:
            others = [(row, job) for row, job in read[1:] if job is not None and _may_follow(head, job)]
            found.append((start, [(rows[start.job_id], head), *others]))
    if not found:
        return []
    tokens = count(first)
    made = [_line(start, [(row, job, next(tokens)) for row, job in line], ttl_s) for start, line in found]
    begun = [row for _, jobs in found for row, _ in jobs]
    change = changes.note_lanes(connection, [row.lane_id for row in begun])
    _begin(connection, [each for one in made for each in one.every], {row.experiment for row in begun}, change)
    return made


def _accounts(connection: Connection, experiments: Collection[int]) -> dict[int, Account]:
    rows = connection.execute(_SUBMITTED, {"these": padded(experiments)})
    return {row.sequence: Account(row.project, row.submitted_by) for row in rows}


def _line(start: Start, jobs: Sequence[tuple[AnyRow, Job, int]], ttl_s: float) -> Assignment:
    """Return the assignment of the first job, with the others in line."""
    head, *others = (
        Assignment(
            serial=start.serial,
            host=start.host,
            job_id=row.id,
            job=job,
            attempt=row.attempts + 1,
            token=token,
            ttl_s=ttl_s,
        )
        for row, job, token in jobs
    )
    return head.model_copy(update={"line": tuple(others)}) if others else head


def _read(connection: Connection, reader: JobReader, row: AnyRow, serial: str) -> Job | None:
    """The job as a device is given it."""
    try:
        job: Job = reader.read(row)
    except Unreadable as e:
        log.error("event=unreadable job=%s error=%s", row.id, str(e).replace("\n", " "))
        fail(connection, JOBS.c.id == row.id, e.cause)
        return None
    return job if job.candidates == (serial,) else job.with_candidates((serial,))


def _may_follow(head: Job, job: Job) -> bool:
    """Return whether a block can run in the session of another: what the session prepares is the same for both."""
    return _is_plain(head) and _is_plain(job) and _prepared_for(head) == _prepared_for(job)


def _prepared_for(job: Job) -> tuple[object, ...]:
    return job.conditions, job.measure, job.cell.driver, job.cell.agent


def _is_plain(job: Job) -> bool:
    """It neither trains nor measures power, for which a session does more than run the agent."""
    trains = job.cell.workload.training is not None
    return not trains and "power" not in job.measure.quantities and job.conditions.supply == "any"


def _lines(connection: Connection, starts: Sequence[Start], rows: Mapping[str, AnyRow]) -> dict[str, list[AnyRow]]:
    """Job that starts -> the untried jobs of its lane that may follow it. Each device of the lane has its part of them:
    none has a line while another could have had a job."""
    heads = Counter(rows[start.job_id].lane_id for start in starts)
    of_lane: dict[int, list[Start]] = defaultdict(list)
    for start in starts:
        if start.more and rows[start.job_id].attempts == 0:
            of_lane[rows[start.job_id].lane_id].append(start)
    devices = {lane: max(1, len(named)) for lane, named in lanes.devices_of(connection, of_lane.keys()).items()}
    found: dict[str, list[AnyRow]] = {}
    for lane, ours in of_lane.items():
        enough = heads[lane] + max(start.more for start in ours) * devices[lane]
        some = connection.execute(_COUNTED, {"lane": lane, "most": enough}).scalar_one()
        part = (some - heads[lane]) // devices[lane]
        if part <= 0:
            continue
        rows_ahead = connection.execute(_UNTRIED, {"lane": lane, "most": heads[lane] + part * len(ours)})
        untried = [row for row in rows_ahead if row.id not in rows]
        for number, start in enumerate(ours):
            found[start.job_id] = untried[number * part : number * part + min(part, start.more)]
    return found


def _begin(connection: Connection, made: Sequence[Assignment], experiments: Collection[int], change: int) -> None:
    now = time.time()
    attempts = [
        {"job_id": a.job_id, "attempt": a.attempt, "token": a.token, "serial": a.serial, "host": a.host} for a in made
    ]
    columns = {"ttl_s": made[0].ttl_s, "started_at": now, "changed": change}
    connection.execute(_BEGUN, [{**row, **columns} for row in attempts])
    connection.execute(
        _PLACED, [{"mine": row["job_id"], "attempt_": row["attempt"], "token_": row["token"]} for row in attempts]
    )
    connection.execute(_SERVED, {"these": padded(experiments), "now": now})


def fail(connection: Connection, which: ColumnElement[bool], cause: str) -> None:
    """End jobs that are not under way without an attempt: none could work."""
    idle = JOBS.c.state.in_((JobState.WAITING, JobState.HELD))
    over = {"state": JobState.DONE, "outcome": Outcome.FAILED, "cause": cause, "ended_at": time.time()}
    ended = update(JOBS).where(which, idle).values(**over).returning(JOBS.c.lane_id)
    changes.note_lanes(connection, set(connection.scalars(ended)))


def mark_running(connection: Connection, job_ids: list[str]) -> None:
    """These placed jobs were claimed by a worker."""
    connection.execute(_RUNNING, {"these": padded(job_ids)})
    change = count_up(connection, changes.NUMBER)
    connection.execute(_UNDER_WAY_CHANGED, {"these": padded(job_ids), "change": change})
