"""Confidence intervals as text, with their level where it is not 95 %."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from statistics import median
from typing import TYPE_CHECKING

from orchestrator.analysis.statistics import SERIAL_BLOCKS

from .quantities import decimals, memory_size, ms, prefix_of, rounded, scaled, share

if TYPE_CHECKING:
    from orchestrator.analysis.agreement import Proportion
    from orchestrator.analysis.comparison.cell_blocks import Ratio
    from orchestrator.analysis.statistics import Interval, Summary, Told, Unresolved

PROMISED_PERCENT = 95
LEVELS = f"Intervals are at {PROMISED_PERCENT} % unless another level stands beside them"
SCALED = ("J", "W")
"""Units that take `m` and `µ`."""
WITH_UNIT = ("B", *SCALED)
"""Units that stand beside each figure already, not at its column's head."""
RATIO_DIGITS = 5
"""The most digits of a ratio with a narrow interval."""
MOST_DECIMALS = 5
"""The most decimals of a share in percent: one of ten million examples."""


def figure(
    value: float | None, interval: Interval | None, unresolved: Unresolved | None, unit: str = "ms"
) -> tuple[str, str]:
    """Return the texts for a figure and its interval: `0.150` and `[0.120, 0.190]`, or `not resolved` and `below 115
    mJ; needs 40 blocks`."""
    if unresolved is not None:
        bound = _bound(unresolved, unit) if unresolved.why == "wide" else ""
        return unresolved.word, "; ".join(filter(None, (bound, unresolved.needs)))
    return ("", "") if value is None else (number(value, unit, interval), ends(interval, value, unit))


def told(found: Told) -> tuple[str, str]:
    """A quantity of a result as a table shows it, and its interval."""
    return figure(found.value, found.interval, found.unresolved, found.unit)


def ratio(value: float | None, interval: Interval | None, unresolved: Unresolved | None = None) -> tuple[str, str]:
    """`2.71` and `[2.62, 2.80]`: the digits follow the interval; `not resolved` and `needs 40 blocks`. The interval
    alone where only that is told."""
    if unresolved is not None:
        return unresolved.word, unresolved.needs
    if value is None:
        return "", "" if interval is None else ratio(interval.low, interval)[1]
    if interval is None:
        return rounded(value, decimals(value)), ""
    text, low, high = _ratios(value, interval.low, interval.high)
    return text, f"[{low}, {high}]{level(interval)}"


def times(ratios: Collection[float], intervals: Iterable[Interval | None]) -> str:
    """`2.7 (1.4 to 5.3)`: the middle ratio, and from the lowest to the highest end of the intervals; these alone
    without a ratio."""
    known = [each for each in intervals if each is not None]
    low, high = min(each.low for each in known), max(each.high for each in known)
    text, *ends = _ratios(median(ratios or (low, high)), low, high)
    return f"{text} ({ends[0]} to {ends[1]})" if ratios else " to ".join(ends)


def _ratios(value: float, low: float, high: float) -> list[str]:
    """Tell a ratio with as many digits as the interval allows; two of each where it is wider than the ratio itself."""
    half = (high - low) / 2
    places, least = decimals(value, half or None, RATIO_DIGITS if half else 3), decimals(value, significant=2)
    if places >= least:
        return [rounded(each, places) for each in (value, low, high)]
    return [rounded(each, min(least + 1, decimals(each, significant=2))) for each in (value, low, high)]


def change(ratio_: float, interval: Interval | None) -> str:
    """`+5.1 %` of a ratio of 1.051; digits follow the interval."""
    percent_ = 100 * (ratio_ - 1)
    places = min(1, decimals(percent_, 100 * interval.half_width if interval else None, RATIO_DIGITS))
    places = places if round(percent_, places) else 0
    return f"{round(percent_, places):+.{max(0, places)}f} %"


def number(value: float, unit: str, interval: Interval | None = None) -> str:
    """Return a value with its unit, but for times and rates, whose columns name it. Digits follow the interval."""
    half = interval.half_width if interval else None
    if unit == "B":
        return memory_size(round(value))
    return scaled(value, unit, half) if unit in SCALED else ms(value, half)


def ends(interval: Interval | None, value: float, unit: str = "ms") -> str:
    """`[low, high]` in the unit of the value beside it, with its level where that is not 95 %; empty without one."""
    if interval is None:
        return ""
    factor, prefix = prefix_of(value) if unit in SCALED else (1.0, "")
    places = [decimals(end / factor, interval.half_width / factor) for end in (interval.low, interval.high)]
    texts = [rounded(end / factor, p) for end, p in zip((interval.low, interval.high), places, strict=True)]
    return f"[{', '.join(texts)}]{f' {prefix}{unit}' if unit in SCALED else ''}{level(interval)}"


def _bound(why: Unresolved, unit: str) -> str:
    below, above = number(why.below or 0.0, unit), number(why.above, unit)
    return "not above zero" if not why.below else f"{above} to {below}" if why.above else f"below {below}"


def times_of(found: Ratio) -> str:
    """`2.7x [2.4, 3.3]`; `not resolved (needs 40 blocks)`; empty of none."""
    if found.point is None:
        return str(found.unresolved or "")
    text, interval = ratio(found.point, found.interval)
    return f"{text}x {interval}".rstrip()


def in_words(found: Told) -> str:
    """`not resolved (below 115 mJ; needs 40 blocks)`; empty of what is told."""
    value, why = told(found)
    return f"{value} ({why})" if found.unresolved else ""


def level(found: Interval) -> str:
    """` 75 %`, ` of one block`; empty of 95 %, which notes promise."""
    if found.method == "own":
        return " of one block"
    return "" if round(100 * found.level) == PROMISED_PERCENT else f" {found.level:.0%}".replace("%", " %")


def interval_note(summaries: Iterable[Summary]) -> str:
    """Say how sure the intervals of the results are, and what they take for granted; empty where there are none."""
    latencies = [summary.latency for summary in summaries]
    found = [each for one in latencies if one is not None and (each := one.interval_ms) is not None]
    few = f"; those of fewer than {SERIAL_BLOCKS} blocks assume independent blocks"
    told = f"{LEVELS}{few if any(each.conditional for each in found) else ''}"
    return told[0].lower() + told[1:] if found else ""


def session_note(between_runs: float | None) -> str:
    """Say what the intervals of one run do not hold; beneath each table of results."""
    if between_runs is None:
        return "Of this run alone: how days differ on these devices is not known."
    return f"Of this run alone: runs of the same on these devices differ by {share(between_runs)}."


def percent(of: Proportion) -> str:
    """`99.87`; with more digits where it is not quite a hundred: `99.998`."""
    decimals = 2
    while of.count < of.of and decimals < MOST_DECIMALS and f"{100 * of.share:.{decimals}f}" == f"{100:.{decimals}f}":
        decimals += 1
    return f"{100 * of.share:.{decimals}f}"


def percent_interval(of: Proportion) -> str:
    """`[99.81, 99.91]`."""
    return f"[{100 * of.interval.low:.2f}, {100 * of.interval.high:.2f}]"
