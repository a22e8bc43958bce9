"""A meter that measures while a block runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from orchestrator.errors import TransientError
from orchestrator.model.event import Event
from orchestrator.model.power import PowerSeries

from .base import PowerMeter, ReadingLost

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
