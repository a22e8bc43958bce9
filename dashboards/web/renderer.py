"""Pages to HTML: one environment that escapes every name, one frame for all."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import compile_path

from orchestrator import report
from orchestrator.acts import RIGHTS, Done
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError, NotAllowed, TransientError, UnknownName
from orchestrator.model.rights import Place
from orchestrator.report import wording
from orchestrator.report.templates import environment

from . import shown
from .access import NOBODY, Access, Visitor
from .charts import Prometheus
from .contents import Contents
from .endings import Endings
from .look import Watch, narrowed
from .own_figures import OwnFigures
from .page import Asked, Make, Page, Way
from .parts import hash_of
from .protection import PAGE_POLICY

log = logging.getLogger(__name__)
REMEMBERED = 32
"""Pages of which the inside is kept, so that an event tells what changed since."""
FOLDER = Path(__file__).parent
HOUSE_STYLE = Path(report.__file__).with_name("report.css")
ROOMS = (("fleet", "/", "Fleet"), ("queue", "/queue", "Queue"), ("experiments", "/experiments", "Experiments"),
         ("ranking", "/ranking", "Ranking"), ("nights", "/nights", "Nights"),
         ("hosts", "/hosts", "Hosts"), ("calendar", "/calendar", "Calendar"), ("charts", "/charts", "Charts"),
         ("links", "/links", "Links"), ("projects", "/projects", "Projects"), ("people", "/people", "People"),
         ("audit", "/audit", "Audit"), ("glossary", "/glossary", "Glossary"))  # fmt: skip
STATUS: Mapping[type[FarmError], int] = {UnknownName: 404, NotAllowed: 403, TransientError: 503}
TITLES = {400: "That did not work", 403: "Not yours to see", 404: "Not found", 503: "Away for now"}


class Offered:
    """The acts that a page offers: those for which who looks has the right, where the page is about these places."""

    def __init__(self, visitor: Visitor, places: Sequence[Place]) -> None:
        assert visitor.session is not None
        self._visitor, self._places = visitor, places
        self.name, self.form_token = visitor.name, visitor.session.form_token

    def may(self, what: str, place: Place | Sequence[Place] | None = None) -> bool:
        """Return whether they may do an act, on what the page is about or (`place`) on a row of it."""
        places = self._places if place is None else (place,) if isinstance(place, Place) else place
        return self._visitor.may(RIGHTS[what].needs, places)


class Renderer:
    """Makes a page of what an address asks for; the same for a request and for those who watch it."""

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        watch: Watch,
        access: Access,
        pages: Mapping[str, Way[Make]],
        contents: Contents,
        figures: Prometheus | OwnFigures,
    ) -> None:
        self._ledger, self._watch, self._access = ledger, watch, access
        self._pages = [(compile_path(path), way) for path, way in pages.items()]
        self._rooms = [(room, pages[room[1]].needs) for room in ROOMS]
        self._endings, self._contents = Endings(ledger, watch), contents
        self._environment, self._figures = _environment(), figures
        self._sent: dict[str, str] = {}

    async def shown(self, request: Request) -> Response:
        """A page in its frame."""
        return await run_in_threadpool(self._shown, request)

    async def house_style(self, _: Request) -> Response:
        """Colours and tables of the reports: pages and reports look alike."""
        return FileResponse(HOUSE_STYLE)

    async def document(self, request: Request, way: Way[Callable[[Request], Response]]) -> Response:
        """Answer an address that leads to no page but a document, for whoever may see it."""
        return await run_in_threadpool(self._document, request, way)

    def _document(self, request: Request, way: Way[Callable[[Request], Response]]) -> Response:
        try:
            way.let(self._access.visitor(request), self._ledger, request.path_params)
            return way.make(request)
        except FarmError as e:
            return self.refused(request, e)

    async def missing(self, request: Request) -> Response:
        """Answer an address that leads to nothing."""
        where = request.url.path
        error = UnknownName(f"there is no page {where!r}", remedy="the rooms above lead to all there is")
        return await run_in_threadpool(self.refused, request, error)

    def main(self, address: str, query: Mapping[str, str], visitor: Visitor) -> tuple[Page, str]:
        """The page of an address, and its inside. Raises FarmError."""
        way, path = self._find(address)
        places = way.let(visitor, self._ledger, path)
        look = cache(lambda: narrowed(self._watch.look(), self._ledger, visitor.grants.visible))
        ends, of = self._endings.of, self._contents
        own = (look, self._ledger, of.state, ends, of.of, of.ranked, visitor, self._figures, path, query)
        page = way.make(Asked(*own))
        return page, self._inside(page, visitor, address, places)

    def sent(self, name: str) -> str | None:
        """The inside of a page by its hash, where it was one of the last that were sent."""
        return self._sent.get(name)

    def refused(self, request: Request, error: FarmError) -> Response:
        """Answer what could not be shown or done, and where to go instead."""
        status = next((found for kind, found in STATUS.items() if isinstance(error, kind)), 400)
        title = TITLES[status]
        visitor = self._access.visitor(request)
        remedy = error.remedy if status != 404 or visitor.grants.visible is None else None  # it may name others'
        data = {"title": title, "message": error.args[0], "remedy": remedy, "status": status}
        page = Page("refused.html.j2", title, "", data, live=isinstance(error, TransientError))
        return self.framed(request, page, self._inside(page, visitor, request.url.path), status)

    def framed(self, request: Request, page: Page, main: str, status: int = 200) -> Response:
        """A whole document. What was to be told is told once."""
        said, name, visitor = shown.said(request), hash_of(main), self._access.visitor(request)
        if page.live:
            self._sent = dict([*self._sent.items(), (name, main)][-REMEMBERED:])
        text = self._environment.get_template("frame.html.j2").render(
            page=page,
            main=main,
            hash=name,
            rooms=[room for room, needs in self._rooms if visitor.may(needs)],
            session=visitor.session,
            said=said,
            address=_address(request),
        )
        response = HTMLResponse(text, status)
        if said:
            response.delete_cookie(shown.SAID)
        return response

    def public(self, page: Page) -> Response:
        """A whole document for whoever comes by a public link: without rooms, buttons and ways to other pages."""
        inside = self._environment.get_template(page.template).render(session=None, address="", **page.data)
        return HTMLResponse(self._environment.get_template("public.html.j2").render(page=page, main=inside))

    def own_page(
        self, request: Request, template: str, title: str, data: Mapping[str, object], status: int
    ) -> Response:
        """A page that asks the farm nothing."""
        page = Page(template, title, "", data, live=False)
        inside = self._inside(page, self._access.visitor(request), request.url.path)
        return self.framed(request, page, inside, status)

    def made(self, request: Request, done: Done, back: str) -> Response:
        """A page with what an act has made: a picture, or a text."""
        data = {"text": done.text, "shows": done.shows, "back": back}
        response = self.own_page(request, "made.html.j2", done.on, data, 200)
        response.headers["Content-Security-Policy"] = PAGE_POLICY.replace("img-src 'self'", "img-src 'self' data:")
        return response

    def _shown(self, request: Request) -> Response:
        try:
            page, main = self.main(request.url.path, request.query_params, self._access.visitor(request))
        except FarmError as e:
            return self.refused(request, e)
        return self.framed(request, page, main)

    def _inside(self, page: Page, visitor: Visitor, address: str, places: Sequence[Place] = ()) -> str:
        away = self._watch.look().away if visitor != NOBODY else ()  # it names folders
        offered = Offered(visitor, places) if visitor.session else None
        values = {"session": offered, "address": address, "room": page.room, "title": page.title, "away": away}
        template = self._environment.get_template
        return template("away.html.j2").render(away=away) + template(page.template).render(**{**values, **page.data})

    def _find(self, address: str) -> tuple[Way[Make], Mapping[str, str]]:
        for (pattern, _, _), way in self._pages:
            if match := pattern.match(address):
                return way, match.groupdict()
        raise UnknownName(f"there is no page {address!r}")


def _environment() -> Environment:
    made = environment(FOLDER / "templates")
    made.globals.update(w=wording, s=shown, static=_static())
    made.filters["path"] = lambda text: quote(str(text), safe="")
    return made


def _static() -> dict[str, str]:
    """Name -> address of our own files, which changes with their content."""
    folder = FOLDER / "static"
    return {
        path.name: f"/static/{path.name}?{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
        for path in (*sorted(folder.iterdir()), HOUSE_STYLE)
    }


def _address(request: Request) -> str:
    """Return the address of this page, as a way back."""
    query = f"?{request.url.query}" if request.url.query else ""
    return re.sub(r"[^ -~]", "", request.scope["raw_path"].decode("ascii", "replace") + query)
