"""Colours of charts and tables: one hue for each backend, one colour for each step of set-up."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from orchestrator.analysis.statistics import Summary

from .drawing import MUTED

PALETTE = ("#2f81f7", "#e8590c", "#2da44e", "#bf4b8a", "#8250df", "#c29b0c", "#0e9aa7", "#8c6d5a", "#6e7781", "#d1453b")
"""Colours that are readable on white and on near black."""
BACKENDS = {"opencl": PALETTE[0], "vulkan": PALETTE[1], "cpu": PALETTE[2]}
FOREIGN = PALETTE[len(BACKENDS) :]
"""The colours of backends that somebody else measured with, whatever they call them."""

SETUP = {
    "discovery": "#a9b4be", "context": "#0e7490", "program build": "#d1453b", "pipelines": "#f0a35e",
    "buffers": "#2f81f7", "descriptors": "#8cc4ff", "transfers": "#2da44e",
}  # fmt: skip
"""Colours by step before the first inference."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.4, 1.4)), (0, (6, 1.5, 1.4, 1.5)))
LIGHTER = (0.0, -0.17, 0.17)
"""Added to the lightness of the backend's colour, where it has more curves than there are dashes."""

Colours = dict[str, str]


def backend_colours(summaries: Iterable[Summary]) -> Colours:
    """Backend -> colour, for all charts of a report; colours repeat from the eighth foreign backend on."""
    foreign = sorted({summary.backend for summary in summaries} - BACKENDS.keys())
    return BACKENDS | {name: FOREIGN[index % len(FOREIGN)] for index, name in enumerate(foreign)}


class Look(NamedTuple):
    """The look of a curve."""

    color: str
    linestyle: Any


def looks(curves: Sequence[tuple[str, str]], colours: Colours) -> dict[tuple[str, str], Look]:
    """(backend, name) -> look: all curves of a backend have its hue, and differ by their dashes, then by lightness."""
    found: dict[tuple[str, str], Look] = {}
    seen: dict[str, int] = {}
    for backend, name in dict.fromkeys(curves):
        number = seen[backend] = seen.get(backend, -1) + 1
        step = LIGHTER[number // len(DASHES) % len(LIGHTER)]
        found[backend, name] = Look(_lighter(colours.get(backend, MUTED), step), DASHES[number % len(DASHES)])
    return found


def _lighter(colour: str, step: float) -> str:
    if not step:
        return colour
    hue, light, saturation = colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, light + step, saturation))
