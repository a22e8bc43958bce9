"""Pages to HTML: one environment that escapes every name, one frame for all."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import compile_path

from orchestrator import report
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError, TransientError, UnknownName
from orchestrator.report import wording

from . import shown
from .access import Access, Session
from .charts import Prometheus
from .contents import Contents
from .endings import Endings
from .look import Watch
from .own_figures import OwnFigures
from .page import Asked, Make, Page
from .parts import hash_of

log = logging.getLogger(__name__)
REMEMBERED = 32
"""Pages of which the inside is kept, so that an event tells what changed since."""
FOLDER = Path(__file__).parent
HOUSE_STYLE = Path(report.__file__).with_name("report.css")
ROOMS = (("fleet", "/", "Fleet"), ("queue", "/queue", "Queue"), ("experiments", "/experiments", "Experiments"),
         ("ranking", "/ranking", "Ranking"), ("nights", "/nights", "Nights"),
         ("hosts", "/hosts", "Hosts"), ("calendar", "/calendar", "Calendar"), ("charts", "/charts", "Charts"),
         ("audit", "/audit", "Audit"), ("glossary", "/glossary", "Glossary"))  # fmt: skip


class Renderer:
    """Makes a page of what an address asks for; the same for a request and for those who watch it."""

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        watch: Watch,
        access: Access,
        pages: Mapping[str, Make],
        contents: Contents,
        figures: Prometheus | OwnFigures,
    ) -> None:
        self._ledger, self._watch, self._access = ledger, watch, access
        self._pages = [(compile_path(path), make) for path, make in pages.items()]
        self._endings, self._contents = Endings(ledger, watch), contents
        self._environment, self._figures = _environment(), figures
        self._sent: dict[str, str] = {}

    async def shown(self, request: Request) -> Response:
        """A page in its frame."""
        return await run_in_threadpool(self._shown, request)

    async def house_style(self, _: Request) -> Response:
        """Colours and tables of the reports: pages and reports look alike."""
        return FileResponse(HOUSE_STYLE)

    async def missing(self, request: Request) -> Response:
        """Answer an address that leads to nothing."""
        where = request.url.path
        error = UnknownName(f"there is no page {where!r}", remedy="the rooms above lead to all there is")
        return await run_in_threadpool(self.refused, request, error)

    def main(self, address: str, query: Mapping[str, str], session: Session | None) -> tuple[Page, str]:
        """The page of an address, and its inside. Raises FarmError."""
        make, path = self._find(address)
        ends, of = self._endings.of, self._contents
        asked = Asked(self._watch.look, self._ledger, ends, of.of, of.ranked, session, self._figures, path, query)
        page = make(asked)
        return page, self._inside(page, session, address)

    def sent(self, name: str) -> str | None:
        """The inside of a page by its hash, where it was one of the last that were sent."""
        return self._sent.get(name)

    def refused(self, request: Request, error: FarmError) -> Response:
        """Answer what could not be shown or done, and where to go instead."""
        status = 404 if isinstance(error, UnknownName) else 503 if isinstance(error, TransientError) else 400
        title = {404: "Not found", 503: "Away for now", 400: "That did not work"}[status]
        data = {"title": title, "message": error.args[0], "remedy": error.remedy, "status": status}
        page = Page("refused.html.j2", title, "", data, live=isinstance(error, TransientError))
        session = self._access.session(request)
        return self.framed(request, page, self._inside(page, session, request.url.path), status)

    def framed(self, request: Request, page: Page, main: str, status: int = 200) -> Response:
        """A whole document. What was to be told is told once."""
        said, name = shown.said(request), hash_of(main)
        self._sent = dict([*self._sent.items(), (name, main)][-REMEMBERED:])
        text = self._environment.get_template("frame.html.j2").render(
            page=page,
            main=main,
            hash=name,
            rooms=ROOMS,
            session=self._access.session(request),
            said=said,
            address=_address(request),
            private=self._access.private,
        )
        response = HTMLResponse(text, status)
        if said:
            response.delete_cookie(shown.SAID)
        return response

    def own_page(
        self, request: Request, template: str, title: str, data: Mapping[str, object], status: int
    ) -> Response:
        """A page that asks the farm nothing."""
        page = Page(template, title, "", data, live=False)
        inside = self._inside(page, self._access.session(request), request.url.path)
        return self.framed(request, page, inside, status)

    def _shown(self, request: Request) -> Response:
        try:
            page, main = self.main(request.url.path, request.query_params, self._access.session(request))
        except FarmError as e:
            return self.refused(request, e)
        return self.framed(request, page, main)

    def _inside(self, page: Page, session: Session | None, address: str) -> str:
        away = self._watch.look().away
        values = {"session": session, "address": address, "room": page.room, "title": page.title, "away": away}
        template = self._environment.get_template
        return template("away.html.j2").render(away=away) + template(page.template).render(**{**values, **page.data})

    def _find(self, address: str) -> tuple[Make, Mapping[str, str]]:
        for (pattern, _, _), make in self._pages:
            if match := pattern.match(address):
                return make, match.groupdict()
        raise UnknownName(f"there is no page {address!r}")


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
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
