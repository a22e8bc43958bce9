"""The temperatures of one phone over the last minutes, and their rate of change."""

from __future__ import annotations

from collections import deque
from statistics import linear_regression

WINDOW_S = 120.0
"""The time over which the slope is taken: measurement protocol, step 6."""
ENOUGH_S = 100.0
"""A phone that was watched for less has no slope yet."""
GAP_S = 60.0
"""The pause beyond which nothing is known of the time between: another experiment's session may have been in it."""


class TemperatureHistory:
    """Readings (Unix time, C) in the order of their time."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, float]] = deque()

    def note(self, at: float, temp_c: float) -> None:
        if self._readings and at - self._readings[-1][0] > GAP_S:
            self._readings.clear()
        if not self._readings or at > self._readings[-1][0]:
            self._readings.append((at, temp_c))
        while self._readings[0][0] < at - WINDOW_S:
            self._readings.popleft()

    def slope_c_per_min(self) -> float | None:
        """The slope of the line through the last two minutes (least squares); None where watched for less."""
        if len(self._readings) < 3 or self._readings[-1][0] - self._readings[0][0] < ENOUGH_S:
            return None
        return 60.0 * linear_regression(*zip(*self._readings, strict=True)).slope
