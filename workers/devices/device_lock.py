"""Lock a device on this host, so that it has one session whatever the leases say."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernels.errors import checkpoint
from orchestrator.model.errors import DeviceBusy
from orchestrator.system.durable_files import file_name

LOOK_S = 0.02


@contextmanager
def device_lock(state: Path, serial: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the device's lock file; the kernel frees it when the process ends, however it ends.

    Excludes threads of one process as well as other processes. Raises DeviceBusy after `wait_s`, or what the
    thread's checkpoint raises meanwhile, or OSError where the file cannot be made.
    """
    path, end = state / "locks" / f"{file_name(serial)}.lock", time.monotonic() + wait_s
    path.parent.mkdir(parents=True, exist_ok=True)
    while (file := _locked(path)) is None:
        if time.monotonic() >= end:
            busy, remedy = "another session on this host holds the device", f"wait, or see who holds {path}"
            raise DeviceBusy(busy, device=serial, remedy=remedy)
        checkpoint()
        time.sleep(LOOK_S)
    try:
        yield
    finally:
        os.close(file)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the file's lock; None where another holds it, or the file was removed meanwhile."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(file)
    return None
