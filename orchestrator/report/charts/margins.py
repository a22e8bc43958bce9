"""Chart of the base's margins, and of the examples that other results change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from orchestrator.analysis.agreement import Agreement, Row
from orchestrator.report import wording
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import GRID, MUTED, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading, wrap
from orchestrator.report.parts import predictions

from . import rows as layout

CHANGED = PALETTE[9]
BARS_PX = 150
MAX_TICKS = 300
MAX_RESULTS = 12
BESIDE_ZERO = 2.0
"""Room of the first bin, whose margins may be zero, as a ratio."""


def margins(agreements: Sequence[Agreement]) -> list[Chart]:
    """A histogram of the base's margins; under it a row of ticks for each result, a tick an example that it changes.

    One figure for each workload in which something changed.
    """
    names = predictions.naming(agreements)
    found = [
        (agreement, [row for row in agreement.rows if row.comparison and row.comparison.changed])
        for agreement in agreements
    ]
    return [
        _figure(agreement, rows[:MAX_RESULTS], names, f"margins{index}")
        for index, (agreement, rows) in enumerate(found)
        if rows and agreement.margins
    ]


def _figure(agreement: Agreement, rows: Sequence[Row], names: wording.Naming, name: str) -> Chart:
    assert agreement.base is not None
    with style():
        labels = [wrap(predictions.name(row.result, names), layout.CELL_PX, layout.CELL_PT) for row in rows]
        rows_px = layout.ROW_PX * (sum(1 + 0.85 * label.count("\n") for label in labels) + 1)
        figure = new_figure(layout.WIDTH_PX, 85 + BARS_PX + rows_px)
        bars, ticks = figure.subplots(2, 1, sharex=True, height_ratios=(BARS_PX, rows_px))
        keys = _draw_bars(bars, agreement)
        _draw_ticks(ticks, agreement, rows, labels)
        put_heading(figure, f"{agreement.workload}: margin by {predictions.name(agreement.base, names)}", keys)
        return Chart(figure, name, f"Margins of {agreement.workload}, and which predictions changed")


def _draw_bars(axes: Axes, agreement: Agreement) -> list[Patch]:
    lows = [max(each.low, _least(agreement)) for each in agreement.margins]
    widths = [each.high - low for each, low in zip(agreement.margins, lows, strict=True)]
    look: dict[str, Any] = {"edgecolor": MUTED, "linewidth": 0.4}
    keys = []
    for heights, colour, label in (
        ([each.examples for each in agreement.margins], GRID, "examples"),
        ([each.changed for each in agreement.margins], CHANGED, "changed by a result"),
    ):
        axes.bar(lows, heights, widths, align="edge", color=colour, **look)
        keys.append(Patch(facecolor=colour, label=label, **look))
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.set_ylabel("examples")
    bare(axes, grid="y")
    axes.tick_params(which="minor", length=0)
    return keys


def _draw_ticks(axes: Axes, agreement: Agreement, rows: Sequence[Row], labels: Sequence[str]) -> None:
    for y, row in enumerate(rows):
        assert row.comparison is not None
        places = sorted(max(one.base_margin, _least(agreement)) for one in row.comparison.changed)
        places = layout.thin(places, MAX_TICKS)
        axes.plot(places, [y] * len(places), "|", color=CHANGED, alpha=0.7, markersize=9, markeredgewidth=1.2)
        axes.annotate(
            str(len(row.comparison.changed)), (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=8.5,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.3, -0.7)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("the best score less the second best, by the base; the first bar holds zero")
    bare(axes, grid="x")
    axes.tick_params(which="minor", length=0)


def _least(agreement: Agreement) -> float:
    """Return where the axis begins: a margin of zero has no place on a logarithmic one."""
    return agreement.margins[0].high / BESIDE_ZERO
