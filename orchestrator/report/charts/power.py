"""Chart of power over the time of a block: raw readings, phases, and the mean of each phase."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from orchestrator.analysis.statistics import Summary
from orchestrator.energy.sources import Origin, origins
from orchestrator.energy.windows import Window, integral
from orchestrator.model.errors import StableError
from orchestrator.model.event import Phase
from orchestrator.model.record import Outcome, Record
from orchestrator.report import wording
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, MUTED, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading, wrap

from . import rows as layout

BLOCKS_SHOWN = 3
"""The blocks of a device: one block each of so many cells, or several of one cell."""
SHADES = {"idle_before": MUTED, "warmup": PALETTE[5], "load": PALETTE[0], "idle_after": MUTED}
WORDS = {"idle_before": "rest", "warmup": "warm-up", "load": "load"}
NS = 1e-9
MAX_READINGS = 1000
"""The most readings of a block; of more, so many evenly spaced."""
DOT_PT = 3.6
"""A reading's dot: easily seen, and thousands of them are still apart."""
WORDS_PT = 8.0
PLOT_PX, LEAST_WORDS_PX = 1000, 60
"""Width of what is drawn, and of the words above a very short block."""
GAP_SHARE = 0.06
"""Room between two blocks, as a share of the longest."""


class Shown(NamedTuple):
    """A block to draw, with its power."""

    record: Record
    origin: Origin
    label: str

    @property
    def caption(self) -> str:
        """The caption above it."""
        codes = ", ".join(dict.fromkeys(each.code for each in self.record.invalid)) or self.record.cause
        return self.label + (f" · INVALID: {codes}" if self.record.outcome is Outcome.INVALID else "")

    @property
    def start_s(self) -> float:
        begun = [phase.start_ns * NS for phase in self.record.phases]
        return min([float(self.origin.trace.t_s[0]), *begun])

    @property
    def length_s(self) -> float:
        return max([float(self.origin.trace.t_s[-1]), *(p.end_ns * NS for p in self.record.phases)]) - self.start_s


def power(summaries: Sequence[Summary], records: Sequence[Record]) -> list[Chart]:
    """A few blocks of each device, side by side: readings as points, phases shaded, their means as lines."""
    names = wording.naming(summaries)
    labels = {summary.cell_id: wording.cell(summary, names) for summary in summaries}
    work = [r for r in records if r.role == "work" and r.outcome in (Outcome.OK, Outcome.INVALID)]
    shown = [_choose(own, labels) for own in layout.by_device(work).values()]
    return [_power(own, f"power{number}") for number, own in enumerate(filter(None, shown))]


def _power(blocks: list[Shown], name: str) -> Chart:
    with style():
        figure = new_figure(layout.WIDTH_PX, 190)
        _draw(figure.subplots(), blocks)
        title = _title(blocks[0])
        put_heading(figure, title, _keys({phase.phase for one in blocks for phase in one.record.phases}))
        return Chart(figure, name, f"Power over the time of a block: {title}")


def _choose(records: Sequence[Record], labels: dict[str, str]) -> list[Shown]:
    """Choose each cell's block of median power first, good ones before invalid ones; then others of the first cell."""
    by_cell: dict[str, list[Shown]] = {}
    for record in records:
        if found := origins(record)[:1]:
            one = Shown(record, found[0], f"{labels.get(record.cell_id, '')} #{record.block}")
            by_cell.setdefault(record.cell_id, []).append(one)
    chosen = [_middle(own) for own in by_cell.values()]
    rest = [one for own in by_cell.values() for one in own if one not in chosen]
    return sorted([*chosen, *rest][:BLOCKS_SHOWN], key=lambda one: one.record.started_at)


def _middle(blocks: Sequence[Shown]) -> Shown:
    good = [one for one in blocks if one.record.outcome is Outcome.OK] or list(blocks)
    means = [float(one.origin.trace.power_w.mean()) for one in good]
    middle = median(means)
    return min(zip(good, means, strict=True), key=lambda pair: abs(pair[1] - middle))[0]


