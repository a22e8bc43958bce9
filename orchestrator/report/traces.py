"""Draw recorded power traces as SVG, PNG or HTML, by the suffix of the file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from orchestrator.model.errors import TableError
from orchestrator.model.foreign import cleaned

from .colours import PALETTE
from .drawing import FOREGROUND, GRID, MUTED, PAGE, STYLE, Chart, bare, boxes, new_figure, style, to_svg
from .heading import put_heading

SUFFIXES = (".svg", ".png", ".html")
WIDTH_PX, PANEL_PX = 960, 190
MOST_POINTS = 4000
"""Readings from which a line is drawn as the mean of bins, over their range."""
ON_PAPER = {FOREGROUND: "#1f2328", MUTED: "#59636e", GRID: "#d1d9e0", PAGE: "#ffffff", "none": "#ffffff"}
TITLE = "Power over time"


class Curve(NamedTuple):
    """One recorded trace."""

    label: str
    t_s: NDArray[np.float64]
    power_w: NDArray[np.float64]


def draw(groups: Mapping[str, Sequence[Curve]], path: Path) -> tuple[bytes, str]:
    """The picture that belongs into `path`, one panel a group, and what is wrong with its letters.

    Raises TableError for a suffix of another kind.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise TableError(
            f"--plot {path}: a picture ends in {', '.join(SUFFIXES)}, not in {suffix or 'nothing'}",
            remedy=f"write {path.with_suffix('.svg').name}",
        )
    if suffix == ".html":
        with style():
            return cleaned(_page(to_svg(Chart(figure_of(groups), "traces", TITLE)))).encode(), ""
    buffer = io.BytesIO()
    with mpl.rc_context(paper()):
        metadata = {"Date": None} if suffix == ".svg" else None
        figure_of(groups).savefig(buffer, format=suffix[1:], dpi=144, metadata=metadata)
    labels = (each.label for own in groups.values() for each in own)
    return buffer.getvalue(), boxes(map(cleaned, (*groups, *labels)))


def paper() -> dict[str, Any]:
    """The look of a picture that stands alone: no page gives it colours."""
    return {key: ON_PAPER.get(str(value), value) if "color" in key else value for key, value in STYLE.items()}


def figure_of(groups: Mapping[str, Sequence[Curve]]) -> Figure:
    """One panel a group of recordings, one colour a recording; the legend stands above."""
    figure = new_figure(WIDTH_PX, 40 + PANEL_PX * len(groups))
    panels = figure.subplots(len(groups), 1, squeeze=False).flat
    keys: list[Line2D] = []
    for axes, (name, curves) in zip(panels, groups.items(), strict=True):
        for curve in curves:
            keys.append(_draw(axes, curve, name, PALETTE[len(keys) % len(PALETTE)]))
        axes.set_title(cleaned(name))
        axes.set_ylabel("W")
        axes.set_ylim(bottom=min(0.0, *(float(curve.power_w.min()) for curve in curves)))
        bare(axes, grid="y")
    axes.set_xlabel("s since the first reading")
    put_heading(figure, keys=keys)
    return figure


def _draw(axes: Axes, curve: Curve, group: str, colour: str) -> Line2D:
    label, t_s, power_w = curve
    mean_w = float(power_w.mean())
    if len(t_s) > MOST_POINTS:
        starts = np.linspace(0, len(t_s), MOST_POINTS, endpoint=False).astype(int)
        low, high = np.minimum.reduceat(power_w, starts), np.maximum.reduceat(power_w, starts)
        axes.fill_between(t_s[starts], low, high, color=colour, alpha=0.25, linewidth=0)
        counts = np.diff(np.append(starts, len(t_s)))
        t_s, power_w = t_s[starts], np.add.reduceat(power_w, starts) / counts
    axes.plot(t_s, power_w, color=colour, linewidth=0.9)
    axes.axhline(mean_w, color=colour, linewidth=1.1, linestyle="--")
    return Line2D([], [], color=colour, label=f"{cleaned(f'{group}: {label}')}: plain mean {mean_w * 1e3:.2f} mW")


def _page(svg: str) -> str:
    look = ":root{--ink:#1f2328;--muted:#59636e;--line:#d1d9e0;--page:#fff}"
    dark = "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--muted:#9198a1;--line:#3d444d;--page:#0d1117}}"
    rest = "body{margin:2rem;background:var(--page);color:var(--ink);font-family:sans-serif}svg{width:100%}"
    head = f'<meta charset="utf-8"><title>{escape(TITLE)}</title><style>{look}{dark}{rest}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><h1>{escape(TITLE)}</h1>{svg}</body></html>\n'
