"""A perfetto trace of a phone: the battery's counters, or the rails of its power monitor.

- Battery (data source `android.power`, https://perfetto.dev/docs/data-sources/battery-counters): current times
  voltage. Android leaves the sign of the current to the phone's maker. Where the charge in the trace falls or rises,
  it shows the sign; otherwise it is taken as perfetto documents it: negative while the battery discharges.
- Rails: energy counters since boot; the power of all rails together between two readings of all of them. They see only
  a part of the phone.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from orchestrator.energy.perfetto_trace import Counters, counters_of_trace
from orchestrator.errors import TableError

from .points import Points, Series
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode, recorded

FORMAT = "perfetto"
SOURCES = ("battery", "rails")
_ALLOWED = "record with the data source android.power: BATTERY_COUNTER_CURRENT and _VOLTAGE, or collect_power_rails"


def matches(path: Path) -> bool:
    """Whether a file is a perfetto trace and no text: a packet's tag, and bytes that no text has."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError:
        return False
    return start[:1] == b"\x0a" and any(byte < 9 or 13 < byte < 32 for byte in start[1:])


def read(path: Path, told: Told) -> list[Recording]:
    """The run of one trace. Raises TableError."""
    counters = _counters(path)
    has = {"battery": any(current is not None for _, current, *_ in counters.battery), "rails": bool(counters.rails)}
    found = [name for name in SOURCES if has[name]]
    if not found:
        raise TableError(f"{path}: a perfetto trace without battery counters or power rails", remedy=_ALLOWED)
    if told.column not in (None, *found):
        raise TableError(f"{path}: it has {' and '.join(found)}, not {told.column!r}")
    if told.column is None and len(found) > 1:
        raise TableError(
            f"{path}: it has the battery's counters (the whole phone) and rails (a part of it)",
            remedy="say which: --column battery, or --column rails",
        )
    return [_battery(path, counters, told) if (told.column or found[0]) == "battery" else _rails(path, counters)]


def _counters(path: Path) -> Counters:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return counters_of_trace(content)
    except ValueError as e:
        raise TableError(f"{path}: {e}", remedy="pull the trace again") from e
    except OSError as e:
        raise TableError(f"{path}: cannot be read: {e.strerror}", remedy="check the path") from e


def _battery(path: Path, counters: Counters, told: Told) -> Recording:
    rows = [(ns, current, uv) for ns, current, uv, _ in counters.battery if current is not None]
    if told.volts is None and any(uv is None for *_, uv in rows):
        remedy = "record BATTERY_COUNTER_VOLTAGE too (Android 14), or say the voltage: --volts 3.85"
        raise TableError(f"{path}: its battery counters have a current and no voltage", remedy=remedy)
    volts = [told.volts if told.volts is not None else (uv or 0) * 1e-6 for *_, uv in rows]
    power = np.array([current for _, current, _ in rows]) * 1e-6 * np.array(volts)
    sign, doubts = _sign(path, counters, power)
    named = "battery current x " + ("battery voltage" if told.volts is None else f"{told.volts:g} V")
    return _recording(path, "battery", named, [ns for ns, *_ in rows], power * sign).doubted(*doubts)


def _sign(path: Path, counters: Counters, power: Series) -> tuple[int, list[TraceDoubt]]:
    """What makes the power positive while the battery discharges."""
    charges = [charge for *_, charge in counters.battery if charge is not None]
    gained = charges[-1] - charges[0] if charges else 0
    positive = float(power.mean()) > 0
    if gained:
        return (1 if positive == (gained < 0) else -1), []
    detail = "its charge counter does not move: a negative current was taken for a battery that discharges"
    return -1, [TraceDoubt(code=TraceDoubtCode.SIGN_FOUND, detail=detail, file=str(path))]


def _rails(path: Path, counters: Counters) -> Recording:
    """The rails' energies at the times of the rail with most readings, added up."""
    readings = {name: np.array(sorted(each), dtype=np.float64) for name, each in counters.rails.items()}
    start = max(float(each[0, 0]) for each in readings.values())
    times = np.unique(max(readings.values(), key=len)[:, 0])
    times = times[times >= start]
    if len(times) < 3:
        raise TableError(f"{path}: {len(times)} readings of its rails, needed: at least 3")
    energy_j = sum(np.interp(times, each[:, 0], each[:, 1]) for each in readings.values()) * 1e-6
    power = np.diff(energy_j) / (np.diff(times) * 1e-9)
    named = f"the sum of {len(readings)} rails" if len(readings) > 1 else next(iter(readings))
    return _recording(path, "rails", named, ((times[1:] + times[:-1]) / 2).tolist(), power)


def _recording(path: Path, source: str, named: str, times_ns: list[float] | list[int], power: Series) -> Recording:
    t_s = (np.array(times_ns, dtype=np.float64) - times_ns[0]) * 1e-9
    if bool((np.diff(t_s) < 0).any()):
        raise TableError(f"{path}: the times of its {source} fall", remedy="record with one clock")
    points = Points()
    points.extend(t_s, power)
    return recorded(path, f"{FORMAT} {source}", named, points, "packets' clock, in ns")
