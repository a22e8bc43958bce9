"""The events, from the series of annotations: when each began, and which are kept where there are too many."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dashboards.web import marks
from dashboards.web.charts import Prometheus
from dashboards.web.renderer import FOLDER
from orchestrator.report.charts.over_time import EVENTS

HOUR_S = 3600.0
Spans = list[tuple[float, float]]


class Answers(Prometheus):
    """Series by a word of the query: labels, value (None: 1), from when until when after the start they were there."""

    def __init__(self, series: dict[str, list[tuple[dict[str, str], float | None, Spans]]]) -> None:
        super().__init__("http://127.0.0.1:9")
        self._series = series
        self.end = 0.0

    def ranged(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        self.end = end
        times = [start + step * n for n in range(round((end - start) / step) + 1)]
        return [
            {
                "metric": labels,
                "values": [
                    [at, str(1.0 if value is None else 1e3 * (start + value))]
                    for at in times
                    if any(first <= at - start <= last for first, last in spans)
                ],
            }
            for word, found in self._series.items()
            if word in query
            for labels, value, spans in found
        ]


def test_a_mark_is_where_a_series_began() -> None:
    """A version that ran before is not marked, the one after it is; an alert that came again is marked again."""
    server = Answers(
        {
            "farm_build_info": [({"version": "1"}, None, [(0, 1800)]), ({"version": "2"}, None, [(1800, 3600)])],
            "ALERTS": [({"alertname": "DeviceHot", "serial": "A"}, None, [(600, 900), (1200, 1500)])],
        }
    )
    found = [(mark.kind, mark.text, round(mark.at - server.end + HOUR_S)) for mark in marks.marks(server, HOUR_S)]
    assert found == [
        ("Deployments", "pocketfarm 2: this version of the farm runs", 1800),
        ("Alerts", "DeviceHot: A", 1200),
        ("Alerts", "DeviceHot: A", 600),
    ]


def test_a_family_of_times_says_itself_when() -> None:
    """The mark is not at the time when Prometheus heard of it; what was before the chart is not in it."""
    changed = [
        ({"suite": "n", "direction": "worse"}, 700.0, [(1800.0, 3600.0)]),
        ({"suite": "n", "direction": "better"}, -700.0, [(0.0, 3600.0)]),
    ]
    server = Answers({"farm_night_changed": changed})
    (mark,) = marks.marks(server, HOUR_S)
    assert (mark.kind, mark.text) == ("Change points", "n: worse from this night on")
    assert mark.at == pytest.approx(server.end - HOUR_S + 700)


def test_of_too_many_marks_change_points_stay() -> None:
    experiments = [({"experiment": f"e{n}"}, 60.0 * n, [(0.0, 3600.0)]) for n in range(1, 50)]
    one = [({"suite": "n", "direction": "worse"}, 61.0, [(0.0, 3600.0)])]
    found = marks.marks(Answers({"experiment_submitted": experiments, "farm_night_changed": one}), HOUR_S)
    assert len(found) == marks.MOST and [mark.at for mark in found] == sorted((m.at for m in found), reverse=True)
    assert found[0].text == "e49: experiment submitted" and found[-1].kind == "Change points"


def test_each_kind_has_one_colour_in_charts_and_list() -> None:
    """Every annotation of the dashboards is a kind that we draw."""
    assert {each["name"] for each in marks.grafana_annotations()} == set(marks.KINDS)
    style = (FOLDER / "static" / "web.css").read_text()
    assert tuple(re.findall(r"\.event-\d \{ background: (#\w+);", style)) == EVENTS
    assert len(EVENTS) == len(marks.KINDS)
