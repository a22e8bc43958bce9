"""Summarise the energy of a cell over its blocks, for each source of power apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import exp, hypot, log, sqrt
from statistics import median
from typing import Literal

from pydantic import Field

from orchestrator.figures import TOKEN_ENERGIES, BlockFigures, Energy, Value
from orchestrator.figures.one_block import is_short, uncertainty
from orchestrator.model.base import Model
from orchestrator.model.power import SHORTEST_LOAD_S, PowerSource, Scope
from orchestrator.model.record import Doubt

from .intervals import Interval, Method, median_interval, range_coverage
from .resolution import Unresolved, unresolved

Z = 1.96
TOO_SHORT = Unresolved(why="short load", needs_load_s=SHORTEST_LOAD_S)
EnergyKind = tuple[PowerSource, Scope, str]
"""Source, scope, and which gauge, meter or rail."""


class Figure(Model):
    """Median over blocks, in the unit of its name. Value and intervals are None where it is not told: `unresolved`."""

    value: float | None
    within: Interval | None
    """The interval for comparisons on this device: over blocks (of one by its own uncertainty), never narrower than
    their own uncertainties allow, of which the systematic part stays; without the gain's, which all blocks share."""
    total: Interval | None
    """The same with the gain's uncertainty: for comparisons with other devices, where the gain is known at all."""
    unresolved: Unresolved | None = None


class EnergyPerInference(Model):
    """Energy per inference as tables and charts show it, with what it contains."""

    figure_j: Figure
    basis: Literal["net", "gross"]
    """`net` of the idle power before and after the load; `gross` where no block rested: the idle power is in it. They
    do not compare."""
    source: PowerSource
    scope: Scope
    absolute: bool
    """True if the gain is known; otherwise the figure compares only on this device."""


class EnergyUse(Model):
    """Energy of one cell on one device by one source."""

    source: PowerSource
    scope: Scope
    name: str
    absolute: bool
    """True if every block's gain is known; otherwise figures compare only on this device."""
    blocks: int
    inferences: int
    """The inferences of all blocks, in their load phases."""
    per_inference_j: Figure | None
    """Net of the idle power; None where no block rested."""
    gross_per_inference_j: Figure | None
    load_power_w: Figure
    idle_power_w: Figure | None
    per_token_j: dict[str, Figure] = Field(default_factory=dict)
    """Net energy of a token by the name of its quantity; empty where nothing answers."""
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
    """Return what is doubtful about the blocks' energies, beside what their records say."""
    return [doubt for block in blocks if block.energy is not None for doubt in block.energy.doubts]


def _combine(energies: Sequence[Energy], *, watched: bool) -> EnergyUse:
    """Blocks of one cell on one device by one source; at least one. What their loads drew is told of those whose load
    is long enough."""
    first = energies[0]
    long = [each for each in energies if not is_short(each)]
    void = Figure(value=None, within=None, total=None, unresolved=TOO_SHORT)

    def over_blocks(pick: Callable[[Energy], Value | None], of: Sequence[Energy], *, positive: bool) -> Figure | None:
        found = [(estimate, each.gain_uncertainty) for each in of if (estimate := pick(each)) is not None]
        if found:
            return _figure(found, watched=watched, positive=positive)
        return void if any(pick(each) is not None for each in energies) else None

    def of_token(name: str) -> Figure | None:
        return over_blocks(lambda each: each.per_token_j.get(name), long, positive=False)

    load_power_w = over_blocks(lambda each: each.load_power_w, long, positive=True)
    assert load_power_w is not None, "a block's energy has a load power"
    return EnergyUse(
        source=first.source,
        scope=first.scope,
        name=first.name,
        absolute=all(each.absolute for each in energies),
        blocks=len(long),
        inferences=sum(each.inferences for each in long),
        per_inference_j=over_blocks(lambda each: each.per_inference_j, long, positive=False),
        gross_per_inference_j=over_blocks(lambda each: each.gross_per_inference_j, long, positive=True),
        load_power_w=load_power_w,
        idle_power_w=over_blocks(lambda each: each.idle_power_w, energies, positive=True),
        per_token_j={name: figure for name in TOKEN_ENERGIES if (figure := of_token(name)) is not None},
        net_blocks_j=tuple(each.per_inference_j.value for each in long if each.per_inference_j is not None),
    )


def _figure(found: Sequence[tuple[Value, float]], *, watched: bool, positive: bool) -> Figure:
    """The median of blocks' estimates, each with the standard uncertainty of its gain as a share."""
    values, apart = [estimate.value for estimate, _ in found], [uncertainty(*each) for each in found]
    value, within, why_not = energy_of(values, apart, watched=watched, positive=positive)
    if why_not:
        return Figure(value=None, within=None, total=None, unresolved=why_not)
    gain = Z * max(gain for _, gain in found) * abs(value)
    return Figure(value=value, within=within, total=_wider(within, value, 0.0, gain, on_logs=True))


def energy_of(
    values: Sequence[float], uncertainties: Sequence[Sequence[float]], *, watched: bool, positive: bool
) -> tuple[float, Interval, Unresolved | None]:
    """The median of blocks' energies in order of time, its interval without the gain's part, and why it is not told.

    Systematic terms are bounds that no repetition makes smaller: the interval holds its level or more. What cannot be
    below zero is told on the scale of logarithms, where every uncertainty is a factor.
    """
    value = median(values)
    random = Z * median(random for random, _ in uncertainties) / sqrt(len(values))
    systematic = Z * median(systematic for _, systematic in uncertainties)
    between = median_interval(values, watched=watched, positive=positive) or _of_too_few(values)
    on_logs = positive and min(value, between.low) > 0
    within = _wider(between, value, random, systematic, on_logs=on_logs)
    return value, within, unresolved(value, within, len(values), fixed=systematic)


def _wider(interval: Interval, value: float, least: float, more: float, *, on_logs: bool) -> Interval:
    """Each side at least as long as `least`, and joined with what is independent of it; both in the unit of the value,
    of which they are shares on the scale of logarithms."""
    if on_logs:
        least, more = least / value, more / value
        below, above = log(value / interval.low), log(interval.high / value)
        ends = value * exp(-hypot(max(below, least), more)), value * exp(hypot(max(above, least), more))
    else:
        below, above = value - interval.low, interval.high - value
        ends = value - hypot(max(below, least), more), value + hypot(max(above, least), more)
    return interval.model_copy(update={"low": ends[0], "high": ends[1]})


def _of_too_few(values: Sequence[float]) -> Interval:
    """Return the interval of one block or two: how blocks differ is not known, or hardly."""
    return Interval(
        low=min(values),
        high=max(values),
        level=range_coverage(len(values)),
        method=Method.OWN if len(values) == 1 else Method.RANGE,
        conditional=True,
    )
