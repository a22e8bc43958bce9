"""The on-device power monitor: turn the rails that the agent reads into series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.model.enrolment import SourceFact
from orchestrator.model.event import Event, Rails
from orchestrator.model.power import PowerSeries, PowerSource, Scope

from .base import Bench, MeterLost, power_of_energy

GAIN_UNCERTAINTY = 0.03
NODES = "cat /sys/bus/iio/devices/*/name; cat /sys/bus/iio/devices/*/energy_value"


class Odpm:
    """Implements `PowerMeter`; the host does nothing until the agent's events are there."""

    def __init__(self) -> None:
        self.fact = SourceFact(source=PowerSource.ODPM, scope=Scope.RAILS, name="power rails", usable=True)
        self._started = False

    def start(self) -> None:
        self._started = True

    def stop(self, events: Sequence[Event] = ()) -> tuple[PowerSeries, ...]:
        started, self._started = self._started, False
        if not started:
            return ()
        found = rails_series(PowerSource.ODPM, rails_of(events))
        if not found:
            raise MeterLost("the agent read no power rails", remedy="see `farm devices SERIAL`; perfetto may read them")
        return found


def rails_of(events: Iterable[Event]) -> dict[str, list[tuple[int, int]]]:
    """Rail -> (time in ns, energy in uW s)."""
    rails: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if isinstance(event, Rails):
            for name, energy_uws in event.energy_uws.items():
                rails.setdefault(name, []).append((event.t_ns, energy_uws))
    return rails


def rails_series(source: PowerSource, rails: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[PowerSeries, ...]:
    """One series a rail: they are multiplexed, and their sum is not the device's power."""
    return tuple(
        _series(source, name, readings)
        for name, readings in sorted(rails.items())
        if len({t_ns for t_ns, _ in readings}) >= 2
    )


def _series(source: PowerSource, name: str, readings: Sequence[tuple[int, int]]) -> PowerSeries:
    t_ns, energy_uws = zip(*sorted(dict(readings).items()), strict=True)
    return PowerSeries(
        source=source,
        scope=Scope.RAILS,
        name=name,
        t_ns=t_ns,
        power_w=tuple(power_of_energy([energy / 1e6 for energy in energy_uws], t_ns)),
        is_mean=True,
        gain_uncertainty=GAIN_UNCERTAINTY,
    )


def odpm(bench: Bench) -> Odpm:
    """Raises Unsupported where there is none, or the shell may not read it."""
    result = bench.member.connection.shell(["sh", "-c", NODES])
    text = result.stdout.decode(errors="replace")
    if "-odpm" not in text:
        raise bench.unsupported("it has no on-device power monitor (Pixel 6 and newer have one)", "use the gauge")
    if "CH" not in text:
        raise bench.unsupported(
            "the shell may not read its power monitor", "use `power_source: perfetto`, or root the phone"
        )
    return Odpm()
