"""The fuel gauge: a slow, quantised and noisy view of the battery, with the profile's sign and unit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from virtual_phones.profile import Profile

from .physics import State

ChargeStatus = Literal["Charging", "Discharging", "Full", "Not charging"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The values that the battery's nodes print."""

    current: int
    """The current in the profile's unit and sign."""
    voltage_uv: int
    charge_uah: int
    level: int
    """Percent."""
    temp_dc: int
    """Tenths of a degree Celsius."""
    status: ChargeStatus


class FuelGauge:
    """Samples the physical state once per refresh period and holds the reading in between."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self.frozen = False
        """Fault: readings no longer change."""
        self._profile = profile
        self._random = random.Random(seed)
        self._refresh = -1
        self._reading: Reading | None = None

    def read(self, state: State) -> Reading:
        """The reading that holds at `state.time_s`."""
        refresh = int(state.time_s * 1000 / self._profile.gauge.refresh_ms)
        if self._reading is None or (refresh != self._refresh and not self.frozen):
            self._reading, self._refresh = self._sample(state), refresh
        return self._reading

    def _sample(self, state: State) -> Reading:
        gauge = self._profile.gauge
        noisy_ua = state.current_a * 1e6 + self._random.gauss(0.0, gauge.noise_ua)
        current_ua = round(noisy_ua / gauge.quantum_ua) * gauge.quantum_ua * gauge.discharging_sign
        return Reading(
            current=round(current_ua / (1000 if gauge.unit == "mA" else 1)),
            voltage_uv=round(state.voltage_v * 1000) * 1000,
            charge_uah=round(state.charge * self._profile.battery.capacity_mah) * 1000,
            level=round(state.charge * 100),
            temp_dc=round(state.battery_c * 10),
            status=_status(state),
        )


def _status(state: State) -> ChargeStatus:
    if not state.charging:
        return "Discharging"
    if state.charge >= 0.995:
        return "Full"
    return "Charging" if state.current_a < 0 else "Not charging"
