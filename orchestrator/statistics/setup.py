"""Set-up by the steps of study P (Pradana, 2018), apart for cold, warm and cached starts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal, get_args

from orchestrator.model.base import Model
from orchestrator.model.job import Cell
from orchestrator.model.record import Record

from .samples import NS_PER_MS

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


class SetupUse(Model):
    """Medians over the blocks of one kind of start, ms."""

    kind: SetupKind
    blocks: int
    steps_ms: dict[str, float]
    """By name of `COLUMNS`; without the first dispatch where the first sample was a stream: it cannot be told apart."""
    total_ms: float
    """Median of the sums, which is not the sum of the medians."""


def setup_uses(records: Sequence[Record], cell: Cell, *, cold: bool) -> tuple[SetupUse, ...]:
    """One for each kind of start that the blocks had, the coldest first. `cold`: the mode of the experiment."""
    asked = str(cell.options.get("setup", "cold" if cold else ""))
    kinds = {record.job_id: _kind(record, str(cell.backend), asked) for record in records if record.setup}
    found = []
    for kind in get_args(SetupKind):
        blocks = [_steps(record) for record in records if kinds.get(record.job_id) == kind]
        if blocks:
            told = [name for name in COLUMNS if all(name in block for block in blocks)]
            steps = {name: median(block[name] for block in blocks) for name in told}
            total = median(sum(block.values()) for block in blocks)
            found.append(SetupUse(kind=kind, blocks=len(blocks), steps_ms=steps, total_ms=total))
    return tuple(found)


def _kind(record: Record, backend: str, asked: str) -> SetupKind:
    if backend == "cpu":
        return "none"
    if any(step.cached for step in record.setup):
        return "cached"
    return "cold" if asked == "cold" else "warm"


def _steps(record: Record) -> dict[str, float]:
    spent = dict.fromkeys(COLUMNS, 0)
    of_event = {event: name for name, events in STEPS.items() for event in events} | {"readback": READBACK}
    for step in record.setup:
        if step.step in of_event:  # waiting for the engine slot is nobody's set-up
            spent[of_event[step.step]] += step.duration_ns
    if record.samples and record.samples[0].inferences > 1:
        del spent[FIRST]
    elif record.samples:
        spent[FIRST] = record.samples[0].duration_ns
    return {name: duration_ns / NS_PER_MS for name, duration_ns in spent.items()}
