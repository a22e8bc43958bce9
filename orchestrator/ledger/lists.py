"""The values of an `IN`, in lists of few lengths.

SQLite and PostgreSQL's driver keep what they have prepared for each text of a statement, some hundred texts a
connection, and a list of another length is another text. Lists of every length would fill that with statements of many
kilobytes that seldom come again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

AT_ONCE = 512
"""Values that one statement names: a database has a limit."""

T = TypeVar("T")


def parts(values: Iterable[T]) -> Iterator[list[T]]:
    """Sorted, as many at once as one statement may name; none of no values."""
    ordered = sorted(values)  # type: ignore[type-var]
    return (padded(ordered[start : start + AT_ONCE]) for start in range(0, len(ordered), AT_ONCE))


def padded(values: Collection[T]) -> list[T]:
    """The last one again until their number is a power of two: the same set."""
    found = list(values)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found)) if found else found
