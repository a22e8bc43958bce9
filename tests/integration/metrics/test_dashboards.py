"""Every query of the Grafana dashboards returns data from a real Prometheus that scrapes a real exporter.

Grafana itself does not run here: that panels look as they should is not tested, that their queries, variables, data
sources and thresholds are right is.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from dashboards.boards.__main__ import BOARDS
from dashboards.boards.board import as_json
from orchestrator.figures import QUANTITIES

from .conftest import Farm
from .servers import DASHBOARDS, get

FOLDER = DASHBOARDS / "grafana" / "boards"
FILES: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
PANELS = [panel for board in FILES.values() for panel in board["panels"] if panel["type"] != "row"]
QUERIES = sorted({(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]})
NOTES = [each for board in FILES.values() for each in board["annotations"]["list"]]
ANNOTATIONS = sorted({(each["name"], each["expr"]) for each in NOTES})
LISTED = {each["name"]: each for board in FILES.values() for each in board["templating"]["list"]}
VARIABLES = {name: each["query"]["query"] for name, each in LISTED.items() if each["type"] == "query"}
NAME = r"\b([\w:]*farm[\w:]*)"
COMPARED = re.compile(NAME + r"(?:\{[^}]*\})?(?:\[\w+\])?\)? (?:>=|>|<|<=) ([\d.]+)")
NOT_DRAWN = {"farm:attempts_lost:increase1h", "farm_night_next_timestamp_seconds"}
"""Limits of alerts that no panel has: how few lost attempts say nothing, and how late a night may be."""
SOURCES = ("virtual", "workstation")
"""The sources of which the test's farm has devices."""


def values(farm: Farm, name: str, source: str) -> list[str]:
    """Return what Grafana would offer for a variable: `label_values(SERIES, LABEL)`."""
    match = re.fullmatch(r"label_values\((.+), (\w+)\)", VARIABLES[name])
    assert match, VARIABLES[name]
    series, label = match.groups()
    reply = get(f"{farm.prometheus.url}/api/v1/label/{label}/values", **{"match[]": resolved(farm, series, source)})
    found: list[str] = json.loads(reply)["data"]
    return found


def resolved(farm: Farm, expression: str, source: str) -> str:
    """A query as Grafana sends it, with one source and every value of the other variables chosen."""
    expression = expression.replace("$source", source)
    return re.sub(r"\$(\w+)", lambda match: "|".join(values(farm, match[1], source)), expression)


@pytest.mark.parametrize("name", VARIABLES)
def test_variable_offers_values(farm: Farm, name: str) -> None:
    assert all(values(farm, name, source) for source in SOURCES)


def test_one_source_is_chosen(farm: Farm) -> None:
    assert values(farm, "source", "") == list(SOURCES)
    assert not LISTED["source"]["multi"] and not LISTED["source"]["includeAll"]


@pytest.mark.parametrize(("title", "expression"), QUERIES + ANNOTATIONS)
def test_query_returns_data(farm: Farm, title: str, expression: str) -> None:
    found = {source: farm.prometheus.query(resolved(farm, expression, source)) for source in SOURCES}
    assert any(found.values()), title
    for source, series in found.items():
        assert {each["metric"].get("source", source) for each in series} <= {source}


def test_every_quantity_that_a_farm_tells_is_on_a_board(farm: Farm) -> None:
    (query,) = (expression for title, expression in QUERIES if title == "Every quantity")
    told = json.loads(get(f"{farm.prometheus.url}/api/v1/label/__name__/values"))["data"]
    shown = {each["metric"]["quantity"] for of in SOURCES for each in farm.prometheus.query(resolved(farm, query, of))}
    assert shown == {each.family for each in QUANTITIES.values()} & set(told)


@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_real_and_virtual_are_never_in_one_panel(title: str, expression: str) -> None:
    """A series of a device or of results is of the chosen source."""
    of_source = re.findall(
        r"farm_(?:device_\w+|lease_expires\w*|results_(?!doubted)\w+|queueing_\w+|records_total)", expression
    )
    assert not of_source or re.search(r'source!?="\$source"', expression), title


