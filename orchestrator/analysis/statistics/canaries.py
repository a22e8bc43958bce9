"""Judge the canaries of a device: whether the same small workload took the same time throughout the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from statistics import median

from orchestrator.figures import BlockFigures
from orchestrator.model.base import Model
from orchestrator.model.device import Source
from orchestrator.model.quantity import counted
from orchestrator.model.record import Outcome

CHANGE_SHARE = 0.05
"""A canary that lies further than this from the median of all canaries says that the device has changed."""
MIN_CANARIES = 3


class CanaryWord(StrEnum):
    STEADY = "steady"
    CHANGED = "changed"
    FEW = "few"


class CanaryVerdict(Model):
    """The verdict on the canaries of one device."""

    serial: str
    source: Source
    canaries: int
    """The canaries that went well."""
    failed: int
    verdict: CanaryWord
    reason: str
    started_at: tuple[float, ...]
    """Unix time of each canary that went well."""
    median_ms: tuple[float, ...]
    change: tuple[float, ...]
    """The change of each, relative to the median of all: 0.03 is 3 % slower."""


def canary_verdicts(blocks: Sequence[BlockFigures]) -> tuple[CanaryVerdict, ...]:
    """One verdict per device that ran canaries; other blocks are left aside."""
    canaries = sorted(
        (block for block in blocks if block.role == "canary"),
        key=lambda block: (block.serial, block.source, block.started_at),
    )
    groups = groupby(canaries, key=lambda block: (block.serial, block.source))
    return tuple(_verdict(serial, source, list(group)) for (serial, source), group in groups)


def _verdict(serial: str, source: Source, blocks: Sequence[BlockFigures]) -> CanaryVerdict:
    good = [block for block in blocks if block.outcome is Outcome.OK and block.times]
    medians = [block.times.median_ms for block in good if block.times]
    middle = median(medians) if medians else 0.0
    change = [value / middle - 1 for value in medians]
    verdict, reason = _classify(change)
    return CanaryVerdict(
        serial=serial,
        source=source,
        canaries=len(good),
        failed=len(blocks) - len(good),
        verdict=verdict,
        reason=reason,
        started_at=tuple(block.started_at for block in good),
        median_ms=tuple(medians),
        change=tuple(change),
    )


def _classify(change: Sequence[float]) -> tuple[CanaryWord, str]:
    if len(change) < MIN_CANARIES:
        return CanaryWord.FEW, f"{len(change)} went well; {MIN_CANARIES} or more tell"
    worst = max(range(len(change)), key=lambda i: abs(change[i]))
    if abs(change[worst]) <= CHANGE_SHARE:
        of = counted(len(change), "canary", "canaries")
        return CanaryWord.STEADY, f"all {of} within {abs(change[worst]):.1%} of their median"
    trend = f"first {change[0]:+.1%}, last {change[-1]:+.1%}"
    return CanaryWord.CHANGED, f"canary {worst + 1} of {len(change)} is {change[worst]:+.1%} off their median ({trend})"
