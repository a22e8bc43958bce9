"""Quantities of one block, computed from its figures."""

from __future__ import annotations

from math import sqrt

from orchestrator.model.device import OURS
from orchestrator.model.event import NOT_BEFORE_FIRST
from orchestrator.model.power import SHORTEST_LOAD_S
from orchestrator.model.record import DoubtCode

from .block import BlockFigures, Energy, Value
from .quantities import QUANTITIES
from .times import NS_PER_MS


def setup_steps_ms(block: BlockFigures) -> dict[str, float]:
    """Time that a block spent in each step of the agent before its first inference, in order of first appearance."""
    return {name: spent / NS_PER_MS for name, spent in block.setup_ns.items() if name not in NOT_BEFORE_FIRST}


def total_setup_ms(block: BlockFigures) -> float:
    """Set-up time of a block: all that it did before its first inference."""
    return sum(setup_steps_ms(block).values())


def first_result_ms(block: BlockFigures) -> float:
    """Return the time from a fresh process to its first result: set-up, first inference, read-back."""
    after_ns = (block.first_ns or 0) + block.setup_ns.get("readback", 0)
    return total_setup_ms(block) + after_ns / NS_PER_MS


def frames_per_s(block: BlockFigures) -> float | None:
    """A block's ratio of totals: all frames of its timed samples over all their time. None without a sample.

    A ratio of two quantities is always so: the mean or median of the samples' ratios differs by per cents from it, and
    weighs short samples like long ones. Blocks vary by everything that counts, so that the interval of the cell is over
    them.
    """
    if block.rate is None or block.times is None or block.times.mean_ms <= 0:
        return None
    return 1000 * block.rate.frames / block.times.mean_ms


def uncertainty(estimate: Value, gain: float) -> tuple[float, float]:
    """The standard uncertainty of a block's energy without the gain's: what repetition makes smaller, and what not."""
    random = sqrt(max(0.0, estimate.std**2 - (gain * estimate.value) ** 2 - estimate.systematic**2))
    return random, estimate.systematic


def is_short(energy: Energy) -> bool:
    """Return whether the energy is void; under longer loads a slow gauge's doubt is told, but intervals hold."""
    return energy.load_s < SHORTEST_LOAD_S and any(doubt.code is DoubtCode.SHORT_LOAD for doubt in energy.doubts)


def void_of(block: BlockFigures) -> frozenset[str]:
    """Return the names among its values that are void, as its energy is."""
    if block.energy is None or not is_short(block.energy):
        return frozenset()
    return frozenset(name for name in block.values if name in QUANTITIES and QUANTITIES[name].of_energy)


def version_of(block: BlockFigures) -> str:
    """Return the version of the engine that ran a block: of our own the agent's, with the start of its hash; of others
    what they told, and of a program that tells none the start of its hash; empty where nothing ran."""
    of = block.provenance
    if of.engine == OURS.name:
        return f"{of.agent_version} {of.agent_sha256[:12]}".strip()
    told = block.runs_on.facts.version.removeprefix(of.engine).strip() if block.runs_on else ""
    return told or of.program_hash[:12]
