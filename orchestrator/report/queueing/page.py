"""Write the report of a queueing experiment as one HTML file with styles and charts inside and no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Template
from markupsafe import Markup

from orchestrator.queueing.capacity import Point
from orchestrator.queueing.measures import Figure, Measured, Quantiles
from orchestrator.queueing.network_oracle import no_product_form
from orchestrator.queueing.oracle import theory_of
from orchestrator.queueing.requests import Run
from orchestrator.queueing.spec import QueueingSpec
from orchestrator.report.drawing import Chart, to_svg
from orchestrator.report.parts.links import Links
from orchestrator.report.section import Column, Section
from orchestrator.report.templates import FOLDER, environment

from . import charts

UNREAL = ("virtual", "replay", "simulated")
MS_PER_S = 1000.0
TIMES = (
    Column("class"), Column("time"), Column("requests", True), Column("mean ms", True), Column("p50", True),
    Column("p90", True), Column("p99", True), Column("p99.9", True), Column("queue", True), Column("drops", True),
)  # fmt: skip
CURVE = (
    Column("load", True), Column("offered/s", True), Column("carried/s", True), Column("mean ms", True),
    Column("p99", True), Column("queue", True), Column("drops", True),
)  # fmt: skip
POLICIES = (
    Column("policy"), Column("mean ms", True), Column("p99", True), Column("drops", True),
    Column("deadlines missed", True), Column("J a request", True), Column("with idle", True),
)  # fmt: skip
SERVERS = (Column("server"), Column("device"), Column("model"), Column("source"), Column("what ended it"))


@dataclass(frozen=True)
class Told:
    """The content of a report."""

    spec: QueueingSpec
    source: str
    measured: Measured
    runs: Sequence[Run]
    curve: Sequence[Point] = ()
    policies: Sequence[tuple[str, Measured]] = ()
    servers: Sequence[tuple[str, ...]] = ()
    """Rows: server, device, model, source, what ended it."""


def queueing_page(told: Told, pages: str = "") -> str:
    """The page; the template engine escapes every name in it. `pages`: the address of the farm's pages, where it is
    known: devices lead there."""
    links = Links(pages)
    points = [(each, theory_of(told.spec.at_rate(each.offered_per_s), told.source)) for each in told.curve]
    reasons = no_product_form(told.spec) if told.spec.stations else ()
    note = f" Theory says nothing: {'; '.join(reasons)}." if reasons else ""
    drawn = {
        "load": charts.load_curve(points) if points else None,
        "pareto": charts.pareto(told.policies) if told.policies else None,
        "tail": charts.tail(told.spec, told.runs[0].requests) if len(told.runs[0].requests) else None,
        "timeline": charts.timeline(told.runs[0]),
    }
    return _template().render(
        spec=told.spec,
        css=Markup((FOLDER / "report.css").read_text()),  # noqa: S704  (our own file)
        policy=told.spec.policy.name or Path(str(told.spec.policy.file)).name,
        source=told.source,
        unreal=any(each in told.source for each in UNREAL),
        facts=_facts(told),
        times=Section("times", "Waiting, service and sojourn", note, TIMES, tuple(_times(told))),
        curve=Section("curve", "Offered against carried load", "", CURVE, tuple(map(_point, told.curve))),
        policies=Section("policies", "Policies", "", POLICIES, tuple(_policy(*each) for each in told.policies)),
        servers=Section("servers", "Servers", "", SERVERS, tuple(_server(links, *each) for each in told.servers)),
        links=links,
        charts={name: _svg(chart) if chart is not None else None for name, chart in drawn.items()},
        doubts=told.measured.doubts,
        text=told.spec.model_dump_json(indent=2, exclude_defaults=True),
    )


@cache
def _template() -> Template:
    return environment().get_template("queueing/queueing.html.j2")


def _svg(chart: Chart) -> Markup:
    return Markup(to_svg(chart))  # noqa: S704  (matplotlib escapes text)


def _facts(told: Told) -> list[tuple[str, str]]:
    total = told.measured.total
    found = [
        (_text(total.sojourn_s.mean, MS_PER_S, " ms"), "mean sojourn"),
        (_text(total.sojourn_s.p99, MS_PER_S, " ms"), "p99 of the sojourn"),
        (_text(total.throughput_per_s), "requests/s served"),
        (_text(total.utilisation, 100, " %"), "utilisation"),
        (_text(total.drop_share, 100, " %"), "dropped"),
    ]
    if total.energy_with_idle_j_per_request.value:
        found.append((_text(total.energy_with_idle_j_per_request, 1, " J"), "a request, with idle servers"))
    if total.lost_share.value:
        found.append((_text(total.lost_share, 100, " %"), "lost with their phone"))
    return found


def _times(told: Told) -> list[tuple[str, ...]]:
    lines = theory_of(told.spec, told.source)
    rows: list[tuple[str, ...]] = []
    for name, each in told.measured.parts:
        for label, times in each.times:
            first = label == "waiting"
            others = (_text(each.queue_length), _text(each.drop_share, 100, " %")) if first else ("", "")
            rows.append((name, label, str(each.requests) if first else "", *_quantiles(times), *others))
        for line in lines:
            if line.part == name:
                p99 = "" if line.sojourn_p99_s is None else f"{line.sojourn_p99_s * MS_PER_S:.4g}"
                mean, drops = f"{line.sojourn_s * MS_PER_S:.4g}", f"{100 * line.drop_share:.3g} %"
                rows.append(
                    (name, f"{line.name} (theory)", "", mean, "", "", p99, "", f"{line.queue_length:.4g}", drops)
                )
    return rows


def _quantiles(times: Quantiles) -> tuple[str, ...]:
    return tuple(_text(each, MS_PER_S) for each in (times.mean, times.p50, times.p90, times.p99, times.p99_9))


def _point(point: Point) -> tuple[str, ...]:
    each = point.figures
    return (
        f"{point.load:g}", f"{point.offered_per_s:.4g}", _text(each.throughput_per_s),
        _text(each.sojourn_s.mean, MS_PER_S), _text(each.sojourn_s.p99, MS_PER_S), _text(each.queue_length),
        _text(each.drop_share, 100, " %"),
    )  # fmt: skip


def _policy(name: str, measured: Measured) -> tuple[str, ...]:
    each = measured.total
    return (
        name, _text(each.sojourn_s.mean, MS_PER_S), _text(each.sojourn_s.p99, MS_PER_S),
        _text(each.drop_share, 100, " %"), _text(each.deadline_miss_share, 100, " %"),
        _text(each.energy_j_per_request), _text(each.energy_with_idle_j_per_request),
    )  # fmt: skip


def _server(links: Links, server: str, serial: str, *others: str) -> tuple[str, ...]:
    return (server, links.device(serial), *others)


def _text(figure: Figure, scale: float = 1.0, unit: str = "") -> str:
    return figure.text(scale, unit) or "-"
