"""Charts of series: a figure night after night, its noise, and its changes with what else changed then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from orchestrator.analysis.history import Cause, Change, History, Night, Trail
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, MUTED, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading, wrap

CAUSES: dict[Cause, str] = {
    "candidate": PALETTE[9], "baseline": PALETTE[4], "device": PALETTE[1], "farm": PALETTE[6], "unknown": PALETTE[8],
}  # fmt: skip
WIDTH_PX, PANEL_PX = 560, 150
NOTE_PT = 7.5
LONGEST = 44


def series_chart(history: History, trail: Trail, name: str) -> Chart:
    """Sides: the ratio of candidate over baseline, and under it the baseline's level. One side: its level."""
    two = bool(trail.b)
    with style():
        figure = new_figure(WIDTH_PX, PANEL_PX * (2 if two else 1) + 46)
        panels = figure.subplots(2 if two else 1, 1, sharex=True, squeeze=False).flat
        keys: dict[str, Line2D] = {}
        if two:
            ratio = [100 * (b / a - 1) if a and b else None for a, b in zip(trail.a, trail.b, strict=True)]
            _draw(panels[0], ratio, [change for change in trail.changes if change.of == "ratio"], history, keys)
            panels[0].set_ylabel("candidate over\nbaseline, %")
        level = _of_middle(trail.a)
        _draw(panels[-1], level, [change for change in trail.changes if change.of == "level"], history, keys)
        panels[-1].set_ylabel(f"{'baseline' if two else 'level'}, %\nof its median")
        _dates(panels[-1], history.nights)
        title = f"{trail.device}: {trail.cell}, {trail.metric} {trail.basis}".strip()
        put_heading(figure, title, list(keys.values()))
        return Chart(figure, name, f"{title}, night after night")


def _draw(
    axes: Axes, values: Sequence[float | None], changes: Sequence[Change], history: History, keys: dict[str, Line2D]
) -> None:
    there = [(place, value) for place, value in enumerate(values) if value is not None]
    axes.plot([place for place, _ in there], [value for _, value in there], "o", color=FOREGROUND, markersize=2.6)
    starts = {history.nights[place].id: place for place in range(len(history.nights))}
    edges = [0, *(starts[change.night] for change in changes), len(values)]
    for start, end in pairwise(edges):
        part = [value for value in values[start:end] if value is not None]
        if part:
            axes.hlines(median(part), start - 0.4, end - 0.6, color=MUTED, linewidth=1.2)
    for change in changes:
        place, colour = starts[change.night] - 0.5, CAUSES[change.cause]
        line = axes.axvline(place, color=colour, linewidth=1.6, linestyle="-" if change.settled else (0, (3, 2)))
        line.set_label(change.cause if change.settled else f"{change.cause}, unsettled")
        keys.setdefault(str(line.get_label()), line)
        late = place > 0.66 * len(values)
        axes.annotate(
            wrap(_note(change), 150, NOTE_PT), (place, 1.0), xycoords=("data", "axes fraction"),
            xytext=(-4 if late else 4, -2), textcoords="offset points", ha="right" if late else "left", va="top",
            fontsize=NOTE_PT, color=colour,
        )  # fmt: skip
    axes.margins(x=0.02, y=0.28)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+.3g}"))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    bare(axes, grid="y")


def _note(change: Change) -> str:
    """Return by how much it changed, and what else did."""
    also = ", ".join(change.also)
    text = f"{100 * change.change:+.1f} %" + (f" ({also})" if also else "")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _of_middle(values: Sequence[float | None]) -> list[float | None]:
    there = [value for value in values if value]
    middle = float(np.median(there)) if there else 1.0
    return [None if value is None else 100 * (value / middle - 1) for value in values]


def _dates(axes: Axes, nights: Sequence[Night]) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(
        FuncFormatter(
            lambda place, _: (
                datetime.fromtimestamp(nights[int(place)].at).strftime("%m-%d") if 0 <= place < len(nights) else ""
            )
        )
    )
