"""The changes in the queue since a number: lanes with the jobs whose turn is next, and attempts under way."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from sqlalchemy import BindParameter, ColumnElement, Connection, Integer, Select, bindparam, func, select

from orchestrator.ledger.blame import UNMEASURED
from orchestrator.ledger.database import padded
from orchestrator.ledger.queue import lanes as lane_rows
from orchestrator.ledger.rows import AnyRow, JobState, RunningRow, block_label
from orchestrator.ledger.tables import EXPERIMENTS, JOBS, LANES, NAMED_JOBS, TEMPLATES
from orchestrator.model.experiment import Conditions, Experiment
from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.live.since import said
from orchestrator.model.live.usage import Account

from . import changes
from .histories import Served, attempt_rows, failed_on, running_rows, suspects
from .untried import Untried

HEADS = 64
"""Jobs of a lane that are read ahead: no turn begins more."""
MAX_TRIED = 1000
"""Jobs of a lane that were tried before and are looked at one by one."""
MOST = 1000
"""Experiments without a waiting lane of which is remembered what they ask: jobs of theirs may soon wait again."""
ONE_BY_ONE = 300
"""Changed lanes that are read singly, each by an index; more are ranked in one statement."""

Spec = Callable[[str], Experiment | None]
"""An experiment by its id; None where it cannot be read, and its jobs are left out."""


@dataclass(frozen=True)
class WaitingLane:
    """The jobs that wait in a lane."""

    experiment_id: str
    choice: int
    """Number of its choice of devices, of which all lanes of that choice have the same tuple."""
    untried: Sequence[WaitingJob]
    """The first ones, which differ in their order only."""
    tried: tuple[WaitingJob, ...]
    """Each with its own history."""
    account: Account
    """The project and the submitter of its experiment."""

    @property
    def groups(self) -> list[Sequence[WaitingJob]]:
        """Alike jobs together, as placement wants them."""
        return [*([self.untried] if self.untried else []), *((job,) for job in self.tried)]


@dataclass(frozen=True)
class _Asked:
    """The facts of an experiment that placement asks for."""

    conditions: Conditions
    """Equal ones are one object."""
    policy: str | None
    deadline: float | None
    said: frozenset[str]


class _Histories(NamedTuple):
    """The histories of jobs that were tried."""

    failed: Mapping[str, set[str]]
    suspects: set[str]

    def failed_on(self, job_id: str) -> frozenset[str]:
        return frozenset(self.failed.get(job_id, ()))


@dataclass(frozen=True)
class News:
    """The changes since a number. None stands for what is over: no job waits in the lane, the attempt has ended."""

    number: int
    lanes: dict[int, WaitingLane | None] = field(default_factory=dict)
    attempts: dict[int, RunningRow | None] = field(default_factory=dict)
    """The attempts under way, by token."""
    served: dict[str, Served] = field(default_factory=dict)
    """The services, by experiment, of those attempts."""
    took_s: dict[str, list[float]] = field(default_factory=dict)
    """The durations, by experiment, of those that measured."""


class NewsReader:
    """Caches what never changes: choices of devices, one object each, and what placement asks of experiments, for as
    long as somebody keeps a lane of theirs that was read here, and a while longer."""

    def __init__(self, spec: Spec, fail_choice: Callable[[int], None]) -> None:
        """`fail_choice`: ends the jobs of a choice of devices that cannot be read."""
        self._spec, self._fail_choice = spec, fail_choice
        self._choices: dict[int, tuple[str, ...]] = {}
        self._asked: WeakValueDictionary[str, _Asked] = WeakValueDictionary()
        """The facts by experiment; its lanes hold them."""
        self._latest: deque[_Asked] = deque(maxlen=MOST)
        self._conditions: WeakValueDictionary[str, Conditions] = WeakValueDictionary()

    def read(self, connection: Connection, since: int | None) -> News | None:
        """None where nothing is newer. `since` None: everything."""
        number = changes.newest(connection)
        if number == since:
            return None
        rows = attempt_rows(connection, since)
        attempts, served = self._attempts(connection, rows)
        return News(number, self._lanes(connection, since), attempts, served, _took(rows))

    def _attempts(
        self, connection: Connection, rows: Sequence[AnyRow]
    ) -> tuple[dict[int, RunningRow | None], dict[str, Served]]:
        under_way = {row.token: row for row in running_rows(connection, [row for row in rows if row.ended_at is None])}
        served: dict[str, Served] = {}
        for row in rows:  # the oldest first
            at = max(row.started_at, served[row.experiment_id].at if row.experiment_id in served else 0.0)
            served[row.experiment_id] = Served(at, row.serial)
        return {row.token: under_way.get(row.token) for row in rows}, served

    def _lanes(self, connection: Connection, since: int | None) -> dict[int, WaitingLane | None]:
        changed = _Lanes(_WAITING_LANES, {}) if since is None else _Lanes(_CHANGED_LANES, {"since": since})
        wanted = list(connection.scalars(*changed))
        if not wanted:
            return {}
        lanes = _numbered(connection, wanted, changed)
        self._know(connection, {row.choice_id for row in lanes})
        if len(wanted) <= ONE_BY_ONE:
            untried = [
                row
                for lane in lanes
                for row in connection.execute(_HEADS, {"lane": lane.id, "most": self._most(lane.choice_id)}).all()
            ]
            again = list(connection.scalars(_LANES_TRIED, {"these": padded([lane.id for lane in lanes])}))
            tried = [row for lane in again for row in connection.execute(_TRIED_OF_LANE, {"lane": lane})]
        else:
            untried = [*_all_heads(connection, changed)]
            tried = [*connection.execute(_tried(JOBS.c.lane_id.in_(changed.ids)), changed.asked)]
        return self._made(connection, lanes, untried, tried)

    def _most(self, choice: int) -> int:
        return min(HEADS, len(self._choices[choice]))

    def _know(self, connection: Connection, choices: set[int]) -> None:
        if lacking := choices - self._choices.keys():
            self._choices |= lane_rows.choices_of(connection, lacking)
            for choice in lacking:
                if not self._choices[choice]:
                    self._fail_choice(choice)

    def _made(
        self, connection: Connection, lanes: Sequence[AnyRow], untried: Iterable[AnyRow], tried: Sequence[AnyRow]
    ) -> dict[int, WaitingLane | None]:
        ids = [row.id for row in tried]
        histories = _Histories(failed_on(connection, ids), suspects(connection, ids))
        first: dict[int, list[AnyRow]] = defaultdict(list)
        again: dict[int, list[AnyRow]] = defaultdict(list)
        for rows, of_lane in ((untried, first), (tried, again)):
            for row in rows:
                of_lane[row.lane_id].append(row)
        return {
            row.id: self._lane(row.choice_id, first.get(row.id, []), again.get(row.id, []), histories) for row in lanes
        }

    def _lane(
        self, choice: int, untried: Sequence[AnyRow], tried: Sequence[AnyRow], histories: _Histories
    ) -> WaitingLane | None:
        first = next(iter((*untried[:1], *tried[:1])), None)
        asked = None if first is None else self._asked_by(first.experiment_id)
        if first is None or asked is None or not self._choices[choice]:
            return None
        make = partial(_job, asked, self._choices[choice])
        known = tuple(make(row, histories.failed_on(row.id), alone=row.id in histories.suspects) for row in tried)
        account = Account(first.project, first.submitted_by)
        return WaitingLane(first.experiment_id, choice, Untried(untried[: self._most(choice)], make), known, account)

    def _asked_by(self, experiment_id: str) -> _Asked | None:
        """None where the experiment cannot be read."""
        asked = self._asked.get(experiment_id)
        if asked is None and (found := self._spec(experiment_id)) is not None:
            conditions = self._conditions.setdefault(found.conditions.model_dump_json(), found.conditions)
            asked = _Asked(conditions, found.placement.policy, found.placement.deadline, said(found))
            self._asked[experiment_id] = asked
            self._latest.append(asked)
        return asked


def _took(rows: Iterable[AnyRow]) -> dict[str, list[float]]:
    took: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.ended_at is not None and row.outcome not in UNMEASURED:
            took[row.experiment_id].append(max(0.0, row.ended_at - row.started_at))
    return took


def _job(
    asked: _Asked,
    candidates: tuple[str, ...],
    row: AnyRow,
    failed_on: frozenset[str] = frozenset(),
    *,
    alone: bool = False,
) -> WaitingJob:
    return WaitingJob(
        job_id=row.id,
        experiment_id=row.experiment_id,
        label=block_label(row.label, row.block),
        candidates=candidates,
        conditions=asked.conditions,
        priority=row.priority,
        order=(row.experiment, row.sequence),
        failed_on=failed_on,
        alone=alone,
        not_before=row.not_before,
        submitted_at=row.submitted_at,
        submitter=row.submitted_by,
        project=row.project,
        policy=asked.policy,
        deadline=asked.deadline,
        said=asked.said,
    )


_THESE: BindParameter[Any] = bindparam("these", expanding=True)
_WAITING_LANES = select(JOBS.c.lane_id).where(JOBS.c.state == JobState.WAITING).distinct()
_CHANGED_LANES = select(LANES.c.id).where(LANES.c.changed > bindparam("since"))
_NUMBERED = select(LANES.c.id, LANES.c.choice_id)
_NUMBERED_OF = _NUMBERED.where(LANES.c.id.in_(_THESE))


class _Lanes(NamedTuple):
    """The selection of lanes, with its parameters: a statement that is the same each time is compiled once."""

    ids: Select[int]
    asked: Mapping[str, int]


def _numbered(connection: Connection, wanted: Sequence[int], changed: _Lanes) -> Sequence[AnyRow]:
    if len(wanted) <= ONE_BY_ONE:
        return connection.execute(_NUMBERED_OF, {"these": padded(wanted)}).all()
    return connection.execute(_NUMBERED.where(LANES.c.id.in_(changed.ids)), changed.asked).all()


def _columns() -> Select[tuple[object, ...]]:
    names = ("id", "lane_id", "experiment", "sequence", "block", "priority", "not_before")
    named = (EXPERIMENTS.c.id.label("experiment_id"), EXPERIMENTS.c.submitted_at, EXPERIMENTS.c.submitted_by,
             EXPERIMENTS.c.project, TEMPLATES.c.label)  # fmt: skip
    return select(*(JOBS.c[name] for name in names), *named).select_from(NAMED_JOBS)


_UNTRIED = (JOBS.c.state == JobState.WAITING) & (JOBS.c.attempts == 0)
_TRIED = (JOBS.c.state == JobState.WAITING) & (JOBS.c.attempts > 0)
_HEADS = (
    _columns()
    .where(_UNTRIED, JOBS.c.lane_id == bindparam("lane"))
    .order_by(JOBS.c.sequence)
    .limit(bindparam("most", type_=Integer))
)
_LANES_TRIED = select(JOBS.c.lane_id).where(_TRIED, JOBS.c.lane_id.in_(_THESE)).distinct()


def _all_heads(connection: Connection, lanes: _Lanes) -> Sequence[AnyRow]:
    place = func.row_number().over(partition_by=JOBS.c.lane_id, order_by=JOBS.c.sequence)
    ranked = select(JOBS.c.id, place.label("place")).where(_UNTRIED, JOBS.c.lane_id.in_(lanes.ids)).subquery()
    first = select(ranked.c.id).where(ranked.c.place <= HEADS)
    found = _columns().where(JOBS.c.id.in_(first)).order_by(JOBS.c.lane_id, JOBS.c.sequence)
    return connection.execute(found, lanes.asked).all()


def _tried(which: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    return _columns().where(_TRIED, which).order_by(JOBS.c.sequence).limit(MAX_TRIED)


_TRIED_OF_LANE = _tried(JOBS.c.lane_id == bindparam("lane"))
