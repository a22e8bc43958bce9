"""Store much at once. On SQLite, which has one writer, in transactions of a fraction of a second, with others between.

It belongs to experiments whose rows are stored last: until then no question finds it. What a process that was killed
has left is removed by the next one. One process at a time stores so.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from orchestrator.ledger.attempts import counted
from orchestrator.ledger.database import Database
from orchestrator.ledger.tables import ATTEMPTS, COUNTERS, EXPERIMENTS, FIGURES, JOBS, LANES, RECORDS, TEMPLATES

LASTS_S = 0.2
REST_S = 0.12
"""Longer than SQLite's writers sleep between two tries."""
AT_ONCE = 200
MARK = "coming "
"""The mark among the counters before the number of an experiment that is being stored."""
Begin = Callable[[], AbstractContextManager[Connection]]


class Pieces:
    """`connection` is that of the piece under way."""

    connection: Connection

    def __init__(self, begin: Begin, lasts_s: float) -> None:
        self._begin, self._lasts_s = begin, lasts_s
        self._experiments, self._jobs = list[Mapping[str, Any]](), list[str]()
        self._open()

    def add(self, experiment: Mapping[str, Any]) -> None:
        """An experiment of this row is to come, before whatever names it."""
        if math.isinf(self._lasts_s):
            self.connection.execute(insert(EXPERIMENTS).values(**experiment))
            return
        number = experiment["sequence"]
        self.connection.execute(insert(COUNTERS).values(name=f"{MARK}{number}", value=number))
        self._experiments.append(experiment)

    def came(self, job_ids: Collection[str]) -> None:
        """All of these jobs is stored. Nothing was done here for them: they do not count."""
        self._jobs += job_ids
        if time.monotonic() >= self._until:
            self._commit()
            self._rest()
            self._open()

    def _rest(self) -> None:
        time.sleep(REST_S)

    def end(self) -> None:
        for each in self._experiments:
            self.connection.execute(insert(EXPERIMENTS).values(**each))
        _forget(self.connection)
        self._commit()

    def give_up(self) -> None:
        """The piece under way, for the exception that is handled."""
        self._transaction.__exit__(*sys.exc_info())

    def _commit(self) -> None:
        counted.come(self.connection, self._jobs)
        self._jobs.clear()
        self._transaction.__exit__(None, None, None)

    def _open(self) -> None:
        self._transaction = self._begin()
        self.connection = self._transaction.__enter__()
        self._until = time.monotonic() + self._lasts_s


@contextmanager
def pieces(database: Database) -> Iterator[Pieces]:
    """All or nothing: what was stored when this is left by an exception is removed. Raises ServiceDown."""
    if not database.has_one_writer:
        with database.write() as connection:
            whole = Pieces(lambda: nullcontext(connection), math.inf)
            yield whole
            whole.end()
        return
    with database.unchecked() as begin:
        _remove_remains(begin)
        found = Pieces(begin, LASTS_S)
        try:
            yield found
            found.end()
        except BaseException:
            found.give_up()
            _remove_remains(begin)
            raise


def coming(connection: Connection) -> list[int]:
    """The numbers of experiments that are being stored, or were when that was cut off."""
    return list(connection.scalars(select(COUNTERS.c.value).where(COUNTERS.c.name.startswith(MARK))))


def _forget(connection: Connection) -> None:
    connection.execute(delete(COUNTERS).where(COUNTERS.c.name.startswith(MARK)))


def _remove_remains(begin: Begin) -> None:
    while True:
        with begin() as connection:
            if not (numbers := coming(connection)):
                return
            jobs = list(connection.scalars(select(JOBS.c.id).where(JOBS.c.experiment.in_(numbers)).limit(AT_ONCE)))
            counted.leave(connection, jobs)
            for table in (FIGURES, RECORDS, ATTEMPTS):
                connection.execute(delete(table).where(table.c.job_id.in_(jobs)))
            connection.execute(delete(JOBS).where(JOBS.c.id.in_(jobs)))
            if not jobs:
                for table in (TEMPLATES, LANES):
                    connection.execute(delete(table).where(table.c.experiment.in_(numbers)))
                _forget(connection)
        time.sleep(REST_S)
