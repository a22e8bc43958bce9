"""Lock a device on this host, so that it has one session whatever the leases say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

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
    try:
        held = FileLock(path, fallback_to_soft=False).acquire(wait_s, 0.02, cancel_check=_never)
    except Timeout as e:
        busy, remedy = "another session on this host holds the device", f"wait, or see who holds {path}"
        raise DeviceBusy(busy, device=serial, remedy=remedy) from e
    with held:
        yield


def _never() -> bool:
    """Whoever waits is stopped by its checkpoint's error."""
    checkpoint()
    return False
