"""Count jobs by lane, once for all who ask: what was counted stays until a change of its lane has a number.

A process that reads keeps its counts. Each question asks for the number of the newest change, and only the lanes that
changed since are counted again (`changes.py` numbers what begins to wait, begins, ends or goes).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, func, select, union

from orchestrator.ledger.database import AT_ONCE, parts
from orchestrator.ledger.rows import JobState
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS, LANES
from orchestrator.model.errors import Unreadable

from . import changes

PLACES = 5000
"""Jobs whose places are kept, likewise."""
KEPT = 2000
"""Experiments whose counts are kept; those that were asked for last."""
OLDEST_S = 30.0
"""No question to the ledger lasts so long: a number that went back since then was put back."""
_THESE: BindParameter[int] = bindparam("these", expanding=True)
_GROUP = (JOBS.c.experiment, JOBS.c.lane_id, JOBS.c.state, JOBS.c.outcome, JOBS.c.priority)
_COUNTED = (
    select(*_GROUP, func.count().label("jobs"), func.min(JOBS.c.sequence).label("sequence"))
    .where(JOBS.c.state.in_(list(JobState)), JOBS.c.lane_id.in_(_THESE))
    .group_by(*_GROUP)
)
_LANES = select(LANES.c.id, LANES.c.experiment).where(LANES.c.experiment.in_(_THESE))
_PLACE = (-JOBS.c.priority, JOBS.c.experiment, JOBS.c.sequence, JOBS.c.lane_id, JOBS.c.id, JOBS.c.state)
_PLACES = select(*_PLACE, JOBS.c.attempts > 0).where(JOBS.c.id.in_(_THESE))
"""Places by ids alone: a database that is also asked for their state may look at all that wait."""
_SINCE: BindParameter[int] = bindparam("since")
_TOUCHED = union(
    select(LANES.c.id, LANES.c.experiment).where(LANES.c.changed > _SINCE),
    select(JOBS.c.lane_id, JOBS.c.experiment)
    .join(ATTEMPTS, ATTEMPTS.c.job_id == JOBS.c.id)
    .where(ATTEMPTS.c.changed > _SINCE),
)


class Tally(NamedTuple):
    """Jobs of one lane that are alike."""

    experiment: int
    lane: int
    state: JobState
    outcome: str
    priority: int
    jobs: int
    sequence: int
    """The place of the first of them in its experiment."""

    @property
    def word(self) -> str:
        """Return the outcome where they are done, else the state."""
        return self.outcome if self.state == JobState.DONE else self.state


class Place(NamedTuple):
    """A job's place in the queue, by which places are ordered."""

    before: int
    """Its priority below zero."""
    experiment: int
    sequence: int
    lane: int
    job: str
    state: str
    tried: bool
    """True if it has had an attempt, so that it may wait for something of its own."""


Lanes = dict[int, list[Tally]]


class Tallies:
    """Counts that threads share. They are as new as the transaction that asks, or newer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at, self._renewed_at = -1, float("-inf")
        self._of: dict[int, Lanes] = {}
        """Experiment -> lane -> what is in it, those last that were asked for last."""
        self._places: dict[str, Place] = {}
        """Job -> its place, likewise."""

    def of(self, connection: Connection, experiments: Collection[int]) -> list[Tally]:
        """Return what is in these experiments, by their numbers."""
        with self._lock:
            is_newest = self._renew(connection)
            known = {each: self._of.pop(each) for each in experiments if each in self._of}
            self._of |= known
            new = _counted(connection, set(experiments) - set(known))
            if is_newest:
                self._of = dict([*self._of.items(), *new.items()][-KEPT:])
            return [tally for each in (*known.values(), *new.values()) for lane in each.values() for tally in lane]

    def places(self, connection: Connection, jobs: Collection[str]) -> list[Place]:
        """Return the places of those of these jobs that are there."""
        with self._lock:
            is_newest = self._renew(connection)
            known = {each: self._places.pop(each) for each in jobs if each in self._places}
            self._places |= known
            missing = parts(set(jobs) - set(known))
            new = {
                row.id: Place(*row) for part in missing for row in connection.execute(_PLACES, {"these": part}).all()
            }
            if is_newest:
                self._places = dict([*self._places.items(), *new.items()][-PLACES:])
            return [*known.values(), *new.values()]

    def _renew(self, connection: Connection) -> bool:
        """Count again what changed; return False where who asks began to read before somebody who asked already."""
        now = time.monotonic()
        try:
            newest = changes.newest(connection)
        except Unreadable:  # nothing is known of what changed
            self._of, self._places = {}, {}
            return False
        if newest < self._at and now < self._renewed_at + OLDEST_S:
            return False
        if newest < self._at:  # the ledger was put back
            self._of, self._places = {}, {}
        elif newest > self._at and (self._of or self._places):
            lanes = {row.id: row.experiment for row in connection.execute(_TOUCHED, {"since": self._at})}
            self._places = {job: place for job, place in self._places.items() if place.lane not in lanes}
            touched = {lane: experiment for lane, experiment in lanes.items() if experiment in self._of}
            if len(touched) > AT_ONCE:
                self._of = {each: lanes for each, lanes in self._of.items() if each not in set(touched.values())}
            else:
                _fill(connection, touched, self._of)
        self._at, self._renewed_at = newest, now
        return True


def _counted(connection: Connection, experiments: Collection[int]) -> dict[int, Lanes]:
    found: dict[int, Lanes] = {each: {} for each in experiments}
    for part in parts(experiments):
        lanes = connection.execute(_LANES, {"these": part})
        _fill(connection, {row.id: row.experiment for row in lanes}, found)
    return found


def _fill(connection: Connection, lanes: Mapping[int, int], into: Mapping[int, Lanes]) -> None:
    for lane, experiment in lanes.items():
        into[experiment][lane] = []
    for part in parts(lanes):
        for row in connection.execute(_COUNTED, {"these": part}):
            tally = Tally(row[0], row[1], JobState(row.state), row.outcome, row.priority, row.jobs, row.sequence)
            if tally.experiment == lanes[tally.lane]:  # else the number in a job's row is damaged
                into[tally.experiment][tally.lane].append(tally)


def tallies(connection: Connection, experiments: Collection[int]) -> list[Tally]:
    """Return what is in these experiments. In a transaction that writes nothing is kept: it may not be stored."""
    return _own(connection).of(connection, experiments)


def places(connection: Connection, jobs: Collection[str]) -> list[Place]:
    """Return the places of jobs in the queue, likewise."""
    return _own(connection).places(connection, jobs)


def _own(connection: Connection) -> Tallies:
    kept = connection.get_execution_options().get("farm_kept")
    own: Tallies = Tallies() if kept is None else kept.setdefault(Tallies, Tallies())
    return own


def words(found: Iterable[Tally]) -> dict[int, dict[str, int]]:
    """Experiment -> jobs by state, or by outcome where done."""
    counts: dict[int, Counter[str]] = {}
    for each in found:
        counts.setdefault(each.experiment, Counter())[each.word] += each.jobs
    return {number: dict(of) for number, of in counts.items()}


def having(connection: Connection, state: JobState) -> list[int]:
    """Return the numbers of the experiments that have a job in this state, in order of submission."""
    one = select(JOBS.c.id).where(JOBS.c.experiment == EXPERIMENTS.c.sequence, JOBS.c.state == state)
    found = select(EXPERIMENTS.c.sequence).where(one.exists()).order_by(EXPERIMENTS.c.sequence)
    return list(connection.scalars(found))
