"""Reports: the self-contained files that the command line writes, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.errors import FarmError, ModelFileError
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.submission.labels import read_labels

from . import charts, marks
from .pages import nights
from .pages.experiments import found_experiment
from .protection import DOCUMENT_POLICY
from .renderer import Renderer

KEPT = 8
"""Reports of experiments that are over."""


class Documents:
    """Each is made once while nothing changes."""

    def __init__(self, ledger: Callable[[], Ledger], state: Path, renderer: Renderer, prometheus: str = "") -> None:
        self._ledger, self._state, self._renderer = ledger, state, renderer
        self._prometheus = prometheus
        self._kept: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}
        self._lock = Lock()

    async def report(self, request: Request) -> Response:
        return await run_in_threadpool(self._sent, request, lambda: self._report(request.path_params["id"]))

    async def morning(self, request: Request) -> Response:
        return await run_in_threadpool(
            self._sent, request, lambda: nights.morning(self._ledger(), request.path_params["id"])
        )

    async def chart(self, request: Request) -> Response:
        """`?source=`, `?hours=`: a panel's lines; `?narrow=` for a small screen."""
        return await run_in_threadpool(self._chart, request)

    def _chart(self, request: Request) -> Response:
        of, query = request.path_params, request.query_params
        hours = query.get("hours", "1")
        try:
            panel = charts.panel(of["board"], of["number"])
            seconds = 3600.0 * (int(hours) if hours in ("1", "6", "24", "168") else 1)
            lines = charts.Prometheus(self._prometheus).lines(panel, query.get("source", ""), seconds)
            span = marks.recent(self._prometheus, seconds)
        except FarmError as e:
            return self._renderer.refused(request, e)
        from .drawing import draw

        with self._lock:
            text = draw(panel, lines, span, narrow="narrow" in query)
        return Response(text, media_type="image/svg+xml", headers={"Content-Security-Policy": DOCUMENT_POLICY})

    def _sent(self, request: Request, make: Callable[[], str]) -> Response:
        try:
            return HTMLResponse(make(), headers={"Content-Security-Policy": DOCUMENT_POLICY})
        except FarmError as e:
            return self._renderer.refused(request, e)

    def _report(self, name: str) -> str:
        """One at a time: drawing takes a core."""
        from orchestrator.report.gathering import gather, report_page

        ledger = self._ledger()
        row = found_experiment(ledger, name)
        key = (row.id, _counted(row.counts))
        with self._lock:
            if key not in self._kept:
                page = report_page(gather(ledger, row, self._labels(row)), ledger, "/")
                self._kept = dict([*self._kept.items(), (key, page)][-KEPT:])
            return self._kept[key]

    def _labels(self, row: ExperimentRow) -> tuple[int, ...] | None:
        """Where they cannot be read, the rest is told without them."""
        dataset = row.experiment.workload.dataset
        if dataset is None or dataset.labels_sha256 is None:
            return None
        try:
            return read_labels(Artifacts(self._state).path(dataset.labels_sha256))
        except ModelFileError:
            return None


def _counted(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """How far it is: a report is another one when a job has ended."""
    return tuple(sorted(counts.items()))
