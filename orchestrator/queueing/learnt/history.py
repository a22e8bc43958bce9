"""The history of a phone's heat in a block: its temperature over time, and when it computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.model import telemetry
from orchestrator.model.record import Record

NS = 1e-9
FEWEST = 10
"""Readings, and inferences."""
Column = NDArray[np.float64]


@dataclass(frozen=True)
class History:
    """Seconds of the phone's clock, degrees Celsius."""

    at: Column
    temp_c: Column
    """The temperature at these moments: of the skin where the phone tells it, else of the battery."""
    begun: Column
    """The time when each sample began."""
    took: Column
    """The time that it took."""
    count: Column
    """Its inferences."""
    timed: NDArray[np.bool_]
    """True for those after the warm-up."""

    def temp_at(self, moments: Column) -> Column:
        """Return the temperature at these moments by linear interpolation."""
        return np.interp(moments, self.at, self.temp_c)

    @property
    def each_took(self) -> Column:
        """Time of an inference, by sample."""
        return self.took / self.count

    @property
    def load_s(self) -> float:
        """The time from its first inference to its last."""
        return float(self.begun[-1] + self.took[-1] - self.begun[0])


def history_of(record: Record) -> History | None:
    """None where the phone told no temperature, or where there are fewer than `FEWEST` readings or inferences."""
    skin = any(reading.skin_dc is not None for reading in record.power)
    told = [(each.t_ns, each.skin_dc if skin else each.temp_dc) for each in record.power]
    temps = [(t_ns * NS, telemetry.celsius_of_tenths(temp_dc)) for t_ns, temp_dc in told]
    readings = np.array([each for each in temps if each[1] is not None])
    samples = np.array(
        [
            (each.start_ns * NS, each.duration_ns * NS, each.inferences, each.phase == "timed")
            for each in record.samples
            if each.duration_ns > 0
        ]
    )
    if len(readings) < FEWEST or len(samples) < FEWEST:
        return None
    begun, took, count, timed = samples.T
    return History(readings[:, 0], readings[:, 1], begun, took, count, timed > 0)
