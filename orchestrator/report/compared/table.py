"""The rows of a comparison as a plain table."""

from __future__ import annotations

from orchestrator.analysis.comparison import Compared
from orchestrator.analysis.statistics.resolution import MOST_BLOCKS
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

from .content import Content, cell, device, ordered, word

COLUMNS = (
    Column("device"), Column("configuration"), Column("metric"), Column("A", True), Column("B", True),
    Column("ratio", True), Column("95 % interval", True), Column("verdict"),
)  # fmt: skip


def table(content: Content) -> Section:
    """What is different or missing first; those rows are marked."""
    return _section(content, [[row] for row in ordered(content.rows)])


def brief(content: Content, most: int, *, every: bool) -> tuple[Section, int]:
    """The same for a terminal, and how many lines it leaves out: metrics of a cell that are missing for one reason
    share a line. `most`: lines; `every`: all of them, those that are the same too."""
    lines: dict[tuple[object, ...], list[Compared]] = {}
    for number, row in enumerate(ordered(content.rows)):
        missing = row.verdict == "missing"
        key = (device(row), cell(row), verdict_words(row, 0)) if missing else (number,)
        if every or word(row) not in ("same", "unavailable"):
            lines.setdefault(key, []).append(row)
    shown = list(lines.values())[: None if every else most]
    return _section(content, shown), len(lines) - len(shown)


def _section(content: Content, lines: list[list[Compared]]) -> Section:
    rows = [line[0] for line in lines]
    return Section(
        name="compared",
        title=f"A {content.a}, B {content.b}",
        note="",
        columns=COLUMNS,
        rows=tuple(_texts(len(content.rows), *line) for line in lines),
        bad=frozenset(number for number, row in enumerate(rows) if word(row) in ("worse", "missing")),
    )


def _texts(rows: int, row: Compared, *others: Compared) -> tuple[str, ...]:
    if others:
        return device(row), cell(row), f"{len(others) + 1} metrics", "", "", "", "", verdict_words(row, rows)
    ratio, interval = ("", "") if row.ratio is None else wording.ratio(row.ratio, row.interval)
    return (
        device(row),
        cell(row),
        f"{row.metric} {row.basis}".strip(),
        figure(row, row.a),
        figure(row, row.b),
        ratio,
        interval,
        verdict_words(row, rows),
    )


def figure(row: Compared, value: float | None) -> str:
    """With its unit."""
    if value is None:
        return ""
    if row.unit == "share":
        return wording.share(value)
    text = wording.number(value, row.unit)
    return text if row.unit in ("B", "J") else f"{text} {row.unit}"


def verdict_words(row: Compared, rows: int) -> str:
    """`worse: +5.1 %`, `same within 2 %`, `unknown: needs 7 more blocks`, `missing on B: ...`. `rows`: of the whole
    table, for which a difference has to be proven."""
    if row.verdict == "same":
        return f"same within {100 * row.margin:g} %"
    if word(row) == "unavailable":
        return f"cannot be had: {row.reason}"
    if row.verdict == "missing":
        return f"missing on {row.missing_on}: {row.reason}"
    if row.verdict == "different" and row.ratio is not None:
        return f"{word(row)}: {wording.change(row.ratio, row.interval)}"
    seems = f"{direction(row)}, not proven for a table of {wording.counted(rows, 'row')}; " if direction(row) else ""
    return f"unknown: {seems}{_needs(row)}"


def direction(row: Compared) -> str:
    """How B differs where the interval of this row alone leaves 1 out: `slower`, `less`; else empty."""
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
        return f"needs {row.needs_nights} more nights ({row.needs_blocks} blocks)"
    return f"needs {row.needs_blocks} more {_units(row)}"


def _units(row: Compared) -> str:
    name = {"paired": "round", "examples": "example"}.get(row.method or "", "block")
    return name if row.needs_blocks == 1 else f"{name}s"
