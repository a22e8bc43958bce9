"""Colours of charts and tables: a hue for each backend, or each engine; one colour for each step of set-up."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from orchestrator.analysis.statistics import Summary
from orchestrator.model.device import OURS

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
"""Added to the lightness of the colour, where it has more curves than there are dashes."""


@dataclass(frozen=True)
class Colours:
    """The colours of all charts of a report."""

    by: Literal["backend", "engine"]
    """The name that a colour stands for."""
    known: Mapping[str, str]

    @classmethod
    def of(cls, summaries: Iterable[Summary]) -> Colours:
        """Return a colour for each backend; where several engines ran, for each engine, ours as OpenCL otherwise.
        Colours repeat where there are more names."""
        found = list(summaries)
        if len(engines := {summary.engine for summary in found}) > 1:
            ordered = sorted(engines, key=lambda name: (name != OURS.name, name))
            return cls("engine", {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(ordered)})
        foreign = sorted({summary.backend for summary in found} - BACKENDS.keys())
        return cls("backend", BACKENDS | {name: FOREIGN[index % len(FOREIGN)] for index, name in enumerate(foreign)})

    def name(self, summary: Summary) -> str:
        """Return what a result's colour stands for."""
        return summary.engine if self.by == "engine" else summary.backend

    def __getitem__(self, summary: Summary) -> str:
        return self.known[self.name(summary)]


class Look(NamedTuple):
    """The look of a curve."""

    color: str
    linestyle: Any


def looks(curves: Sequence[tuple[str, str]], colours: Mapping[str, str]) -> dict[tuple[str, str], Look]:
    """(hue's name, name) -> look: all curves of a hue differ by their dashes, then by lightness."""
    found: dict[tuple[str, str], Look] = {}
    seen: dict[str, int] = {}
    for of, name in dict.fromkeys(curves):
        number = seen[of] = seen.get(of, -1) + 1
        step = LIGHTER[number // len(DASHES) % len(LIGHTER)]
        found[of, name] = Look(_lighter(colours.get(of, MUTED), step), DASHES[number % len(DASHES)])
    return found


def _lighter(colour: str, step: float) -> str:
    if not step:
        return colour
    hue, light, saturation = colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, light + step, saturation))
