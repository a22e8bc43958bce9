"""Oneself: one's roles, sessions and tokens."""

from __future__ import annotations

from dashboards.web.page import Asked, Page
from orchestrator.model.rights import Place

from .people import shown_tokens


def me(asked: Asked) -> Page:
    """The roles and the tokens that count of whoever looks; an owner has neither, and may do all."""
    visitor, ledger = asked.visitor, asked.ledger()
    is_person = bool(visitor.session and visitor.session.token)
    person = ledger.people.one(visitor.name) if is_person else None
    data = {
        "is_person": is_person,
        "grants": visitor.grants,
        "groups": person.groups if person else (),
        "tokens": shown_tokens(ledger, visitor.name) if is_person else [],
        "mine": Place("", visitor.name),
        "this": visitor.session.token if visitor.session else "",
    }
    return Page("me.html.j2", visitor.name or "Nobody", "", data, live=False)
