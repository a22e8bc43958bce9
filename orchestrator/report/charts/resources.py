"""Charts of set-up steps, the slowest layers, and memory by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from orchestrator.analysis.statistics import Summary
from orchestrator.report import wording
from orchestrator.report.colours import PALETTE, SETUP, Colours
from orchestrator.report.drawing import FOREGROUND, MUTED, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading, wrap

from . import rows as layout
from .rows import AXIS_PX, PANEL_PX, ROW_PX, WIDTH_PX

MIB = 2**20
LAYER_PX, LAYER_PT = 190, 8.0
"""The room for names of layers: longer ones take several lines."""
WEIGHTS, ACTIVATIONS = PALETTE[3], PALETTE[6]


def setup(summaries: Sequence[Summary]) -> Chart | None:
    """Stacked steps of the median block of the start that most blocks had, one row a device and cell."""
    shown = [summary for summary in summaries if any(use.total_ms for use in summary.setup)][: layout.MAX_ROWS]
    if not shown:
        return None
    uses = [max(row.setup, key=lambda use: use.blocks) for row in shown]
    present = {step for use in uses for step in use.steps_ms}
    steps = [step for step in SETUP if step in present]
    rows = layout.rows_of(shown, wording.naming(summaries))
    with style():
        figure = new_figure(WIDTH_PX, rows.height_px)
        axes = figure.subplots()
        left = [0.0] * len(shown)
        for step in steps:
            widths = [use.steps_ms.get(step, 0.0) for use in uses]
            axes.barh(rows.positions, widths, left=left, height=0.72, color=SETUP[step])
            left = [a + b for a, b in zip(left, widths, strict=True)]
        for y, row, total in zip(rows.positions, shown, left, strict=True):
            axes.annotate(
                wording.setup(row.setup), (total, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
            )
        layout.label_rows(axes, rows)
        axes.set_xlim(0, 1.25 * max(left) or 1.0)
        axes.set_xlabel(f"ms before the first {wording.sample(shown)} (waiting for the engine slot left out)")
        put_heading(figure, keys=[Patch(color=SETUP[step], label=step) for step in steps])
        return Chart(figure, "setup", "Set-up time by step")


def layers(summary: Summary, name: str, colours: Colours, largest: int = 12) -> Chart | None:
    """The slowest steps of one cell on one device, with their share of the whole."""
    if not summary.layers or summary.device_ms is None:
        return None
    ordered = sorted(summary.layers, key=lambda layer: -layer.median_ms)
    rows = [(layer.layer, layer.median_ms) for layer in ordered[:largest]]
    rest = sum(layer.median_ms for layer in ordered[largest:])
    total = summary.device_ms
    labels = [wrap(label, LAYER_PX, LAYER_PT) for label, _ in rows]
    lines = [1 + 0.85 * label.count("\n") for label in labels]
    places = [sum(lines[:i]) + lines[i] / 2 for i in range(len(lines))]
    with style():
        figure = new_figure(PANEL_PX, AXIS_PX + ROW_PX * sum(lines))
        axes = figure.subplots()
        values = [value for _, value in rows]
        axes.barh(places, values, height=0.7, color=colours[summary])
        axes.set_yticks(places, labels, fontsize=LAYER_PT)
        axes.set_ylim(sum(lines), 0)
        for y, value in zip(places, values, strict=True):
            text = f"{wording.ms(value)} · {value / total:.0%}" if total else wording.ms(value)
            axes.annotate(text, (value, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_xlim(0, 1.3 * max(values) or 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel("ms on the device")
        bare(axes, grid="x")
        others = f" (the {len(ordered) - largest} others: {rest / total:.0%})" if rest and total else ""
        put_heading(figure, f"{summary.label}: {wording.ms(total)} ms on the device{others}")
        return Chart(figure, name, f"Slowest layers, {summary.label} on {summary.serial}")


def memory(summary: Summary, name: str) -> Chart | None:
    """Memory while each layer runs, by the plan: activations on the layer's weights; the measured peak beside it."""
    if not summary.planned:
        return None
    live = [layer.live_bytes / MIB for layer in summary.planned]
    weights = [layer.weight_bytes / MIB for layer in summary.planned]
    peak = summary.memory.device_peak_bytes / MIB if summary.memory else 0.0
    with style():
        figure = new_figure(PANEL_PX, 190)
        axes = figure.subplots()
        x = range(len(live))
        keys: list[Artist] = [Patch(color=WEIGHTS, label="weights of the layer"),
                              Patch(color=ACTIVATIONS, label="activations alive")]  # fmt: skip
        axes.bar(x, weights, width=0.85, color=WEIGHTS)
        axes.bar(x, live, bottom=weights, width=0.85, color=ACTIVATIONS)
        tallest = max(a + b for a, b in zip(live, weights, strict=True))
        if peak:
            look: dict[str, Any] = {"color": FOREGROUND, "linewidth": 1.2, "linestyle": "--"}
            axes.axhline(peak, **look)
            keys.append(Line2D([], [], label=f"measured peak {peak:.3g} MiB", **look))
        axes.set_ylim(0, 1.15 * max(peak, tallest, 1e-3))
        axes.set_xlim(-0.7, len(live) - 0.3)
        axes.set_ylabel("MiB")
        axes.set_xlabel(f"the {len(live)} layers in the order of the plan")
        axes.set_xticks([])
        keys.append(_tallest(axes, summary, live, weights))
        bare(axes, grid="y")
        put_heading(figure, summary.label, keys)
        return Chart(figure, name, f"Memory by layer, {summary.label} on {summary.serial}")


def _tallest(axes: Axes, summary: Summary, live: list[float], weights: list[float]) -> Line2D:
    """Marks the layer with the most; its name stands in the legend, where there is room for it."""
    totals = [a + b for a, b in zip(live, weights, strict=True)]
    index = totals.index(max(totals))
    look: dict[str, Any] = {"marker": "v", "linestyle": "", "color": MUTED, "markersize": 5}
    axes.plot([index], [totals[index] * 1.02], clip_on=False, **look)
    return Line2D([], [], label=f"most: {summary.planned[index].layer} {totals[index]:.3g} MiB", **look)
