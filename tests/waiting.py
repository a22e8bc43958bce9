"""Waiting for a state: the only way in which a test may depend on time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 120.0
"""For whatever is to happen in the end, however busy this machine is."""


def eventually(look: Callable[[], T], limit_s: float = LIMIT_S, what: object = "", *, every_s: float = 0.02) -> T:
    """Look again and again until what is found is true, and return it. Fails after `limit_s`, showing `what`."""
    end = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < end, f"not within {limit_s:g} s: {what() if callable(what) else what}"
        time.sleep(every_s)
    return found
