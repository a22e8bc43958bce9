"""The report of a queueing experiment: simulated or on phones, at one load or several, under one policy or several."""

from __future__ import annotations

from .page import Told, queueing_page

__all__ = ["Told", "queueing_page"]
