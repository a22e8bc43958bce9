"""Readings of the phone's gauge while a run is replayed."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from pathlib import Path
from typing import Any

from .journal import Journal, now_ns

_NODES = {"current_ua": "current_now", "voltage_uv": "voltage_now", "temp_dc": "temp", "charge_uah": "charge_counter"}


class Sampler:
    """Reads the gauge at absolute deadlines, as the agent's does."""

    def __init__(self, journal: Journal, period_ms: int) -> None:
        self._journal, self._period_ns = journal, period_ms * 1_000_000
        self._battery = Path(os.environ["POCKETFARM_SYSROOT"], "sys/class/power_supply/battery")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._times: list[int] = []

    def __enter__(self) -> Sampler:
        if self._period_ns:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._period_ns:
            return
        self._stop.set()
        self._thread.join()
        gaps = [later - earlier for earlier, later in itertools.pairwise(self._times)]
        missed = sum(round(gap / self._period_ns) - 1 for gap in gaps if gap > 1.5 * self._period_ns)
        facts = {"period_ns": self._period_ns, "readings": len(self._times), "longest_gap_ns": max(gaps, default=0)}
        self._journal.write("sampler", **facts, missed=missed, cpu_ns=time.process_time_ns())

    def _run(self) -> None:
        due_ns = now_ns()
        while not self._stop.wait(max(0, due_ns - now_ns()) / 1e9):
            self._times.append(now_ns())
            self._journal.write("power", **read_gauge(self._battery), t_ns=self._times[-1])
            due_ns += self._period_ns * max(1, -(-(now_ns() - due_ns) // self._period_ns))


def read_gauge(battery: Path) -> dict[str, Any]:
    """The fields of a `power` event; nodes that are not there are left out."""
    found: dict[str, Any] = {}
    began = now_ns()
    for field, name in _NODES.items():
        with contextlib.suppress(OSError, ValueError):
            found[field] = int((battery / name).read_text())
    with contextlib.suppress(OSError):
        found["status"] = (battery / "status").read_text().strip()
    return {**found, "read_ns": now_ns() - began}
