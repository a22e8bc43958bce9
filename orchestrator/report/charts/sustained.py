"""Charts of sustained loads: speed, power, temperature and clock over one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter, MaxNLocator, PercentFormatter

from orchestrator.analysis.statistics import Summary, Throttling
from orchestrator.report import wording
from orchestrator.report.colours import Colours, Look, looks
from orchestrator.report.drawing import GRID, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading

from . import rows as layout

SPEED_PX, TOLD_PX = 205, 95
"""Heights of the panel of speeds, and of each of what the phone told."""


class _Panel(NamedTuple):
    """A panel below that of the speeds, where the blocks tell of it."""

    field: str
    """The field of a stretch that it shows."""
    label: str
    formatter: Formatter


PANELS = (
    _Panel("power_w", "power", EngFormatter("W")),
    _Panel("temp_c", "temperature", FuncFormatter(lambda value, _: f"{value:g} °C")),
    _Panel("clock_hz", "clock", EngFormatter("Hz")),
)

Curve = tuple[str, Look, Throttling]


def throttling(summaries: Sequence[Summary], width_px: float = layout.PANEL_PX) -> list[Chart]:
    """Speed under a sustained load, relative to its first plateau, with what the phone told meanwhile: one chart a
    device, one curve a cell."""
    names, colours = wording.naming(summaries), Colours.of(summaries)
    charts = []
    for number, own in enumerate(_by_device(summaries).values()):
        named = {(colours.name(one), wording.cell(one, names)): one.throttling for one in own if one.throttling}
        look = looks(list(named), colours.known)
        curves = [(name, look[of, name], one) for (of, name), one in named.items()]
        charts.append(_throttling(layout.device_of(own[0]), curves, f"throttling{number}", width_px))
    return charts


def drawn_devices(summaries: Sequence[Summary]) -> list[str]:
    """Return the device of each chart, in their order."""
    return [layout.device_of(own[0]) for own in _by_device(summaries).values()]


def _by_device(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    found: dict[str, list[Summary]] = {}
    for summary in summaries:
        if summary.throttling is not None:
            found.setdefault(f"{summary.serial} {summary.source}", []).append(summary)
    return layout.first_panels(found)


def _throttling(title: str, curves: Sequence[Curve], name: str, width_px: float) -> Chart:
    told = [panel for panel in PANELS if any(_points(one, panel.field)[0] for _, _, one in curves)]
    heights = [SPEED_PX, *(TOLD_PX for _ in told)]
    with style():
        figure = new_figure(width_px, sum(heights))
        below = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw_speeds(below[0], curves)
        for axes, panel in zip(below[1:], told, strict=True):
            _draw_told(axes, panel, curves)
        below[-1].set_xlabel("minutes under load")
        below[-1].set_xlim(left=0)
        keys = [
            Line2D(
                [],
                [],
                color=look.color,
                linestyle=look.linestyle,
                label=cell if one.speed_left is None else f"{cell}: {one.speed_left:.0%} left",
            )
            for cell, look, one in curves
        ]
        put_heading(figure, title, keys)
        return Chart(figure, name, f"A sustained load: {title}")


def _draw_speeds(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw the median over blocks of each stretch, the range of the blocks, and where the first plateau ends."""
    told = all(one.plateau_ms for _, _, one in curves)
    for _, look, one in curves:
        whole_ms = one.plateau_ms if told and one.plateau_ms else one.first_ms
        x = [(each.start_s + each.end_s) / 2 / 60 for each in one.bins]
        axes.fill_between(
            x, [whole_ms / each.high_ms for each in one.bins], [whole_ms / each.low_ms for each in one.bins],
            color=look.color, alpha=0.18, linewidth=0,
        )  # fmt: skip
        axes.plot(x, [whole_ms / each.median_ms for each in one.bins], linewidth=1.6, **look._asdict())
        if one.plateau_end_s is not None:
            axes.axvline(one.plateau_end_s / 60, color=look.color, linewidth=1.0, linestyle=(0, (1, 2)), zorder=0.9)
    axes.axhline(1.0, color=GRID, linewidth=1.2, zorder=0)
    axes.set_ylim(0, max(1.1, axes.get_ylim()[1]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylabel(f"speed, of the {'plateau' if told else 'first minute'}'s")
    bare(axes, grid="y")


def _draw_told(axes: Axes, panel: _Panel, curves: Sequence[Curve]) -> None:
    for _, look, one in curves:
        axes.plot(*_points(one, panel.field), linewidth=1.4, **look._asdict())
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(panel.formatter)
    axes.set_ylabel(panel.label)
    bare(axes, grid="y")


def _points(one: Throttling, field: str) -> tuple[list[float], list[float]]:
    """Return minutes and values of the stretches that have one."""
    found = [((each.start_s + each.end_s) / 120, getattr(each, field)) for each in one.bins]
    known = [point for point in found if point[1] is not None]
    return [at for at, _ in known], [value for _, value in known]
