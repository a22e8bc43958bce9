"""The events on the farm while a chart's lines were drawn: the annotations of the Grafana dashboards."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from . import charts

MOST = 30
"""Marks in one chart."""
STEPS = 360
"""Times at which Prometheus is asked."""
BELIEVED_S = 5.0
KINDS = ("Change points", "Deployments", "Agents", "Nights", "Experiments begin", "Experiments end", "Alerts")
"""Kinds by how much they say about a line: where there are too many marks, later kinds lose theirs."""


@dataclass(frozen=True)
class Mark:
    """Something that happened."""

    at: float
    """Unix time."""
    kind: str
    text: str

    @property
    def number(self) -> int:
        """The number of its kind, which has a colour."""
        return KINDS.index(self.kind)


@cache
def grafana_annotations() -> tuple[Mapping[str, Any], ...]:
    """Return the annotations of the dashboards, which all have the same."""
    told = json.loads(next(iter(sorted(charts.BOARDS.glob("*.json")))).read_text())
    return tuple(told["annotations"]["list"])


@dataclass(frozen=True)
class Span:
    """The time that all charts of a page show."""

    start: float
    """Unix time; what was asked for, or since when Prometheus knows the farm."""
    end: float
    marks: tuple[Mark, ...]


def recent(url: str, seconds: float) -> Span:
    """The last `seconds` of a Prometheus, some seconds old: a page and its charts ask for the same. Raises
    ServiceDown."""
    return _recent(url, seconds, int(time.monotonic() / BELIEVED_S))


@lru_cache(8)
def _recent(url: str, seconds: float, _: int) -> Span:
    server, end = charts.Prometheus(url), time.time()
    found = tuple(marks(server, seconds))
    known = server.ranged("sum(farm_up)", end - seconds, end, seconds / STEPS)
    times = [float(at) for each in known for at, _ in each["values"]] + [mark.at for mark in found]
    return Span(min(times, default=end - seconds), end, found)


def marks(server: charts.Prometheus, seconds: float) -> list[Mark]:
    """Return marks of the last `seconds`, the newest first. Raises ServiceDown."""
    end, step = round(time.time(), 3), round(seconds / STEPS, 3)
    found = {mark for each in grafana_annotations() for mark in _of(server, each, end, step)}
    return _some(sorted(found, key=lambda mark: (-mark.at, mark.number, mark.text)))


def _some(found: Sequence[Mark]) -> list[Mark]:
    chosen = sorted(found, key=lambda mark: (mark.number, -mark.at))[:MOST]
    return [mark for mark in found if mark in set(chosen)]


def _of(server: charts.Prometheus, of: Mapping[str, Any], end: float, step: float) -> Iterator[Mark]:
    start = end - STEPS * step
    for series in server.ranged(of["expr"], start, end, step):
        labels, texts = series["metric"], (of["titleFormat"], of.get("textFormat", ""))
        text = ": ".join(filter(None, (charts.named(each, labels) for each in texts)))
        values = [(float(at), float(value)) for at, value in series["values"] if math.isfinite(float(value))]
        times = {value / 1e3 for _, value in values} if of.get("useValueForTime") else _begins(values, step)
        yield from (Mark(at, of["name"], text) for at in times if start + step < at <= end)


def _begins(values: Sequence[tuple[float, float]], step: float) -> set[float]:
    """Return when a series came, and came again; one that was there from the start began before."""
    times = [at for at, _ in values]
    return {at for before, at in zip([-math.inf, *times], times, strict=False) if at - before > 1.5 * step}
