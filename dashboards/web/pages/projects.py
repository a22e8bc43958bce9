"""Projects: their terms, what they used this week, and who has which role."""

from __future__ import annotations

from dashboards.answers.answers import projects_now
from dashboards.web.page import Asked, Page
from orchestrator.acts import RIGHTS
from orchestrator.model.people import Role
from orchestrator.model.rights import Place


def projects(asked: Asked) -> Page:
    """Those that who looks may view."""
    found = [(each, Place(each.name)) for each in projects_now(asked.ledger(), asked.projects)]
    needs = RIGHTS["grant role"].needs
    ruled = [each.name for each, place in found if asked.visitor.may(needs, [place])]
    data = {"projects": found, "ruled": ruled, "every_role": [*Role]}
    return Page("projects.html.j2", "Projects", "projects", data, live=False)
