"""A perfetto trace of a phone: the battery's counters, or the rails of its power monitor.

- Battery (data source `android.power`, https://perfetto.dev/docs/data-sources/battery-counters): current times
  voltage. Android leaves the sign of the current to the phone's maker, and some print it in mA. Where the charge in the
  trace falls or rises, it shows both; otherwise the current is taken as perfetto documents it: in uA, negative while
  the battery discharges.
- Rails: energy counters since boot; the power of all rails together between two readings of all of them. They see only
  a part of the phone.
"""

from __future__ import annotations

import gzip
import math
import mmap
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from orchestrator.energy.perfetto_trace import Counters, counters_of_trace
from orchestrator.exchange.delimited_table import Table
from orchestrator.model import telemetry
from orchestrator.model.errors import TableError

from .points import Points, Series
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode, recorded

FORMAT = "perfetto"
SOURCES = ("battery", "rails")
COUNTS = 5
"""Steps of the charge counter from which on it tells how much flowed."""
AGREES, MILLI = (0.5, 2.0), (500.0, 2000.0)
"""Charge over integrated current where both have the same unit, and where the current is in mA."""
Counts = tuple[int, int | None, int | None, int | None]
LARGEST = 1 << 30
"""The largest size of a trace that is compressed as a whole."""
_ALLOWED = "record with the data source android.power: BATTERY_COUNTER_CURRENT and _VOLTAGE, or collect_power_rails"


def matches(path: Path) -> bool:
    """Return whether a file is a perfetto trace and no text: a packet's tag, and bytes that no text has."""
    try:
        with Table(path).open() as file:
            start = file.read(4096)
    except (OSError, EOFError, zlib.error):
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
        what = f"{path}: it has {' and '.join(found)}, not {told.column!r}"
        raise TableError(what, remedy=f"say --column {found[0]}, or {_ALLOWED}")
    if told.column is None and len(found) > 1:
        raise TableError(
            f"{path}: it has the battery's counters (the whole phone) and rails (a part of it)",
            remedy="say which: --column battery, or --column rails",
        )
    return [_battery(path, counters, told) if (told.column or found[0]) == "battery" else _rails(path, counters)]


def _counters(path: Path) -> Counters:
    try:
        if Table(path).compressed:
            with Table(path).open() as packed:
                return counters_of_trace(_all_of(path, packed.read(LARGEST + 1)))
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return counters_of_trace(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        raise TableError(f"{path}: is a damaged gzip file: {e}", remedy="copy it again") from e
    except ValueError as e:
        raise TableError(f"{path}: {e}", remedy="pull the trace again") from e
    except OSError as e:
        raise TableError(f"{path}: cannot be read: {e.strerror}", remedy="check the path") from e


def _all_of(path: Path, content: bytes) -> bytes:
    if len(content) > LARGEST:
        raise TableError(
            f"{path}: holds more than {LARGEST >> 30} GiB", remedy=f"gunzip {path.name}, and give what is in it"
        )
    return content


def _battery(path: Path, counters: Counters, told: Told) -> Recording:
    rows = [row for row in counters.battery if row[1] is not None]
    usual = median(abs(current or 0) for _, current, *_ in rows)
    cells = [telemetry.cell_v(uv) for _, _, uv, _ in rows]
    if told.volts is None and all(volts is None for volts in cells):
        remedy = "record BATTERY_COUNTER_VOLTAGE too (Android 14), or say the voltage: --volts 3.85"
        raise TableError(f"{path}: its battery counters have a current and no voltage", remedy=remedy)
    raw = np.array([math.nan if telemetry.current(each, usual) is None else each for _, each, *_ in rows], dtype=float)
    power = raw * 1e-6 * _volts([ns for ns, *_ in rows], cells, told)
    factor, doubts = _charged(path, counters, rows, raw)
    if factor is None:
        factor = -1.0
        detail = "its charge counter does not move: a negative current was taken for a battery that discharges"
        doubts.append(TraceDoubt(code=TraceDoubtCode.SIGN_FOUND, detail=detail, file=str(path)))
    named = "battery current x " + ("battery voltage" if told.volts is None else f"{told.volts:g} V")
    return _recording(path, "battery", named, [ns for ns, *_ in rows], power * factor).doubted(*doubts)


def _volts(times_ns: Sequence[int], cells: Sequence[float | None], told: Told) -> Series:
    """Return the volts at each reading of the current; between neighbours where one tells none that a battery has."""
    if told.volts is not None:
        return np.full(len(times_ns), told.volts)
    known = [(ns, volts) for ns, volts in zip(times_ns, cells, strict=True) if volts is not None]
    at_ns, volts_v = (np.array(each, dtype=np.float64) for each in zip(*known, strict=True))
    return np.interp(np.array(times_ns, dtype=np.float64), at_ns, volts_v)


def _charged(
    path: Path, counters: Counters, rows: Sequence[Counts], raw: Series
) -> tuple[float | None, list[TraceDoubt]]:
    """Return what makes the current one out of the battery, in uA, by the charge that the trace counts meanwhile;
    None where that does not move."""
    told = [(ns, uah) for ns, _, _, charge in counters.battery if (uah := telemetry.charge_uah(charge)) is not None]
    gained_uah = told[-1][1] - told[0][1] if told else 0
    if not gained_uah:
        return None, []
    fits = np.isfinite(raw)
    t_ns = np.array([ns for ns, *_ in rows], dtype=float)[fits]
    inside = (t_ns >= told[0][0]) & (t_ns <= told[-1][0])
    flowed_uah = float(np.trapezoid(raw[fits][inside], t_ns[inside])) / 3.6e12
    ratio = -gained_uah / flowed_uah if flowed_uah else -1.0
    sign = math.copysign(1.0, ratio)
    moves = [abs(later - earlier) for (_, earlier), (_, later) in pairwise(told) if later != earlier]
    if abs(gained_uah) < COUNTS * min(moves) or AGREES[0] <= abs(ratio) <= AGREES[1]:
        return sign, []
    milli = MILLI[0] <= abs(ratio) <= MILLI[1]
    read = "was read in mA" if milli else "was left as it is"
    detail = f"its charge counter says {abs(ratio):.3g} times as much as its current in uA, which {read}"
    doubt = TraceDoubt(code=TraceDoubtCode.UNIT_FOUND, detail=detail, file=str(path))
    return sign * (1000.0 if milli else 1.0), [doubt]


def _rails(path: Path, counters: Counters) -> Recording:
    """The rails' energies at the times of the rail with most readings, added up."""
    readings = {name: np.array(sorted(each), dtype=np.float64) for name, each in counters.rails.items()}
    start = max(float(each[0, 0]) for each in readings.values())
    times = np.unique(max(readings.values(), key=len)[:, 0])
    times = times[times >= start]
    if len(times) < 3:
        what = f"{path}: {len(times)} readings of its rails, needed: at least 3"
        raise TableError(what, remedy="record for longer, or poll more often")
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
