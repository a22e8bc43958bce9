"""`farm demo`'s signals."""

from __future__ import annotations

import os
import signal
import time

import pytest

from farm.cli.demo import _interrupt_on_signals

IMPORTING = "os.kill(os.getpid(), signal.SIGTERM)\nfor _ in range(100): pass"


def test_an_interrupt_is_not_lost_in_an_import() -> None:
    """Python prints what is raised in its import locks' callbacks as a traceback, and goes on without it."""
    before = _interrupt_on_signals()
    reached = False
    try:
        with pytest.raises(KeyboardInterrupt):
            exec(compile(IMPORTING, "<frozen importlib._bootstrap>", "exec"), {"os": os, "signal": signal})
            reached = True
            time.sleep(10)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert reached
