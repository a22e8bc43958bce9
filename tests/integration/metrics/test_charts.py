"""The pages' charts: every panel with lines is drawn from a real Prometheus, each series as a line with its name."""

from __future__ import annotations

import math
import random
import re
import time
import xml.etree.ElementTree as ET
from importlib.metadata import version

import pytest

from dashboards.web.charts import Panel, Prometheus, boards, draw, panel
from dashboards.web.marks import marks, recent
from dashboards.web.own_figures import OwnFigures
from dashboards.web.tables import listing, written
from farm.parts.part import free_port
from orchestrator.model.errors import ServiceDown, UnknownName
from orchestrator.report.charts.over_time import Line
from tests.unit.history.made import DAY_S, FIRST

from .conftest import Farm

PANELS = {each.title: each for board in boards().values() for each in board.panels}
LISTS = {each.title: each for board in boards().values() for each in board.lists}
HOUR_S = 3600.0


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_is_drawn_with_its_series(farm: Farm, title: str, seed: int) -> None:
    """One source is drawn, either: it does not change how, and a picture takes a fifth of a second."""
    server = Prometheus(farm.prometheus.url)
    assert {"virtual", "workstation"} <= set(server.sources())
    found = {source: server.lines(PANELS[title], source, HOUR_S) for source in ("virtual", "workstation")}
    assert any(line.values for lines in found.values() for line in lines)
    lines, states = random.Random(f"{seed}{title}").choice([*found.values()]), PANELS[title].kind == "state-timeline"
    text = draw(PANELS[title], lines)
    assert ET.fromstring(text).tag.endswith("svg") and "prefers-color-scheme" in text
    drawn = len(lines) if states else len(re.findall(r'id="chart\d+-line2d_', text))
    assert not states or all(f">{line.name}<" in text for line in lines)
    assert drawn >= min(len(lines), 24) and ("no figures" in text) == (not lines)


def test_the_line_of_the_alert_is_drawn(farm: Farm) -> None:
    hot = PANELS["Battery temperature"]
    assert hot.limits == (43.0,)
    lines = Prometheus(farm.prometheus.url).lines(hot, "virtual", HOUR_S)
    with_limit, without = draw(hot, lines), draw(Panel(**{**vars(hot), "limits": ()}), lines)
    assert with_limit.count("stroke-dasharray") > without.count("stroke-dasharray")


def test_numbers_are_those_of_the_farm(farm: Farm) -> None:
    """The content's: two of four phones are ready and not in quarantine, one is offline."""
    server = Prometheus(farm.prometheus.url)
    numbers = {each.title: server.now(each, "virtual") for board in boards().values() for each in board.numbers}
    assert numbers["Devices ready"] == 2 and numbers["Devices not usable"] == 1
    assert numbers["In quarantine"] == 1 and numbers["Parts that answer"] == 2
    waits = farm.prometheus.query('farm_jobs{state="waiting"}')
    assert numbers["Jobs waiting"] == float(waits[0]["value"][1]) > 0


def test_states_are_bands_from_change_to_change() -> None:
    """Three ready, a gap, one ready, then two that are not."""
    at = (0.0, 60.0, 120.0, 600.0, 660.0, 720.0)
    text = draw(PANELS["Health"], [Line("phone <1>", at, (1.0, 1.0, 1.0, 1.0, 0.0, 0.0))])
    drawn = re.findall(r'<path d="M ([\d.]+) [^"L]*L ([\d.]+) [^"]*" clip-path="[^"]*" style="fill: (#\w+)"', text)
    assert [colour for _, _, colour in drawn] == ["#2da44e", "#2da44e", "#e8590c"]
    widths = [float(end) - float(start) for start, end, _ in drawn]
    assert [width / widths[1] for width in widths] == pytest.approx([3, 1, 2], rel=0.01)
    assert "phone &lt;1&gt;" in text
    assert "not ready" in text
    many = draw(PANELS["Health"], [Line(f"phone {n}", (0.0, 60.0), (1.0, 1.0)) for n in range(30)])
    assert "Health (24 of 30)" in many


def test_the_farm_s_own_figures_are_those_of_prometheus(farm: Farm) -> None:
    """Every panel that takes no Prometheus has the same lines with the same newest values, and the same numbers."""
    server, own = Prometheus(farm.prometheus.url), OwnFigures(lambda: farm.ledger, lambda: farm.exporter_url)
    assert "ledger and its exporter" in own.told and set(own.sources()) <= set(server.sources())
    compared = 0
    for title, of in PANELS.items():
        for source in own.sources() if own.knows(of) else ():
            mine = {line.name: line.values[-1] for line in own.lines(of, source, HOUR_S)}
            theirs = {line.name: line.values[-1] for line in server.lines(of, source, HOUR_S) if line.values}
            assert mine.items() <= theirs.items(), title
            compared += len(mine)
    assert compared > 40
    numbers = [each for board in boards().values() for each in board.numbers if own.knows(each)]
    assert {"Jobs waiting", "Parts that answer"} <= {each.title for each in numbers}
    for each in numbers:
        assert own.now(each, "virtual") == pytest.approx(server.now(each, "virtual"), abs=30)
    text = draw(PANELS["Latency, median"], own.lines(PANELS["Latency, median"], "virtual", HOUR_S), own.span(HOUR_S))
    assert "no figures" not in text and own.span(HOUR_S).marks
    alone = OwnFigures(lambda: farm.ledger, str)
    assert not any(map(alone.knows, numbers)) and "exporter" not in alone.told


