"""Nights: which suites run by themselves, and what each night found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dashboards.web.page import Asked, Page
from orchestrator.ledger import Ledger
from orchestrator.model.errors import UnknownName
from orchestrator.nightly import Night
from orchestrator.nightly.past import readable_nights

MOST = 30


@dataclass(frozen=True)
class Told:
    """One night in the list."""

    night: Night
    counts: dict[str, int]
    """Rows by what is said of them."""


def nights(asked: Asked) -> Page:
    ledger = asked.ledger()
    found = readable_nights(ledger.nights.of(limit=MOST))
    data = {
        "nights": [Told(night, dict(Counter(row.said for row in night.rows))) for night in found],
        "schedules": ledger.nights.schedules(),
        "most": MOST,
    }
    return Page("nights.html.j2", "Nights", "nights", data)


def night(asked: Asked) -> Page:
    from orchestrator.report.nights import headline, usable
    from orchestrator.report.nights.tell import morning_of

    found = _night(asked.ledger(), asked.path["id"])
    told = morning_of(asked.ledger(), found) if found.is_judged else None
    data = {
        "night": found,
        "usable": usable(told).partition(":") if told else None,
        "headline": headline(told) if told else "",
        "counts": dict(Counter(row.said for row in found.rows)),
    }
    return Page("night.html.j2", f"{found.suite.name}, {found.night_id}", "nights", data, live=not found.is_judged)


def morning(ledger: Ledger, night_id: str, pages: str = "/") -> str:
    """Write the morning report of a night, a page of its own; `pages`: where its names lead to. Raises UnknownName
    where it has not been judged."""
    from orchestrator.report.nights import morning_page
    from orchestrator.report.nights.tell import morning_of

    found = _night(ledger, night_id)
    if not found.is_judged:
        raise UnknownName(f"the night {night_id!r} has not been judged yet", remedy="look again in the morning")
    return morning_page(morning_of(ledger, found), pages)


def _night(ledger: Ledger, night_id: str) -> Night:
    return Night.model_validate_json(ledger.nights.one(night_id).body)