def _draw(axes: Axes, blocks: list[Shown]) -> None:
    gap_s = GAP_SHARE * max(one.length_s for one in blocks) if len(blocks) > 1 else 0.0
    whole_s = sum(one.length_s for one in blocks) + gap_s * (len(blocks) - 1)
    widths_px = [PLOT_PX * (one.length_s + gap_s) / max(whole_s, 1e-9) for one in blocks]
    caption = [
        wrap(one.caption, max(width_px, LEAST_WORDS_PX), WORDS_PT)
        for one, width_px in zip(blocks, widths_px, strict=True)
    ]
    highest = max(float(one.origin.trace.power_w.max()) for one in blocks)
    bottom = min(0.0, *(float(one.origin.trace.power_w.min()) for one in blocks))
    top = highest + (highest - bottom or 1.0) * (0.26 + 0.12 * max(word.count("\n") + 1 for word in caption))
    at_s, ticks, names = 0.0, [], []
    for one, word in zip(blocks, caption, strict=True):
        _draw_block(axes, one, at_s - one.start_s, top, word)
        step = _step_s(one.length_s * len(blocks))
        marks = [step * i for i in range(int(one.length_s / step) + 1)]
        ticks += [at_s + mark for mark in marks]
        names += [f"{mark:g}" for mark in marks]
        at_s += one.length_s + gap_s
    axes.set_xticks(ticks, names)
    end_s = max(at_s - gap_s, 1e-3)
    axes.set_xlim(-0.01 * end_s, 1.01 * end_s)
    axes.set_ylim(bottom, top)
    axes.set_xlabel("s since the block began")
    axes.set_ylabel("W")
    bare(axes, grid="y")


def _draw_block(axes: Axes, one: Shown, shift_s: float, top: float, caption: str) -> None:
    for phase in one.record.phases:
        start_s, end_s = phase.start_ns * NS + shift_s, phase.end_ns * NS + shift_s
        axes.axvspan(start_s, end_s, color=SHADES[phase.phase], alpha=0.13, linewidth=0)
        _draw_mean(axes, one, phase, shift_s)
    trace = one.origin.trace
    points = layout.thin(list(zip(trace.t_s + shift_s, trace.power_w, strict=True)), MAX_READINGS)
    x, y = [t_s for t_s, _ in points], [power_w for _, power_w in points]
    axes.plot(x, y, "o", color=FOREGROUND, markersize=DOT_PT, alpha=0.7, markeredgewidth=0, zorder=3)
    axes.annotate(
        caption, (one.start_s + shift_s, top), xytext=(3, -4), textcoords="offset points", va="top", fontsize=WORDS_PT,
        fontweight="bold" if one.record.outcome is Outcome.INVALID else "normal",
    )  # fmt: skip


def _draw_mean(axes: Axes, one: Shown, phase: Phase, shift_s: float) -> None:
    """The mean of a phase as the figures of energy have it, told where there is room for it."""
    window = Window(phase.start_ns * NS, phase.end_ns * NS)
    try:
        mean_w = integral(one.origin.trace, window).mean_w
    except (StableError, ZeroDivisionError):
        return
    ends = [window.start_s + shift_s, window.end_s + shift_s]
    axes.plot(ends, [mean_w, mean_w], color=SHADES[phase.phase], linewidth=2, zorder=4)
    if phase.phase != "warmup":
        trace = one.origin.trace
        inside = trace.power_w[(trace.t_s >= window.start_s) & (trace.t_s < window.end_s)]
        above_w = max([mean_w, *inside])  # readings would hide it
        told = wording.watts(mean_w) if mean_w > 0 else "below 0 W"
        axes.annotate(
            told, (window.centre_s + shift_s, above_w), xytext=(0, 4), ha="center",
            textcoords="offset points", fontsize=8, fontweight="bold", zorder=4,
        )  # fmt: skip


def _step_s(span_s: float) -> float:
    """A round distance of about twelve marks."""
    steps = [step * 10.0**power for power in range(-6, 1) for step in (1, 2, 5)] + [20, 30, 60, 120, 300, 600]
    return next((step for step in steps if span_s / step <= 12), 1200)


def _title(one: Shown) -> str:
    return f"{layout.device_in(one.record)} · {wording.power_source(one.origin.source, one.record.source)}"


def _keys(phases: set[str]) -> list[Line2D | Patch]:
    shades: list[Line2D | Patch] = [
        Patch(color=SHADES[phase], alpha=0.3, linewidth=0, label=word)
        for phase, word in WORDS.items()
        if phase in phases
    ]
    point = Line2D([], [], marker="o", linestyle="", color=FOREGROUND, markersize=DOT_PT, label="one reading")
    return [*shades, point, Line2D([], [], color=MUTED, linewidth=2, label="mean of the phase")]
