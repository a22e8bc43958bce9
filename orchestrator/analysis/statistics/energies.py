"""Summarise the energy of a cell over its blocks, for each source of power apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import hypot, sqrt
from statistics import median
from typing import Literal

from orchestrator.analysis.figures import BlockFigures, Energy, Value
from orchestrator.model.base import Model
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.record import Doubt

from .intervals import Interval, Method, median_interval, range_coverage

Z = 1.96
EnergyKind = tuple[PowerSource, Scope, str]
"""Source, scope, and which gauge, meter or rail."""


class Figure(Model):
    """Median over blocks, in the unit of its name."""

    value: float
    within: Interval
    """For comparisons on this device: over blocks (of one by its own uncertainty), and never narrower than their own
    uncertainties allow, of which the systematic part does not shrink; without the gain's, which all blocks share."""
    total: Interval
    """The same with the gain's uncertainty: for comparisons with other devices, where the gain is known at all."""


class EnergyPerInference(Model):
    """Energy per inference as tables and charts show it, with what it contains."""

    figure_j: Figure
    basis: Literal["net", "gross"]
    """`net` of the idle power before and after the load; `gross` where no block rested: the idle power is in it. They
    do not compare."""
    source: PowerSource
    scope: Scope
    absolute: bool
    """Whether the gain is known; otherwise the figure compares only on this device."""


class EnergyUse(Model):
    """Energy of one cell on one device by one source."""

    source: PowerSource
    scope: Scope
    name: str
    absolute: bool
    """Whether every block's gain is known; otherwise figures compare only on this device."""
    blocks: int
    inferences: int
    """Of all blocks, in their load phases."""
    per_inference_j: Figure | None
    """Net of the idle power; None where no block rested."""
    gross_per_inference_j: Figure | None
    load_power_w: Figure
    idle_power_w: Figure | None
    net_blocks_j: tuple[float, ...]
    """Net energy per inference of each block."""

    @property
    def reported(self) -> EnergyPerInference | None:
        """The energy per inference that is shown: net where blocks rested, else gross; None without an inference."""
        figure = self.per_inference_j or self.gross_per_inference_j
        if figure is None:
            return None
        return EnergyPerInference(
            figure_j=figure,
            basis="net" if self.per_inference_j else "gross",
            source=self.source,
            scope=self.scope,
            absolute=self.absolute,
        )


def reported_energy(uses: Sequence[EnergyUse]) -> EnergyPerInference | None:
    """The one energy per inference of a cell on a device: that of its first source."""
    return uses[0].reported if uses else None


def energy_uses(blocks: Iterable[BlockFigures], *, watched: bool = False) -> tuple[EnergyUse, ...]:
    """One figure per source among these blocks of one cell on one device; the source of most blocks first."""
    by_kind: dict[EnergyKind, list[Energy]] = defaultdict(list)
    for block in blocks:
        if (found := block.energy) is not None:
            by_kind[found.source, found.scope, found.name].append(found)
    ordered = sorted(by_kind.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(_combine(energies, watched=watched) for _, energies in ordered)


def energy_doubts(blocks: Iterable[BlockFigures]) -> list[Doubt]:
    """What is doubtful about the blocks' energies, beside what their records say."""
    return [doubt for block in blocks if block.energy is not None for doubt in block.energy.doubts]


def _combine(energies: Sequence[Energy], *, watched: bool) -> EnergyUse:
    """Blocks of one cell on one device by one source; at least one."""
    first = energies[0]

    def over_blocks(pick: Callable[[Energy], Value | None], *, positive: bool = True) -> Figure | None:
        found = [(estimate, each.gain_uncertainty) for each in energies if (estimate := pick(each)) is not None]
        return _figure(found, watched=watched, positive=positive) if found else None

    load_power_w = over_blocks(lambda each: each.load_power_w)
    assert load_power_w is not None, "a block's energy has a load power"
    return EnergyUse(
        source=first.source,
        scope=first.scope,
        name=first.name,
        absolute=all(each.absolute for each in energies),
        blocks=len(energies),
        inferences=sum(each.inferences for each in energies),
        per_inference_j=over_blocks(lambda each: each.per_inference_j, positive=False),
        gross_per_inference_j=over_blocks(lambda each: each.gross_per_inference_j),
        load_power_w=load_power_w,
        idle_power_w=over_blocks(lambda each: each.idle_power_w),
        net_blocks_j=tuple(each.per_inference_j.value for each in energies if each.per_inference_j is not None),
    )


def _figure(found: Sequence[tuple[Value, float]], *, watched: bool, positive: bool = True) -> Figure:
    """The median of blocks' estimates, each with the standard uncertainty of its gain as a share.

    Systematic terms are bounds that no repetition makes smaller: the interval holds its level or more.
    """
    values = [estimate.value for estimate, _ in found]
    value = median(values)
    random = Z * median(_random(estimate, gain) for estimate, gain in found) / sqrt(len(found))
    systematic = Z * median(estimate.systematic for estimate, _ in found)
    between = median_interval(values, watched=watched, positive=positive) or _of_too_few(values)
    below, above = max(value - between.low, random), max(between.high - value, random)
    within = between.model_copy(
        update={"low": value - hypot(below, systematic), "high": value + hypot(above, systematic)}
    )
    gain = Z * max(gain for _, gain in found) * abs(value)
    total = between.model_copy(
        update={"low": value - hypot(value - within.low, gain), "high": value + hypot(within.high - value, gain)}
    )
    return Figure(value=value, within=within, total=total)


def _of_too_few(values: Sequence[float]) -> Interval:
    """Of one block or two: how blocks differ is not known, or hardly."""
    return Interval(
        low=min(values),
        high=max(values),
        level=range_coverage(len(values)),
        method=Method.OWN if len(values) == 1 else Method.RANGE,
        conditional=True,
    )


def _random(estimate: Value, gain: float) -> float:
    """What repetition makes smaller."""
    return sqrt(max(0.0, estimate.std**2 - (gain * estimate.value) ** 2 - estimate.systematic**2))
