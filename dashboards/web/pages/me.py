"""Oneself: one's roles, sessions and tokens."""

from __future__ import annotations

from dashboards.web.page import Asked, Page
from orchestrator.model.people import Use
from orchestrator.model.rights import Place


def me(asked: Asked) -> Page:
    """The roles and the tokens that count of whoever looks; an owner has neither, and may do all."""
    visitor = asked.visitor
    people, is_person = asked.ledger().people, bool(visitor.session and visitor.session.token)
    own, person = (people.tokens.of(visitor.name), people.one(visitor.name)) if is_person else ([], None)
    data = {
        "is_person": is_person,
        "grants": visitor.grants,
        "groups": person.groups if person else (),
        "tokens": [each for each in own if each.revoked_at is None and each.use is not Use.PASSWORD],
        "mine": Place("", visitor.name),
        "this": visitor.session.token if visitor.session else "",
    }
    return Page("me.html.j2", visitor.name or "Nobody", "", data, live=False)
