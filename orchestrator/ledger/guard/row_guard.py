"""Leave out rows that hold what their columns cannot: pages damaged, another version, a hand in the file.

SQLite stores any value in any column, and no database knows the words of an enumeration. Every row that is fetched
passes here, so that one that cannot be read costs itself and not the question. A question for a single row (`first`,
`one`, `scalar`) that finds only such a one raises Unreadable, which names it: there is a row, and no answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Column, Engine, event
from sqlalchemy.engine.cursor import CursorFetchStrategy

from orchestrator.model.errors import Unreadable

from .column_types import Word, largest, stored

log = logging.getLogger(__name__)
MOST_SAID = 1000
UNGUARDED = "farm_unguarded"
"""Option of a statement that wants every row, as it is."""
REMEDY = "put the ledger back from a copy (`farm ledger check` finds all such rows)"


def guard(engine: Engine, found: Callable[[], object]) -> None:
    """Every statement's rows from now on; `found` is called where one is left out."""
    known: WeakKeyDictionary[Any, Guard] = WeakKeyDictionary()
    said = set[str]()

    def tell(text: str) -> None:
        found()
        if text not in said and len(said) < MOST_SAID:
            said.add(text)
            log.error("event=unreadable error=%s remedy: %s", text, REMEDY)

    def executed(_c: Any, cursor: Any, _s: Any, _p: Any, context: Any, _many: bool) -> None:
        compiled = context.compiled
        bare = context.execution_options.get(UNGUARDED, False)
        if bare or cursor.description is None or compiled is None or not getattr(compiled, "_result_columns", None):
            return
        if compiled not in known:
            known[compiled] = Guard(compiled._result_columns, engine.dialect.name == "sqlite", tell)
        context.cursor_fetch_strategy = known[compiled]

    event.listen(engine, "after_cursor_execute", executed)


class Guard(CursorFetchStrategy):
    """The guard of one statement's rows."""

    __slots__ = ("_kinds", "_known", "_names", "_ranges", "_tell", "_words")

    def __init__(self, columns: Sequence[Any], by_type: bool, tell: Callable[[str], None]) -> None:
        """`columns`: as SQLAlchemy has compiled them; `by_type`: whether the database stores any type in any."""
        self._names, self._tell = [_name(each) for each in columns], tell
        self._kinds = [frozenset(stored(each.type)) if by_type else frozenset[type]() for each in columns]
        self._known = set[tuple[type, ...]]()
        """Types of rows that are sound."""
        numbered = list(enumerate(each.type for each in columns))
        self._ranges = [(index, most) for index, kind in numbered if (most := largest(kind)) is not None]
        self._words = [(index, kind.words) for index, kind in numbered if isinstance(kind, Word)]

    def fetchone(self, result: Any, dbapi_cursor: Any, hard_close: bool = False) -> Any:
        """`hard_close`: no other row is wanted."""
        fault = ""
        while (row := super().fetchone(result, dbapi_cursor, hard_close)) is not None and (found := self._fault(row)):
            fault = found
        if row is None and hard_close and fault and any("." in name for name in self._names):  # no sum of all rows
            raise Unreadable(fault, remedy=REMEDY)
        return row

    def fetchmany(self, result: Any, dbapi_cursor: Any, size: int | None = None) -> Any:
        """Empty where there are no more."""
        while rows := super().fetchmany(result, dbapi_cursor, size):
            if sound := self._sound(rows):
                return sound
        return rows

    def fetchall(self, result: Any, dbapi_cursor: Any) -> Any:
        return self._sound(super().fetchall(result, dbapi_cursor))

    def _sound(self, rows: Iterable[Any]) -> list[Any]:
        return [row for row in rows if not self._fault(row)]

    def _fault(self, row: Sequence[Any]) -> str:
        """Return what keeps a row from being read, after telling it; empty: nothing."""
        kinds = tuple(map(type, row))
        if kinds not in self._known:
            for index, (kind, allowed) in enumerate(zip(kinds, self._kinds, strict=False)):
                if allowed and kind not in allowed and row[index] is not None:
                    return self._left_out(row, index)
            self._known.add(kinds)
        for index, most in self._ranges:
            if (number := row[index]) is not None and not -most < number < most:
                return self._left_out(row, index)
        for index, words in self._words:
            if (word := row[index]) is not None and word not in words:
                return self._left_out(row, index)
        return ""

    def _left_out(self, row: Sequence[Any], index: int) -> str:
        key = ", ".join(f"{name} {value}"[:80] for name, value in zip(self._names, row, strict=False) if _is_key(name))
        fault = f"{self._names[index]} {row[index]!r}"[:120] + f" cannot be read, in the row of {key or 'no name'}"
        self._tell(fault)
        return fault


def _name(entry: Any) -> str:
    column = next((each for each in entry.objects if isinstance(each, Column)), None)
    return str(entry.name) if column is None or column.table is None else f"{column.table.name}.{column.name}"


def _is_key(name: str) -> bool:
    return name.rpartition(".")[2] in ("id", "job_id", "attempt", "serial", "host", "name", "suite", "experiment_id")
