"""The glossary: what the words of pages and other outputs mean."""

from __future__ import annotations

from dashboards.web.page import Asked, Page
from orchestrator.answers import glossary as answer


def glossary(_: Asked) -> Page:
    """The words that `farm explain` explains."""
    return Page("glossary.html.j2", "Glossary", "glossary", {"words": answer.glossary()}, live=False)
