"""Nordic Power Profiler Kit II through ppk2-api: current at 100 kHz, at a voltage that is known."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model

from .base import MeterLost, import_extra
from .streamed import Batch, StreamedMeter

GAIN_UNCERTAINTY = 0.10
"""The kit's specification: 10 % in its larger ranges."""
SAMPLES_PER_S = 100_000.0
PAUSE_S = 0.02


class Ppk2Options(Model):
    """`meter: {ppk2: {...}}` of the wiring file."""

    port: str = ""
    """Serial port, e.g. `/dev/ttyACM0`; empty: the only kit."""
    mode: Literal["source", "ampere"] = "source"
    """`source`: the kit supplies the phone; `ampere`: it sits in the supply's way."""
    voltage: float = Field(gt=0.8, le=5.0)
    """The voltage in V: what it supplies, or what the supply in its way gives."""
    gain_uncertainty: float = Field(default=GAIN_UNCERTAINTY, gt=0)


class _Ppk2:
    """A `Stream`; the kit's clock is the count of its samples."""

    def __init__(self, options: Ppk2Options) -> None:
        self._options = options
        self._library = import_extra("ppk2_api.ppk2_api", "ppk2", "a Power Profiler Kit II")
        self._kit: Any = None
        self._count = 0

    def open(self) -> None:
        ports = [self._options.port] if self._options.port else self._library.PPK2_API.list_devices()
        if len(ports) != 1:
            found = ", ".join(ports) or "none"
            raise MeterLost(f"one Power Profiler Kit is wanted, found: {found}", remedy="name its `port`")
        kit = self._kit = self._library.PPK2_API(ports[0], timeout=1)
        self._count = 0
        if not kit.get_modifiers():
            raise MeterLost(f"{ports[0]} does not answer as a Power Profiler Kit", remedy="check the port")
        kit.set_source_voltage(round(self._options.voltage * 1000))
        kit.use_source_meter() if self._options.mode == "source" else kit.use_ampere_meter()
        kit.toggle_DUT_power("ON")
        kit.start_measuring()

    def read(self) -> Batch | None:
        time.sleep(PAUSE_S)
        content = self._kit.get_data()
        host_ns = time.monotonic_ns()
        if not content:
            return None
        current_ua = np.array(self._kit.get_samples(content)[0], dtype=np.float64)
        own_s = (self._count + 1 + np.arange(len(current_ua))) / SAMPLES_PER_S
        self._count += len(current_ua)
        return Batch(own_s, current_ua * 1e-6 * self._options.voltage, host_ns)

    def close(self) -> None:
        """The phone's supply stays on."""
        kit, self._kit = self._kit, None
        if kit is None:
            return
        try:
            kit.stop_measuring()
        finally:
            if kit.ser is not None:
                kit.ser.close()


def ppk2(options: Mapping[str, Any]) -> StreamedMeter:
    """Raises Unsupported without the library, ValidationError for wrong options."""
    chosen = Ppk2Options.model_validate(options)
    return StreamedMeter(_Ppk2(chosen), f"ppk2 {chosen.port}".strip(), chosen.gain_uncertainty)
