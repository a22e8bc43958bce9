"""A comparison for people and for programs: a table, with what must be known to read it; HTML, Markdown, JUnit."""

from __future__ import annotations

from .content import Content, FailOn, closing, fails, headline, notes, usable
from .html import as_html
from .junit import as_junit
from .markdown import as_markdown
from .table import brief, table

__all__ = [
    "Content",
    "FailOn",
    "as_html",
    "as_junit",
    "as_markdown",
    "brief",
    "closing",
    "fails",
    "headline",
    "notes",
    "table",
    "usable",
]
