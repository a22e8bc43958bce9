"""Check a gauge against itself: the integral of its current against the fall of its charge counter."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from orchestrator.model import telemetry
from orchestrator.model.base import Model
from orchestrator.model.record import Record

from .gauge_readings import gauge_readings
from .sources import calibration
from .trace import Trace, energy_j

FEWEST_COUNTS = 20
"""Counts that the counter must go down before it says anything: measurement protocol, step 10."""
TOLERANCE = 0.05
"""Share by which the two may differ: measurement protocol, step 10."""
UC_PER_UAH = 3600


class ChargeCheck(Model):
    """Charge that left the battery, once by the counter and once by the current."""

    counts: int = Field(ge=1)
    """Steps that the counter went down."""
    counted_c: float
    """Coulombs by the charge counter."""
    integrated_c: float
    """Coulombs by the integral of the current over the same time."""

    @property
    def difference(self) -> float:
        """Integral over counter, less one."""
        return self.integrated_c / self.counted_c - 1

    @property
    def agrees(self) -> bool:
        return abs(self.difference) <= TOLERANCE


def charge_check(record: Record) -> ChargeCheck | None:
    """Check between the counter's first and last change, at which it has just passed a count. None where it is not
    readable or went down by less than `FEWEST_COUNTS`."""
    gauge = calibration(record)
    found = gauge_readings(record.power, gauge)
    counted = [telemetry.charge_uah(record.power[place].charge_uah) for place in found.place]
    told = [at for at, uah in enumerate(counted) if uah is not None]
    t_s, raw, charge = found.t_s[told], found.raw[told], [uah for uah in counted if uah is not None]
    changes = [at for at in range(1, len(charge)) if charge[at] != charge[at - 1]]
    if len(changes) < 2:
        return None
    start_s, end_s = float(t_s[changes[0]]), float(t_s[changes[-1]])
    drop_uah = charge[changes[0]] - charge[changes[-1]]
    counts = drop_uah // math.gcd(*(charge[at] - charge[at - 1] for at in changes))
    if counts < FEWEST_COUNTS:
        return None
    integrated_c = energy_j(Trace(t_s, np.asarray(raw * gauge.discharge_a_per_unit, dtype=np.float64)), start_s, end_s)
    return ChargeCheck(counts=counts, counted_c=drop_uah * UC_PER_UAH * 1e-6, integrated_c=integrated_c)
