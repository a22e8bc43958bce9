"""The application: addresses to pages, live events, actions, and what protects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redis import Redis
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from orchestrator.acts import Site
from orchestrator.ledger import Ledger
from orchestrator.system.config import SignOn

from . import documents, forms
from .access import Access
from .charts import Prometheus
from .contents import Contents
from .events import Events
from .look import Watch
from .own_figures import OwnFigures
from .page import ADMINISTERS, SEES, SEES_THE_FARM, Make, Way, of_experiment, of_job
from .pages import (
    audit,
    calendar,
    charts,
    devices,
    experiments,
    fleet,
    glossary,
    hosts,
    jobs,
    links,
    me,
    nights,
    people,
    queue,
    ranking,
)
from .people.by_provider import BACK, THERE, ByProvider
from .people.log_in import LogIn
from .people.public import Public
from .protection import Protection
from .renderer import Renderer

FOLDER = Path(__file__).parent
PAGES: dict[str, Way[Make]] = {
    "/": Way(fleet.fleet),
    "/queue": Way(queue.queue),
    "/experiments": Way(experiments.experiments),
    "/experiments/{id}": Way(experiments.experiment, SEES, of_experiment),
    "/jobs/{id}": Way(jobs.job, SEES, of_job),
    "/devices/{serial:path}": Way(devices.device),
    "/ranking": Way(ranking.ranking),
    "/nights": Way(nights.nights, SEES_THE_FARM),
    "/nights/{id}": Way(nights.night, SEES_THE_FARM),
    "/hosts": Way(hosts.hosts),
    "/calendar": Way(calendar.calendar),
    "/charts": Way(charts.charts, SEES_THE_FARM),
    "/charts/{board}": Way(charts.charts, SEES_THE_FARM),
    "/links": Way(links.links),
    "/me": Way(me.me),
    "/projects": Way(people.projects),
    "/people": Way(people.people, ADMINISTERS),
    "/people/{name}": Way(people.person, ADMINISTERS),
    "/audit": Way(audit.audit, ADMINISTERS),
    "/glossary": Way(glossary.glossary),
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
    sign_on: SignOn | None = None
    """The provider by which people log in, too."""
    prometheus: str = ""
    """Address of the Prometheus that scrapes the farm; empty: there is none."""


def make_app(of: Pages, beside: Sequence[BaseRoute] = ()) -> Starlette:
    """The pages of one farm. `beside`: routes of others, which have a door of their own."""
    watch = Watch(of.ledger, of.redis)
    contents = Contents(of.ledger, of.state)
    figures = Prometheus(of.prometheus) if of.prometheus else OwnFigures(of.ledger, of.exporter)
    renderer = Renderer(of.ledger, watch, of.access, PAGES, contents, figures)
    reports = documents.Documents(of.ledger, contents, figures)
    sent = forms.Forms(of.access, of.site, renderer)
    log_in = LogIn(of.access, of.site, renderer, of.sign_on.host if of.sign_on else "")
    by_provider = ByProvider(log_in, of.sign_on) if of.sign_on else None
    public = Public(of.ledger, watch, reports, renderer)
    return Starlette(
        routes=[
            *beside,
            Route("/events", Events(renderer, watch, of.access).stream),
            *(Route(path, partial(renderer.document, way=way)) for path, way in reports.ways().items()),
            Route("/sign-in", log_in.page),
            Route("/sign-in", log_in.enter, methods=["POST"]),
            *([Route(THERE, by_provider.there), Route(BACK, by_provider.back)] if by_provider else []),
            Route("/sign-out", log_in.leave, methods=["POST"]),
            Route("/password", log_in.password_page),
            Route("/password", log_in.set_password, methods=["POST"]),
            Route("/public/{secret}", public.shown),
            Route("/public/{secret}/badge.svg", public.badge),
            Route("/public/{secret}/feed.atom", public.feed),
            Route("/do/{what}", sent.act, methods=["POST"]),
            *(Route(path, renderer.shown) for path in PAGES),
            Route("/static/report.css", renderer.house_style),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route("/{path:path}", renderer.missing),
        ],
        middleware=[Middleware(Protection, access=of.access)],
    )
