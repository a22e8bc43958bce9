"""The temperature of a modelled server: exact between the moments at which it begins or ends to work."""

from __future__ import annotations

import math

from orchestrator.queueing.spec import Heat


class HeatModel:
    """A body that approaches the ambient temperature, or that of steady load, with one time constant."""

    def __init__(self, heat: Heat) -> None:
        self._heat = heat
        self._temp_c, self._at, self._speed = heat.ambient, 0.0, 0.0
        self.hottest_c = heat.ambient

    def temp_c(self, now: float) -> float:
        aim = self._heat.ambient + self._heat.rise_c * self._speed
        return aim + (self._temp_c - aim) * math.exp((self._at - now) / self._heat.time_constant)

    def cool_at(self, temp_c: float, now: float) -> float:
        above, ambient = self.temp_c(now) - self._heat.ambient, self._heat.ambient
        if temp_c <= ambient:
            return math.inf
        return now + self._heat.time_constant * max(0.0, math.log(max(above, 1e-12) / (temp_c - ambient)))

    def begin(self, now: float) -> float:
        """It is busy from now on. How many times as long as when it is cool a service takes that begins now."""
        slower = self._slower(self.temp_c(now))
        self._turn(1 / slower if self._heat.slow_is_cooler else 1.0, now)
        return slower

    def rest(self, now: float) -> None:
        """It is idle from now on."""
        self._turn(0.0, now)

    def _turn(self, speed: float, now: float) -> None:
        self._temp_c, self._at, self._speed = self.temp_c(now), now, speed
        self.hottest_c = max(self.hottest_c, self._temp_c)

    def _slower(self, temp_c: float) -> float:
        heat = self._heat
        if heat.throttle_at is not None:
            return min(heat.slowest, 1 + heat.slower_per_c * max(0.0, temp_c - heat.throttle_at))
        return max((step.times for step in heat.steps if temp_c >= step.at), default=1.0)
