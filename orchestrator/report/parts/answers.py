"""The part of a report on the answers of language models: the tokens that two results have in common."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.agreement import AnswerRow
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

NOTE = (
    "Tokens before the first that differs from those of the base, another result behind the same text. Behind that one "
    "the texts are two, and nothing is compared. A token may differ where two logits are as good as equal."
)


def section(rows: Sequence[AnswerRow]) -> Section:
    """One row for each result, where there are several behind a text; those of a device stand together."""
    names, devices = wording.naming(rows), list(dict.fromkeys(row.serial for row in rows))
    shown = sorted(rows, key=lambda row: devices.index(row.serial)) if any(row.base for row in rows) else ()
    found = [
        (row.serial, f"{wording.cell(row, names)}{'' if row.base else ' (base)'}".strip(), _same(row), _differs(row))
        for row in shown
    ]
    heads = Column("device"), Column("configuration"), Column("same tokens", True), Column("first that differs")
    return Section("answers", "Agreement of answers", NOTE, heads, tuple(found))


def _same(row: AnswerRow) -> str:
    return f"{row.same} of {row.tokens}" if row.base else str(row.tokens)


def _differs(row: AnswerRow) -> str:
    return "" if row.this_token is None else f"{row.this_token} for {row.base_token}, at {row.same + 1}"
