"""Draw the device memory of a plan over its steps, as SVG or PNG."""

from __future__ import annotations

import io
from math import ceil, log2
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from kernels.plan.live_memory import LiveMemory
from orchestrator.model.errors import TableError
from orchestrator.model.foreign import cleaned
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, bare, new_figure
from orchestrator.report.heading import put_heading
from orchestrator.report.traces import paper
from orchestrator.report.wording import memory_size

SUFFIXES = (".svg", ".png")
WIDTH_PX, HEIGHT_PX = 960, 300


def draw(memory: LiveMemory, name: str, budget: int, path: Path) -> bytes:
    """The picture that belongs into `path`. `budget`: 0: there is none. Raises TableError for another kind of file."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise TableError(
            f"--memory-plot {path}: a picture ends in {', '.join(SUFFIXES)}, not in {suffix or 'nothing'}",
            remedy=f"write {path.with_suffix('.svg').name}",
        )
    buffer = io.BytesIO()
    with mpl.rc_context(paper()):
        metadata = {"Date": None} if suffix == ".svg" else None
        figure_of(memory, cleaned(name), budget).savefig(buffer, format=suffix[1:], dpi=144, metadata=metadata)
    return buffer.getvalue()


def figure_of(memory: LiveMemory, name: str, budget: int) -> Figure:
    """Bytes alive in each step, by kind, above those that stay throughout, beside what is allocated."""
    figure = new_figure(WIDTH_PX, HEIGHT_PX)
    axes = figure.subplots()
    steps = range(len(memory.activations) + 1)
    areas = {f"weights, inputs, outputs {memory_size(memory.lasting)}": PALETTE[8]}
    axes.fill_between(steps, 0, memory.lasting, color=PALETTE[8], alpha=0.6, linewidth=0)
    below = [memory.lasting] * len(steps)
    bands = {"weights that are swapped in": (memory.swapped_weights, PALETTE[2])} if any(memory.swapped_weights) else {}
    for kind, (live, colour) in {**bands, "activations": (memory.activations, PALETTE[0])}.items():
        above = [low + size for low, size in zip(below, (*live, *live[-1:]), strict=False)]
        axes.fill_between(steps, below[: len(above)], above, color=colour, alpha=0.6, step="post", linewidth=0)
        areas[kind], below = colour, above
    lines = {f"allocated {memory_size(memory.allocated)}": (memory.allocated, FOREGROUND, "-")}
    lines[f"largest live set {memory_size(memory.most)}"] = (memory.most, PALETTE[1], "--")
    if budget:
        lines[f"budget {memory_size(budget)}"] = (budget, PALETTE[9], ":")
    for height, colour, dash in lines.values():
        axes.axhline(height, color=colour, linestyle=dash, linewidth=1.1)
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.yaxis.set_major_locator(MultipleLocator(2 ** ceil(log2(max(memory.allocated, budget, 1) / 6))))
    axes.yaxis.set_major_formatter(lambda value, _: memory_size(int(value)))
    axes.set_xlabel("step")
    bare(axes, grid="y")
    keys = [Line2D([], [], color=colour, linewidth=6, alpha=0.6, label=label) for label, colour in areas.items()]
    keys += [Line2D([], [], color=colour, linestyle=dash, label=label) for label, (_, colour, dash) in lines.items()]
    put_heading(figure, f"Device memory of {name} over its steps", keys=keys)
    return figure
