"""Decide whether a cell on a device needs more blocks (sequential sampling). Pure.

A cell is measured until the half-width of the 95 % interval of its median (over blocks) is at most `target_interval` of
that median, for the latency and, where power is measured with rests, for the net energy per inference too; or until it
has `max_blocks` blocks. Blocks that do not count are made up for within the cap; a cell of which no block went well
gets no more. Looking at the width after each round makes the final interval a little too narrow (Chow & Robbins, "On
the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals", 1965: exact only for many blocks), so `blocks`
should not be below 5 where that matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.energy import block_energy
from orchestrator.model.base import Model
from orchestrator.model.experiment import Experiment, Sampling
from orchestrator.model.record import Outcome, Record

from .statistics import Mode, block_value_ms, relative_half_width

EnergyKind = tuple[str, str, str]
"""Source and scope of power figures, and source of the record: only figures of one kind are put together."""


@dataclass(frozen=True)
class BlockFigures:
    """What sequential sampling needs of one block."""

    cell_id: str
    good: bool
    value_ms: float | None = None
    energy_j: Mapping[EnergyKind, float] = field(default_factory=dict)


class Need(StrEnum):
    """Whether a cell needs more blocks, and if not why."""

    MORE = "more"
    TARGET_MET = "target_met"
    MAX_BLOCKS = "max_blocks"
    NO_GOOD_BLOCK = "no_good_block"


class StoppingDecision(Model):
    """Of one cell on one device."""

    need: Need
    target: float
    """Share of the median that the half-width may have."""
    blocks: int
    """Blocks that were made, good or not."""
    good: int
    latency: float | None
    """Half-width of the interval of a sample's time as a share; None with too few good blocks for one."""
    energy: float | None
    """The same of the energy per inference; None where it is not measured, too."""
    stream: bool = False
    """Whether the samples are streams, so that their time tells the throughput."""

    @property
    def text(self) -> str:
        """E.g. `target met after 7 blocks: ±4.1% (latency), ±3.0% (energy), wanted ±5.0%`."""
        reason = {
            Need.MORE: "goes on",
            Need.TARGET_MET: f"target met after {self.blocks} blocks",
            Need.MAX_BLOCKS: f"stopped at the cap of {self.blocks} blocks",
            Need.NO_GOOD_BLOCK: f"stopped: none of {self.blocks} blocks went well",
        }[self.need]
        widths = [f"±{share:.1%} ({name})" for name, share in self._shares() if share is not None]
        return f"{reason}: {', '.join(widths) or 'no interval'}, wanted ±{self.target:.1%}"

    def _shares(self) -> tuple[tuple[str, float | None], ...]:
        return ("throughput" if self.stream else "latency", self.latency), ("energy", self.energy)


def figures(record: Record, mode: Mode) -> BlockFigures:
    """The figures of one block."""
    if record.outcome is not Outcome.OK:
        return BlockFigures(record.cell_id, good=False)
    value_ms = block_value_ms(record, mode)
    return BlockFigures(record.cell_id, good=value_ms is not None, value_ms=value_ms, energy_j=_energy_j(record))


def _energy_j(record: Record) -> dict[EnergyKind, float]:
    """Net energy per inference; nothing where power was not measured, or the block had no rest."""
    found = block_energy(record)
    if found is None or found.per_inference_j is None:
        return {}
    return {(found.source.value, found.scope.value, record.source.value): found.per_inference_j.value}


def decide(sampling: Sampling, found: Sequence[BlockFigures], made: int) -> StoppingDecision:
    """Judge one cell on one device by its blocks. `made`: blocks that are over, those without a record included."""
    assert sampling.target_interval is not None
    good = [block for block in found if block.good]
    latency = relative_half_width([block.value_ms for block in good if block.value_ms is not None])
    energies = energy_values(good)
    energy = relative_half_width(energies)
    shares = (latency, energy) if energies else (latency,)
    wide = any(share is None or share > sampling.target_interval for share in shares)
    return StoppingDecision(
        need=_need(sampling, made, good=len(good), wide=wide),
        target=sampling.target_interval,
        blocks=made,
        good=len(good),
        latency=latency,
        energy=energy,
        stream=sampling.frames > 1,
    )


def _need(sampling: Sampling, made: int, *, good: int, wide: bool) -> Need:
    if not wide:
        return Need.TARGET_MET
    if not good and made >= sampling.blocks:
        return Need.NO_GOOD_BLOCK
    return Need.MAX_BLOCKS if made >= sampling.max_blocks else Need.MORE


def energy_values(blocks: Iterable[BlockFigures]) -> list[float]:
    """Energies per inference of the kind that most blocks have; kinds are never mixed."""
    by_kind: dict[EnergyKind, list[float]] = defaultdict(list)
    for block in blocks:
        for kind, value in block.energy_j.items():
            by_kind[kind].append(value)
    return max(by_kind.values(), key=len, default=[])


def decide_all(
    experiment: Experiment, records: Iterable[Record], made: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], StoppingDecision]:
    """Judge every (serial, cell id) of an experiment with a target by its records; nothing without one.

    `records`: of each block the one that counts, canaries left aside.
    """
    sampling = experiment.sampling
    if sampling.target_interval is None:
        return {}
    found: dict[tuple[str, str], list[BlockFigures]] = {key: [] for key in made}
    for record in records:
        if record.role == "work":
            found.setdefault((record.device.serial, record.cell_id), []).append(figures(record, sampling.mode))
    return {key: decide(sampling, blocks, made.get(key, len(blocks))) for key, blocks in found.items()}
