"""Series over time of day, as an SVG file of its own: light or dark as its reader wants it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from matplotlib.axes import Axes
from matplotlib.dates import DAILY, MINUTELY, SECONDLY, AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter, MaxNLocator

from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, MUTED, Chart, bare, new_figure, style, to_svg
from orchestrator.report.heading import put_heading

MOST_LINES = 24
NAMED = 8
"""Lines; of more no names are drawn."""
SPARSE = 24
"""Values of a line up to which each is drawn as a dot, too: one alone would not be seen."""
LEVEL, LEVEL_ROOM = 0.001, 0.05
"""Share of a value below which its changes are not looked at closer, and how much is shown around it then."""
MARGIN = 0.06
EVENTS = ("#e8590c", "#2da44e", "#0e9aa7", "#8250df", "#2f81f7", "#8cc4ff", "#d1453b")
"""Colours by kind: change points, deployments, agents, nights, experiments that begin, that end, alerts."""
WIDTH_PX, HEIGHT_PX, NARROW_PX = 560, 230, 350
TOKENS = """<style>
:root { --page: #ffffff; --ink: #1f2328; --muted: #59636e; --line: #d8dee4; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --muted: #9198a1; --line: #30363d; } }
</style>"""
DISTANCES = {SECONDLY: [1, 2, 3, 5, 10, 15, 30], MINUTELY: [1, 2, 3, 5, 10, 15, 30], DAILY: [1, 2, 3, 4, 7, 8, 14, 21]}
"""Distances of times below a chart: each is at most half of the first span for which the one before has too many times.
Matplotlib's own go from 1 to 5, of which 5 to 10 seconds may have one alone."""
AGES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
LONG_S = 300.0
"""The time from which on seconds are told in minutes, hours, days."""
COUNTS = ("", "short")
PREFIXES = {"bytes": "B", "hertz": "Hz", "s": "s", "joule": "J", "watt": "W", "amp": "A", "volt": "V"}


@dataclass(frozen=True)
class Line:
    """A series over time."""

    name: str
    at: tuple[float, ...]
    """Unix times."""
    values: tuple[float, ...]


def over_time(
    name: str,
    title: str,
    unit: str,
    lines: Sequence[Line],
    limits: Sequence[float] = (),
    events: Sequence[tuple[float, int]] = (),
    span: tuple[float, float] | None = None,
    width_px: float = WIDTH_PX,
    ends: tuple[float | None, float | None] = (None, None),
) -> str:
    """`unit` as Grafana calls it; `limits` are drawn as lines, `events` (Unix time, number of its kind) as upright
    ones in the colour of their kind, which `.event-N` of the pages' style has, too. `span`: Unix times of the left and
    the right edge; None: those of the lines. `ends`: of the scale, those that do not depend on the lines. `name`
    prefixes the ids.
    """
    with style():
        figure = new_figure(width_px, HEIGHT_PX)
        axes = figure.subplots()
        shown = sorted(lines, key=lambda line: line.name)[:MOST_LINES]
        most = max((value for line in shown for value in (*line.values, *limits)), default=0.0)
        scale, formatter = _scale(unit, most)
        for index, line in enumerate(shown):
            values = [value / scale for value in line.values]
            at, colour = [day(each) for each in line.at], PALETTE[index % len(PALETTE)]
            marker = "o" if len(at) <= SPARSE else ""
            axes.plot(at, values, color=colour, linewidth=1.2, marker=marker, markersize=3, label=line.name or title)
        for limit in limits if shown else ():
            axes.axhline(limit / scale, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        time_axis(axes, events if shown else (), span, width_px)
        if formatter:
            axes.yaxis.set_major_formatter(formatter)
        every = [value for line in shown for value in line.values]
        if unit in COUNTS and all(value == int(value) for value in every):
            axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
        if every:
            low, high = _ends(min(*every, *limits, every[0]), max(*every, *limits, every[0]), ends)
            axes.set_ylim(low / scale, high / scale)
        if not shown:
            say_nothing(axes)
        bare(axes, grid="y")
        put_heading(figure, title, list(axes.get_lines())[: len(shown)] if len(shown) <= NAMED else [])
        return as_file(Chart(figure, name, title))


def time_axis(
    axes: Axes, events: Sequence[tuple[float, int]], span: tuple[float, float] | None, width_px: float
) -> None:
    """Times of day below a chart, from edge to edge of `span`, with what happened as upright lines."""
    for moment, kind in events:
        axes.axvline(day(moment), color=EVENTS[kind], linewidth=1.0, linestyle=(0, (1, 2)), zorder=0.9)
    if span:
        axes.set_xlim(day(span[0]), day(span[1]))
    locator = AutoDateLocator(minticks=2 + (width_px > NARROW_PX), maxticks=7 if width_px > NARROW_PX else 5)
    locator.intervald |= DISTANCES
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))


def say_nothing(axes: Axes) -> None:
    """Say that there are no figures, in place of what Prometheus does not have."""
    axes.text(0.5, 0.5, "no figures in this time", transform=axes.transAxes, ha="center", color=FOREGROUND)
    axes.set_yticks([])
    axes.xaxis.set_visible(False)


def as_file(chart: Chart) -> str:
    """A whole SVG file. Call it within `style()`."""
    head, _, rest = to_svg(chart).partition(">")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    fixed = re.sub(r' style="[^"]*"', "", head)
    width, height = (size[1], size[2]) if size else (str(WIDTH_PX), str(HEIGHT_PX))
    space = 'xmlns="http://www.w3.org/2000/svg"'
    return f'{fixed.replace("<svg", f"<svg {space}", 1)} width="{width}pt" height="{height}pt">{TOKENS}{rest}'


def day(moment: float) -> float:
    """Return a moment as matplotlib counts time: days, of this place's clock."""
    return float(date2num(datetime.fromtimestamp(moment)))


def _ends(low: float, high: float, fixed: tuple[float | None, float | None]) -> tuple[float, float]:
    """Return the ends of the scale. What hardly changes is drawn as a level line: its tenth digit is no news."""
    if high - low < LEVEL * abs(high):
        low, high = low - LEVEL_ROOM * abs(low), high + LEVEL_ROOM * abs(high)
    elif high == low:
        high = low + 1.0
    room = MARGIN * (high - low)
    bottom = low - room if low < 0 or low - room > 0 else -0.3 * room
    least, most = fixed
    return bottom if least is None else least - 0.3 * room, high + room if most is None else max(most, high)


def _scale(unit: str, most: float) -> tuple[float, Formatter | None]:
    """Return the divisor of values up to `most`, and how they are written; None: as plain numbers."""
    if unit == "percentunit":
        return 1.0, FuncFormatter(lambda value, _: f"{100 * value:.4g} %")
    if unit == "s" and most >= LONG_S:
        size, name = next(each for each in AGES if most >= each[0])
        return size, FuncFormatter(lambda value, _: f"{value:g} {name}")
    if unit in PREFIXES:
        return 1.0, EngFormatter(PREFIXES[unit])
    return 1.0, FuncFormatter(lambda value, _: f"{value:g} °C") if unit == "celsius" else None
