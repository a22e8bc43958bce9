"""Charts over time: the panels of a dashboard, drawn from Prometheus, or from what the farm itself knows."""

from __future__ import annotations

from dashboards.web.charts import Prometheus, boards
from dashboards.web.page import Asked, Page
from dashboards.web.tables import listing
from orchestrator.model.errors import UnknownName

HOURS = (1, 6, 24, 168)


def charts(asked: Asked) -> Page:
    """`?source=` of which devices, `?hours=` how long back."""
    figures = asked.figures
    shown = {name: each for name, each in boards().items() if any(map(figures.knows, (*each.panels, *each.numbers)))}
    name = asked.path.get("board", next(iter(shown)))
    if name not in shown:
        raise UnknownName(f"there are no charts {name!r}", remedy=f"there are {', '.join(shown)}")
    board, sources = shown[name], figures.sources()
    source = asked.query.get("source", "")
    chosen = source if source in sources else next(iter(sources), "")
    hours = asked.number("hours") if asked.number("hours") in HOURS else figures.hours
    every = (*board.panels, *board.numbers, *board.lists)
    data = {
        "board": board,
        "boards": shown,
        "told": figures.told,
        "panels": [each for each in board.panels if figures.knows(each)],
        "unknown": [each.title for each in every if not figures.knows(each)],
        "unknown_boards": [each.title for key, each in boards().items() if key not in shown],
        "sources": sources,
        "source": chosen,
        "hours": hours,
        "numbers": [(each, figures.now(each, chosen)) for each in board.numbers if figures.knows(each)],
        "lists": [listing(figures, each, chosen) for each in board.lists] if isinstance(figures, Prometheus) else (),
        "marks": figures.span(3600.0 * hours).marks,
        "all_hours": HOURS,
    }
    return Page("charts.html.j2", f"Charts: {board.title}", "charts", data, live=False)
