"""The queue: what runs, what waits and why, when experiments end, which devices are somebody's."""

from __future__ import annotations

import time

from dashboards.web.page import Asked, Page, Pager
from orchestrator.answers.waiting import each_waits

MOST = 50
"""Waiting jobs of one page."""
MOST_EXPERIMENTS = 12
"""Open experiments that are told one by one."""
MOST_REASONS = 40
MOST_RUNNING = 50
"""The fleet tells of all."""
MOST_HELD = 30
DAY_S = 86_400.0


def queue(asked: Asked) -> Page:
    """`?from=` which of the waiting jobs comes first."""
    look, ledger = asked.look(), asked.ledger()
    shown, are_open = ledger.listed.open_experiments(MOST_EXPERIMENTS, asked.projects)
    page = ledger.listed.waiting(asked.number("from"), MOST, asked.projects)
    reasons, running = look.reasons_told, sorted(look.running.values(), key=lambda row: row.started_at)
    why = each_waits(ledger, [row.job_id for row in page.rows], look.reasons)
    held = [each for each in ledger.standing.reservations() if each.begins < time.time() + DAY_S]
    data = {
        "held": held[:MOST_HELD],
        "more_held": len(held[MOST_HELD:]),
        "counts": look.counts,
        "experiments": [(row, asked.ends(row.id)) for row in shown],
        "more_experiments": are_open - len(shown),
        "reasons": reasons[:MOST_REASONS],
        "more_reasons": sum(each.jobs for each in reasons[MOST_REASONS:]),
        "running": running[:MOST_RUNNING],
        "more_running": len(running[MOST_RUNNING:]),
        "waiting": [(row, why[row.job_id]) for row in page.rows],
        "pager": Pager(asked.number("from"), page.total, MOST),
    }
    return Page("queue.html.j2", "Queue", "queue", data)
