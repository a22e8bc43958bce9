"""Files that the command line writes, made when they are asked for: reports, raw figures, charts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from orchestrator.ledger import Ledger
from orchestrator.model.errors import UnknownName

from . import charts
from .charts import Prometheus
from .contents import Contents, State, state_of
from .own_figures import OwnFigures
from .page import SEES, SEES_THE_FARM, Way, found_experiment, of_experiment
from .pages import nights
from .protection import DOCUMENT_POLICY

if TYPE_CHECKING:
    from orchestrator.exchange.row_files import Form

KEPT = 8
"""Reports of experiments that are over."""
MEDIA = {"csv": "text/csv", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
PIECE = 1 << 16


class Documents:
    """Each is made once while nothing changes."""

    def __init__(self, ledger: Callable[[], Ledger], contents: Contents, figures: Prometheus | OwnFigures) -> None:
        self._ledger, self._contents, self._figures = ledger, contents, figures
        self._kept: dict[tuple[State, str], str] = {}
        self._lock = Lock()

    def ways(self) -> dict[str, Way[Callable[[Request], Response]]]:
        """Return the addresses of all documents, each with the right that it takes."""
        return {
            "/experiments/{id}/report": Way(self.report, SEES, of_experiment),
            "/experiments/{id}/samples.{form}": Way(self.raw, SEES, of_experiment),
            "/experiments/{id}/sustained{number:int}.svg": Way(self.sustained, SEES, of_experiment),
            "/nights/{id}/report": Way(self.morning, SEES_THE_FARM),
            "/charts/{board}/{number:int}.svg": Way(self.chart, SEES_THE_FARM),
        }

    def report(self, request: Request) -> Response:
        return page_of(self.report_of(request.path_params["id"], "/"))

    def raw(self, request: Request) -> Response:
        """The samples of an experiment, as `farm export` writes them."""
        return self._raw(request.path_params["id"], request.path_params["form"])

    def sustained(self, request: Request) -> Response:
        """The course of a device's sustained loads, as the report draws it; `?narrow=` for a small screen."""
        from orchestrator.report.charts import throttling
        from orchestrator.report.charts.over_time import NARROW_PX, WIDTH_PX, as_file
        from orchestrator.report.drawing import style

        of, width_px = request.path_params, NARROW_PX if "narrow" in request.query_params else WIDTH_PX
        content = self._contents.of(found_experiment(self._ledger(), of["id"]))
        with self._lock, style():
            drawn = throttling(content.summaries, width_px)
            if of["number"] >= len(drawn):
                raise UnknownName(f"{of['id']} has {len(drawn)} charts of sustained loads", remedy="see its page")
            return _svg(as_file(drawn[of["number"]]))

    def morning(self, request: Request) -> Response:
        return page_of(nights.morning(self._ledger(), request.path_params["id"]))

    def chart(self, request: Request) -> Response:
        """`?source=`, `?hours=`: a panel's lines; `?narrow=` for a small screen."""
        of, query = request.path_params, request.query_params
        hours = query.get("hours", "1")
        panel = charts.panel(of["board"], of["number"])
        seconds = 3600.0 * (int(hours) if hours in ("1", "6", "24", "168") else 1)
        lines = self._figures.lines(panel, query.get("source", ""), seconds)
        span = self._figures.span(seconds)
        with self._lock:
            text = charts.draw(panel, lines, span, narrow="narrow" in query)
        return _svg(text)

    def report_of(self, name: str, pages: str = "") -> str:
        """Draw the report of an experiment, one at a time, which takes a core. `pages`: where its names lead to."""
        from orchestrator.report.gathering import report_page

        ledger = self._ledger()
        row = found_experiment(ledger, name)
        key = (state_of(row), pages)
        with self._lock:
            if key not in self._kept:
                page = report_page(self._contents.of(row, layers=True), ledger, pages)
                self._kept = dict([*self._kept.items(), (key, page)][-KEPT:])
            return self._kept[key]

    def compared(self, names: tuple[str, str]) -> str:
        """Draw the comparison of two experiments, one at a time, as reports."""
        from orchestrator.report.compared import as_html
        from orchestrator.report.compared.gathering import of_two

        ledger = self._ledger()
        with self._lock:
            return as_html(of_two(ledger, names, self._contents.labels))

    def _raw(self, name: str, form: str) -> Response:
        """One at a time, into a file first: who reads slowly keeps nothing open in the ledger."""
        from orchestrator.exchange.export import export, measured

        ledger = self._ledger()
        row = found_experiment(ledger, name)
        if form not in MEDIA:
            raise UnknownName(f"samples are not written as {form!r}", remedy=f"there are {', '.join(MEDIA)}")
        file = tempfile.TemporaryFile(dir=self._contents.state)  # noqa: SIM115  (it is read while it is sent)
        with self._lock:
            what = measured(ledger, row.id)
            export(ledger, row.id, cast("Form", form), what, file)
        named = f"attachment; filename*=UTF-8''{quote(f'{row.id}-{what}.{form}', safe='')}"
        headers = {"Content-Disposition": named, "Content-Length": str(file.tell())}
        file.seek(0)
        pieces, closes = iter(partial(file.read, PIECE), b""), BackgroundTask(file.close)
        return StreamingResponse(pieces, media_type=MEDIA[form], headers=headers, background=closes)


def _svg(text: str) -> Response:
    return Response(text, media_type="image/svg+xml", headers={"Content-Security-Policy": DOCUMENT_POLICY})


def page_of(text: str) -> Response:
    """Return a document that stands for itself."""
    return HTMLResponse(text, headers={"Content-Security-Policy": DOCUMENT_POLICY})
