"""Charts over time: the panels of a dashboard, drawn from Prometheus."""

from __future__ import annotations

from dashboards.web.charts import Prometheus, boards
from dashboards.web.marks import recent
from dashboards.web.page import Asked, Page
from dashboards.web.tables import listing
from orchestrator.errors import UnknownName

HOURS = (1, 6, 24, 168)


def charts(asked: Asked) -> Page:
    """`?source=` of which devices, `?hours=` how long back."""
    name = asked.path.get("board", next(iter(boards())))
    if name not in boards():
        raise UnknownName(f"there are no charts {name!r}", remedy=f"there are {', '.join(boards())}")
    server = Prometheus(asked.prometheus)
    sources = server.sources() if asked.prometheus else []
    source = asked.query.get("source", "")
    chosen = source if source in sources else next(iter(sources), "")
    hours = asked.number("hours") if asked.number("hours") in HOURS else HOURS[0]
    data = {
        "board": boards()[name],
        "boards": boards(),
        "prometheus": asked.prometheus,
        "sources": sources,
        "source": chosen,
        "hours": hours,
        "numbers": [(each, server.now(each, chosen)) for each in boards()[name].numbers] if asked.prometheus else (),
        "lists": [listing(server, each, chosen) for each in boards()[name].lists] if asked.prometheus else (),
        "marks": recent(asked.prometheus, 3600.0 * hours).marks if asked.prometheus else (),
        "all_hours": HOURS,
    }
    return Page("charts.html.j2", f"Charts: {boards()[name].title}", "charts", data, live=False)
