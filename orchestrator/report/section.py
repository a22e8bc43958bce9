"""One part of a report as a plain table: the same for a terminal and for a page."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A heading; numbers stand to the right."""

    name: str
    number: bool = False
    page_only: bool = False
    """A terminal has no room for it."""


class Section(NamedTuple):
    """A table with a title and a word on how to read it. Rows that say something bad are marked."""

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    bad: frozenset[int] = frozenset()
    """Numbers of rows."""
    terminal_note: str = ""
    """A terminal has room for few notes: only for those without which the table is misread."""


class TwoLines(NamedTuple):
    """A row where there is no room for columns: what it is of; figures, and words that may stand below by number."""

    name: str
    figures: str
    words: str
    bad: bool
