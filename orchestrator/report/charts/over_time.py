"""Series over time of day, as an SVG file of its own: light or dark as its reader wants it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.ticker import EngFormatter, FuncFormatter

from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, MUTED, Chart, bare, new_figure, style, to_svg
from orchestrator.report.heading import put_heading

MOST_LINES = 24
NAMED = 8
"""Lines; of more no names are drawn."""
WIDTH_PX, HEIGHT_PX = 560, 230
TOKENS = """<style>
:root { --page: #ffffff; --ink: #1f2328; --muted: #59636e; --line: #d8dee4; }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --muted: #9198a1; --line: #30363d; } }
</style>"""
PREFIXES = {"bytes": "B", "hertz": "Hz", "s": "s", "joule": "J", "watt": "W", "amp": "A", "volt": "V"}


@dataclass(frozen=True)
class Line:
    """A series over time."""

    name: str
    at: tuple[float, ...]
    """Unix times."""
    values: tuple[float, ...]


def over_time(name: str, title: str, unit: str, lines: Sequence[Line], limits: Sequence[float] = ()) -> str:
    """`unit` as Grafana calls it; `limits` are drawn as lines. `name` prefixes the ids."""
    with style():
        figure = new_figure(WIDTH_PX, HEIGHT_PX)
        axes = figure.subplots()
        shown = sorted(lines, key=lambda line: line.name)[:MOST_LINES]
        for index, line in enumerate(shown):
            at = [date2num(datetime.fromtimestamp(each)) for each in line.at]
            axes.plot(at, line.values, color=PALETTE[index % len(PALETTE)], linewidth=1.2, label=line.name or title)
        for limit in limits if shown else ():
            axes.axhline(limit, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        locator = AutoDateLocator(minticks=3, maxticks=7)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))
        if unit == "percentunit":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        elif unit in PREFIXES:
            axes.yaxis.set_major_formatter(EngFormatter(PREFIXES[unit]))
        elif unit == "celsius":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} °C"))
        if not shown:
            axes.text(0.5, 0.5, "no figures in this time", transform=axes.transAxes, ha="center", color=FOREGROUND)
            axes.set_yticks([])
        bare(axes, grid="y")
        put_heading(figure, title, list(axes.get_lines())[: len(shown)] if len(shown) <= NAMED else [])
        text = to_svg(Chart(figure, name, title))
    head, _, rest = text.partition(">")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    fixed = re.sub(r' style="[^"]*"', "", head)
    width, height = (size[1], size[2]) if size else (str(WIDTH_PX), str(HEIGHT_PX))
    space = 'xmlns="http://www.w3.org/2000/svg"'
    return f'{fixed.replace("<svg", f"<svg {space}", 1)} width="{width}pt" height="{height}pt">{TOKENS}{rest}'
