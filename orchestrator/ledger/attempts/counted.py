"""Count what this farm did, whatever its tables hold: experiments are deleted from them, and come from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, func, insert, select, true, update

from orchestrator.ledger.database import parts
from orchestrator.ledger.tables import ATTEMPTS, COUNTED, RECORDS

What = Literal["attempts", "records"]
Key = tuple[str, str]
"""Outcome, and cause of an attempt or source of a record."""
_OF: dict[What, tuple[Table, Column[str]]] = {
    "attempts": (ATTEMPTS, ATTEMPTS.c.cause),
    "records": (RECORDS, RECORDS.c.source),
}


def count(connection: Connection, what: What) -> Counter[Key]:
    """Attempts that began, of which those under way have no outcome, or records. None of these counts ever falls."""
    found = _in_tables(connection, what, true())
    beside = select(COUNTED.c.outcome, COUNTED.c.word, COUNTED.c.beside).where(COUNTED.c.what == what)
    for outcome, word, number in connection.execute(beside):
        found[outcome, word] += number
    return found


def leave(connection: Connection, job_ids: Iterable[str]) -> None:
    """Jobs are to be deleted: what was done for them stays done."""
    _note(connection, job_ids, 1)


def come(connection: Connection, job_ids: Iterable[str]) -> None:
    """Jobs came from elsewhere, or again: nothing was done here for them now."""
    _note(connection, job_ids, -1)


def correct(connection: Connection, what: What, outcome: str, words: Mapping[str, int], word: str) -> None:
    """Correct words: so many rows of each of these have another one now; they stay counted as they were."""
    _add(
        connection,
        what,
        {**{(outcome, each): many for each, many in words.items()}, (outcome, word): -sum(words.values())},
    )


def _note(connection: Connection, job_ids: Iterable[str], times: int) -> None:
    named = list(parts(job_ids))
    for what, (table, _) in _OF.items():
        found = sum((_in_tables(connection, what, table.c.job_id.in_(part)) for part in named), Counter[Key]())
        _add(connection, what, {key: times * number for key, number in found.items()})


def _add(connection: Connection, what: What, beside: Mapping[Key, int]) -> None:
    for (outcome, word), number in beside.items():
        mine = {"what": what, "outcome": outcome, "word": word}
        change = update(COUNTED).where(and_(*(COUNTED.c[name] == value for name, value in mine.items())))
        if not connection.execute(change.values(beside=COUNTED.c.beside + number)).rowcount:
            connection.execute(insert(COUNTED).values(**mine, beside=number))


def _in_tables(connection: Connection, what: What, which: ColumnElement[bool]) -> Counter[Key]:
    table, word = _OF[what]
    columns = (table.c.outcome, word)
    rows = connection.execute(select(*columns, func.count()).where(which).group_by(*columns))
    return Counter({(outcome, word): number for outcome, word, number in rows})