@pytest.mark.parametrize("name", FILES)
def test_the_json_is_that_of_the_code(name: str) -> None:
    (board,) = (board for board in BOARDS if board.uid == f"pocketfarm-{name}")
    assert as_json(board) == (FOLDER / f"{name}.json").read_text(), "run `make dashboards`"


def test_there_is_a_dashboard_for_each_question() -> None:
    assert set(FILES) == {"fleet", "queue", "device", "experiment", "energy", "nightly", "queueing", "health"}
    assert len({board["uid"] for board in FILES.values()}) == len(BOARDS) == len(FILES)


@pytest.mark.parametrize("name", FILES)
def test_panels_say_what_they_show(name: str) -> None:
    panels = FILES[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["description"] for panel in panels if panel["type"] != "row")


@pytest.mark.parametrize("name", FILES)
def test_a_dashboard_asks_for_the_variables_that_its_queries_use(name: str) -> None:
    """It asks for no other one but the source, by which the links between dashboards go."""
    board = FILES[name]
    listed = {each["name"] for each in board["templating"]["list"]} - {"datasource", "farm"}
    expressions = [target["expr"] for panel in board["panels"] if panel["type"] != "row" for target in panel["targets"]]
    expressions += [VARIABLES[each] for each in listed]
    used = {each for text in expressions for each in re.findall(r"\$(\w+)", text)}
    assert used == listed


@pytest.mark.parametrize("name", FILES)
def test_devices_lead_to_their_pages(name: str) -> None:
    """Every dashboard leads to the others, too."""
    assert [link["title"] for link in FILES[name]["links"]] == ["Dashboards", "The farm"]
    for panel in (each for each in FILES[name]["panels"] if each["type"] == "timeseries"):
        of_device = any("{{serial}}" in target["legendFormat"] for target in panel["targets"])
        links = [link["url"] for link in panel["fieldConfig"]["defaults"].get("links", [])]
        assert links == ["${farm}devices/${__field.labels.serial}"] * of_device, panel["title"]


def test_the_data_source_is_chosen_and_not_fixed() -> None:
    users = [*PANELS, *(target for panel in PANELS for target in panel["targets"])]
    users += [*NOTES, *(LISTED[name] for name in VARIABLES)]
    assert {json.dumps(each.get("datasource")) for each in users} == {
        json.dumps({"type": "prometheus", "uid": "${datasource}"})
    }
    assert (LISTED["datasource"]["type"], LISTED["datasource"]["query"]) == ("datasource", "prometheus")


def test_thresholds_are_those_of_the_alerts() -> None:
    """A series that an alert compares with a number has a line there in its panels; and no other line is drawn."""
    (group,) = yaml.safe_load((DASHBOARDS / "alerts.yml").read_text())["groups"]
    compared = {
        (name, float(limit))
        for rule in group["rules"]
        for name, limit in COMPARED.findall(rule["expr"])
        if float(limit) > 0
    }
    drawn = set()
    for panel in (each for each in PANELS if each["type"] == "timeseries"):
        defaults = panel["fieldConfig"]["defaults"]
        lines = {step["value"] for step in defaults.get("thresholds", {}).get("steps", [])[1:]}
        assert (defaults["custom"].get("thresholdsStyle", {}).get("mode", "off") != "off") is bool(lines), panel[
            "title"
        ]
        names = {name for target in panel["targets"] for name in re.findall(NAME, target["expr"])}
        shown = {re.sub(r"^\w+:(\w+):quantile$", r"\1", name) for name in names}
        own = {(name, limit) for name, limit in compared if name in shown}
        assert lines == {limit for _, limit in own}, panel["title"]
        drawn |= own
    assert {name for name, _ in compared - drawn} == NOT_DRAWN


@pytest.mark.parametrize("name", FILES)
def test_panels_do_not_overlap(name: str) -> None:
    taken: dict[tuple[int, int], int] = {}
    for panel in FILES[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["id"]) == panel["id"]


def test_panels_that_alerts_name_exist() -> None:
    (group,) = yaml.safe_load((DASHBOARDS / "alerts.yml").read_text())["groups"]
    told = [name for rule in group["rules"] for name in re.findall(r"panel `([^`]+)`", rule["annotations"]["remedy"])]
    assert told and set(told) <= {panel["title"] for panel in PANELS}
