"""Panels without a Prometheus: what the ledger knows over time, and what the exporter says now."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from orchestrator.ledger import Ledger

from .charts import REPLY_S, Panel, named, resolved
from .contents import State, state_of
from .marks import BELIEVED_S, Mark, Span

if TYPE_CHECKING:
    from orchestrator.metrics.past import Point
    from orchestrator.report.charts.over_time import Line

MOST_EXPERIMENTS = 60
_SERIES = r"(?P<name>\w+)(?:\{(?P<own>[^}]*)\})?"
_JOINED = re.compile(_SERIES + r"(?: \* on \(serial\) group_left \([^)]*\) farm_device_info\{(?P<info>[^}]*)\})?")
"""Series of one name, by labels of their own and of their devices. What else a panel may ask takes a Prometheus."""
_NUMBER = re.compile(rf"sum\({_SERIES}\)|(?P<age>time\(\) - )(?P<of>\w+)")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')


class OwnFigures:
    """The source of panels that ask for plain series, in place of a Prometheus."""

    hours = 24
    """Hours that are shown first."""

    def __init__(self, ledger: Callable[[], Ledger], exporter: Callable[[], str]) -> None:
        """`exporter`: its address; empty where no farm runs."""
        self._ledger, self._exporter = ledger, exporter
        self._kept: dict[tuple[str, State], list[Point]] = {}

    @property
    def told(self) -> str:
        now = " and its exporter" if self._exporter() else ""
        return f"this farm's ledger{now}: figures of results and readings of blocks, as they were measured"

    def knows(self, panel: Panel) -> bool:
        from orchestrator.metrics.past import READINGS, RESULTS

        if panel.kind == "stat":
            return bool(self._exporter()) and _NUMBER.fullmatch(panel.queries[0][0]) is not None
        asked = [_JOINED.fullmatch(query) for query, _ in panel.queries]
        lines = panel.kind in ("timeseries", "state-timeline")
        return lines and all(each is not None and each["name"] in RESULTS | READINGS for each in asked)

    def sources(self) -> list[str]:
        return sorted({each.labels["source"] for each in self._points(0.0, readings=False)})

    def lines(self, panel: Panel, source: str, seconds: float) -> list[Line]:
        from orchestrator.metrics.past import READINGS
        from orchestrator.report.charts.over_time import Line

        start, found = time.time() - seconds, []
        for query, legend in panel.queries:
            of = _JOINED.fullmatch(resolved(query, source, 0.0))
            assert of is not None
            series: dict[str, list[tuple[float, float]]] = {}
            for point in self._points(start, readings=of["name"] in READINGS):
                if point.name == of["name"] and _fits(point.labels, of["own"], of["info"]):
                    series.setdefault(named(legend, point.labels), []).append((point.at, point.value))
            for name, pairs in series.items():
                at, values = zip(*sorted(pairs), strict=True)
                found.append(Line(name, at, values))
        return found

    def now(self, panel: Panel, source: str) -> float | None:
        of = _NUMBER.fullmatch(resolved(panel.queries[0][0], source, 0.0))
        assert of is not None
        name = of["name"] or of["of"]
        values = [value for labels, value in _scraped(self._exporter(), name) if _fits(labels, of["own"])]
        return None if not values else time.time() - min(values) if of["age"] else sum(values)

    def span(self, seconds: float) -> Span:
        """The last `seconds`, or since the first experiment that is drawn."""
        end = time.time()
        rows, _ = self._ledger().listed.experiments(0, MOST_EXPERIMENTS)
        start = max(end - seconds, min((row.submitted_at for row in rows), default=end))
        marks = (Mark(row.submitted_at, "Experiments begin", row.experiment.name) for row in rows)
        return Span(start, end, tuple(mark for mark in marks if mark.at >= start))

    def _points(self, since: float, *, readings: bool) -> Iterator[Point]:
        from orchestrator.metrics import past

        ledger, read = self._ledger(), past.readings if readings else past.results
        rows, _ = ledger.listed.experiments(0, MOST_EXPERIMENTS)
        kept = {}
        for row in rows:
            key = (read.__name__, state_of(row))
            kept[key] = self._kept[key] if key in self._kept else list(read(ledger, row))
            yield from (point for point in kept[key] if point.at >= since)
        self._kept = {**{key: each for key, each in self._kept.items() if key[0] != read.__name__}, **kept}


def _fits(labels: Mapping[str, str], *matchers: str | None) -> bool:
    return all(
        {"=": value == wanted, "!=": value != wanted}.get(how, (how == "=~") == bool(re.fullmatch(wanted, value)))
        for name, how, wanted in _MATCHER.findall(",".join(filter(None, matchers)))
        for value in [labels.get(name, "")]
    )


def _scraped(url: str, name: str) -> list[tuple[dict[str, str], float]]:
    every = _all(url, int(time.monotonic() / BELIEVED_S))
    return [(labels, value) for own, labels, value in every if own == name]


@lru_cache(2)
def _all(url: str, _: int) -> list[tuple[str, dict[str, str], float]]:
    """Every sample of the exporter; none where it is away."""
    from orchestrator.metrics.past import scraped

    try:
        with urllib.request.urlopen(url, timeout=REPLY_S) as reply:  # noqa: S310  (the farm's own setting)
            text = reply.read().decode()
    except (OSError, ValueError):
        return []
    return scraped(text)
