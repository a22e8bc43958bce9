"""Time over the values of one axis, everything else the same: by granularity, size, threads, workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from kernels.frontend.networks.operations import FAMILIES
from orchestrator.analysis.reproduction import figures_of
from orchestrator.analysis.statistics import Summary
from orchestrator.model.axes import axis_value_text
from orchestrator.model.experiment import Published
from orchestrator.report import wording
from orchestrator.report.colours import Colours, Look, looks
from orchestrator.report.drawing import MUTED, Chart, bare, logarithmic, new_figure, style
from orchestrator.report.heading import put_heading

from . import rows as layout

FEWEST = 3
"""Values of an axis that make a curve."""
MAX_CURVES = 10
SIZE = "size"
THEIRS = (":", "--", "-.")


class Point(NamedTuple):
    at: float
    ms: float
    low_ms: float
    high_ms: float


Curves = dict[tuple[str, str], list[Point]]
"""Points by what their colour stands for and the name of what is the same along a curve."""


def over_axis(summaries: Sequence[Summary], published: Published | None = None) -> list[Chart]:
    """One chart a device and axis that has three values at least, with the published curves over this axis."""
    panels: dict[tuple[str, str], Curves] = {}
    colours = Colours.of(summaries)
    for summary in summaries:
        for axis, rest, point in _points(summary):
            own = panels.setdefault((layout.device_of(summary), axis), {})
            own.setdefault((colours.name(summary), rest), []).append(point)
    panels = {key: _long(curves) for key, curves in panels.items()}
    shown = layout.first_panels({str(number): item for number, item in enumerate(panels.items()) if item[1]})
    return [
        _chart(device, axis, curves, looks(list(curves), colours.known), _theirs(published, axis), f"axis{number}")
        for number, ((device, axis), curves) in shown.items()
    ]


def _points(summary: Summary) -> Iterator[tuple[str, str, Point]]:
    """A cell once for each axis along which it may lie, with the rest of its name."""
    value: float | None = None
    interval = None
    if summary.latency:
        value, interval = summary.latency.median_ms, summary.latency.interval_ms
    elif summary.throughput:
        value = summary.throughput.ms_per_frame
    if value is None:
        return
    for axis, at in summary.options.items():
        if isinstance(at, int | float) and not isinstance(at, bool):
            rest = wording.without(summary.label, {f"{axis}={axis_value_text(axis, at)}"})
            yield axis, rest, _point(at, value, interval)
    family, _, size = summary.workload.rpartition("_")
    if family in FAMILIES and size.isdecimal():
        yield SIZE, family + summary.label.removeprefix(summary.workload), _point(float(size), value, interval)


def _point(at: float, value: float, interval: object) -> Point:
    return Point(at, value, getattr(interval, "low", value), getattr(interval, "high", value))


def _long(curves: Curves) -> Curves:
    found = {key: sorted(points) for key, points in curves.items() if len({point.at for point in points}) >= FEWEST}
    return dict(list(found.items())[:MAX_CURVES])


def _theirs(published: Published | None, axis: str) -> dict[str, list[tuple[float, float]]]:
    """Published times that have a value of the axis, in ms, curve by curve."""
    found: dict[str, list[tuple[float, float]]] = {}
    for figure in figures_of(published) if published else ():
        at = figure.keys.get(axis)
        if figure.metric == "latency" and not figure.place.over and isinstance(at, int | float):
            along_rows = any(axis in row.at for row in figure.table.rows.values())
            name = f"published: {figure.column if along_rows else figure.row}"
            found.setdefault(name, []).append((float(at), figure.theirs))
    return {name: sorted(points) for name, points in found.items()}


def _chart(
    device: str,
    axis: str,
    curves: Curves,
    look: dict[tuple[str, str], Look],
    theirs: dict[str, list[tuple[float, float]]],
    name: str,
) -> Chart:
    with style():
        figure = new_figure(layout.PANEL_PX, 230)
        axes = figure.subplots()
        for key, points in curves.items():
            _draw(axes, points, look[key])
        for number, found in enumerate(theirs.values()):
            axes.plot(*zip(*found, strict=True), THEIRS[number % len(THEIRS)], color=MUTED, marker="s", markersize=3)
        _finish(axes, axis, [point for points in curves.values() for point in points], bool(theirs))
        keys = [Line2D([], [], marker="o", markersize=4, label=rest, **look[b, rest]._asdict()) for b, rest in curves]
        keys += [
            Line2D([], [], color=MUTED, marker="s", markersize=3, linestyle=THEIRS[number % len(THEIRS)], label=label)
            for number, label in enumerate(theirs)
        ]
        put_heading(figure, f"{device} · {axis}", keys)
        return Chart(figure, name, f"Time over {axis}: {device}")


def _draw(axes: Axes, points: Sequence[Point], look: Look) -> None:
    at = [point.at for point in points]
    axes.plot(at, [point.ms for point in points], marker="o", markersize=4, linewidth=1.5, **look._asdict())
    low, high = [point.low_ms for point in points], [point.high_ms for point in points]
    axes.fill_between(at, low, high, color=look.color, alpha=0.15, linewidth=0)


def _finish(axes: Axes, axis: str, points: Iterable[Point], with_theirs: bool) -> None:
    found = list(points)
    at, times = [point.at for point in found], [point.ms for point in found]
    if min(at) > 0 and max(at) / min(at) > layout.LOG_FROM:
        logarithmic(axes.xaxis)
    ticks = sorted(set(at))
    if len(ticks) <= layout.MAX_PANELS:
        axes.set_xticks(ticks, [axis_value_text(axis, int(tick)) for tick in ticks])
        axes.minorticks_off()
    if with_theirs or max(times) / min(times) > layout.LOG_FROM:
        logarithmic(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(axis)
    axes.set_ylabel("ms")
    bare(axes, grid="both")
