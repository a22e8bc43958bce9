"""Draw the title and the legend of a figure.

Both are measured and wrapped to the figure's width, and the figure grows by their height: no title is cut, and no
legend covers a curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

POINT_PX = 96 / 72
LEGEND_PT, TITLE_PT = 8.5, 9.5
HANDLE_EM = 4.6
"""Room of a legend's entry beside its words: the handle, and the gaps before and behind."""
MARGIN_PX = 24.0
GAP_PX = 8.0
_RENDERER = RendererAgg(1, 1, 72)


@lru_cache(10_000)  # a report wraps the same words in each of its figures
def text_px(text: str, size_pt: float, *, bold: bool = False) -> float:
    """Width of one line in pixels of the page."""
    font = FontProperties(family=["DejaVu Sans"], size=size_pt, weight="bold" if bold else "normal")
    width_pt, _, _ = _RENDERER.get_text_width_height_descent(text, font, ismath=False)
    return float(width_pt) * POINT_PX


def wrap(text: str, width_px: float, size_pt: float, *, bold: bool = False) -> str:
    """The text with line breaks so that no line is wider: between words, and inside a word that is wider alone."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".lstrip()
        if text_px(longer, size_pt, bold=bold) <= width_px:
            lines[-1] = longer
            continue
        lines += [""] * bool(lines[-1])
        for letter in word:
            if lines[-1] and text_px(lines[-1] + letter, size_pt, bold=bold) > width_px:
                lines.append("")
            lines[-1] += letter
    return "\n".join(lines)


def put_heading(figure: Figure, title: str = "", keys: Sequence[Artist] = ()) -> None:
    """Title and legend above everything that is drawn, from the left edge; the figure grows by their height."""
    width_px = figure.get_figwidth() * 96 - MARGIN_PX
    title = wrap(title, width_px, TITLE_PT, bold=True) if title else ""
    if keys:
        labels = [wrap(str(key.get_label()), width_px - _handle_px(), LEGEND_PT) for key in keys]
        legend = figure.legend(
            handles=list(keys), labels=labels, loc="outside upper left", ncols=_columns(labels, width_px),
            title=title or None, alignment="left", fontsize=LEGEND_PT, handlelength=1.6, columnspacing=1.6,
            title_fontproperties={"size": TITLE_PT, "weight": "bold"}, borderaxespad=0.2, borderpad=0.2,
        )  # fmt: skip
        _grow(figure, legend)
    elif title:
        _grow(figure, figure.suptitle(title, x=4 / (width_px + MARGIN_PX), ha="left", fontsize=TITLE_PT, weight="bold"))


def _grow(figure: Figure, heading: Artist) -> None:
    canvas = FigureCanvasAgg(figure)
    box = heading.get_window_extent(canvas.get_renderer())
    figure.set_figheight(figure.get_figheight() + box.height / figure.dpi + GAP_PX / 96)


def _handle_px() -> float:
    return HANDLE_EM * LEGEND_PT * POINT_PX


def _columns(labels: Sequence[str], width_px: float) -> int:
    """Return the fewest columns that need as few lines as fit, so that lines are even; filled column by column."""
    widths = [max(text_px(line, LEGEND_PT) for line in label.split("\n")) + _handle_px() for label in labels]
    fitting = [n for n in range(1, len(labels) + 1) if sum(max(part) for part in _parts(widths, n)) <= width_px]
    return min(fitting, key=lambda columns: (-(-len(labels) // columns), columns), default=1)


def _parts(widths: Sequence[float], columns: int) -> list[Sequence[float]]:
    """Return parts as matplotlib shares out entries: the first columns have one more."""
    size, more = divmod(len(widths), columns)
    ends = [column * size + min(column, more) for column in range(columns + 1)]
    return [widths[start:end] for start, end in pairwise(ends)]
