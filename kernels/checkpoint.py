"""Places where long work may be stopped: its loops call `checkpoint`, and whoever started it said what that asks.

A question that travels with the thread, so that passes, lowerings and references need no argument for it. A single
call of NumPy or of a tool is not interrupted; the loop around it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)


def checkpoint() -> None:
    """Returns where the work may go on; raises whatever `interruptible` was given to raise."""
    _check.get()()


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """`check` is asked at every checkpoint of this thread inside, instead of the one outside; it raises to stop."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
