"""Confidence intervals as text, with their level where it is not 95 %."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.analysis.statistics import SERIAL_BLOCKS

from .quantities import PREFIXES, ms, three

if TYPE_CHECKING:
    from orchestrator.analysis.agreement import Proportion
    from orchestrator.analysis.statistics import Interval, Latency, Summary

PROMISED_PERCENT = 95
LEVELS = f"Intervals are at {PROMISED_PERCENT} % unless another level stands beside them"
MOST_DECIMALS = 5
"""Of a share in percent: one of ten million examples."""


def latency_interval(latency: Latency | None) -> str:
    """In ms; empty where there are too few blocks for one."""
    return "" if latency is None else interval(latency.interval_ms)


def interval(found: Interval | None) -> str:
    """`[low, high]`, with its level where that is not 95 %; empty without one."""
    return "" if found is None else f"[{ms(found.low)}, {ms(found.high)}]{level(found)}"


def level(found: Interval) -> str:
    """` 75 %`, ` of one block`; empty of 95 %, which notes promise."""
    if found.method == "own":
        return " of one block"
    return "" if round(100 * found.level) == PROMISED_PERCENT else f" {found.level:.0%}".replace("%", " %")


def interval_note(summaries: Iterable[Summary]) -> str:
    """How sure the intervals of the results are, and what they take for granted; empty where there are none."""
    latencies = [summary.latency for summary in summaries]
    found = [each for one in latencies if one is not None and (each := one.interval_ms) is not None]
    few = f"; those of fewer than {SERIAL_BLOCKS} blocks assume independent blocks"
    told = f"{LEVELS}{few if any(each.conditional for each in found) else ''}"
    return told[0].lower() + told[1:] if found else ""


def joule_interval(interval: Interval, value: float = 0.0) -> str:
    """`[1.20, 1.26] J`, both ends with one unit: that of the value beside it, else of the larger end."""
    largest = abs(value) or max(abs(interval.low), abs(interval.high))
    factor, prefix = next((p for p in PREFIXES if largest >= p[0]), PREFIXES[-1])
    ends = f"[{three(interval.low / factor)}, {three(interval.high / factor)}]"
    return f"{ends} {prefix}J{level(interval)}"


def percent(of: Proportion) -> str:
    """`99.87`; with more digits where it is not quite a hundred: `99.998`."""
    decimals = 2
    while of.count < of.of and decimals < MOST_DECIMALS and f"{100 * of.share:.{decimals}f}" == f"{100:.{decimals}f}":
        decimals += 1
    return f"{100 * of.share:.{decimals}f}"


def percent_interval(of: Proportion) -> str:
    """`[99.81, 99.91]`."""
    return f"[{100 * of.interval.low:.2f}, {100 * of.interval.high:.2f}]"
