"""Nights for people: the morning report of one, and the history of many; pages without a script, and Markdown."""

from __future__ import annotations

from .history import history_page

__all__ = ["history_page"]
