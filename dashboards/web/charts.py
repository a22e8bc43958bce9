"""Panels of the Grafana dashboards, and what Prometheus says of them."""

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

from orchestrator.model.errors import ServiceDown, UnknownName

if TYPE_CHECKING:
    from orchestrator.report.charts.over_time import Line

    from .marks import Span

BOARDS = Path(__file__).parents[1] / "grafana" / "boards"
POINTS = 240
"""The points of a line."""
REPLY_S = 5.0


@dataclass(frozen=True)
class Panel:
    """A panel of a dashboard."""

    kind: str
    """The kind in Grafana's words: timeseries, state-timeline, stat, table, bargauge."""
    number: int
    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    limits: tuple[float, ...]
    """Drawn as lines: those of the alerts."""
    least: float | None
    most: float | None
    """The top of the scale, where the dashboard fixes it."""
    nothing: str
    """The text where there is no value."""
    words: Mapping[float, tuple[str, str]]
    """The words of states: value -> word and colour."""
    hidden: frozenset[str]
    renamed: Mapping[str, str]
    order: Mapping[str, int]
    """The order of columns: those that are not shown, other names, and places."""


@dataclass(frozen=True)
class Board:
    """A dashboard."""

    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    """The panels that are drawn over time."""
    numbers: tuple[Panel, ...]
    """The panels that show the newest value alone."""
    lists: tuple[Panel, ...]
    """The panels that show the newest values, a row for each series."""


@cache
def boards() -> dict[str, Board]:
    """Return boards by name, those that have lines to draw."""
    found = (_board(path) for path in sorted(BOARDS.glob("*.json")))
    return {board.name: board for board in found if board.panels}


def _board(path: Path) -> Board:
    told = json.loads(path.read_text())

    def of(*kinds: str) -> tuple[Panel, ...]:
        return tuple(_panel(each) for each in told["panels"] if each["type"] in kinds)

    lines, numbers, lists = of("timeseries", "state-timeline"), of("stat"), of("table", "bargauge")
    return Board(path.stem, told["title"], told["description"], lines, numbers, lists)


def _panel(told: Mapping[str, Any]) -> Panel:
    defaults = told["fieldConfig"]["defaults"]
    steps = defaults.get("thresholds", {}).get("steps", [])
    columns: Mapping[str, Any] = next(
        (each["options"] for each in told.get("transformations", ()) if each["id"] == "organize"), {}
    )
    return Panel(
        kind=told["type"],
        number=told["id"],
        title=told["title"],
        description=told["description"],
        unit=defaults.get("unit", ""),
        queries=tuple((each["expr"], each.get("legendFormat", "")) for each in told["targets"]),
        least=defaults.get("min"),
        most=defaults.get("max"),
        nothing=defaults.get("noValue", "none"),
        limits=tuple(float(each["value"]) for each in steps if each["value"] is not None),
        words={
            float(value): (each["text"], each["color"])
            for mapping in defaults.get("mappings", ())
            for value, each in mapping["options"].items()
        },
        hidden=frozenset(columns.get("excludeByName", ())),
        renamed=columns.get("renameByName", {}),
        order=columns.get("indexByName", {}),
    )


def panel(board: str, number: int) -> Panel:
    """Raises UnknownName."""
    found = [each for each in boards()[board].panels if each.number == number] if board in boards() else []
    if not found:
        raise UnknownName(f"there is no chart {number} on {board!r}", remedy=f"there are {', '.join(boards())}")
    return found[0]


class Prometheus:
    """The server with the farm's figures over time. Every method raises ServiceDown where it does not answer."""

    hours = 1
    """Hours that are shown first."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    @property
    def told(self) -> str:
        return f"Prometheus at {self.url}"

    def knows(self, _: Panel) -> bool:
        return True

    def span(self, seconds: float) -> Span:
        """The last `seconds`, with what happened."""
        from .marks import recent

        return recent(self.url, seconds)

    def sources(self) -> list[str]:
        """Return sources of devices and results, of which figures are never shown in one chart."""
        found: list[str] = self._get("label/source/values", {})
        return [each for each in found if each]

    def lines(self, of: Panel, source: str, seconds: float) -> list[Line]:
        """Return what a panel shows of the last `seconds`."""
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
        values = [value for _, value in self.newest(of.queries[0][0], source)]
        return sum(values) if values and math.isfinite(sum(values)) else None

    def newest(self, expression: str, source: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series."""
        found = self._get("query", {"query": resolved(expression, source, 0.0)})["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def ranged(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Series with their values every `step` seconds, as Prometheus has them."""
        asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        found: list[dict[str, Any]] = self._get("query_range", asked)["result"]
        return found

    def _get(self, what: str, query: Mapping[str, str]) -> Any:
        address = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address, timeout=REPLY_S) as reply:  # noqa: S310  (the farm's own setting)
                return json.loads(reply.read())["data"]
        except (OSError, ValueError, KeyError) as e:
            raise ServiceDown(
                f"Prometheus at {self.url} does not answer: {e}", remedy="start it, or set FARM_PROMETHEUS_URL"
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
    from orchestrator.report.charts.states_over_time import states_over_time

    events = [(mark.at, mark.number) for mark in span.marks] if span else []
    shown = (span.start, span.end) if span else None
    width_px, name = NARROW_PX if narrow else WIDTH_PX, f"chart{of.number}"
    if of.kind == "state-timeline":
        return states_over_time(name, of.title, lines, of.words, events, shown, width_px)
    return over_time(name, of.title, of.unit, lines, of.limits, events, shown, width_px, (of.least, of.most))
