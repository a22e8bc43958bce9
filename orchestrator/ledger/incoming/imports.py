"""Store imports: experiments whose jobs are over from the start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, insert, update

from orchestrator.ledger import experiments, figures, templates
from orchestrator.ledger.attempts import record_columns
from orchestrator.ledger.database import Database, count_up
from orchestrator.ledger.queue import lanes
from orchestrator.ledger.rows import JobState, Origin
from orchestrator.ledger.tables import ATTEMPTS, JOBS, LANES, RECORDS
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import AnyJob
from orchestrator.model.record import Record
from orchestrator.model.stopped import Stopped

from .pieces import pieces

AT_ONCE = 100
"""Blocks: a fraction of a second's writing."""


@dataclass(frozen=True)
class Tried:
    """An attempt that was made elsewhere, with its record if it left one."""

    attempt: int
    serial: str
    host: str
    started_at: float
    ended_at: float
    outcome: str
    cause: str
    record: Record | None = None

    @classmethod
    def of(cls, record: Record) -> Tried:
        """Return the attempt of a record."""
        device, end = record.device, (record.started_at, record.ended_at, record.outcome, record.cause[:40])
        return cls(record.attempt, device.serial, device.host, *end, record)


@dataclass(frozen=True)
class Imported:
    """A block that was measured elsewhere, with the attempts at it, the oldest first."""

    job: AnyJob
    tries: tuple[Tried, ...]
    state: JobState = JobState.DONE
    told: Mapping[str, object] | None = None
    """Outcome, cause and number of attempts of its job; None: the last attempt's."""

    @property
    def over(self) -> dict[str, object]:
        if self.told is not None:
            return dict(self.told)
        last = self.tries[-1]
        return {"outcome": last.outcome, "cause": last.cause, "attempts": last.attempt}


Last = Callable[[Connection | None], None]
"""Stores what belongs to an import, with the transaction of a connection."""


@dataclass(frozen=True)
class Beside:
    """The facts of an experiment beside its blocks."""

    exclusions: Sequence[Exclusion] = ()
    origin: Origin | None = None
    stopped: Mapping[tuple[str, ...], Stopped] = field(default_factory=dict)
    """The reasons why strategies ended, by choice of devices."""
    last: Last | None = None
    """Called in the last transaction, in which the experiment comes to be."""


class Prepared:
    """Rows of an import, made before the transaction, for which others wait. Every attempt has a fencing token of its
    own, as if it had begun here."""

    def __init__(self, found: Sequence[Imported], first: int, tokens: Iterator[int]) -> None:
        """`first`: place of the first block in the import."""
        self.jobs = templates.prepare([([one.job], one.state) for one in found], first)
        self.over: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []
        for one in found:
            measured, token = templates.Measured(one.job.cell, one.job.sampling.mode), 0
            for each in one.tries:
                token = next(tokens)
                own = {name: value for name, value in vars(each).items() if name != "record"}
                self.attempts.append({"job_id": one.job.job_id, "token": token, "ttl_s": 0.0, **own})
                if each.record is not None:
                    record = each.record.model_copy(update={"token": token})
                    self.records.append(record_columns(record))
                    self.figures.append(figures.columns(record, measured))
            new = {f"new_{name}": value for name, value in {**one.over, "token": token}.items()}
            self.over.append({"job": one.job.job_id, **new})


_OVER = ("outcome", "cause", "attempts", "token")
_END = update(JOBS).where(JOBS.c.id == bindparam("job")).values({name: bindparam(f"new_{name}") for name in _OVER})


def adopt(
    database: Database,
    experiment_id: str,
    experiment: Experiment,
    found: Iterable[Imported],
    beside: Beside,
) -> bool:
    """Store them in their order. False, and nothing is changed, where the experiment is there already."""
    rows, first, left = list[Prepared](), 0, iter(found)
    while part := list(islice(left, AT_ONCE)):
        many = sum(len(one.tries) for one in part)
        with database.write() as connection:
            last = count_up(connection, "token", many)
        rows.append(Prepared(part, first, iter(range(last - many + 1, last + 1))))
        first += len(part)
    with pieces(database) as into:
        if experiments.is_there(into.connection, experiment_id):
            return False
        number = count_up(into.connection, "experiment")
        into.add(experiments.columns(number, experiment_id, experiment, beside.exclusions, origin=beside.origin))
        for each in rows:
            templates.store(into.connection, number, each.jobs, ended_at=time.time())
            into.connection.execute(_END, each.over)
            for table, columns in ((ATTEMPTS, each.attempts), (RECORDS, each.records)):
                if columns:
                    into.connection.execute(insert(table), columns)
            figures.put(into.connection, each.figures)
            into.came([row["job"] for row in each.over])
        for candidates, why in beside.stopped.items():
            (lane,) = lanes.numbers_of(into.connection, number, [candidates])
            text = why.model_dump_json(exclude={"devices"})
            into.connection.execute(update(LANES).where(LANES.c.id == lane).values(stopped=text))
        if beside.last is not None:
            beside.last(into.connection)
    return True
