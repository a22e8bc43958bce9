"""Keep Python's own pauses away from a loop that must be on time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_S = 0.0002
"""The time for which another thread may keep the interpreter while this one is due; Python's own is 5 ms."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hide what lives by now from the garbage collector, and let other threads hand over soon."""
    before_s = sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)
        gc.unfreeze()
