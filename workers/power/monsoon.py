"""Monsoon power monitors (HVPM, LVPM) through Monsoon's own library."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model

from .base import MeterLost, import_extra
from .streamed import Batch, StreamedMeter

GAIN_UNCERTAINTY = 0.01
SAMPLES = 100
"""Samples of one transfer: 20 ms at the monitor's 5 kHz."""


class MonsoonOptions(Model):
    """`meter: {monsoon: {...}}` of the wiring file."""

    serial: int | None = None
    """The serial of the monitor; None: the only one."""
    model: Literal["hvpm", "lvpm"] = "hvpm"
    voltage: float | None = Field(default=None, gt=0.8, lt=13.5)
    """Main output in V, where it stands for the battery; None: left as it is. It is never switched off."""
    gain_uncertainty: float = Field(default=GAIN_UNCERTAINTY, gt=0)


class _Monsoon:
    """A `Stream`. The library stamps samples with the host's wall clock when a packet arrives."""

    def __init__(self, options: MonsoonOptions) -> None:
        self._options = options
        self._monitors = import_extra(f"Monsoon.{options.model.upper()}", "monsoon", "a Monsoon monitor")
        self._engines = import_extra("Monsoon.sampleEngine", "monsoon", "a Monsoon monitor")
        self._usb = import_extra("Monsoon.pmapi", "monsoon", "a Monsoon monitor")
        self._monitor: Any = None
        self._engine: Any = None

    def open(self) -> None:
        monitor = self._monitors.Monsoon()
        monitor.setup_usb(self._options.serial, self._usb.USB_protocol())
        if monitor.Protocol.DEVICE is None:  # the library prints that, and goes on
            raise MeterLost("no Monsoon monitor on USB", remedy="check its cable, its serial number and udev's rights")
        self._monitor = monitor
        if self._options.voltage is not None:
            monitor.setVout(self._options.voltage)
        self._engine = self._engines.SampleEngine(monitor)
        self._engine.ConsoleOutput(False)
        if self._engine.periodicStartSampling() is False:
            raise MeterLost("the Monsoon monitor did not calibrate itself", remedy="replug the monitor")

    def read(self) -> Batch | None:
        own_s, main_ma, _usb, _aux, main_v, _usb_v = self._engine.periodicCollectSamples(SAMPLES)
        host_ns = time.monotonic_ns()
        count = min(len(own_s), len(main_ma), len(main_v))
        power_w = np.array(main_ma[:count]) / 1000.0 * np.array(main_v[:count])
        return Batch(np.array(own_s[:count], dtype=np.float64), power_w, host_ns)

    def close(self) -> None:
        engine, monitor, self._engine, self._monitor = self._engine, self._monitor, None, None
        try:
            if engine is not None:
                engine.periodicStopSampling()
        finally:
            if monitor is not None:
                monitor.closeDevice()


def monsoon(options: Mapping[str, Any]) -> StreamedMeter:
    """Raises Unsupported without the library, ValidationError for wrong options."""
    chosen = MonsoonOptions.model_validate(options)
    name = f"monsoon {chosen.serial or chosen.model}"
    return StreamedMeter(_Monsoon(chosen), name, chosen.gain_uncertainty)
