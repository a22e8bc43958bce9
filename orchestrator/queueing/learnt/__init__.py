"""Learn from the ledger's blocks how a phone warms, throttles and starts: records -> histories -> fits -> the spec."""

from __future__ import annotations

from .body import Body, fill_bodies, learn_body
from .history import History, history_of
from .throttling import throttle_steps
from .warming import Warming, fit_warming

__all__ = [
    "Body",
    "History",
    "Warming",
    "fill_bodies",
    "fit_warming",
    "history_of",
    "learn_body",
    "throttle_steps",
]
