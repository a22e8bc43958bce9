"""Summarise the set-up of a cell: its total time and its steps.

Blocks differ in their steps (only the first one writes a cache), so medians of steps do not add up to a set-up that any
block had. What is told of a cell is its median block: its steps add up to the median of the blocks' totals.

The steps of study P (Pradana, 2018) group those of the agent, apart for cold, warm and cached starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from orchestrator.analysis.figures import NS_PER_MS, BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.job import Cell

SetupKind = Literal["cold", "warm", "cached", "none"]
"""cold: nobody had a compiled program; warm: the driver may have had one of its own, the farm had none; cached: the
farm's kept binaries or pipeline cache were used; none: the backend compiles nothing."""

STEPS: dict[str, tuple[str, ...]] = {
    "discovery": ("library", "discovery"),
    "context": ("context",),
    "program build": ("build", "cache"),
    "pipelines": ("pipeline",),
    "buffers": ("allocate",),
    "descriptors": ("descriptors", "record"),
    "transfers": ("upload", "input"),
}
"""The study's steps before the first dispatch, of which events of the agent each consists."""
FIRST, READBACK = "first dispatch", "read-back"
COLUMNS = (*STEPS, FIRST, READBACK)
_OF_EVENT = {event: name for name, events in STEPS.items() for event in events} | {"readback": READBACK}


NOT_BEFORE_FIRST = ("slot", "readback")
"""Events that are no set-up: the engine's slot is waited for because of others, and outputs are read afterwards."""


class SetupUse(Model):
    """The median block of one kind of start, ms."""

    kind: SetupKind
    blocks: int
    steps_ms: dict[str, float]
    """By name of `COLUMNS`; without the first dispatch where the first sample was a stream: it cannot be told apart."""
    total_ms: float
    """From a fresh process to its first result: the sum of the steps, and the median of the blocks' sums."""


def setup_steps_ms(block: BlockFigures) -> dict[str, float]:
    """Time that a block spent in each step of the agent before its first inference, in order of first appearance."""
    return {name: spent / NS_PER_MS for name, spent in block.setup_ns.items() if name not in NOT_BEFORE_FIRST}


def total_setup_ms(block: BlockFigures) -> float:
    """Set-up time of a block: all that it did before its first inference."""
    return sum(setup_steps_ms(block).values())


def first_result_ms(block: BlockFigures) -> float:
    """From a fresh process to its first result: set-up, first inference, read-back."""
    return sum(_steps(block).values())


def median_block(blocks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Steps of the block whose total is the median; of an even number of blocks the mean of the middle two, so that
    the steps always add up to the median of the totals. Empty without blocks."""
    if not blocks:
        return {}
    ordered = sorted(blocks, key=lambda block: sum(block.values()))
    low, high = ordered[(len(blocks) - 1) // 2], ordered[len(blocks) // 2]
    return {name: (low.get(name, 0.0) + high.get(name, 0.0)) / 2 for name in {**low, **high}}


def setup_uses(blocks: Sequence[BlockFigures], cell: Cell, *, cold: bool) -> tuple[SetupUse, ...]:
    """One for each kind of start that the blocks had, the coldest first. `cold`: the mode of the experiment."""
    asked = str(cell.options.get("setup", "cold" if cold else ""))
    kinds = {block.job_id: _kind(block, str(cell.backend), asked) for block in blocks if block.setup_ns}
    found = []
    for kind in get_args(SetupKind):
        own = [_steps(block) for block in blocks if kinds.get(block.job_id) == kind]
        if own:
            steps = median_block(own)
            found.append(SetupUse(kind=kind, blocks=len(own), steps_ms=steps, total_ms=sum(steps.values())))
    return tuple(found)


def _kind(block: BlockFigures, backend: str, asked: str) -> SetupKind:
    if backend == "cpu":
        return "none"
    if block.setup_cached:
        return "cached"
    return "cold" if asked == "cold" else "warm"


def _steps(block: BlockFigures) -> dict[str, float]:
    spent = dict.fromkeys(COLUMNS, 0)
    for event, duration_ns in block.setup_ns.items():
        if event in _OF_EVENT:
            spent[_OF_EVENT[event]] += duration_ns
    if block.first_ns is None:
        del spent[FIRST]
    else:
        spent[FIRST] = block.first_ns
    return {name: duration_ns / NS_PER_MS for name, duration_ns in spent.items()}
