"""End what was made for somebody: a token, a link, a webhook."""

from __future__ import annotations

from datetime import datetime

from orchestrator.ledger.people.kept import Ends, Kept
from orchestrator.model.errors import UnknownName

LASTS_S, LONGEST_S = 30 * 86_400.0, 366 * 86_400.0
"""The time that a link or a token of one's own lasts if nothing is said, and at most."""
LISTS = {"token": "`farm tokens list`", "link": "`farm links list`", "webhook": "`farm webhooks list`"}


def end(kept: Kept[Ends], what: str, name: str) -> tuple[Ends, bool]:
    """End one; return it, and whether it counted until now. `what`: a key of `LISTS`. Raises UnknownName."""
    found = kept.one(name)
    if found is None:
        raise UnknownName(f"there is no {what} {name!r}", remedy=f"{LISTS[what]} says which there are")
    return found, kept.end(name)


def minute(at: float) -> str:
    """Return a Unix time in words, to the minute."""
    return datetime.fromtimestamp(at).isoformat(" ", "minutes")
