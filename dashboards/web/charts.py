"""Panels of the Grafana dashboards: which have lines, and what Prometheus says of them."""

from __future__ import annotations

import json
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import ServiceDown, UnknownName

if TYPE_CHECKING:
    from orchestrator.report.charts.over_time import Line

    from .marks import Span

BOARDS = Path(__file__).parents[1] / "grafana" / "boards"
POINTS = 240
"""Of a line."""
REPLY_S = 5.0


@dataclass(frozen=True)
class Panel:
    """A panel of a dashboard that shows lines over time, or one number."""

    number: int
    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    limits: tuple[float, ...]
    """Drawn as lines: those of the alerts."""
    least: float | None
    most: float | None
    """Of the scale, where the dashboard fixes them."""
    nothing: str
    """What is said where there is no value."""


@dataclass(frozen=True)
class Board:
    """A dashboard."""

    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    numbers: tuple[Panel, ...]
    """Panels that show the newest value alone."""


@cache
def boards() -> dict[str, Board]:
    """By name, those that have lines to draw."""
    found = (_board(path) for path in sorted(BOARDS.glob("*.json")))
    return {board.name: board for board in found if board.panels}


def _board(path: Path) -> Board:
    told = json.loads(path.read_text())
    lines, numbers = (
        tuple(_panel(each) for each in told["panels"] if each["type"] == kind) for kind in ("timeseries", "stat")
    )
    return Board(path.stem, told["title"], told["description"], lines, numbers)


def _panel(told: Mapping[str, Any]) -> Panel:
    defaults = told["fieldConfig"]["defaults"]
    steps = defaults.get("thresholds", {}).get("steps", [])
    return Panel(
        number=told["id"],
        title=told["title"],
        description=told["description"],
        unit=defaults.get("unit", ""),
        queries=tuple((each["expr"], each.get("legendFormat", "")) for each in told["targets"]),
        least=defaults.get("min"),
        most=defaults.get("max"),
        nothing=defaults.get("noValue", "none"),
        limits=tuple(float(each["value"]) for each in steps if each["value"] is not None),
    )


def panel(board: str, number: int) -> Panel:
    """Raises UnknownName."""
    found = [each for each in boards()[board].panels if each.number == number] if board in boards() else []
    if not found:
        raise UnknownName(f"there is no chart {number} on {board!r}", remedy=f"there are {', '.join(boards())}")
    return found[0]


class Prometheus:
    """What has the farm's figures over time. Every method raises ServiceDown where it does not answer."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def sources(self) -> list[str]:
        """Of devices and results, of which figures are never shown in one chart."""
        found: list[str] = self._get("label/source/values", {})
        return [each for each in found if each]

    def lines(self, of: Panel, source: str, seconds: float) -> list[Line]:
        """What a panel shows of the last `seconds`."""
        from orchestrator.report.charts.over_time import Line

        end, step = time.time(), max(1.0, seconds / POINTS)
        found = []
        for expression, legend in of.queries:
            query = resolved(expression, source, step)
            for each in self.ranged(query, end - seconds, end, step):
                pairs = [(float(at), float(value)) for at, value in each["values"] if math.isfinite(float(value))]
                at, values = zip(*pairs, strict=True) if pairs else ((), ())
                found.append(Line(named(legend, each["metric"]), tuple(at), tuple(values)))
        return found

    def now(self, of: Panel, source: str) -> float | None:
        """The number that a panel shows; None where there is none."""
        found = self._get("query", {"query": resolved(of.queries[0][0], source, 0.0)})["result"]
        values = [float(each["value"][1]) for each in found]
        return sum(values) if values and math.isfinite(sum(values)) else None

    def ranged(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Series with their values every `step` seconds, as Prometheus has them."""
        asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        found: list[dict[str, Any]] = self._get("query_range", asked)["result"]
        return found

    def _get(self, what: str, query: Mapping[str, str]) -> Any:
        address = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address, timeout=REPLY_S) as reply:  # noqa: S310  (the farm's own setting)
                return json.loads(reply.read())["data"]
        except (OSError, ValueError, KeyError) as e:
            raise ServiceDown(
                f"Prometheus at {self._url} does not answer: {e}", remedy="start it, or set FARM_PROMETHEUS_URL"
            ) from e


def resolved(expression: str, source: str, step_s: float) -> str:
    """A query as Grafana would send it for one source and all devices."""
    exact = {"$__rate_interval": f"{max(60, round(4 * step_s))}s", "$source": source.replace("\\", "").replace('"', "")}
    for name, value in exact.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$\w+", ".*", expression)


def named(legend: str, labels: Mapping[str, str]) -> str:
    """A legend, or a title, with the labels of a series in it."""
    return " ".join(re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), legend).split())


def draw(of: Panel, lines: list[Line], span: Span | None = None, *, narrow: bool = False) -> str:
    """A whole SVG file. `span`: the time that is shown, with what happened in it; None: that of the lines."""
    from orchestrator.report.charts.over_time import NARROW_PX, WIDTH_PX, over_time

    events = [(mark.at, mark.number) for mark in span.marks] if span else []
    shown = (span.start, span.end) if span else None
    width_px = NARROW_PX if narrow else WIDTH_PX
    scale = (of.least, of.most)
    return over_time(f"chart{of.number}", of.title, of.unit, lines, of.limits, events, shown, width_px, scale)
