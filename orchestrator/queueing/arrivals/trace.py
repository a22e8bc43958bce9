"""Arrivals from a file: a CSV table with the columns `time_s` and, where it holds several classes, `class`."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from orchestrator.model.errors import TableError
from orchestrator.queueing.spec import TraceArrivals

HOW = "a trace is a CSV file with the columns `time_s` (seconds, rising) and, for several classes, `class`"


def trace_times(arrivals: TraceArrivals, name: str) -> list[float]:
    """The class's moments, from 0 at the trace's own zero. Raises TableError: file, line, what is allowed."""
    path = Path(arrivals.file)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _read(csv.DictReader(file), path, name, arrivals.faster)
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise TableError(f"{path}: cannot be read: {e}", remedy=HOW) from e


def _read(rows: csv.DictReader[str], path: Path, name: str, faster: float) -> list[float]:
    columns = rows.fieldnames or []
    if "time_s" not in columns:
        raise TableError(f"{path}:1: no column `time_s` among {', '.join(columns) or 'none'}", remedy=HOW)
    found: list[float] = []
    for row in rows:
        at = _number(row["time_s"])
        if not math.isfinite(at) or at < 0 or (found and at / faster < found[-1]):
            raise TableError(
                f"{path}:{rows.line_num}: time_s is {row['time_s']!r}: expected a number of seconds, not before the "
                "one above",
                remedy=HOW,
            )
        if row.get("class", name) == name:
            found.append(at / faster)
    if not found:
        raise TableError(f"{path}: no request of class {name}", remedy=HOW)
    return found


def _number(text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        return math.nan
