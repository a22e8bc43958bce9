"""Set-up steps, the slowest layers, and memory by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from matplotlib.ticker import MaxNLocator

from orchestrator.model.event import SetupName
from orchestrator.report import wording
from orchestrator.report.drawing import FOREGROUND, MUTED, PALETTE, bare, new_figure, style, to_svg
from orchestrator.statistics import Summary

from . import rows as layout
from .rows import ROW_PX, WIDTH_PX, backend_colour

COLD_FROM = 1.5
"""Ratio to the median from which the slowest set-up is worth a word."""
MIB = 2**20


def setup(summaries: Sequence[Summary]) -> str | None:
    """Stacked set-up steps, one row a device and cell."""
    rows = [summary for summary in summaries if summary.setup_ms][: layout.MAX_ROWS]
    if not rows:
        return None
    present = {step for row in rows for step in row.setup_ms}
    steps = [step for step in get_args(SetupName) if step in present]
    with style():
        figure = new_figure(WIDTH_PX, 70 + layout.height_px(rows))
        axes = figure.subplots()
        positions = layout.positions_of(rows)
        left = [0.0] * len(rows)
        for index, step in enumerate(steps):
            widths = [row.setup_ms.get(step, 0.0) for row in rows]
            axes.barh(positions, widths, left=left, height=0.72, color=PALETTE[index % len(PALETTE)], label=step)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        for y, row, total in zip(positions, rows, left, strict=True):
            axes.annotate(
                _setup_words(row, total), (total, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
            )
        layout.label_rows(axes, rows, positions, names=wording.naming(summaries))
        axes.set_xlim(0, 1.2 * max(left) or 1.0)
        axes.set_xlabel("ms before the first inference (median over blocks; waiting for the engine slot left out)")
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=min(9, len(steps)))
        return to_svg(figure, "setup", "Set-up time by step")


def _setup_words(row: Summary, total_ms: float) -> str:
    """The median total, and the slowest block where it waited for what the others found in a cache."""
    if row.slowest_setup_ms < COLD_FROM * total_ms:
        return wording.ms(total_ms)
    return f"{wording.ms(total_ms)} (slowest block: {wording.ms(row.slowest_setup_ms)})"


def layers(summary: Summary, name: str, largest: int = 12) -> str | None:
    """The slowest steps of one cell on one device, with their share of the whole."""
    if not summary.layers:
        return None
    ordered = sorted(summary.layers, key=lambda layer: -layer.median_ms)
    rows = [(layer.layer, layer.median_ms) for layer in ordered[:largest]]
    rest = sum(layer.median_ms for layer in ordered[largest:])
    total = sum(layer.median_ms for layer in ordered)
    with style():
        figure = new_figure(WIDTH_PX / 2 - 20, 50 + ROW_PX * len(rows))
        axes = figure.subplots()
        values = [value for _, value in rows]
        axes.barh(range(len(rows)), values, height=0.7, color=backend_colour(summary.backend) or FOREGROUND)
        axes.set_yticks(range(len(rows)), [_short(label) for label, _ in rows], fontsize=8)
        axes.invert_yaxis()
        for y, value in enumerate(values):
            text = f"{wording.ms(value)} · {value / total:.0%}"
            axes.annotate(text, (value, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        others = f" (the {len(ordered) - largest} others: {rest / total:.0%})" if rest else ""
        axes.set_title(f"{summary.label}: {wording.ms(total)} ms on the device{others}")
        axes.margins(x=0.2)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        bare(axes, grid="x")
        return to_svg(figure, name, f"Slowest layers, {summary.label} on {summary.serial}")


def memory(summary: Summary, name: str) -> str | None:
    """Memory while each layer runs, by the plan: activations on the layer's weights; the measured peak beside it."""
    if not summary.planned:
        return None
    live = [layer.live_bytes / MIB for layer in summary.planned]
    weights = [layer.weight_bytes / MIB for layer in summary.planned]
    peak = summary.memory.device_peak_bytes / MIB if summary.memory else 0.0
    with style():
        figure = new_figure(WIDTH_PX / 2 - 20, 210)
        axes = figure.subplots()
        x = range(len(live))
        axes.bar(x, weights, width=0.85, color=PALETTE[3], label="weights of the layer")
        axes.bar(x, live, bottom=weights, width=0.85, color=PALETTE[6], label="activations alive")
        tallest = max(a + b for a, b in zip(live, weights, strict=True))
        if peak:
            axes.axhline(peak, color=FOREGROUND, linewidth=1.2, linestyle="--", label=f"measured peak {peak:.3g} MiB")
        axes.set_ylim(0, 1.3 * max(peak, tallest, 1e-3))
        axes.set_title(summary.label)
        axes.set_ylabel("MiB")
        axes.set_xlabel(f"the {len(live)} layers in the order of the plan")
        axes.set_xticks([])
        _name_tallest(axes, summary, live, weights)
        axes.legend(loc="upper right", fontsize=7.5, ncols=3, handlelength=1.2, columnspacing=1)
        bare(axes, grid="y")
        return to_svg(figure, name, f"Memory by layer, {summary.label} on {summary.serial}")


def _name_tallest(axes: object, summary: Summary, live: list[float], weights: list[float]) -> None:
    totals = [a + b for a, b in zip(live, weights, strict=True)]
    index = totals.index(max(totals))
    right = index > len(totals) / 2
    axes.annotate(  # type: ignore[attr-defined]
        f"{_short(summary.planned[index].layer, 24)} {totals[index]:.3g}", (index, totals[index]),
        xytext=(0, 3), textcoords="offset points", fontsize=7.5, color=MUTED, ha="right" if right else "left",
    )  # fmt: skip


def _short(label: str, limit: int = 34) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"
