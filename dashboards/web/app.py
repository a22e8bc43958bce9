"""The application: addresses to pages, live events, actions, and what protects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from orchestrator.acts import Site
from orchestrator.ledger import Ledger

from . import documents, forms
from .access import Access
from .charts import Prometheus
from .contents import Contents
from .events import Events
from .look import Watch
from .own_figures import OwnFigures
from .page import Make
from .pages import audit, calendar, charts, devices, experiments, fleet, glossary, hosts, jobs, nights, queue, ranking
from .protection import Protection
from .renderer import Renderer

FOLDER = Path(__file__).parent
PAGES: dict[str, Make] = {
    "/": fleet.fleet,
    "/queue": queue.queue,
    "/experiments": experiments.experiments,
    "/experiments/{id}": experiments.experiment,
    "/jobs/{id}": jobs.job,
    "/devices/{serial:path}": devices.device,
    "/ranking": ranking.ranking,
    "/nights": nights.nights,
    "/nights/{id}": nights.night,
    "/hosts": hosts.hosts,
    "/calendar": calendar.calendar,
    "/charts": charts.charts,
    "/charts/{board}": charts.charts,
    "/audit": audit.audit,
    "/glossary": glossary.glossary,
}


@dataclass(frozen=True)
class Pages:
    """The ground of the pages. Nothing is opened before the first request."""

    ledger: Callable[[], Ledger]
    """The same each time; raises FarmError where it is away."""
    redis: Callable[[], Redis]
    """The same; raises ServiceDown where no farm runs."""
    access: Access
    site: Callable[[], Site]
    """The farm on which acts are done; raises FarmError where the ledger is away."""
    state: Path
    exporter: Callable[[], str]
    """Address of the exporter; empty where no farm runs."""
    prometheus: str = ""
    """Address of the Prometheus that scrapes the farm; empty: there is none."""


def make_app(of: Pages, beside: Sequence[BaseRoute] = ()) -> Starlette:
    """The pages of one farm. `beside`: routes of others, which have a door of their own."""
    watch = Watch(of.ledger, of.redis)
    contents = Contents(of.ledger, of.state)
    figures = Prometheus(of.prometheus) if of.prometheus else OwnFigures(of.ledger, of.exporter)
    renderer = Renderer(of.ledger, watch, of.access, PAGES, contents, figures)
    reports = documents.Documents(of.ledger, contents, renderer, figures)
    sent = forms.Forms(of.access, of.site, renderer)
    return Starlette(
        routes=[
            *beside,
            Route("/events", Events(renderer, watch, of.access).stream),
            Route("/experiments/{id}/report", reports.report),
            Route("/experiments/{id}/samples.{form}", reports.raw),
            Route("/nights/{id}/report", reports.morning),
            Route("/charts/{board}/{number:int}.svg", reports.chart),
            Route("/sign-in", sent.sign_in_page),
            Route("/sign-in", sent.sign_in, methods=["POST"]),
            Route("/sign-out", sent.sign_out, methods=["POST"]),
            Route("/do/{what}", sent.act, methods=["POST"]),
            *(Route(path, renderer.shown) for path in PAGES),
            Route("/static/report.css", renderer.house_style),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route("/{path:path}", renderer.missing),
        ],
        middleware=[Middleware(Protection, access=of.access)],
    )