@pytest.mark.parametrize("title", LISTS)
def test_a_list_has_what_prometheus_has(farm: Farm, title: str) -> None:
    """A row for each series of its first query, its columns named; of the results by doubt, the longest first."""
    server, of = Prometheus(farm.prometheus.url), LISTS[title]
    found = {source: listing(server, of, source) for source in ("virtual", "workstation")}
    assert any(each.rows for each in found.values()), title
    for source, each in found.items():
        series = [len(server.newest(query, source)) for query, _ in of.queries]
        assert len(each.rows) + each.left_out == (max(series) if of.kind == "table" else sum(series))
        assert all(len(row) == len(each.columns) for row in each.rows)
        assert not {"__name__", "instance", "job"} & set(each.columns)
        assert set(of.renamed.values()) <= set(each.columns) and list(each.shares) == sorted(each.shares)[::-1]


def test_queries_of_a_table_are_joined_where_their_labels_agree() -> None:
    class Two:
        def newest(self, query: str, _: str) -> list[tuple[dict[str, str], float]]:
            cell = {"__name__": query, "serial": "p1", "job": "farm"}
            if query.startswith("farm_results_verdict"):
                return [({**cell, "verdict": "stable"}, 1.0), ({**cell, "serial": "p2", "verdict": "drifting"}, 1.0)]
            return [(cell, 3.0)]

    found = listing(Two(), LISTS["Verdicts and warnings"], "virtual")  # type: ignore[arg-type]
    assert found.columns == ("serial", "verdict", "warnings")
    assert found.rows == (("p1", "stable", "3"), ("p2", "drifting", ""))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "12.3 ms"),
        (4000.0, "s", "1 h 6 min"),
        (0.5, "percentunit", "50 %"),
        (12.0, "", "12"),
        (math.nan, "s", "none"),
    ],
)
def test_values_have_their_unit(value: float, unit: str, text: str) -> None:
    assert written(value, unit) == text


def test_what_happened_is_marked(farm: Farm) -> None:
    """Grafana's annotations mark the newest level of a suite by its night, versions and agents from when they ran."""
    server = Prometheus(farm.prometheus.url)
    every = marks(server, time.time() - FIRST + DAY_S)
    assert [(mark.at, mark.text) for mark in every if mark.kind == "Change points"] == [
        (FIRST + 6 * DAY_S, "nightly: worse from this night on")
    ]
    found = marks(server, HOUR_S)
    assert all(time.time() - HOUR_S <= mark.at <= time.time() for mark in found)
    assert {"Deployments", "Agents", "Experiments begin", "Experiments end"} <= {mark.kind for mark in found}
    assert [mark.text for mark in found if mark.kind == "Deployments"] == [
        f"pocketfarm {version('pocketfarm')}: this version of the farm runs"
    ]
    battery = PANELS["Battery"]
    lines = server.lines(battery, "virtual", HOUR_S)
    span = recent(farm.prometheus.url, HOUR_S)
    assert time.time() - HOUR_S < span.start <= min(mark.at for mark in span.marks) <= max(lines[0].at) <= time.time()
    with_marks, without = draw(battery, lines, span), draw(battery, lines)
    assert with_marks.count("stroke-dasharray") - without.count("stroke-dasharray") == len(span.marks)
    assert 'viewBox="0 0 262.' in draw(battery, lines, span, narrow=True)


@pytest.mark.parametrize(
    ("title", "values", "least"),
    [
        ("Battery voltage", (3.9, 3.9 + 1e-10), None),  # as good as level
        ("Rows that are not the same", (0.0, 0.0), 0),
        ("Why jobs wait", (28.0, 29.0), 0),  # jobs are whole
        ("Thermal status", (0.0, 1.0), 0),
    ],
)
def test_a_scale_says_what_it_can(title: str, values: tuple[float, ...], least: float | None) -> None:
    """No number twice, none below what can be, and no part of a job."""
    text = draw(PANELS[title], [Line("a", (1.0, 2.0), values)])
    labels = re.findall(r">([−-]?[\d.]+(?: V)?)</text>", text.partition("matplotlib.axis_2")[2])
    assert len(labels) > 1 and len(set(labels)) == len(labels)
    if least is not None:
        assert all(float(each) == int(float(each)) >= least for each in labels)


def test_names_from_outside_are_escaped() -> None:
    text = draw(PANELS["Battery"], [Line("</text><script>alert(1)</script>", (1.0, 2.0), (0.5, 0.6))])
    assert "<script" not in text and ET.fromstring(text) is not None


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UnknownName, match="no chart 9999"):
        panel("fleet", 9999)
    with pytest.raises(ServiceDown, match="does not answer"):
        Prometheus(f"http://127.0.0.1:{free_port()}").lines(PANELS["Battery"], "virtual", HOUR_S)
