"""Public links: what anybody reads who has one."""

from __future__ import annotations

from dashboards.web.page import Asked, Page
from orchestrator.acts.access.links import seen_by


def links(asked: Asked) -> Page:
    """The links to what is in projects that who looks may view, those that have ended among them."""
    found = seen_by(asked.ledger(), asked.projects)
    experiments = asked.ledger().listed.among({each.target for each, _ in found})
    data = {"links": [(each, _kind(each.target, experiments), places) for each, places in found]}
    return Page("links.html.j2", "Links", "links", data)


def _kind(target: str, experiments: set[str]) -> str:
    if target in experiments:
        return "report"
    return "comparison" if "," in target else "night" if "@" in target else "suite" if ":" in target else "job"
