"""The figure for a paper: whole intervals, colours by backend, units, a caption in every format."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex

from orchestrator.model.errors import Unsupported
from orchestrator.report.charts.paper import QUANTITIES, draw, save
from orchestrator.report.colours import BACKENDS

pytestmark = pytest.mark.unit


def rows_of(chosen: random.Random) -> list[dict[str, Any]]:
    """Results on a few devices, two of one model; intervals may reach below zero."""
    devices = [(f"SERIAL-{number:06d}", chosen.choice(["Pixel 7", "SM-G930F", "Ryzen " * 12])) for number in range(4)]
    rows = []
    for device, model in devices:
        for backend in chosen.sample([*BACKENDS, "tflite", "ncnn"], 3):
            value = chosen.lognormvariate(0, 2)
            row = {"device": device, "source": chosen.choice(["phone", "virtual"]), "model": model, "network": "n",
                   "backend": backend, "precision": chosen.choice(["fp16", "fp32"]), "energy_basis": "net",
                   "blocks": chosen.randint(1, 9)}  # fmt: skip
            for column, _, _, _, ends in QUANTITIES.values():
                row[column] = value
                row |= dict(
                    zip(ends or (), (value * chosen.uniform(-2, 1), value * chosen.uniform(1, 3)), strict=False)
                )
            rows.append(row)
    return rows


@pytest.mark.parametrize("metric", QUANTITIES)
def test_intervals_are_seen_whole_in_their_backends_colour(metric: str, seed: int) -> None:
    rows, of = rows_of(random.Random(seed)), QUANTITIES[metric]
    axes = draw(rows, metric).figure.axes[0]
    left, right = axes.get_xlim()
    spans = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
    assert len(spans) == len(rows)
    for row, line in zip(rows, spans, strict=True):
        low, high = (of.scale * row[end] for end in of.ends or (of.column, of.column))
        assert list(line.get_xdata()) == pytest.approx([low, high]) and left <= low <= high <= right
        assert to_hex(line.get_color()) == BACKENDS.get(row["backend"], to_hex(line.get_color()))
    assert axes.get_xlabel().endswith(f", {of.unit}") and of.column not in axes.get_xlabel()
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert len(labels) == len(set(labels)) and all(len(each.splitlines()[0]) < 55 for each in labels)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_caption_stands_in_the_file(kind: str, seed: int, tmp_path: Path) -> None:
    drawn = draw(rows_of(random.Random(seed)), "latency", "first")
    content = save(drawn, tmp_path / f"fig.{kind}").read_bytes()
    assert drawn.caption.startswith("first: latency of one inference, median, ms. ")
    assert b"A dot is the figure" in content, content[:200]
    with pytest.raises(Unsupported, match="pdf, svg, png"):
        save(drawn, tmp_path / "fig.jpg")
