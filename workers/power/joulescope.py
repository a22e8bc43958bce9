"""Joulescope JS110, JS220 and JS320 through pyjoulescope_driver: the instrument's own statistics."""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model

from .base import MeterLost, import_extra
from .streamed import Batch, StreamedMeter

GAIN_UNCERTAINTY = 0.005
WAIT_S = 0.05
SAMPLES_PER_S = {"js110": 2_000_000, "js220": 1_000_000, "js320": 1_000_000}


class JoulescopeOptions(Model):
    """`meter: {joulescope: {...}}` of the wiring file."""

    serial: str = ""
    """Part of the instrument's path, e.g. `js220/001234`; empty: the only one."""
    frequency: float = Field(default=50.0, gt=0, le=1000)
    """Means per second."""
    gain_uncertainty: float = Field(default=GAIN_UNCERTAINTY, gt=0)


class _Joulescope:
    """A `Stream`; the driver calls back on a thread of its own."""

    def __init__(self, options: JoulescopeOptions) -> None:
        self._options = options
        self._library = import_extra("pyjoulescope_driver", "joulescope", "a Joulescope")
        self._driver: Any = None
        self._path = ""
        self._arrived: queue.SimpleQueue[tuple[dict[str, Any], int]] = queue.SimpleQueue()

    def open(self) -> None:
        self._arrived = queue.SimpleQueue()
        self._driver = self._library.Driver()
        paths = [path for path in self._driver.device_paths() if self._options.serial in path]
        if len(paths) != 1:
            found = ", ".join(paths) or "none"
            raise MeterLost(
                f"one Joulescope is wanted, found: {found}", remedy="name it by `serial` in the wiring file"
            )
        self._driver.open(paths[0])
        self._path = paths[0]
        self._configure()

    def _configure(self) -> None:
        model = next((name for name in SAMPLES_PER_S if name in self._path), "js220")
        js110 = model == "js110"
        publish, path = self._driver.publish, self._path
        publish(f"{path}/s/i/range/{'select' if js110 else 'mode'}", "auto")
        for signal in "ivp" if js110 else "":  # it has statistics of the driver, from its streams
            publish(f"{path}/s/{signal}/ctrl", "on")
        publish(f"{path}/s/stats/scnt", round(SAMPLES_PER_S[model] / self._options.frequency))
        publish(f"{path}/s/stats/ctrl", "on" if js110 else 1)
        self._driver.subscribe(f"{path}/s/stats/value", "pub", self._on_value)

    def _on_value(self, _topic: str, value: dict[str, Any]) -> None:
        self._arrived.put((value, time.monotonic_ns()))

    def read(self) -> Batch | None:
        try:
            value, host_ns = self._arrived.get(timeout=WAIT_S)
        except queue.Empty:
            return None
        end_s = value["time"]["range"]["value"][1]
        power_w = value["signals"]["power"]["avg"]["value"]
        return Batch(np.array([end_s], dtype=np.float64), np.array([power_w], dtype=np.float64), host_ns)

    def close(self) -> None:
        driver, path, self._driver, self._path = self._driver, self._path, None, ""
        if driver is None:
            return
        try:
            if path:
                driver.publish(f"{path}/s/stats/ctrl", "off" if "js110" in path else 0)
                driver.close(path)
        finally:
            driver.finalize()


def joulescope(options: Mapping[str, Any]) -> StreamedMeter:
    """Raises Unsupported without the library, ValidationError for wrong options."""
    chosen = JoulescopeOptions.model_validate(options)
    # the instrument averages already: a bin shorter than its period keeps every mean
    name = f"joulescope {chosen.serial}".strip()
    bin_s = 0.5 / chosen.frequency
    return StreamedMeter(_Joulescope(chosen), name, chosen.gain_uncertainty, bin_s=bin_s, means=True)
