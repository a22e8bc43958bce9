"""Write a comparison as Markdown, for a comment on a change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from orchestrator.model.foreign import cleaned

from .content import Content, answer, headline, notes, usable
from .table import table


def as_markdown(content: Content) -> str:
    section, cell = table(content), cache(plain)  # most texts of a table stand in many of its rows
    counts = ", ".join(f"{number} {name}" for name, number in headline(content))
    lines = [
        f"## Comparison of {plain(content.a)} (A) with {plain(content.b)} (B)",
        "",
        f"**{plain(usable(content))}.** {plain(answer(content))}",
        "",
        counts,
        "",
        _row(column.name for column in section.columns),
        _row("--:" if column.number else "---" for column in section.columns),
        *(_row(_marked(tuple(map(cell, row)), number in section.bad)) for number, row in enumerate(section.rows)),
        "",
        *(f"- {plain(note)}" for note in notes(content)),
    ]
    return cleaned("\n".join(lines) + "\n")


def _marked(row: tuple[str, ...], bad: bool) -> tuple[str, ...]:
    return (*row[:-1], f"**{row[-1]}**") if bad else row


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def plain(text: str) -> str:
    """Names from outside cannot make markup: a cell stays a cell."""
    for mark in "\\`|[]_*":
        text = text.replace(mark, f"\\{mark}")
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, name)
    return " ".join(text.split())
