"""Trepn Profiler's CSV: a preamble, one pair of columns (time in ms, value) a sensor, and a footer with averages.

Two layouts are known, both from the traces that the authors of study S published: with quoted titles and a comma at the
end of each row, and one that a spreadsheet has saved again (no quotes, rows filled up with commas, and in the footer
more figures behind the average: those of other runs, their mean, and the same in mW). Each sensor has its own times, so
columns end at different rows. Titles `... (Raw)` and `... (Delta)` behind one time are taken as public readers of such
files do: the raw value is the power. Several power columns are several runs beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.exchange.delimited_table import Table, cell

from .columns import NO_READING, is_end
from .points import Points
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode, recorded
from .units import allowed, factor, parse_title

FORMAT = "trepn"
AGREES = 1e-3
"""Share within which the footer's average is the same as ours."""
ON_BATTERY = {"1", "3"}
"""Battery Status of traces that were recorded on the battery: 1 in the traces of study S, 3 (discharging) in Android's
own numbering, where 2 is charging, 4 plugged in but not charging, and 5 full."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
Rows = Iterator[tuple[int, list[str]]]


@dataclass
class _Run:
    """One power column with its own time column."""

    time: int
    power: int
    title: str
    scale: float
    readings: Points = field(default_factory=Points)


@dataclass
class _Footer:
    """The text below the readings."""

    line: int = 0
    type: str = ""
    """The kind of the averages, with their unit, as the footer says it."""
    texts: tuple[str, ...] = ()
    averages_w: tuple[float, ...] = ()


def matches(head: Sequence[tuple[int, list[str]]]) -> bool:
    """Return whether the first rows look like Trepn's."""
    return any(cells[:2] == ["App", "Package"] or (_is_header(cells) and _has_battery(cells)) for _, cells in head)


def read(table: Table, _told: Told) -> list[Recording]:
    """The runs of one file, which says all of itself. Raises TableError."""
    rows = table.rows()
    told_s, line, titles = _preamble(table, rows)
    runs = _runs(table, line, titles)
    status, end = _readings(table, rows, titles, runs)
    footer = _footer(table, rows, runs[0].scale) if end else _Footer()
    return [_recording(table, run, runs, footer, told_s, status) for run in runs]


def _is_header(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and _is_time(cells[0]) and "[ms]" in cells[0] and not _is_time(cells[1])


def _has_battery(cells: Sequence[str]) -> bool:
    """Other programs too call their times `Time [ms]`."""
    return any(text.lower().startswith("battery ") for text in cells)


def _is_time(text: str) -> bool:
    return text.lower().startswith("time")


def _preamble(table: Table, rows: Rows) -> tuple[float | None, int, list[str]]:
    """Reads up to the titles; the duration that the preamble tells, the titles' line, and the titles."""
    told: float | None = None
    line = 1
    for line, cells in rows:
        if _is_header(cells):
            return told, line, cells
        durations = [parsed for text in cells if (parsed := parse_duration(text)) is not None]
        told = durations[0] if durations else told
    raise table.error(line, "", "no row of titles such as `Time  [ms],Battery Status,Time  [ms],Battery Power* [uW]`")


def parse_duration(text: str) -> float | None:
    """`1 min 2 sec` -> seconds; None for any other text."""
    if not re.fullmatch(r"(\d+ *(h(ours?|r)?|min(utes?)?|s(ec(onds?)?)?) *)+", text.strip(), re.IGNORECASE):
        return None
    found = re.findall(r"(\d+) *([hms])", text.lower())
    return float(sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in found))


def _runs(table: Table, line: int, titles: Sequence[str]) -> list[_Run]:
    runs = []
    for index, text in enumerate(titles):
        title = parse_title(text)
        if not title.name.lower().startswith("battery power") or "delta" in title.rest.lower():
            continue
        scale = factor(title, "power")
        if scale is None:
            raise table.error(line, text, f"unit {title.unit!r}, allowed: {allowed('power')}")
        time = next((i for i in range(index - 1, -1, -1) if _is_time(titles[i])), None)
        if time is None or parse_title(titles[time]).unit != "ms":
            raise table.error(line, text, "no column `Time [ms]` to its left")
        runs.append(_Run(time, index, text, scale))
    if not runs:
        found = ", ".join(text for text in titles if text and not _is_time(text))
        raise table.error(line, "", f"no column `Battery Power`; it has {found}", "switch Battery Power on in Trepn")
    return runs


