"""Oneself: one's roles, sessions and tokens."""

from __future__ import annotations

from dashboards.web.page import Asked, Page
from orchestrator.model.people import Use
from orchestrator.model.rights import Place


def me(asked: Asked) -> Page:
    """The roles and the tokens that count of whoever looks; an owner has neither, and may do all."""
    visitor = asked.visitor
    own = asked.ledger().people.tokens.of(visitor.name) if visitor.session and visitor.session.token else []
    data = {
        "is_person": bool(visitor.session and visitor.session.token),
        "grants": visitor.grants,
        "tokens": [each for each in own if each.revoked_at is None and each.use is not Use.PASSWORD],
        "mine": Place("", visitor.name),
        "this": visitor.session.token if visitor.session else "",
    }
    return Page("me.html.j2", visitor.name or "Nobody", "", data, live=False)
