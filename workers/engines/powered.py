"""The power of a run: the meter beside it, and all of it for a run that the host drives step by step."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from orchestrator.model.errors import TransientError
from orchestrator.model.event import Event
from orchestrator.model.power import PowerSeries
from workers.power import PowerMeter, ReadingLost
from workers.session.supply import DISCHARGING_S, PowerContaminated, await_discharging

from .engine import Run

log = logging.getLogger(__name__)


def read_meter(meter: PowerMeter, events: Sequence[Event]) -> tuple[PowerSeries, ...]:
    """Return what the meter measured. A reading that is none costs the energy, not the block. Raises MeterLost."""
    try:
        return meter.stop(events)
    except ReadingLost as e:
        lost = f"{e.args[0]}; {e.remedy}"
        fact = meter.fact
        return (PowerSeries(source=fact.source, scope=fact.scope, name=fact.name, t_ns=(), power_w=(), lost=lost),)


@contextmanager
def metered(meter: PowerMeter | None) -> Iterator[list[PowerSeries]]:
    """The meter measures inside, and is free afterwards whatever happens. Raises MeterLost, TransportLost."""
    series: list[PowerSeries] = []
    if meter is None:
        yield series
        return
    meter.start()
    try:
        yield series
    except BaseException:
        try:
            meter.stop()
        except TransientError as e:
            log.info("%s", e)
        raise


@contextmanager
def powered(run: Run, expected_s: float, events: Sequence[Event]) -> Iterator[list[PowerSeries]]:
    """Inside, the block's meter measures, and the supply is cut if the conditions say so; yields the readings to be.

    `events` are filled meanwhile. Raises PowerContaminated where the battery does not discharge and must, MeterLost,
    SupplyStuck, TransportLost. A supply that is still cut after an error is restored by the session.
    """
    cut, serial = run.cut(expected_s), run.member.facts.serial
    wait_s = DISCHARGING_S[run.assignment.job.conditions.supply]
    with metered(run.meter) as series:
        if cut:
            cut.begin()
        asks = wait_s > 0 and run.member.facts.kind == "phone"
        if asks and not await_discharging(run.member.connection, run.check, wait_s):
            raise PowerContaminated(f"it still charges after {wait_s:g} s", device=serial)
        yield series
        if cut:
            cut.end()
        series += read_meter(run.meter, events) if run.meter else ()
