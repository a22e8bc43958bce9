"""Types of the ledger's columns: what a value must be so that the farm can read it, for Python and for SQL."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Computed,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    and_,
    false,
    func,
    or_,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import DDLCompiler
from sqlalchemy.types import TypeDecorator, TypeEngine

from orchestrator.model.live.lease import LARGEST_TOKEN

LARGEST = 1e300
LATEST_S = 1e11
"""Unix time: no calendar goes much further."""
_STORED: tuple[tuple[type[TypeEngine[Any]], dict[type, str]], ...] = (
    (Boolean, {int: "integer", bool: "integer"}),
    (Integer, {int: "integer"}),
    (Float, {float: "real", int: "integer"}),
    (LargeBinary, {bytes: "blob"}),
    (String, {str: "text"}),
)
"""SQLite stores any value in any column: what Python gets of it, and what SQL calls it."""


class Time(TypeDecorator[float]):
    """Seconds of Unix time."""

    impl, cache_ok = Float, True


class Number(TypeDecorator[int]):
    """A counter's value, of 64 bits in either database."""

    impl, cache_ok = BigInteger().with_variant(Integer(), "sqlite"), True


class Token(Number):
    """A fencing token, or 0."""

    cache_ok = True


@compiles(Computed, "postgresql")
def _stored(computed: Computed, compiler: DDLCompiler, **_: Any) -> str:
    """Computed columns are kept with the row, so that an index may have them; from version 18 on they would not be."""
    return f"GENERATED ALWAYS AS ({compiler.sql_compiler.process(computed.sqltext, include_table=False)}) STORED"


class Word(TypeDecorator[str]):
    """A member of an enumeration."""

    impl, cache_ok = String, True

    def __init__(self, length: int, of: type[StrEnum], *, empty: bool = False) -> None:
        """`empty`: nothing is a word, too."""
        super().__init__(length)
        self.length, self.of, self.empty = length, of, empty
        self.words = frozenset({*([""] if empty else []), *map(str, of)})


def stored(kind: TypeEngine[Any]) -> dict[type, str]:
    """Types that SQLite may give for a column, with SQL's names; empty: any."""
    own = kind.impl_instance if isinstance(kind, TypeDecorator) else kind
    return next((names for known, names in _STORED if isinstance(own, known)), {})


def largest(kind: TypeEngine[Any]) -> float | None:
    """The number that values of a column stay below; None: what the database holds."""
    if isinstance(kind, Time | Token):
        return LATEST_S if isinstance(kind, Time) else float(LARGEST_TOKEN)
    return LARGEST if isinstance(kind, Float) else None


def misfit(kind: TypeEngine[Any], value: Any) -> bool:
    """Tell whether a column of SQLite holds what its type cannot."""
    allowed, most = stored(kind), largest(kind)
    if value is None or (allowed and type(value) not in allowed):
        return value is not None
    is_far = most is not None and isinstance(value, int | float) and not -most < value < most
    return is_far or (isinstance(kind, Word) and value not in kind.words)


def unreadable(table: Table, dialect: str, names: Iterable[str] = ()) -> ColumnElement[bool]:
    """The rows of which a column, of these or of all, holds what its type cannot."""
    wanted = set(names)
    columns = [column for column in table.columns if not wanted or column.name in wanted]
    return or_(false(), *(_unreadable(column, dialect) for column in columns))


def _unreadable(column: Column[Any], dialect: str) -> ColumnElement[bool]:
    kind, wrong = column.type, list[ColumnElement[bool]]()
    if dialect == "sqlite" and (names := stored(kind)):
        wrong.append(func.typeof(column).not_in(sorted(names.values())))
    if (most := largest(kind)) is not None:
        wrong.append(~column.between(-most, most))
    if isinstance(kind, Word):
        wrong.append(column.not_in(sorted(kind.words)))
    return and_(column.is_not(None), or_(false(), *wrong))
