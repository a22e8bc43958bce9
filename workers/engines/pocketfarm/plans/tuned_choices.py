"""Read and store the tuned choices of this host's devices in `tuning.json`, and make plans that use them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.tuning import Database, applicable, device_key
from orchestrator.model.device import Api, DeviceFacts

FILE = "tuning.json"


class TunedChoices:
    """Reads the database again whenever it has changed."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._database = Database()

    def options(
        self,
        options: Options,
        limits: Limits,
        device: DeviceFacts,
        graph: Callable[[], Graph],
        *,
        threads: int | None = None,
    ) -> Options:
        """The options with what is known and proven of the graph's layers on this device.

        `threads`: of the CPU backend that work on one layer; None: as the options say. Raises InputError where the
        database is damaged. `graph` is asked for only where something is known.
        """
        key = key_of(device, Api(options.backend), options.threads if threads is None else threads)
        known = self.database().tuned(key, options.precision) if key else {}
        if not known:
            return options
        return replace(options, tuned=applicable(graph(), options, limits, known))

    def database(self) -> Database:
        """Return the database as it is on disk now; not to be changed."""
        with self._lock:
            seen = self._stamp()
            if seen != self._seen:
                self._database, self._seen = Database(self._path), seen
            return self._database

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


def key_of(device: DeviceFacts, api: Api, threads: int = 0) -> str:
    """Return the key under which the database keeps a device; empty where it lacks the API.

    `threads`: of the CPU backend; 0: one a core. A phone's processor is named by its SoC: /proc/cpuinfo often names
    only the architecture, which all phones share.
    """
    facts = device.api(api)
    if facts is None:
        return ""
    if api != Api.CPU:
        return device_key(api.value, facts.device_name, facts.driver)
    name = device.soc or facts.device_name
    return device_key(api.value, name, facts.driver, threads=threads or device.cores or facts.compute_units)
