"""The queue: what runs, what waits and why, when experiments end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from dashboards.web.page import Asked, Page, Pager
from orchestrator.answers import Wait
from orchestrator.answers.waiting import QUEUED, UNKNOWN

MOST = 100
"""Waiting jobs of one page."""
MOST_EXPERIMENTS = 12
"""Open experiments that are told one by one."""
MOST_REASONS = 40
NAMED = 4


@dataclass(frozen=True)
class Reason:
    """Jobs of one experiment that wait for the same kind of thing."""

    experiment_id: str
    kind: str
    jobs: int
    texts: tuple[str, ...]
    more: int


def queue(asked: Asked) -> Page:
    """`?from=` which of the waiting jobs comes first."""
    look, ledger = asked.look(), asked.ledger()
    ids = ledger.listed.open_experiments()
    shown = [ledger.experiment(each) for each in ids[:MOST_EXPERIMENTS]]
    page = ledger.listed.waiting(asked.number("from"), MOST)
    reasons = reasons_of(look.waits)
    said = UNKNOWN if look.reasons is None else QUEUED
    data = {
        "counts": look.counts,
        "experiments": [(row, asked.ends(row.id)) for row in shown],
        "more_experiments": len(ids) - len(shown),
        "reasons": reasons[:MOST_REASONS],
        "more_reasons": sum(each.jobs for each in reasons[MOST_REASONS:]),
        "running": sorted(look.running.values(), key=lambda row: row.started_at),
        "waiting": [(row, (look.reasons or {}).get(row.job_id, said)) for row in page.rows],
        "pager": Pager(asked.number("from"), page.total, MOST),
    }
    return Page("queue.html.j2", "Queue", "queue", data)


def reasons_of(waits: tuple[Wait, ...]) -> list[Reason]:
    """By experiment and kind, what most jobs wait for first."""
    found: dict[tuple[str, str], list[Wait]] = defaultdict(list)
    for wait in waits:
        found[wait.experiment_id, wait.reason.kind.value].append(wait)
    return sorted((_reason(*key, of) for key, of in found.items()), key=lambda each: -each.jobs)


def _reason(experiment_id: str, kind: str, waits: list[Wait]) -> Reason:
    texts = tuple(dict.fromkeys(wait.text for wait in sorted(waits, key=lambda wait: -wait.jobs)))
    return Reason(experiment_id, kind.replace("_", " "), sum(w.jobs for w in waits), texts[:NAMED], len(texts) - NAMED)
