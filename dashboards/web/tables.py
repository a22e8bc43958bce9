"""Panels that list the newest values, a row for each series: Grafana's tables and bars, as HTML has them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from orchestrator.report import wording

from . import shown
from .charts import Panel, Prometheus, named

MOST_ROWS = 100
Row = dict[str, Any]
"""Column -> a label's text or a value."""


@dataclass(frozen=True)
class Listing:
    """The list that a panel shows now."""

    panel: Panel
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Texts, in the order of the columns."""
    shares: tuple[float, ...]
    """The length of each bar, 0 to 1."""
    left_out: int
    """Rows beyond those that are listed."""


def listing(server: Prometheus, of: Panel, source: str) -> Listing:
    """Raises ServiceDown."""
    return (_bars if of.kind == "bargauge" else _table)(server, of, source)


def _bars(server: Prometheus, of: Panel, source: str) -> Listing:
    found = [
        (named(legend, labels), value) for query, legend in of.queries for labels, value in server.newest(query, source)
    ]
    bars = sorted(((name, value) for name, value in found if math.isfinite(value)), key=lambda bar: (-bar[1], bar[0]))
    most = of.most if of.most is not None else max((value for _, value in bars), default=1.0)
    listed = bars[:MOST_ROWS]
    return Listing(
        of,
        ("which", "how many" if of.unit in ("", "short") else "share"),
        tuple((name, written(value, of.unit)) for name, value in listed),
        tuple(min(1.0, value / most) if most > 0 else 0.0 for _, value in listed),
        len(bars) - len(listed),
    )


def _table(server: Prometheus, of: Panel, source: str) -> Listing:
    frames = [server.newest(query, source) for query, _ in of.queries]
    values = [f"Value #{chr(65 + n)}" if len(frames) > 1 else "Value" for n in range(len(frames))]
    rows = _merged(
        [[{**labels, value: number} for labels, number in frame] for frame, value in zip(frames, values, strict=True)]
    )
    labels = sorted({name for row in rows for name in row} - set(values) - of.hidden)
    labels.sort(key=lambda name: of.order.get(name, len(of.order)))
    columns = [*labels, *(value for value in values if value in of.renamed)]
    texts = sorted(tuple(_text(row.get(column, ""), of.unit) for column in columns) for row in rows)
    names = tuple(of.renamed.get(column, column) for column in columns)
    return Listing(of, names, tuple(texts[:MOST_ROWS]), (), len(texts[MOST_ROWS:]))


def _merged(frames: list[list[Row]]) -> list[Row]:
    """Rows of several queries as one, where the labels that all queries have are equal and the others do not differ."""
    names = [{name for row in frame for name in row} for frame in frames if frame]
    shared = sorted(set.intersection(*names) - {"__name__"}) if names else []
    rows: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for frame in frames:
        for found in frame:
            found.pop("__name__", None)
            alike = rows[tuple(found.get(name, "") for name in shared)]
            fitting = [row for row in alike if all(row[name] == found[name] for name in found if name in row)]
            for row in fitting:
                row.update(found)
            if not fitting:
                alike.append(found)
    return [row for alike in rows.values() for row in alike]


def _text(cell: str | float, unit: str) -> str:
    return cell if isinstance(cell, str) else written(cell, unit)


def written(value: float, unit: str) -> str:
    """A value in the unit that Grafana calls so."""
    if not math.isfinite(value):
        return "none"
    if unit == "s":
        return shown.lasted(value) if value >= 10 else f"{1000 * value:.4g} ms"
    if unit == "joule":
        return wording.joules(value)
    return f"{100 * value:.4g} %" if unit == "percentunit" else f"{value:.5g}"
