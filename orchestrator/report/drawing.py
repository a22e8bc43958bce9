"""Figures as inline SVG that follows the page's colours, light or dark.

matplotlib draws; text stays text. Foreground, muted and grid colours are placeholders that become CSS variables, ids
get a prefix per figure, and everything that names an address (namespaces, metadata) is removed: HTML needs none of it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from .heading import POINT_PX

FOREGROUND, MUTED, GRID, PAGE = "#010203", "#040506", "#070809", "#0a0b0c"
"""Placeholders: no figure uses these colours for anything else."""
_VARIABLES = {FOREGROUND: "--ink", MUTED: "--muted", GRID: "--line", PAGE: "--page"}

LEAST_WIDE_PX, LEAST_SHARE = 340, 0.66
"""The least width of a figure on a narrow page, in pixels and as a share of a wide one: its text stays readable, and
the figure scrolls."""
FONT = "DejaVu Sans"
MOST_LACKING = 8
"""Letters that the font lacks, which are named."""
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": [FONT],
    "font.size": 9.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "pocketfarm",
    "text.parse_math": False,
    "text.color": FOREGROUND,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.titlesize": 9.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": FOREGROUND,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


class Chart(NamedTuple):
    """A drawn figure; `name` prefixes its ids on a page, `title` is what a screen reader says."""

    figure: Figure
    name: str
    title: str


@contextmanager
def style() -> Iterator[None]:
    """The look of every figure."""
    with mpl.rc_context(STYLE):
        yield


def new_figure(width_px: float, height_px: float) -> Figure:
    return Figure(figsize=(width_px / 96, height_px / 96), layout="constrained")


def bare(axes: Axes, *, grid: str) -> None:
    """Show only the grid lines that help to read: `x` or `y`."""
    axes.grid(visible=False)
    axes.grid(visible=True, axis=grid)  # type: ignore[arg-type]
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def logarithmic(axis: XAxis | YAxis) -> None:
    """Labels at 1, 2 and 5 of each decade, as plain numbers: SVG shows matplotlib's own, formulas, as typed."""
    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def boxes(texts: Iterable[str]) -> str:
    """Return a sentence on the letters of a figure's texts that its font lacks; empty: it has them all."""
    font = get_font(findfont(FONT))
    lacking = [each for each in dict.fromkeys("".join(texts)) if each != "\n" and not font.get_char_index(ord(each))]
    if not lacking:
        return ""
    more = f" and {len(lacking) - MOST_LACKING} more" if len(lacking) > MOST_LACKING else ""
    return f" The font lacks {' '.join(lacking[:MOST_LACKING])}{more}: a box each in PDF and PNG, itself in SVG."


def to_svg(chart: Chart) -> str:
    """The chart as an SVG element for HTML."""
    figure, name, title = chart
    buffer = io.StringIO()
    with style():
        if engine := figure.get_layout_engine():  # else `savefig` draws all of it once more, to place its parts
            FigureCanvasSVG(figure)  # whose texts are measured
            figure.dpi = 72
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->\s*", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    text = re.sub(r"font:[^;\"]*?([\d.]+)px[^;\"]*", r"font-size: \1px", text)
    return _open_tag(text, title)


def _open_tag(text: str, title: str) -> str:
    """Scale with the page, between the least readable and the drawn size."""
    match = re.match(r"<svg[^>]*viewBox=\"0 0 ([\d.]+) ([\d.]+)\"[^>]*>", text)
    assert match is not None, "matplotlib's SVG has no viewBox"
    width_px = float(match[1]) * POINT_PX
    least_px = min(width_px, max(LEAST_WIDE_PX, LEAST_SHARE * width_px if width_px > 2 * LEAST_WIDE_PX else 0))
    label = title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    size = f"max-width:{width_px:.0f}px;min-width:{least_px:.0f}px"
    opening = f'<svg role="img" aria-label="{label}" viewBox="0 0 {match[1]} {match[2]}" style="{size}">'
    return opening + text[match.end() :]
