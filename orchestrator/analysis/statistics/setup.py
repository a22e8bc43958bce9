"""Summarise the set-up of a cell: its time and its steps, apart for cold, warm and cached starts.

Set-up ends where the first inference begins. Blocks differ in their steps (only the first one writes a cache), so
medians of steps do not add up to a set-up that any block had. What is told of each kind of start is its median block:
its steps add up to the median of the blocks' set-ups. The steps of study P (Pradana, 2018) group those of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal, get_args

from orchestrator.figures import NS_PER_MS, BlockFigures
from orchestrator.figures.one_block import first_result_ms, setup_steps_ms, total_setup_ms
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
_OF_EVENT = {event: name for name, events in STEPS.items() for event in events}


class SetupUse(Model):
    """Starts of one kind, ms."""

    kind: SetupKind
    blocks: int
    total_ms: float
    """The set-up: median over blocks of the time from a fresh process to its first inference."""
    steps_ms: dict[str, float]
    """The steps of the block whose set-up is the median, by name of `STEPS`: they add up to `total_ms`."""
    first_ms: float | None
    """Median of the first inference; None where the first sample was a stream: it cannot be told apart."""
    readback_ms: float
    first_result_ms: float
    """Median over blocks of the time from a fresh process to its first result: set-up, first inference, read-back."""


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
    started = [block for block in blocks if block.setup_ns]
    kinds = [start_kind(cell, cold=cold, cached=block.setup_cached) for block in started]
    by_kind = {kind: [b for b, own in zip(started, kinds, strict=True) if own == kind] for kind in get_args(SetupKind)}
    return tuple(_use(kind, own) for kind, own in by_kind.items() if own)


def start_kind(cell: Cell, *, cold: bool, cached: bool) -> SetupKind:
    """Return the kind of start of a cell's block: `cached` where a step used what the farm had kept."""
    if cell.backend == "cpu":
        return "none"
    return "cached" if cached else "cold" if cell.options.get("setup", "cold" if cold else "") == "cold" else "warm"


def _use(kind: SetupKind, blocks: Sequence[BlockFigures]) -> SetupUse:
    first = [block.first_ns for block in blocks if block.first_ns is not None]
    return SetupUse(
        kind=kind,
        blocks=len(blocks),
        total_ms=median(map(total_setup_ms, blocks)),
        steps_ms=median_block([_steps(block) for block in blocks]),
        first_ms=median(first) / NS_PER_MS if first else None,
        readback_ms=median(block.setup_ns.get("readback", 0) for block in blocks) / NS_PER_MS,
        first_result_ms=median(map(first_result_ms, blocks)),
    )


def _steps(block: BlockFigures) -> dict[str, float]:
    spent = dict.fromkeys(STEPS, 0.0)
    for event, spent_ms in setup_steps_ms(block).items():
        spent[_OF_EVENT[event]] += spent_ms
    return spent
