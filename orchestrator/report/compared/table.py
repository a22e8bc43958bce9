"""The rows of a comparison as a plain table."""

from __future__ import annotations

from orchestrator.analysis.comparison import Compared
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

from .content import Content, cell, device, ordered, word

COLUMNS = (
    Column("device"), Column("cell"), Column("metric"), Column("A", True), Column("B", True), Column("ratio", True),
    Column("95 % interval", True), Column("verdict"),
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
        key = (device(row), cell(row), verdict_words(row)) if missing else (number,)
        if every or row.verdict != "same":
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
        rows=tuple(_texts(*line) for line in lines),
        bad=frozenset(number for number, row in enumerate(rows) if word(row) in ("worse", "missing")),
    )


def _texts(row: Compared, *others: Compared) -> tuple[str, ...]:
    if others:
        return device(row), cell(row), f"{len(others) + 1} metrics", "", "", "", "", verdict_words(row)
    return (
        device(row),
        cell(row),
        f"{row.metric} {row.basis}".strip(),
        figure(row, row.a),
        figure(row, row.b),
        "" if row.ratio is None else f"{row.ratio:.4f}",
        "" if row.interval is None else f"[{row.interval.low:.4f}, {row.interval.high:.4f}]",
        verdict_words(row),
    )


def figure(row: Compared, value: float | None) -> str:
    """With its unit."""
    if value is None:
        return ""
    if row.unit == "B":
        return wording.memory_size(round(value))
    if row.unit == "J":
        return wording.joules(value)
    return wording.share(value) if row.unit == "share" else f"{wording.ms(value)} {row.unit}"


def verdict_words(row: Compared) -> str:
    """`worse by 5.1 %`, `same within 2 %`, `unknown: needs 7 more blocks`, `missing on B: ...`."""
    if row.verdict == "same":
        return f"same within {100 * row.margin:g} %"
    if row.verdict == "missing":
        return f"missing on {row.missing_on}: {row.reason}"
    if row.verdict == "different" and row.ratio is not None:
        return f"{word(row)}: {100 * (row.ratio - 1):+.1f} %"
    if row.needs_nights is not None:
        return f"unknown: needs {row.needs_nights} more nights ({row.needs_blocks} blocks)"
    if row.needs_blocks is not None:
        return f"unknown: needs {row.needs_blocks} more {_units(row)}"
    return f"unknown: {row.reason}"


def _units(row: Compared) -> str:
    name = {"paired": "round", "examples": "example"}.get(row.method or "", "block")
    return name if row.needs_blocks == 1 else f"{name}s"
