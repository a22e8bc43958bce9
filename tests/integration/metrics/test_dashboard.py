"""Every query of the Grafana dashboard returns data from a real Prometheus that scrapes a real exporter.

Grafana itself does not run here: that panels look as they should is not tested, that their queries, variables, data
sources and thresholds are right is.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from .conftest import Farm
from .servers import DASHBOARDS, get

BOARD: dict[str, Any] = json.loads((DASHBOARDS / "grafana" / "farm.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
ANNOTATIONS = [(each["name"], each["expr"]) for each in BOARD["annotations"]["list"]]
LISTED = {each["name"]: each for each in BOARD["templating"]["list"]}
VARIABLES = {name: each["query"]["query"] for name, each in LISTED.items() if each["type"] == "query"}
BUILT_IN = {"$__rate_interval": "10s"}
SOURCES = ("virtual", "workstation")
"""Of which the test's farm has devices."""


def values(farm: Farm, name: str, source: str) -> list[str]:
    """What Grafana would offer for a variable: `label_values(SERIES, LABEL)`."""
    match = re.fullmatch(r"label_values\((.+), (\w+)\)", VARIABLES[name])
    assert match, VARIABLES[name]
    series, label = match.groups()
    reply = get(f"{farm.prometheus.url}/api/v1/label/{label}/values", **{"match[]": resolved(farm, series, source)})
    found: list[str] = json.loads(reply)["data"]
    return found


def resolved(farm: Farm, expression: str, source: str) -> str:
    """A query as Grafana sends it, with one source and every value of the other variables chosen."""
    for name, value in {**BUILT_IN, "$source": source}.items():
        expression = expression.replace(name, value)
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


@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_real_and_virtual_are_never_in_one_panel(title: str, expression: str) -> None:
    """What is of a device or of results is of the chosen source."""
    of_source = re.findall(r"farm_(?:device_\w+|lease_expires\w*|results_(?!doubted)\w+|records_total)", expression)
    assert not of_source or re.search(r'source!?="\$source"', expression), title


def test_panels_say_what_they_show() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert all(panel["title"] and panel["description"] for panel in PANELS)


def test_the_data_source_is_chosen_and_not_fixed() -> None:
    users = [*PANELS, *(target for panel in PANELS for target in panel["targets"])]
    users += [*BOARD["annotations"]["list"], *(LISTED[name] for name in VARIABLES)]
    assert {json.dumps(each.get("datasource")) for each in users} == {
        json.dumps({"type": "prometheus", "uid": "${datasource}"})
    }
    assert (LISTED["datasource"]["type"], LISTED["datasource"]["query"]) == ("datasource", "prometheus")


def test_thresholds_are_those_of_the_alerts() -> None:
    """Where an alert compares a family with a number, the panel that draws this family draws the number."""
    (group,) = yaml.safe_load((DASHBOARDS / "alerts.yml").read_text())["groups"]
    compared = {
        family: float(limit)
        for rule in group["rules"]
        for family, limit in re.findall(r"(farm_device_\w+) (?:>=|>|<|<=) ([\d.]+)", rule["expr"])
        if float(limit) > 0
    }
    assert set(compared) >= {
        "farm_device_battery_ratio", "farm_device_battery_temperature_celsius", "farm_device_thermal_status",
    }  # fmt: skip
    drawn = {}
    for panel in (each for each in PANELS if each["type"] == "timeseries"):
        families = {re.match(r"\w+", target["expr"])[0] for target in panel["targets"]}  # type: ignore[index]
        for family in families & set(compared):
            defaults = panel["fieldConfig"]["defaults"]
            assert defaults["custom"]["thresholdsStyle"]["mode"] != "off", panel["title"]
            drawn[family] = defaults["thresholds"]["steps"][1]["value"]
    assert drawn == compared


def test_panels_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def test_panels_that_alerts_name_exist() -> None:
    (group,) = yaml.safe_load((DASHBOARDS / "alerts.yml").read_text())["groups"]
    told = [name for rule in group["rules"] for name in re.findall(r"panel `([^`]+)`", rule["annotations"]["remedy"])]
    assert told and set(told) <= {panel["title"] for panel in PANELS}
