"""Check a gauge against itself: the integral of its current against the fall of its charge counter."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.record import Record

from .sources import NS, calibration
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
    """Between the counter's first and last change, at which it has just passed a count. None where it is not readable
    or went down by less than `FEWEST_COUNTS`."""
    readings = [
        (p.t_ns * NS, p.charge_uah, p.current_ua)
        for p in record.power
        if p.charge_uah is not None and p.current_ua is not None
    ]
    changes = [i for i in range(1, len(readings)) if readings[i][1] != readings[i - 1][1]]
    if len(changes) < 2:
        return None
    (start_s, first_uah, _), (end_s, last_uah, _) = readings[changes[0]], readings[changes[-1]]
    drop_uah = first_uah - last_uah
    counts = drop_uah // math.gcd(*(readings[i][1] - readings[i - 1][1] for i in changes))
    if counts < FEWEST_COUNTS:
        return None
    gauge = calibration(record)
    t_s, _, raw = np.array(readings).T
    current = Trace(t_s, raw * gauge.discharge_a_per_unit)
    integrated_c = energy_j(current, start_s, end_s)
    return ChargeCheck(counts=counts, counted_c=drop_uah * UC_PER_UAH * 1e-6, integrated_c=integrated_c)
