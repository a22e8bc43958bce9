"""People, programs, groups and projects: what each may do, and by what they show it."""

from __future__ import annotations

import time
from math import inf

from dashboards.answers.answers import projects_now
from dashboards.web.page import Asked, Page, Pager
from orchestrator.acts import RIGHTS
from orchestrator.ledger import Ledger
from orchestrator.model.errors import UnknownName
from orchestrator.model.people import Kind, Role, Use
from orchestrator.model.rights import Person, Place, Token

MOST = 100
"""People of one page."""


def people(asked: Asked) -> Page:
    """`?from=` which of them comes first."""
    every, first = asked.ledger().people.every(), asked.number("from")
    data = {"people": every[first : first + MOST], "pager": Pager(first, len(every), MOST), "everybody": _names(every)}
    return Page("people.html.j2", "People", "people", data, live=False)


def person(asked: Asked) -> Page:
    """Somebody, or a group. Raises UnknownName."""
    ledger = asked.ledger()
    every, name = ledger.people.every(), asked.path["name"]
    own = next((each for each in every if each.name == name), None)
    if own is None:
        raise UnknownName(f"nobody is called {name!r} on this farm", remedy="the page of people lists all")
    data = {
        "person": own,
        "roles": [*([("", own.own.farm)] if own.own.farm else []), *sorted(own.own.projects.items())],
        "belong": [each.name for each in every if own.name in each.groups],
        "groups": [each.name for each in every if each.kind is Kind.GROUP and each.ended_at is None],
        "everybody": _names(every),
        "projects": [each.name for each in ledger.people.projects()],
        "tokens": shown_tokens(ledger, own.name),
        "every_role": [*Role],
        "this": asked.visitor.session.token if asked.visitor.session else "",
    }
    return Page("person.html.j2", own.name, "people", data, live=False)


def projects(asked: Asked) -> Page:
    """The projects that who looks may view: their terms, what they used this week, and who has which role."""
    found = [(each, Place(each.name)) for each in projects_now(asked.ledger(), asked.state, asked.projects)]
    needs = RIGHTS["grant role"].needs
    ruled = [each.name for each, place in found if asked.visitor.may(needs, [place])]
    data = {"projects": found, "ruled": ruled, "every_role": [*Role]}
    return Page("projects.html.j2", "Projects", "projects", data, live=False)


def shown_tokens(ledger: Ledger, name: str) -> list[Token]:
    """Return the tokens and sessions of somebody that count."""
    own = [each for each in ledger.people.tokens.of(name) if each.revoked_at is None and each.use is not Use.PASSWORD]
    return [each for each in own if (each.ends_at or inf) > time.time()]


def _names(every: list[Person]) -> list[str]:
    """Return the people and programs who are let in."""
    return [each.name for each in every if each.kind is not Kind.GROUP and each.ended_at is None]
