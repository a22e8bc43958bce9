"""Samples above what trained networks make of them, as pictures."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from orchestrator.model.record import Reconstruction, Record
from orchestrator.report.drawing import Chart, new_figure, style
from orchestrator.report.heading import put_heading

from .rows import PANEL_PX, Key, key_of

TILE_PX = PANEL_PX // 8
LABELS_PX = 24
MOST = 8
"""Trainings that are shown."""

Pixels = npt.NDArray[np.uint8]


def reconstructions(records: Sequence[Record], labels: Mapping[str, str]) -> list[Chart]:
    """Draw, for each device and cell, the newest training that has any. `labels`: of cells, by their ids."""
    newest: dict[Key, Record] = {}
    for record in sorted(records, key=lambda each: each.started_at):
        if record.reconstructions:
            newest[key_of(record)] = record
    return [
        _chart(newest[key].reconstructions, f"{key[0]} {labels[key[2]]}", f"reconstructed{number}")
        for number, key in enumerate(sorted(newest)[:MOST])
    ]


def _chart(found: Sequence[Reconstruction], of: str, name: str) -> Chart:
    title = f"{of}: samples, and below what the trained network makes of them"
    with style():
        figure = new_figure(PANEL_PX, 2 * TILE_PX + LABELS_PX)
        axes = figure.subplots()
        sheet = sheet_of(found)
        axes.imshow(sheet, interpolation="none")
        width = sheet.shape[1] / len(found)
        axes.set_xticks([(i + 0.5) * width for i in range(len(found))], [f"{each.difference:.3g}" for each in found])
        axes.set_yticks([])
        axes.set_xlabel("root mean square of the difference")
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        put_heading(figure, title)
        return Chart(figure, name, title)


def sheet_of(found: Sequence[Reconstruction]) -> Pixels:
    """(2 x height, number x width, 3), enlarged to about the size on a page."""
    pairs = [np.concatenate([_pixels(each, each.given), _pixels(each, each.answered)]) for each in found]
    larger = max(1, TILE_PX // found[0].width)
    return np.concatenate(pairs, axis=1).repeat(larger, axis=0).repeat(larger, axis=1)


def _pixels(one: Reconstruction, text: str) -> Pixels:
    pixels = np.frombuffer(b64decode(text), np.uint8).reshape(one.height, one.width, -1)
    return np.broadcast_to(pixels, (one.height, one.width, 3)) if pixels.shape[2] == 1 else pixels
