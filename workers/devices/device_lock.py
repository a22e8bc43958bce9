"""One session per device on this host, whatever the leases say."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernels.checkpoint import checkpoint
from orchestrator.errors import DeviceBusy
from workers.durable_files import file_name


@contextmanager
def device_lock(state: Path, serial: str, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the device's lock file; the kernel frees it when the process ends, however it ends.

    Excludes threads of one process as well as other processes. Raises DeviceBusy after `wait_s`, or what the
    thread's checkpoint raises meanwhile.
    """
    path = state / "locks" / f"{file_name(serial)}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, serial, path, time.monotonic() + wait_s)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, serial: str, path: Path, ends_at: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as e:
            if time.monotonic() >= ends_at:
                raise DeviceBusy(
                    "another session on this host holds the device",
                    device=serial,
                    remedy=f"wait, or see who holds {path}",
                ) from e
        checkpoint()
        time.sleep(0.02)
