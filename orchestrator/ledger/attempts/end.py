"""End attempts, by a record or without one, and count what was lost against job, device or host."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from orchestrator.ledger.blame import KILLS_WORKER, NOT_THE_JOB, UNMEASURED, died_alone, verdict_on
from orchestrator.ledger.database import count_up, execute_many
from orchestrator.ledger.people.usage import Spell, charge
from orchestrator.ledger.queue import changes
from orchestrator.ledger.rows import AnyRow, JobState
from orchestrator.ledger.said.health import absolve_host, forgive, update_health
from orchestrator.ledger.tables import ATTEMPTS, JOBS
from orchestrator.model.record import Outcome

from .acquit import acquit_beside

_CANCELLED, _WAITING = JobState.CANCELLED, JobState.WAITING  # members of an enum are slow to look up
_ENDED = (
    update(ATTEMPTS)
    .where(ATTEMPTS.c.job_id == bindparam("job_"), ATTEMPTS.c.attempt == bindparam("attempt_"))
    .values({name: bindparam(f"{name}_") for name in ("started_at", "ended_at", "outcome", "cause", "changed")})
)
_BEFORE = select(ATTEMPTS.c.ended_at).where(
    ATTEMPTS.c.token == bindparam("token"), ATTEMPTS.c.serial == bindparam("serial")
)
_DONE = (
    update(JOBS)
    .where(JOBS.c.id == bindparam("job_"))
    .values(state=JobState.DONE, **{name: bindparam(f"{name}_") for name in ("outcome", "cause", "ended_at")})
)


class Ended(NamedTuple):
    """An attempt that is over, with its job: their rows, and how it went."""

    job: AnyRow
    attempt: AnyRow
    outcome: Outcome
    cause: str
    took_s: float | None = None
    """The time from the start of its block, where it had waited in line before."""

    @property
    def is_measured(self) -> bool:
        """True if the job is over by it, whatever was before, and nobody is to blame."""
        alive = self.job.state != _CANCELLED
        return alive and self.outcome not in UNMEASURED and self.cause[:40] != KILLS_WORKER


def end(
    connection: Connection,
    job_id: str,
    attempt: int,
    outcome: Outcome,
    cause: str,
    budget: int,
    quarantine_after: int,
) -> JobState | None:
    """End an attempt that left no record. Returns the job's state after it; None where it had ended already."""
    row, tried = _locked(connection, job_id), _attempt(connection, job_id, attempt)
    if row is None or tried is None or tried.ended_at is not None:
        return None
    return conclude(connection, row, tried, outcome, cause, budget, quarantine_after)


def conclude_all(connection: Connection, ended: Sequence[Ended], budget: int, quarantine_after: int) -> None:
    """The same as `conclude` of each in their order; those that measured together, in few statements."""
    measured: list[Ended] = []
    for one in ended:
        if one.is_measured:
            measured.append(one)
            continue
        _conclude_measured(connection, measured)
        measured = []
        conclude(connection, *one[:4], budget, quarantine_after)
    _conclude_measured(connection, measured)


def _conclude_measured(connection: Connection, ended: Sequence[Ended]) -> None:
    if not ended:
        return
    now, change = time.time(), count_up(connection, changes.NUMBER)
    rows = [
        {"job_": one.job.id, "attempt_": one.attempt.attempt, "outcome_": one.outcome, "cause_": one.cause[:40]}
        for one in ended
    ]
    of_attempt = [
        {**row, "ended_at_": one.attempt.ended_at or now, "changed_": change, "started_at_": _began_at(one, now)}
        for row, one in zip(rows, ended, strict=True)
    ]
    execute_many(connection, _ENDED, of_attempt)
    fresh = [(one, row) for one, row in zip(ended, of_attempt, strict=True) if one.attempt.ended_at is None]
    charge(connection, (Spell(one.job.experiment, row["started_at_"], now) for one, row in fresh))
    forgive(connection, {one.attempt.serial for one in ended}, {one.attempt.host for one in ended})
    execute_many(connection, _DONE, [{**row, "ended_at_": now} for row in rows])
    changes.note_lanes(connection, [one.job.lane_id for one in ended if one.job.state == _WAITING])


