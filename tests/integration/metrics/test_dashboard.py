"""Every query of the Grafana dashboard returns data from a real Prometheus that scrapes a real exporter."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from .conftest import Farm
from .servers import DASHBOARDS, get

BOARD: dict[str, Any] = json.loads((DASHBOARDS / "grafana" / "farm.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
VARIABLES = {each["name"]: each["query"]["query"] for each in BOARD["templating"]["list"]}
BUILT_IN = {"$__rate_interval": "10s"}


def values(farm: Farm, name: str) -> list[str]:
    """What Grafana would offer for a variable: `label_values(SERIES, LABEL)`."""
    match = re.fullmatch(r"label_values\((.+), (\w+)\)", VARIABLES[name])
    assert match, VARIABLES[name]
    series, label = match.groups()
    reply = get(f"{farm.prometheus.url}/api/v1/label/{label}/values", **{"match[]": resolved(farm, series)})
    found: list[str] = json.loads(reply)["data"]
    return found


def resolved(farm: Farm, expression: str) -> str:
    """A query as Grafana sends it, with every value of its variables chosen."""
    for name, value in BUILT_IN.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$(\w+)", lambda match: "|".join(values(farm, match[1])), expression)


@pytest.mark.parametrize("name", VARIABLES)
def test_variable_offers_values(farm: Farm, name: str) -> None:
    assert values(farm, name)


@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_query_returns_data(farm: Farm, title: str, expression: str) -> None:
    assert farm.prometheus.query(resolved(farm, expression)), title


def test_panels_say_what_they_show() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert all(panel["title"] and panel["description"] for panel in PANELS)
    sources = {json.dumps(each.get("datasource")) for panel in PANELS for each in (panel, *panel["targets"])}
    assert sources == {json.dumps({"type": "prometheus", "uid": "prometheus"})}


def test_panels_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
