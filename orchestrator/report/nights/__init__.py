"""Nights for people: the morning report of one, and the history of many; pages without a script, and Markdown."""

from __future__ import annotations

from .history import history_page
from .markdown import morning_markdown
from .morning import Morning, headline, morning, usable
from .page import morning_page

__all__ = ["Morning", "headline", "history_page", "morning", "morning_markdown", "morning_page", "usable"]
