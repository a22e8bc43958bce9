"""How a process of the farm that runs for long begins, and how it is told to end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading

from .private_files import UMASK

ALLOCATIONS = 100_000
"""Between two searches for cycles of garbage, of which a part's work makes hardly any: with Python's own 700 they were
a third of what the scheduler did while records came in."""


def begin() -> None:
    """What it makes is this user's alone, and what it logs is a line of logfmt on stderr."""
    os.umask(UMASK)
    gc.set_threshold(ALLOCATIONS)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"
    )


def asked_to_end() -> threading.Event:
    """Set by SIGTERM and SIGINT. Call it from the main thread."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    return asked
