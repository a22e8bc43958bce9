"""The pages of the farm: what it is and does, live, and what may be done about it."""

from __future__ import annotations

from .actions import Actions
from .app import Pages, make_app

__all__ = ["Actions", "Pages", "make_app"]
