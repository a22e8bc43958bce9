"""The audit: which person has done what to the farm."""

from __future__ import annotations

from dashboards.web.page import Asked, Page, Pager

MOST = 100
"""Acts of one page."""


def audit(asked: Asked) -> Page:
    """`?from=` which of the acts comes first."""
    first, ledger = asked.number("from"), asked.ledger()
    data = {"acts": ledger.audit.newest(MOST, first=first), "pager": Pager(first, ledger.audit.count(), MOST)}
    return Page("audit.html.j2", "Audit", "audit", data)
