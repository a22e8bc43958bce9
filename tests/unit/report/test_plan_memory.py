"""The picture of a plan's memory over its steps."""

from __future__ import annotations

from pathlib import Path

from kernels.plan.live_memory import LiveMemory
from orchestrator.report.charts.plan_memory import draw


def test_weights_that_are_swapped_in_are_drawn_as_such() -> None:
    def drawn(swapped: tuple[int, ...]) -> str:
        memory = LiveMemory(lasting=100, activations=(10, 30), swapped_weights=swapped, allocated=200)
        return draw(memory, "pyramid", 250, Path("plot.svg")).decode()

    assert "Device memory of pyramid over its steps" in drawn((20, 0))
    assert "weights that are swapped in" in drawn((20, 0)) and "weights that are swapped in" not in drawn((0, 0))