def _readings(table: Table, rows: Rows, titles: Sequence[str], runs: Sequence[_Run]) -> tuple[set[str], bool]:
    """Reads up to the footer; the values of Battery Status, and whether there is a footer."""
    status_column = next((i for i, text in enumerate(titles) if text.lower().startswith("battery status")), None)
    status: set[str] = set()
    for line, cells in rows:
        if not any(cells):
            continue
        if cells[0].lower().startswith("system statistics"):
            return status, True
        for run in runs:
            _take(table, line, cells, run)
        if status_column is not None and cell(cells, status_column):
            status.add(cells[status_column])
    return status, False


def _take(table: Table, line: int, cells: Sequence[str], run: _Run) -> None:
    """A row where a sensor has no time or no value any more says nothing of it."""
    time, power = cell(cells, run.time), cell(cells, run.power)
    if not time or not power:
        return
    t_s = table.number(time, line, "Time [ms]") / 1e3
    if NO_READING.fullmatch(power) or is_end(raw := table.number(power, line, run.title)):
        run.readings.skip(line, power)
        return
    power_w = raw * run.scale
    if t_s < run.readings.last_s:
        raise table.falling(line, "Time [ms]", t_s * 1e3, run.readings.last_s * 1e3)
    run.readings.add(t_s, power_w)


def _footer(table: Table, rows: Rows, scale: float) -> _Footer:
    """The power sensor's averages: its own, and whatever somebody has put behind it. Raises TableError."""
    footer = _Footer()
    for line, cells in rows:
        if _is_header(cells):
            raise table.error(line, "", "a second recording begins here", "save each recording as a file of its own")
        if len(cells) > 3 and cells[1].lower().startswith("battery power") and not footer.line:
            title = parse_title(cells[2])
            texts = tuple(text for text in cells[3:] if _NUMBER.fullmatch(text))
            own = factor(title, "power") or scale
            footer = _Footer(line, cells[2], texts, tuple(float(text) * own for text in texts))
    return footer


def _recording(
    table: Table, run: _Run, runs: Sequence[_Run], footer: _Footer, told_s: float | None, status: set[str]
) -> Recording:
    recording = recorded(table.path, FORMAT, run.title, run.readings, "Time [ms]")
    found = (
        _footer_doubt(recording, footer, len(runs)),
        _duration_doubt(recording, told_s),
        _charging_doubt(recording.path, status),
    )
    return recording.doubted(*(doubt for doubt in found if doubt is not None))


def _footer_doubt(recording: Recording, footer: _Footer, runs: int) -> TraceDoubt | None:
    """The trace's own average against the footer's: another one, or those of more runs than the file holds."""
    if not footer.averages_w:
        return None
    mean_w = recording.facts.plain_w
    told = f"{footer.type}: {', '.join(footer.texts)}"
    where = f"its readings have the mean {mean_w * 1e3:.6g} mW, its footer (line {footer.line}) says {told}"
    if not any(abs(value - mean_w) <= AGREES * abs(mean_w) for value in footer.averages_w[: max(runs, 1)]):
        return _doubt(recording.path, TraceDoubtCode.FOOTER_DISAGREES, where)
    if len(footer.averages_w) > runs:
        return _doubt(recording.path, TraceDoubtCode.FOOTER_OF_OTHER_RUNS, where)
    return None


def _duration_doubt(recording: Recording, told_s: float | None) -> TraceDoubt | None:
    if told_s is None or abs(recording.duration_s - told_s) <= 2.0:
        return None
    detail = f"its readings last {recording.duration_s:.1f} s, its preamble says {told_s:g} s"
    return _doubt(recording.path, TraceDoubtCode.DURATION_DISAGREES, detail)


def _charging_doubt(path: Path, status: set[str]) -> TraceDoubt | None:
    strange = sorted(value for value in status if value.removesuffix(".0") not in ON_BATTERY)
    if not strange:
        return None
    words = {"2": "charging", "4": "plugged in, not charging", "5": "full"}
    told = ", ".join(f"{value} ({words.get(value.removesuffix('.0'), 'unknown')})" for value in strange)
    return _doubt(path, TraceDoubtCode.CHARGING, f"Battery Status is {told}")


def _doubt(path: Path, code: TraceDoubtCode, detail: str) -> TraceDoubt:
    return TraceDoubt(code=code, detail=detail, file=str(path))