def _began_at(one: Ended, now: float) -> float:
    """Return when an attempt began, without its time in line: service times are learnt from it."""
    placed_at = float(one.attempt.started_at)
    return placed_at if one.took_s is None else max(placed_at, (one.attempt.ended_at or now) - max(0.0, one.took_s))


def conclude(
    connection: Connection,
    job: AnyRow,
    attempt: AnyRow,
    outcome: Outcome,
    cause: str,
    budget: int,
    quarantine_after: int,
) -> JobState:
    """Note how an attempt ended; decide what becomes of its job: final, or tried again within the budget.

    A record that comes after its attempt was given up as lost still counts, unless it too says lost.
    """
    known_lost = attempt.ended_at is not None and outcome in UNMEASURED
    key = (ATTEMPTS.c.job_id == attempt.job_id) & (ATTEMPTS.c.attempt == attempt.attempt)
    ended_at, change = attempt.ended_at or time.time(), count_up(connection, changes.NUMBER)
    ended = update(ATTEMPTS).where(key).values(ended_at=ended_at, outcome=outcome, cause=cause[:40], changed=change)
    connection.execute(ended)
    if attempt.ended_at is None:
        charge(connection, [Spell(job.experiment, max(attempt.started_at, _in_line(connection, attempt)), ended_at)])
    if known_lost or job.state == JobState.CANCELLED:
        return JobState(job.state)
    before = _lost(connection, attempt) if outcome in UNMEASURED else []
    columns = {"cause": cause[:40], **_after(job, outcome, cause, before, budget)}
    if columns["cause"] == KILLS_WORKER:
        absolve_host(connection, attempt.host)
        acquit_beside(connection, attempt.job_id)
    elif not died_alone(cause, before):
        update_health(connection, attempt, outcome, cause, quarantine_after)
    connection.execute(update(JOBS).where(JOBS.c.id == job.id).values(**columns))
    if JobState.WAITING in (job.state, columns["state"]):  # else what waits is what it was
        changes.note_lanes(connection, [job.lane_id])
    return JobState(str(columns["state"]))


def _in_line(connection: Connection, attempt: AnyRow) -> float:
    """Return until when an attempt stood in line behind the one before it; 0 where it did not."""
    before = connection.execute(_BEFORE, {"token": attempt.token - 1, "serial": attempt.serial}).first()
    return 0.0 if before is None else time.time() if before.ended_at is None else float(before.ended_at)


def _lost(connection: Connection, attempt: AnyRow) -> list[str]:
    """Causes of the other attempts of the same job that were lost, in their order."""
    others = (ATTEMPTS.c.job_id == attempt.job_id) & (ATTEMPTS.c.attempt != attempt.attempt)
    lost = select(ATTEMPTS.c.cause).where(others, ATTEMPTS.c.outcome == Outcome.LOST).order_by(ATTEMPTS.c.attempt)
    return list(connection.scalars(lost))


def _after(job: AnyRow, outcome: Outcome, cause: str, before: Sequence[str], budget: int) -> dict[str, object]:
    """The columns of a job after an attempt with this outcome. `before`: causes of its earlier losses."""
    now = time.time()
    if outcome not in UNMEASURED:
        return {"state": JobState.DONE, "outcome": outcome, "ended_at": now}
    failures = job.failures + (cause not in NOT_THE_JOB)
    verdict = verdict_on(cause, before, failures, budget)
    columns = {"failures": failures, "cause": verdict.cause}
    if verdict.is_final:
        return {**columns, "state": JobState.DONE, "outcome": Outcome.LOST, "ended_at": now}
    return {**columns, "state": JobState.WAITING, "not_before": now + verdict.pause_s}


def _locked(connection: Connection, job_id: str) -> AnyRow | None:
    """A job's row, locked until the transaction ends (SQLite's writers have the whole database); None of one that
    cannot be read."""
    return next(iter(connection.execute(select(JOBS).where(JOBS.c.id == job_id).with_for_update()).all()), None)


def _attempt(connection: Connection, job_id: str, attempt: int) -> AnyRow | None:
    key = (ATTEMPTS.c.job_id == job_id) & (ATTEMPTS.c.attempt == attempt)
    return next(iter(connection.execute(select(ATTEMPTS).where(key)).all()), None)
