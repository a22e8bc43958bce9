"""Whether what a terminal shows can be read at every width."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

from rich.console import Console, RenderableType

WIDTHS = (40, 80, 120)
UNBOUNDED = 10_000
DEEPEST = 8
"""Columns by which a cell may be indented."""


def drawn(what: RenderableType, width: int) -> str:
    """As a terminal of so many columns shows it, without colours."""
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
    """Where a cell is told below its name a colon follows the name."""
    return {word.rstrip(":") for word in text.split()}
