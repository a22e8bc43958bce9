"""The ranking: which engine is fastest on which device, with which model."""

from __future__ import annotations

from dashboards.web.page import Asked, Page

MOST = 60
"""Rows of one model, where all models are shown."""


def ranking(asked: Asked) -> Page:
    """`?model=` one model alone, `?by=energy` sorts by that."""
    from orchestrator.analysis.ranking import ranking as rank
    from orchestrator.report.parts.ranking import COLUMNS, NOTE, groups

    model, by_energy = asked.query.get("model", ""), asked.query.get("by") == "energy"
    found = asked.ranked()
    if asked.projects is not None:
        seen = asked.ledger().listed.among({row.experiment_id for row in found}, asked.projects)
        found = [row for row in found if row.experiment_id in seen]
    rows = rank(found, {"model": model} if model else None, by_energy=by_energy)
    data = {
        "groups": groups(rows), "columns": COLUMNS, "note": NOTE, "model": model, "by_energy": by_energy, "most": MOST,
        "sources": {row.source for row in rows},
    }  # fmt: skip
    return Page("ranking.html.j2", model or "Ranking", "ranking", data)
