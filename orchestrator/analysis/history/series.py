"""The material of a history: a figure of one cell on one device in one night, of one side or of two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal, NamedTuple

from pydantic import Field

from orchestrator.analysis.comparison import METRICS, SideRow
from orchestrator.analysis.comparison.matching import pairs_of
from orchestrator.figures.brief import BATTERY_CYCLES
from orchestrator.model.base import Model

Cause = Literal["candidate", "baseline", "device", "farm", "unknown"]
OF_A_SIDE = ("agent", "plan", "model file")
"""Provenance that belongs to what is tested; the rest is of the device and the farm."""


class Night(Model):
    """One column of a history."""

    id: str
    at: float
    """Unix time."""


class Key(NamedTuple):
    """The key of one series."""

    device: str
    cell: str
    metric: str
    basis: str


class Figure(Model):
    """One point: the levels of both sides; an experiment of one side has `a` alone."""

    night: str
    device: str
    source: str = ""
    cell: str
    """Network, backend, precision and options."""
    metric: str
    basis: str = ""
    unit: str = ""
    a: float | None = None
    b: float | None = None
    facts_a: dict[str, str] = Field(default_factory=dict)
    """Provenance of the blocks of side A: OS build, driver, agent, farm, model file, plan."""
    facts_b: dict[str, str] = Field(default_factory=dict)

    @property
    def key(self) -> Key:
        return Key(self.device, self.cell, self.metric, self.basis)


def of_sides(night: str, a: Sequence[SideRow], b: Sequence[SideRow] = ()) -> list[Figure]:
    """The figures of one night: of each cell, metric and side the median of the blocks, as `compare` has it."""
    found = []
    for pair in pairs_of(a, b):
        names = dict.fromkeys(name for row in (*pair.a, *pair.b) for name in row.values)
        options = "".join(f" {name}={value}" for name, value in pair.key.options if name != "side")
        for name in names:
            metric, _, basis = name.partition("/")
            found.append(
                Figure(
                    night=night,
                    device=pair.key.device,
                    source=pair.key.source,
                    cell=f"{pair.key.network} {pair.key.backend} {pair.key.precision}{options}",
                    metric=metric,
                    basis=basis,
                    unit=METRICS[metric].unit,
                    a=_level(pair.a, name),
                    b=_level(pair.b, name),
                    facts_a=facts_of(pair.a),
                    facts_b=facts_of(pair.b),
                )
            )
    return found


def _level(rows: Iterable[SideRow], name: str) -> float | None:
    """The median; None where a value is not above zero."""
    values = [row.values[name] for row in rows if name in row.values]
    if not values or min(values) <= 0:
        return None
    return median(values)


def facts_of(rows: Iterable[SideRow]) -> dict[str, str]:
    """Return what the blocks say ran them; several values by commas. Battery cycles are left out: they only grow."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, text in row.provenance.items():
            found.setdefault(name, {})[text] = None
    return {name: ", ".join(sorted(texts)) for name, texts in found.items() if name != BATTERY_CYCLES}
