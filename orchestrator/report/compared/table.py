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


def table(content: Content, most: int | None = None) -> Section:
    """What is different or missing first; those rows are marked. `most`: so many of them, instead of all."""
    rows = ordered(content.rows)[:most]
    return Section(
        name="compared",
        title=f"A {content.a}, B {content.b}",
        note="",
        columns=COLUMNS,
        rows=tuple(_texts(row) for row in rows),
        bad=frozenset(number for number, row in enumerate(rows) if word(row) in ("worse", "missing")),
    )


def _texts(row: Compared) -> tuple[str, ...]:
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
