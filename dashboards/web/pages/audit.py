"""The audit: which person has done what to the farm."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from dashboards.web.page import Asked, Page, Pager
from orchestrator.acts import ACTS

MOST = 100
"""Acts of one page."""
REFUSED = {"done": False, "refused": True}


def audit(asked: Asked) -> Page:
    """`?who=`, `?act=` and `?how=` (`done`, `refused`) leave out others; `?from=` which of the acts comes first."""
    first, kept, query = asked.number("from"), asked.ledger().audit, asked.query
    given = {name: query.get(name, "")[:200] for name in ("who", "act", "how")}
    who, act, how = given.values()
    of: dict[str, Any] = {"who": who, "act": act, "refused": REFUSED.get(how)}
    rest = urlencode({name: text for name, text in given.items() if text})
    pager = Pager(first, kept.count(**of), MOST, f"{rest}&" * bool(rest))
    data = {"acts": kept.newest(MOST, first=first, **of), "pager": pager, **given, "every_act": ["", *sorted(ACTS)]}
    return Page("audit.html.j2", "Audit", "audit", data)
