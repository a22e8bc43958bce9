"""A meter of this host as a source of power figures: its times are put onto the device's clock."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.model.enrolment import SourceFact
from orchestrator.model.event import Event
from orchestrator.model.power import ClockMap, PowerSeries

from .base import HostMeter, MeterLost, Readings
from .clock_mapping import Ask, RoundTrip, ask_round_trips, fit, host_clock


class HostSource:
    """Implements `PowerMeter`. `ask`: how to ask the device for its time; None: it is this host, or runs on it."""

    def __init__(self, fact: SourceFact, meter: HostMeter, ask: Ask | None) -> None:
        self.fact = fact
        self._meter, self._ask = meter, ask
        self._before: tuple[RoundTrip, ...] = ()
        self._started = False

    def start(self) -> None:
        self._before = ask_round_trips(self._ask) if self._ask else ()
        self._meter.start()
        self._started = True

    def stop(self, events: Sequence[Event] = ()) -> tuple[PowerSeries, ...]:  # noqa: ARG002 (the agent has no part in it)
        if not self._started:
            return ()
        self._started = False
        readings = self._meter.stop()
        if not any(each.t_ns for each in readings):
            raise MeterLost(f"{self.fact.name or self.fact.source} read nothing", remedy="look at the meter")
        clock = fit(self._before, ask_round_trips(self._ask)) if self._ask else host_clock()
        return tuple(self._series(each, clock) for each in readings)

    def _series(self, readings: Readings, clock: ClockMap) -> PowerSeries:
        known = self._ask is None and readings.residual_ns == 0
        residual_ns = clock.residual_ns + readings.residual_ns
        return PowerSeries(
            source=self.fact.source,
            scope=self.fact.scope,
            name=readings.name,
            t_ns=tuple(clock.to_device(t) for t in readings.t_ns),
            power_w=tuple(readings.power_w),
            is_mean=readings.is_mean,
            gain_uncertainty=readings.gain_uncertainty,
            clock=None if known else clock.model_copy(update={"residual_ns": residual_ns}),
        )
