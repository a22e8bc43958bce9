"""A panel as data, and as Grafana has it: one style for all dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as nouns
from grafana_foundation_sdk.models.dashboard import DataSourceRef, Threshold, ThresholdsMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Kind = Literal["lines", "steps", "stacked", "number", "table", "bars", "states"]
DATA_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
HIDDEN = ("Time", "instance", "job", "__name__", "stat")
"""Columns of a table that tell nobody anything."""
DEVICE_LINK = "${farm}devices/${__data.fields.serial}"
SERIES_LINK = "${farm}devices/${__field.labels.serial}"


@dataclass(frozen=True)
class Panel:
    """The content of a panel."""

    kind: Kind
    title: str
    description: str
    queries: Mapping[str, str]
    """Query -> legend; in a table the legend names the column of its values, empty: it is hidden."""
    unit: str = ""
    width: int = 8
    """The width, of 24."""
    height: int = 8
    least: float | None = None
    most: float | None = None
    limits: tuple[tuple[str, float | None], ...] = ()
    """Colours, and from which value on each; those of an alert are drawn as a line."""
    decimals: int | None = None
    nothing: str = ""
    """The text where there is no value."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The words of states: value -> word and colour."""
    hidden: tuple[str, ...] = HIDDEN
    order: tuple[str, ...] = ()
    """The order of columns."""
    names: bool = False
    """True if a number has its series' name beside it."""

    @property
    def links(self) -> bool:
        """True if its series are of a device, which has a page."""
        return any("{{serial}}" in legend for legend in self.queries.values()) or "serial" in self.order


def built(panel: Panel, number: int, place: nouns.GridPos) -> Any:
    """Return the panel as Grafana has it."""
    made = _BUILDERS[panel.kind](panel)
    made.id(number).title(panel.title).description(panel.description).grid_pos(place).datasource(DATA_SOURCE)
    for index, (expression, legend) in enumerate(panel.queries.items()):
        made.with_target(_query(panel, expression, legend, chr(ord("A") + index)))
    if panel.unit:
        made.unit(panel.unit)
    if panel.least is not None:
        made.min(panel.least)
    if panel.most is not None:
        made.max(panel.most)
    if panel.decimals is not None:
        made.decimals(panel.decimals)
    if panel.nothing:
        made.no_value(panel.nothing)
    if panel.limits:
        steps = [Threshold(color=colour, value=value) for colour, value in panel.limits]
        made.thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    if panel.links and panel.kind != "table":
        page = dashboard.DashboardLink("Page of the device").type(nouns.DashboardLinkType.LINK)
        made.data_links([page.url(SERIES_LINK).target_blank(True)])
    return made


def _query(panel: Panel, expression: str, legend: str, ref: str) -> prometheus.Dataquery:
    made = prometheus.Dataquery().datasource(DATA_SOURCE).expr(expression).ref_id(ref)
    if panel.kind == "table":
        return made.instant().format(_TABLE)
    return (made.instant() if panel.kind in ("number", "bars") else made.range()).legend_format(legend)


def _lines(panel: Panel) -> Any:
    made = (
        timeseries.Panel().line_width(1).fill_opacity(20 if panel.kind == "stacked" else 0).span_nulls(False)
        .show_points(options.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions().display_mode(options.LegendDisplayMode.TABLE).calcs(["lastNotNull"])
            .placement(options.LegendPlacement.BOTTOM).show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING))
    )  # fmt: skip
    if panel.kind == "stacked":
        made.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))
    if panel.kind == "steps":
        made.line_interpolation(options.LineInterpolation.STEP_AFTER)
    if panel.limits:
        made.thresholds_style(common.GraphThresholdsStyleConfig().mode(options.GraphTresholdsStyleMode.LINE))
    return made


def _number(panel: Panel) -> Any:
    mode = options.BigValueTextMode.VALUE_AND_NAME if panel.names else options.BigValueTextMode.AUTO
    return stat.Panel().reduce_options(_last()).graph_mode(options.BigValueGraphMode.NONE).text_mode(mode)


def _bars(_: Panel) -> Any:
    return (
        bargauge.Panel().reduce_options(_last()).orientation(options.VizOrientation.HORIZONTAL)
        .display_mode(options.BarGaugeDisplayMode.BASIC)
    )  # fmt: skip


def _states(panel: Panel) -> Any:
    words = {value: nouns.ValueMappingResult(text=word, color=colour) for value, (word, colour) in panel.words.items()}
    made = statetimeline.Panel().merge_values(True).show_value(options.VisibilityMode.NEVER).row_height(0.8)
    return made.mappings([nouns.ValueMap(options=words)])


def _table(panel: Panel) -> Any:
    made = table.Panel().show_header(True)
    several = len(panel.queries) > 1
    values = {f"Value #{chr(65 + n)}" if several else "Value": name for n, name in enumerate(panel.queries.values())}
    hidden = [*panel.hidden, *(column for column, name in values.items() if not name)]
    if several:
        made.with_transformation(nouns.DataTransformerConfig(id_val="merge", options={}))
    made.with_transformation(
        nouns.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": dict.fromkeys(hidden, True),
                "renameByName": {column: name for column, name in values.items() if name},
                "indexByName": {name: place for place, name in enumerate(panel.order)},
            },
        )
    )
    link = [{"title": "Page of the device", "url": DEVICE_LINK, "targetBlank": True}]
    made.override_by_name("serial", [nouns.DynamicConfigValue(id_val="links", value=link)])
    return made


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)


_TABLE = PromQueryFormat.TABLE
_BUILDERS = {"lines": _lines, "steps": _lines, "stacked": _lines, "number": _number, "table": _table, "bars": _bars,
             "states": _states}  # fmt: skip
