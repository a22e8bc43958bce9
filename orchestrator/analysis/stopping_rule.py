"""Decide whether a cell on a device needs more blocks (sequential sampling). Pure.

A cell is measured until the half-width of the 95 % interval of its median (over blocks) is at most `target_interval` of
that median, for the latency and, where power is measured with rests, for the net energy per inference too; or until it
has `max_blocks` blocks. Blocks that do not count are made up for within the cap; a cell of which no block went well
gets no more.

Whoever stops where the interval is narrow stops where chance has made it so, and covers less than 95 % (Chow &
Robbins, "On the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals", 1965: exact only for many blocks).
So there are `LEAST_BLOCKS` good blocks, and the ranks leave out the less the fewer blocks there are
(`statistics/intervals.py`), here and in the results: 90 % or more are left after the choice, also where blocks are
alike, or the target is hardly within reach of the cap. Where blocks lie on two levels the interval reaches over the gap
between them, so that such a cell goes to the cap unless nearly all its blocks lie on one.
benchmarks/statistics/coverage.py is the evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.experiment import LEAST_BLOCKS, Experiment, Sampling
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.quantity import counted
from orchestrator.model.record import Outcome

from .statistics import block_value_ms, relative_half_width

EnergyKind = tuple[PowerSource, Scope, Source]
"""Source and scope of power figures, and source of the block: only figures of one kind are put together."""


class Need(StrEnum):
    """The need of a cell for more blocks, or the reason why it has none."""

    MORE = "more"
    TARGET_MET = "target_met"
    MAX_BLOCKS = "max_blocks"
    NO_GOOD_BLOCK = "no_good_block"


class StoppingDecision(Model):
    """The decision about one cell on one device."""

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
    """True if the samples are streams, so that their time tells the throughput."""

    @property
    def text(self) -> str:
        """E.g. `target met after 14 blocks: ±4.1% (latency), ±3.0% (energy), wanted ±5.0%`."""
        reason = {
            Need.MORE: "goes on",
            Need.TARGET_MET: f"target met after {counted(self.blocks, 'block')}",
            Need.MAX_BLOCKS: f"stopped at the cap of {counted(self.blocks, 'block')}",
            Need.NO_GOOD_BLOCK: f"stopped: none of {counted(self.blocks, 'block')} went well",
        }[self.need]
        widths = [
            f"±{share:.1%} ({name})"
            for name, share in (("throughput" if self.stream else "latency", self.latency), ("energy", self.energy))
            if share is not None
        ]
        return f"{reason}: {', '.join(widths) or 'no interval'}, wanted ±{self.target:.1%}"


def decide(sampling: Sampling, found: Sequence[BlockFigures], made: int) -> StoppingDecision:
    """Judge one cell on one device by its blocks. `made`: blocks that are over, those without a record included."""
    assert sampling.target_interval is not None
    good = sorted(
        (block for block in found if block.outcome is Outcome.OK and block.times),
        key=lambda block: (block.started_at, block.token),
    )
    values = [ms for block in good if (ms := block_value_ms(block, sampling.mode)) is not None]
    energies = energy_values(good)
    latency = relative_half_width(values, watched=True)
    energy = relative_half_width(energies, watched=True, positive=False)
    shares = (latency, energy) if energies else (latency,)
    few = min(len(each) for each in (values, energies or values)) < LEAST_BLOCKS
    wide = few or any(share is None or share > sampling.target_interval for share in shares)
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
    """Net energies per inference of the kind that most blocks have; kinds are never mixed."""
    by_kind: dict[EnergyKind, list[float]] = defaultdict(list)
    for block in blocks:
        if (energy := block.energy) is not None and energy.per_inference_j is not None:
            by_kind[energy.source, energy.scope, block.source].append(energy.per_inference_j.value)
    return max(by_kind.values(), key=len, default=[])


def decide_all(
    experiment: Experiment, blocks: Iterable[BlockFigures], made: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], StoppingDecision]:
    """Judge every (serial, cell id) of an experiment with a target by its blocks; nothing without one.

    `blocks`: of each the attempt that counts, canaries left aside.
    """
    sampling = experiment.sampling
    if sampling.target_interval is None:
        return {}
    found: dict[tuple[str, str], list[BlockFigures]] = {key: [] for key in made}
    for block in blocks:
        if block.role == "work":
            found.setdefault((block.serial, block.cell_id), []).append(block)
    return {key: decide(sampling, own, made.get(key, len(own))) for key, own in found.items()}
