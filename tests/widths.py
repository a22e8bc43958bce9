"""Check that what a terminal shows can be read at every width."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

from rich.console import Console, RenderableType

WIDTHS = (40, 80, 120)
UNBOUNDED = 10_000
DEEPEST = 8
"""Columns by which a cell may be indented."""


def drawn(what: RenderableType, width: int) -> str:
    """Return what a terminal of so many columns shows, without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, highlight=False).print(what)
    return buffer.getvalue()


def check(render: Callable[[int], str], firsts: frozenset[str] = frozenset()) -> None:
    """Asserts that no line is wider than the terminal, and that every word of the widest rendering is there whole.

    `firsts`: names of first columns, which are not said where a row is told cell below cell.
    """
    widest = _words(render(UNBOUNDED))
    assert widest
    for width in WIDTHS:
        text = render(width)
        assert [line for line in text.splitlines() if len(line) > width] == []
        broken = {word for word in widest - _words(text) - firsts if len(word) <= width - DEEPEST}
        assert broken == set(), f"at {width} columns:\n{text}"


def _words(text: str) -> set[str]:
    """Return the words, less the colon that follows a name where a cell is told below it."""
    return {word.rstrip(":") for word in text.split()}
