"""Loss and error over the epochs of trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from orchestrator.figures import BlockFigures, Epoch
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import FOREGROUND, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading
from orchestrator.report.parts.training import newest

from .rows import PANEL_PX

HEIGHT_PX = 260
MOST = len(PALETTE)

Curves = dict[str, list[Epoch]]
"""Epochs by device and cell."""


def training(blocks: Sequence[BlockFigures], labels: Mapping[str, str]) -> list[Chart]:
    """A chart of each stage that lasted longer than one epoch. `labels`: of cells, by their ids."""
    stages: dict[str, Curves] = {}
    for block, trained in list(newest(blocks))[:MOST]:
        for epoch in trained.epochs:
            own = stages.setdefault(epoch.stage, {})
            own.setdefault(f"{block.serial} {labels[block.cell_id]}", []).append(epoch)
    curved = {stage: curves for stage, curves in stages.items() if max(map(len, curves.values())) > 1}
    return [_chart(stage, curves, f"training{number}") for number, (stage, curves) in enumerate(curved.items())]


def _chart(stage: str, curves: Curves, name: str) -> Chart:
    """A colour is a device and cell. Solid: loss; dashed, by the scale to the right: wrong answers."""
    with style():
        figure = new_figure(PANEL_PX, HEIGHT_PX)
        axes = figure.subplots()
        keys = [Line2D([], [], color=colour, label=one) for one, colour in zip(curves, PALETTE, strict=False)]
        classifies = any(epoch.error is not None for own in curves.values() for epoch in own)
        right = axes.twinx() if classifies else None
        for own, colour in zip(curves.values(), PALETTE, strict=False):
            losses = [(each.epoch + 1, each.loss) for each in own if each.loss is not None]
            errors = [(each.epoch + 1, 100 * each.error) for each in own if each.error is not None]
            if losses:
                axes.plot(*zip(*losses, strict=True), color=colour, linewidth=1.2)
            if errors and right is not None:
                right.plot(*zip(*errors, strict=True), color=colour, linewidth=1.0, linestyle="--")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        bare(axes, grid="y")
        if right is not None:
            right.set_ylabel("wrong answers, %")
            right.set_ylim(bottom=0)
            keys += [Line2D([], [], color=FOREGROUND, linestyle=line, label=word)
                     for line, word in (("-", "loss"), ("--", "wrong answers"))]  # fmt: skip
        put_heading(figure, stage, keys)
        return Chart(figure, name, f"Training: {stage}")
