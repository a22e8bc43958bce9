"""The pages of the farm: what it is and does, live, and what may be done about it."""

from __future__ import annotations

from .app import Pages, make_app

__all__ = ["Pages", "make_app"]
