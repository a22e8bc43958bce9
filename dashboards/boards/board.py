"""A dashboard: its panels in rows, and what all dashboards have in common: variables, annotations, links."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as nouns

from .panel import DATA_SOURCE, Panel, built

WIDE = 24
PAGES = "http://127.0.0.1:8420/"
TAG = "pocketfarm"
ANY = nouns.VariableOption(selected=True, text=["All"], value=["$__all"])

VARIABLES = {
    "source": (
        "Source",
        'label_values({__name__=~"farm_device_info|farm_results_blocks|farm_queueing_requests"}, source)',
        "Figures of phones, workstations, virtual phones and imports are never shown in one panel.",
    ),
    "host": ("Host", 'label_values(farm_device_info{source="$source"}, host)', ""),
    "serial": (
        "Device",
        'label_values({__name__=~"farm_device_info|farm_results_blocks", source="$source"}, serial)',
        "",
    ),
    "experiment": ("Experiment", 'label_values(farm_results_blocks{source="$source"}, experiment)', ""),
    "network": ("Network", 'label_values(farm_results_blocks{source="$source", serial=~"$serial"}, network)', ""),
}
"""Name -> label, what Grafana offers, description."""

ANNOTATIONS: tuple[dict[str, Any], ...] = (
    {"name": "Alerts", "iconColor": "red", "expr": 'ALERTS{alertstate="firing"}', "titleFormat": "{{alertname}}",
     "textFormat": "{{serial}}{{host}}{{experiment}}", "tagKeys": "severity"},
    {"name": "Experiments begin", "iconColor": "blue", "expr": "farm_experiment_submitted_timestamp_seconds * 1000",
     "useValueForTime": True, "titleFormat": "{{experiment}}", "textFormat": "experiment submitted"},
    {"name": "Experiments end", "iconColor": "light-blue", "expr": "farm_experiment_ended_timestamp_seconds * 1000",
     "useValueForTime": True, "titleFormat": "{{experiment}}", "textFormat": "experiment ended"},
    {"name": "Nights", "iconColor": "purple",
     "expr": "max by (suite, outcome) (farm_night_outcome == 1) * on (suite) group_left () "
             "(farm_night_due_timestamp_seconds * 1000)",
     "useValueForTime": True, "titleFormat": "{{suite}}", "textFormat": "night: {{outcome}}"},
    {"name": "Change points", "iconColor": "orange", "expr": "farm_night_changed_timestamp_seconds * 1000",
     "useValueForTime": True, "titleFormat": "{{suite}}", "textFormat": "{{direction}} from this night on"},
    {"name": "Deployments", "iconColor": "green", "expr": "count by (version) (farm_build_info)",
     "titleFormat": "pocketfarm {{version}}", "textFormat": "this version of the farm runs"},
    {"name": "Agents", "iconColor": "green", "expr": "sum by (agent) (farm_results_by_agent)",
     "titleFormat": "agent {{agent}}", "textFormat": "newest results are of this agent"},
)  # fmt: skip
"""The annotations from Prometheus; the library's own type lacks most of these fields."""


@dataclass(frozen=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: tuple[str, ...]
    rows: Mapping[str, tuple[Panel, ...]]
    """Heading -> its panels, from left to right."""


def as_json(board: Board) -> str:
    """Return the JSON that Grafana reads."""
    made = (
        dashboard.Dashboard(board.title).uid(board.uid).description(board.description).tags([TAG]).readonly()
        .timezone("browser").refresh("10s").time("now-6h", "now")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_pages())
    )  # fmt: skip
    for name in board.variables:
        made.with_variable(_variable(name))
    for link in _links():
        made.link(link)
    document = json.loads(JSONEncoder(sort_keys=True).encode(made.build()))
    document["panels"] = list(_panels(board))
    document["annotations"] = {"list": [{"datasource": _plain(DATA_SOURCE), "enable": True, "step": "60s", **each}
                                        for each in ANNOTATIONS]}  # fmt: skip
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _variable(name: str) -> dashboard.QueryVariable:
    label, query, description = VARIABLES[name]
    made = (
        dashboard.QueryVariable(name).label(label).datasource(DATA_SOURCE).query({"query": query, "refId": name})
        .refresh(nouns.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(nouns.VariableSort.ALPHABETICAL_ASC)
    )  # fmt: skip
    if description:
        return made.description(description).multi(False).include_all(False)
    return made.multi(True).include_all(True).all_value(".*").current(ANY)


def _pages() -> dashboard.TextBoxVariable:
    return dashboard.TextBoxVariable("farm").label("Pages").default_value(PAGES).description(
        "Address of the farm's pages, as your browser reaches them."
    )  # fmt: skip


def _links() -> Iterator[dashboard.DashboardLink]:
    yield (
        dashboard.DashboardLink("Dashboards").type(nouns.DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)
        .include_vars(True).keep_time(True)
    )  # fmt: skip
    yield dashboard.DashboardLink("The farm").type(nouns.DashboardLinkType.LINK).url("${farm}").target_blank(True)


def _panels(board: Board) -> Iterator[dict[str, Any]]:
    """Rows and panels with their places: from left to right, a row of 24 under the other."""
    number, y = 0, 0
    for title, panels in board.rows.items():
        number += 1
        place = {"h": 1, "w": WIDE, "x": 0, "y": y}
        yield {"type": "row", "id": number, "title": title, "gridPos": place, "collapsed": False, "panels": []}
        x, y, high = 0, y + 1, 0
        for panel in panels:
            if x + panel.width > WIDE:
                x, y, high = 0, y + high, 0
            number += 1
            yield _plain(built(panel, number, nouns.GridPos(h=panel.height, w=panel.width, x=x, y=y)).build())
            x, high = x + panel.width, max(high, panel.height)
        y += high


def _plain(made: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True).encode(made))
    return found
