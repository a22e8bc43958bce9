"""The temperature of a modelled server: exact between the moments at which it begins or ends to work."""

from __future__ import annotations

import math

from orchestrator.queueing.spec import Heat


class HeatModel:
    """A body that approaches the ambient temperature, or that of steady load, with one time constant."""

    def __init__(self, heat: Heat) -> None:
        self._heat = heat
        self._temp_c, self._at, self._busy = heat.ambient, 0.0, False

    def temp_c(self, now: float) -> float:
        aim = self._aim()
        return aim + (self._temp_c - aim) * math.exp((self._at - now) / self._heat.time_constant)

    def cool_at(self, temp_c: float, now: float) -> float:
        above, ambient = self.temp_c(now) - self._heat.ambient, self._heat.ambient
        if temp_c <= ambient:
            return math.inf
        return now + self._heat.time_constant * max(0.0, math.log(max(above, 1e-12) / (temp_c - ambient)))

    def work(self, busy: bool, now: float) -> None:
        """From now on it is busy, or idle."""
        self._temp_c, self._at, self._busy = self.temp_c(now), now, busy

    def slowdown(self, now: float) -> float:
        """How many times as long as when it is cool a service takes that begins now."""
        hot = max(0.0, self.temp_c(now) - self._heat.throttle_at)
        return min(self._heat.slowest, 1 + self._heat.slower_per_c * hot)

    def _aim(self) -> float:
        return self._heat.ambient + (self._heat.rise_c if self._busy else 0.0)
