"""The start of a long-running process of the farm, and how it is told to end."""

from __future__ import annotations

import _thread
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import time

from .private_files import UMASK

ALLOCATIONS = 100_000
"""Allocations between two searches for cycles of garbage, of which a part's work makes few: with Python's own 700
they were a third of what the scheduler did while records came in."""
COLLECTED_S, SHARE = 60.0, 1e-3
"""A search by the clock, too, unless it takes more than this share of the time. A process that makes few cycles would
keep a hundred thousand of their objects, some 20 MB, and grow for hours until then."""
HEAPS, LARGE_BYTES = 2, 1 << 20
"""Heaps of glibc's malloc. It gives eight a core to a process of many threads, and keeps in each what was freed: of
a worker's 150 MB 38 lay there after 80000 jobs. What is larger than `LARGE_BYTES` goes back to the system."""
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3


def begin() -> None:
    """Make what it writes this user's alone, log lines of logfmt on stderr, and keep little that it does not need.
    Call it when all is imported, which stays and is not searched, and before the first thread. What lives at the first
    search by the clock is not searched again either."""
    os.umask(UMASK)
    _keep_little()
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"
    )


def _keep_little() -> None:
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:  # musl and macOS have none
        mallopt(_M_ARENA_MAX, HEAPS)
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
    gc.set_threshold(ALLOCATIONS)
    gc.freeze()
    gc.enable()
    threading.Thread(target=_collect, name="garbage", daemon=True).start()


def _collect() -> None:
    took_s = 0.0
    while True:
        time.sleep(max(COLLECTED_S, took_s / SHARE))
        began = time.monotonic()
        gc.collect()
        if not took_s:
            gc.freeze()  # what a part made at its start stays, too: to search it again holds up all threads
        took_s = time.monotonic() - began


def asked_to_end(*more: signal.Signals) -> threading.Event:
    """Return an event that SIGTERM, SIGINT and `more` set. Call it from the main thread, which may wait for it.

    A handler runs within whatever the main thread does: it may hold the event's own lock. So another thread sets it.
    """
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, *more):
        signal.signal(number, lambda *_: _thread.start_new_thread(asked.set, ()))
    return asked
