"""Waiting for a state: the only way in which a test may depend on time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 120.0
"""The limit for whatever is to happen in the end, however busy this machine is."""
MOST_S = 0.1
"""The most time between two looks, unless a test says otherwise: some states do not last."""


def eventually(look: Callable[[], T], limit_s: float = LIMIT_S, what: object = "", *, every_s: float = 0.02) -> T:
    """Look again and again until what is found is true, and return it. Fails after `limit_s`, showing `what`.

    Looks are `every_s` apart, and later a twentieth of the time waited, up to MOST_S: they take the processor from what
    is waited for.
    """
    begun = time.monotonic()
    while not (found := look()):
        waited = time.monotonic() - begun
        assert waited < limit_s, f"not within {limit_s:g} s: {what() if callable(what) else what}"
        time.sleep(max(every_s, min(waited / 20, MOST_S)))
    return found
