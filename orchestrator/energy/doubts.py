"""Find doubts about the energy of a block that counts."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.model.device import Source
from orchestrator.model.power import PowerSource
from orchestrator.model.record import Doubt, DoubtCode, Record

from .charge import TOLERANCE, ChargeCheck
from .sources import Origin, calibration, charging_readings
from .windows import Window

SHORTEST_LOAD_S = 30.0
FEWEST_REFRESHES = 100
"""Measurement protocol, step 7: load for at least 30 s and 100 refresh periods."""


def find_energy_doubts(record: Record, origin: Origin, load: Window, checked: ChargeCheck | None) -> tuple[Doubt, ...]:
    """All doubts about figures of one source, in a fixed order."""
    of_gauge = _of_gauge(record, checked) if origin.source is PowerSource.GAUGE else ()
    return (*of_gauge, *_of_load(origin, load), *_of_model(record, origin))


def _of_gauge(record: Record, checked: ChargeCheck | None) -> Iterator[Doubt]:
    gauge = calibration(record)
    if record.gauge is None or gauge.method == "assumed":
        detail = f"{gauge.ampere_per_unit:g} A per unit, sign {gauge.discharging_sign}"
        yield Doubt(code=DoubtCode.GAUGE_ASSUMED, detail=detail)
    if not gauge.absolute:
        yield Doubt(code=DoubtCode.RELATIVE_ENERGY, detail=f"gain known to {gauge.gain_uncertainty:.0%}")
    if charging := charging_readings(record.power):
        yield Doubt(code=DoubtCode.CHARGING, detail=f"{charging} of {len(record.power)} readings were not discharging")
    if checked and not checked.agrees:
        detail = f"{checked.difference:+.1%} over {checked.counts} counts, at most {TOLERANCE:.0%}"
        yield Doubt(code=DoubtCode.CHARGE_MISMATCH, detail=detail)


def _of_load(origin: Origin, load: Window) -> Iterator[Doubt]:
    wanted_s = max(SHORTEST_LOAD_S, FEWEST_REFRESHES * origin.trace.refresh_s)
    if load.length_s < wanted_s:
        yield Doubt(code=DoubtCode.SHORT_LOAD, detail=f"{load.length_s:.1f} s, wanted are {wanted_s:g} s")


def _of_model(record: Record, origin: Origin) -> Iterator[Doubt]:
    if origin.source is PowerSource.MODEL or record.source is Source.VIRTUAL:
        yield Doubt(code=DoubtCode.MODELLED_POWER)
