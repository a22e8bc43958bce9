"""Statements with many rows or many values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Connection, Dialect, Executable, bindparam, case, func, literal, select, update

from orchestrator.ledger.tables import ATTEMPTS, COUNTERS, EXPERIMENTS, JOBS, LANES, RECORDS
from orchestrator.model.live.lease import LARGEST_TOKEN

V = TypeVar("V")
AT_ONCE = 512
"""Values that one statement names: a database has a limit."""


def execute_many(connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """The statement once for each row; all rows have the same keys, and strings, numbers, bytes or None as values.

    What SQLAlchemy does for each row of `execute` costs as much as the statement itself, and such values need none of
    it: here the driver gets the rows. Raises what `execute` raises.
    """
    if rows:
        sql, prepared = _compiled(connection.dialect, statement, tuple(rows[0]))
        connection.exec_driver_sql(sql, [prepared(row) for row in rows])


def parts(values: Iterable[V]) -> Iterator[list[V]]:
    """Yield values for `IN`: sorted, as many at once as one statement may name; none of no values."""
    ordered = sorted(values)  # type: ignore[type-var]
    return (padded(ordered[start : start + AT_ONCE]) for start in range(0, len(ordered), AT_ONCE))


def padded(values: Collection[V]) -> list[V]:
    """Pad values for `IN` by the last one to a power of two: the same set, and few texts of a statement.

    SQLite and PostgreSQL's driver keep what they have prepared for some hundred texts a connection. A text for each
    number of values would fill that with statements of many kilobytes that seldom come again. More than `AT_ONCE` stay
    as many as they are: a database has a limit.
    """
    found = list(values)
    more = (1 << (len(found) - 1).bit_length()) - len(found) if 0 < len(found) <= AT_ONCE else 0
    return found + found[-1:] * more


@lru_cache(maxsize=64)
def _compiled(
    dialect: Dialect, statement: Executable, keys: tuple[str, ...]
) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    """The text of a statement, and what makes the driver's parameters of a row with these keys."""
    made: Any = statement.compile(dialect=dialect, column_keys=list(keys))  # type: ignore[attr-defined]
    said = {name: value for name, value in made.construct_params(_check=False).items() if name not in keys}
    if made.positional:
        order = tuple(made.positiontup)
        return str(made), lambda row: tuple([row[name] if name in row else said[name] for name in order])
    return str(made), lambda row: {**said, **row}


log = logging.getLogger(__name__)
JUMP = 10_000_000
"""The numbers that a lost counter skips beyond the newest value that is known: some may have gone to records that
have not come yet."""
_IS_IT = COUNTERS.c.name == bindparam("name_")
_COUNTED = update(COUNTERS).where(_IS_IT).values(value=COUNTERS.c.value + bindparam("by")).returning(COUNTERS.c.value)
_COUNTED_ON = _COUNTED.where(COUNTERS.c.value.between(0, literal(LARGEST_TOKEN + JUMP, BigInteger)))
_HELD_IN = {
    "token": (ATTEMPTS.c.token, JOBS.c.token, RECORDS.c.token),
    "experiment": (EXPERIMENTS.c.sequence, JOBS.c.experiment, LANES.c.experiment),
    "change": (ATTEMPTS.c.changed, LANES.c.changed),
}
"""The columns that hold a counter's values."""


def count_up(connection: Connection, name: str, by: int = 1) -> int:
    """The next value of a counter, in the caller's transaction: no value is ever given twice, nor those between."""
    asked = {"name_": name, "by": by}
    found = connection.execute(_COUNTED_ON, asked).scalar_one_or_none()
    if found is None:
        jump(connection, name)
        found = connection.execute(_COUNTED, asked).scalar_one()
    return int(found)


def jump(connection: Connection, name: str, beyond: int = 0) -> None:
    """Let a counter that was lost, or is behind what rows hold or behind `beyond`, go on far beyond; another stays."""
    most = literal(LARGEST_TOKEN, BigInteger)
    newest = (func.coalesce(func.max(case((held.between(0, most), held))), 0) for held in _HELD_IN[name])
    known = max(beyond if beyond <= LARGEST_TOKEN else 0, *(connection.scalar(select(each)) or 0 for each in newest))
    is_lost = ~COUNTERS.c.value.between(literal(known, BigInteger), literal(LARGEST_TOKEN + JUMP, BigInteger))
    if connection.execute(update(COUNTERS).where(_IS_IT, is_lost).values(value=known + JUMP), {"name_": name}).rowcount:
        log.error("event=counter_lost name=%s: it goes on from %d", name, known + JUMP)
