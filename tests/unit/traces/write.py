"""Writes traces of known power in every form that is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

Power = Callable[[float], float]
"""Time in s -> power in W."""

SENSORS = '"Battery Status",Time  [ms],"Battery Power* [uW]",Time  [ms],"CPU1 Load [%]"'


def trepn(path: Path, power_w: Power, seconds: float = 40.0, *, status: str = "1", footer: str | None = None) -> Path:
    """The quoted layout: the power column ends one row before the status column; the footer holds its true mean."""
    times = list(range(5, int(seconds * 1000), 100))
    values = [round(power_w(ms / 1000) * 1e6) for ms in times]
    mean = sum(values) / len(values)
    rows = [f"{ms - 2},{status},{ms},{value},{ms + 3},50," for ms, value in zip(times, values, strict=True)]
    told = f"{int(seconds) // 60} min {int(seconds) % 60} sec" if seconds >= 60 else f"{int(seconds)} sec"
    head = ["App,Package,Start Time,Duration,Filename", f'"System",,"Sep 7, 2016 @ 03:11:59 AM","{told}","x.db"', ""]
    end = [f"{times[-1] + 98},{status},,,,,", ",,,,,,", "", "System Statistics:", "Sensor Id,Name,Type,Average"]
    end += [f'206,"Battery Status",Battery Status,{status}.0', f'332,"Battery Power*",Power [uW],{footer or mean}', ""]
    path.write_text("\n".join([*head, f"Time  [ms],{SENSORS},", *rows, *end]))
    return path


def respread(source: Path, path: Path, more: Sequence[str] = ()) -> Path:
    """A quoted trace as a spreadsheet saves it: no quotes, rows filled up, `more` behind the power's average."""
    lines = source.read_text().replace('"Sep 7, 2016', '"Sep 7; 2016').replace('"', "").splitlines()
    filled = []
    for line in lines:
        cells = line.rstrip(",").replace("Sep 7; 2016", '"Sep 7| 2016').replace("AM", 'AM"').replace("|", ",")
        cells += "".join(f",{value}" for value in more) if cells.startswith("332,") else ""
        filled.append(cells + "," * (12 - cells.count(",")))
    path.write_text("\n".join(filled) + "\n")
    return path


def table(path: Path, header: str, rows: Sequence[Sequence[object]]) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path
