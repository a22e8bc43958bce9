"""The part of a report about strategies that ended early."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.model.stopped import Stopped
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

NOTE = "No further jobs followed there. What was measured until then stands."


def section(found: Sequence[Stopped]) -> Section:
    rows = tuple((wording.few(list(one.devices)), one.why, one.remedy) for one in found)
    columns = (Column("devices"), Column("why"), Column("what to do"))
    return Section("stopped", "Ended early", NOTE, columns, rows, frozenset(range(len(rows))))
