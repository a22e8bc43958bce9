"""How a process of the farm that runs for long begins, and how it is told to end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time

from .private_files import UMASK

ALLOCATIONS = 100_000
"""Between two searches for cycles of garbage, of which a part's work makes few: with Python's own 700 they were a third
of what the scheduler did while records came in."""
COLLECTED_S, SHARE = 60.0, 1e-3
"""And by the clock: so often, unless that takes more than this share of the time. A process that makes few cycles would
keep a hundred thousand of their objects, some 20 MB, and grow for hours until then."""


def begin() -> None:
    """What it makes is this user's alone, what it logs is a line of logfmt on stderr, and it does not keep garbage.
    Call it when all is imported: that stays, and is not searched."""
    os.umask(UMASK)
    gc.set_threshold(ALLOCATIONS)
    gc.freeze()
    threading.Thread(target=_collect, name="garbage", daemon=True).start()
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"
    )


def _collect() -> None:
    took_s = 0.0
    while True:
        time.sleep(max(COLLECTED_S, took_s / SHARE))
        began = time.monotonic()
        gc.collect()
        took_s = time.monotonic() - began


def asked_to_end() -> threading.Event:
    """Set by SIGTERM and SIGINT. Call it from the main thread."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    return asked
