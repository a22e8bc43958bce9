"""The rows of a comparison as a plain table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Literal

from orchestrator.analysis.comparison import Compared
from orchestrator.analysis.statistics.resolution import MOST_BLOCKS
from orchestrator.report import wording
from orchestrator.report.section import Column, Section, TwoLines

from .content import TITLES, Content, cell, device, ordered, word

COLUMNS = (
    Column("device"), Column("configuration"), Column("metric"), Column("A", True), Column("B", True),
    Column("ratio", True), Column("95 % interval", True), Column("verdict"),
)  # fmt: skip


def table(content: Content) -> Section:
    """Return the table, what is different or missing first; those rows are marked."""
    return section(content, [[row] for row in ordered(content.rows)])


def lines_of(content: Content, most: int, *, every: bool) -> tuple[list[list[Compared]], int]:
    """The rows of each line for a terminal, and how many lines are left out: metrics of a cell that are missing for one
    reason share a line. `most`: lines; `every`: all of them, those that are the same too."""
    lines: dict[tuple[object, ...], list[Compared]] = {}
    for number, row in enumerate(ordered(content.rows)):
        missing = row.verdict == "missing"
        key = (device(row), cell(row), verdict_words(row, 0)) if missing else (number,)
        if every or word(row) not in ("same", "unavailable"):
            lines.setdefault(key, []).append(row)
    shown = list(lines.values())[: None if every else most]
    return shown, len(lines) - len(shown)


def section(content: Content, lines: Sequence[Sequence[Compared]]) -> Section:
    return Section(
        name="compared",
        title=f"A {content.a}, B {content.b}",
        note="",
        columns=COLUMNS,
        rows=tuple(_texts(len(content.rows), *line) for line in lines),
        bad=frozenset(number for number, line in enumerate(lines) if is_bad(line[0])),
    )


def narrow(content: Content, lines: Sequence[Sequence[Compared]]) -> Iterator[tuple[str, list[TwoLines]]]:
    """The table for a terminal that is too narrow: by verdict, with what is true of all rows in the title."""
    options = [set(row.options.items()) for row in content.rows]
    shared = set.intersection(*options) if len(options) > 1 else set()
    if shared:
        yield f"every configuration: {' '.join(f'{name}={value}' for name, value in sorted(shared))}", []
    for rank, own in groupby(lines, key=lambda line: word(line[0])):
        unproven = f": {_unproven(len(content.rows))}" if rank == "unknown" else ""
        yield f"{TITLES[rank]}{unproven}", [_two_lines(line, shared) for line in own]


def _two_lines(line: Sequence[Compared], shared: Collection[tuple[str, str]]) -> TwoLines:
    row = line[0]
    a, b, ratio, interval = ("",) * 4 if len(line) > 1 else figures(row, why=False)
    told = (" to ".join(filter(None, (a, b))), f"{ratio} {interval}".strip())
    name = f"{device(row)}  {cell(row, shared)}  {_metric(line)}"
    return TwoLines(name, "  ".join(filter(None, told)), said(row), is_bad(row))


def is_bad(row: Compared) -> bool:
    return word(row) in ("worse", "missing")


def _texts(rows: int, *line: Compared) -> tuple[str, ...]:
    told = ("",) * 4 if len(line) > 1 else figures(line[0])
    return device(line[0]), cell(line[0]), _metric(line), *told, verdict_words(line[0], rows)


def _metric(line: Sequence[Compared]) -> str:
    return f"{len(line)} metrics" if len(line) > 1 else f"{line[0].metric} {line[0].basis}".strip()


def figures(row: Compared, *, why: bool = True) -> tuple[str, str, str, str]:
    """Tell what both sides came to, the ratio and its interval. `why`: with the reason why a side is not told."""
    ratio, interval = (str(row.unresolved), "") if row.unresolved else wording.ratio(row.ratio, row.interval)
    return figure(row, "A", why=why), figure(row, "B", why=why), ratio, interval


def figure(row: Compared, side: Literal["A", "B"], *, why: bool = False) -> str:
    """Tell what a side came to, with its unit; `not resolved` or `too short` where results say so."""
    value, unresolved = (row.a, row.unresolved_a) if side == "A" else (row.b, row.unresolved_b)
    if unresolved is not None:
        text, reason = wording.figure(None, None, unresolved, row.unit)
        return f"{text} ({reason})" if why else text
    if value is None:
        return ""
    if row.unit == "share":
        return wording.share(value)
    text = wording.number(value, row.unit)
    return text if row.unit in wording.WITH_UNIT else f"{text} {row.unit}".rstrip()


def verdict_words(row: Compared, rows: int) -> str:
    """`worse: +5.1 %`, `same within 2 %`, `unknown: needs 7 more blocks`, `missing on B: ...`. `rows`: of the whole
    table, for which a difference has to be proven."""
    name, text = word(row), said(row, f", {_unproven(rows)}")
    between = " " if name in ("same", "missing") else ": "
    return f"{'cannot be had' if name == 'unavailable' else name}{between}{text}"


def _unproven(rows: int) -> str:
    return f"not proven for a table of {wording.counted(rows, 'row')}"


def said(row: Compared, unproven: str = "") -> str:
    """The same below a title that names the verdict."""
    if row.verdict == "same":
        return f"within {100 * row.margin:g} %"
    if row.verdict == "missing":
        return f"on {row.missing_on}: {row.reason}" if row.expected else row.reason
    if row.verdict == "different":
        return size(row)
    way = direction(row)
    return "; ".join(filter(None, (way and f"{way}{unproven}", _needs(row))))


def size(row: Compared) -> str:
    """`+5.1 %` of a row with an interval; from end to end of that where the ratio is not told, or why neither is."""
    if row.unresolved is not None:
        return str(row.unresolved)
    if row.ratio is None and row.interval is not None:
        return " to ".join(wording.change(end, row.interval) for end in (row.interval.low, row.interval.high))
    return "" if row.ratio is None else wording.change(row.ratio, row.interval)


def direction(row: Compared) -> str:
    """Return how B differs where this row's interval alone leaves 1 out: `slower`, `less`; else empty."""
    if row.interval is None or row.interval.low <= 1 <= row.interval.high:
        return ""
    low, high = LESS_AND_MORE.get(row.metric, ("less", "more"))
    return high if row.interval.low > 1 else low


LESS_AND_MORE = {
    "latency": ("faster", "slower"), "setup": ("faster", "slower"), "throughput": ("slower", "faster"),
    "accuracy": ("lower", "higher"),
}  # fmt: skip


def _needs(row: Compared) -> str:
    if row.needs_blocks is None:
        return row.reason
    if row.needs_blocks > MOST_BLOCKS:
        return "not with this noise"
    if row.needs_nights is not None:
        return f"needs {wording.counted(row.needs_nights, 'more night')} ({wording.counted(row.needs_blocks, 'block')})"
    return f"needs {row.needs_blocks} more {_units(row)}"


def _units(row: Compared) -> str:
    name = {"paired": "round", "examples": "example"}.get(row.method or "", "block")
    return name if row.needs_blocks == 1 else f"{name}s"
