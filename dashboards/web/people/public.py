"""Show what a public link is to: a report or the story of a job, to read and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from dashboards.web.documents import Documents
from dashboards.web.look import Watch
from dashboards.web.page import Page
from dashboards.web.protection import DOCUMENT_POLICY
from dashboards.web.renderer import Renderer
from orchestrator.answers import story_of
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError, UnknownName


class Public:
    """Whoever shows the secret of a link sees what it is of, and leads nowhere else."""

    def __init__(self, ledger: Callable[[], Ledger], watch: Watch, documents: Documents, renderer: Renderer) -> None:
        self._ledger, self._watch, self._documents, self._renderer = ledger, watch, documents, renderer

    async def shown(self, request: Request) -> Response:
        return await run_in_threadpool(self._shown, request)

    def _shown(self, request: Request) -> Response:
        try:
            ledger = self._ledger()
            link = ledger.people.links.shown(request.path_params["secret"])
            if link is None:
                raise UnknownName("this link leads nowhere: it has ended, or was revoked")
            if ledger.listed.among([link.target]):
                policy = {"Content-Security-Policy": DOCUMENT_POLICY}
                return HTMLResponse(self._documents.report_of(link.target), headers=policy)
            story = story_of(ledger, link.target, self._watch.look().reasons)
        except FarmError as e:
            return self._renderer.refused(request, e)
        data = {"story": story, "progress": None, "public": True}
        return self._renderer.public(Page("job.html.j2", story.label, "", data, live=False))
