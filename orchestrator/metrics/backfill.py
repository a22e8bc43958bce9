"""Write what phones sampled in their blocks as OpenMetrics text with times, for a Prometheus that could not scrape it.

A phone whose cable is cut while it is measured tells its readings afterwards: they are in its records. Each record's
samples follow from that record alone, so that the same range, or one that overlaps it, gives the same samples again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import IO

from orchestrator.energy import calibration
from orchestrator.model import telemetry
from orchestrator.model.event import Power
from orchestrator.model.power import ClockAnchor
from orchestrator.model.record import Record

from .devices import READING, STATE

SLOT_S = 15
"""The time in which each series has one sample, as a scrape takes it: the interval of `dashboards/prometheus.yml`."""
TENTHS: dict[str, Callable[[Power], int | None]] = {
    "farm_device_battery_temperature_celsius": lambda power: power.temp_dc,
    "farm_device_skin_temperature_celsius": lambda power: power.skin_dc,
}
"""Readings in tenths from an agent, which the exporter has from a device's state."""

Point = tuple[int, float]
"""Unix time in ms, value."""


@dataclass
class _Series:
    at_ms: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def points(self) -> list[Point]:
        """Return points in order of time; of several at one time the first that came."""
        first: dict[int, float] = {}
        for at_ms, value in zip(self.at_ms, self.values, strict=True):
            first.setdefault(at_ms, value)
        return sorted(first.items())


@dataclass
class Backfill:
    """The samples of records, by family and device."""

    labels: Mapping[str, str]
    """The labels of every series, beside `serial`: those that Prometheus gives to what it scrapes."""
    records: int = 0
    """The number of records whose samples are in it."""
    without_clock: int = 0
    """Records of an older worker, or of a device that told no time: nobody knows when they were sampled."""
    too_new: int = 0
    _found: dict[str, dict[str, _Series]] = field(default_factory=dict)

    def take(self, record: Record, ended_before: float) -> None:
        """Take in a record's samples, unless it has none, nobody knows their times, or it ended later than that (Unix
        time by the farm's clock)."""
        if not record.power:
            return
        if record.clock is None:
            self.without_clock += 1
            return
        if record.ended_at + (record.clock_ahead_s or 0.0) > ended_before:
            self.too_new += 1
            return
        self.records += 1
        for name, points in samples(record, record.clock).items():
            series = self._found.setdefault(name, {}).setdefault(record.device.serial, _Series())
            series.at_ms.extend(at_ms for at_ms, _ in points)
            series.values.extend(value for _, value in points)

    def write(self, file: IO[bytes]) -> int:
        """The text, family by family; how many samples it has."""
        count = 0
        for name in sorted(self._found):
            told = (READING[name] if name in READING else STATE[name])[0]
            file.write(f"# HELP {name} {told}\n# TYPE {name} gauge\n".encode())
            for serial, series in sorted(self._found[name].items()):
                start, points = f"{name}{_braced({'serial': serial, **self.labels})}", series.points()
                file.writelines(f"{start} {v!r} {ms / 1000:.3f}\n".encode() for ms, v in points)
                count += len(points)
        file.write(b"# EOF\n")
        return count


def samples(record: Record, clock: ClockAnchor) -> dict[str, list[Point]]:
    """Return points by family: of each slot the last sample, at its own time by the farm's clock."""
    gauge, ahead_s = calibration(record), record.clock_ahead_s or 0.0
    timed = [(clock.to_unix_s(power.t_ns) + ahead_s, power) for power in sorted(record.power, key=lambda p: p.t_ns)]
    found: dict[str, list[Point]] = {}
    for _, slot in groupby(timed, key=lambda each: each[0] // SLOT_S):
        last: dict[str, Point] = {}
        for at, power in slot:
            reading = power.reading(at)
            told: dict[str, float | None] = {name: pick(reading, gauge) for name, (_, pick) in READING.items()}
            told |= {name: telemetry.celsius_of_tenths(pick(power)) for name, pick in TENTHS.items()}
            last |= {name: (round(at * 1000), float(value)) for name, value in told.items() if value is not None}
        for name, point in last.items():
            found.setdefault(name, []).append(point)
    return found


def merged(found: Iterable[Record], labels: Mapping[str, str], ended_before: float) -> Backfill:
    """The samples of all these records that ended by then."""
    backfill = Backfill(labels)
    for record in found:
        backfill.take(record, ended_before)
    return backfill


def _braced(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(labels[name])}"' for name in sorted(labels)) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
