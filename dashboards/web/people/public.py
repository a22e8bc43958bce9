"""Show what a public link is to, to read and nothing else; of a suite's nights a badge and a feed, too."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from dashboards.web.documents import Documents, page_of
from dashboards.web.look import Watch
from dashboards.web.page import Page
from dashboards.web.pages import nights
from dashboards.web.protection import DOCUMENT_POLICY
from dashboards.web.renderer import Renderer
from orchestrator.answers import story_of
from orchestrator.ledger import Ledger
from orchestrator.ledger.experiments import OF_SUITE
from orchestrator.model.errors import FarmError, UnknownName
from orchestrator.nightly import Night
from orchestrator.nightly.past import nights_of

FEED_NIGHTS = 30


class Public:
    """Whoever shows the secret of a link sees what it is of, and leads nowhere else."""

    def __init__(self, ledger: Callable[[], Ledger], watch: Watch, documents: Documents, renderer: Renderer) -> None:
        self._ledger, self._watch, self._documents, self._renderer = ledger, watch, documents, renderer

    async def shown(self, request: Request) -> Response:
        return await run_in_threadpool(self._answered, request, self._shown)

    async def badge(self, request: Request) -> Response:
        return await run_in_threadpool(self._answered, request, self._badge)

    async def feed(self, request: Request) -> Response:
        return await run_in_threadpool(self._answered, request, self._feed)

    def _answered(self, request: Request, answer: Callable[[Request, Ledger, str], Response]) -> Response:
        try:
            ledger = self._ledger()
            link = ledger.people.links.shown(request.path_params["secret"])
            if link is None:
                raise UnknownName("this link leads nowhere: it has ended, or was revoked")
            return answer(request, ledger, link.target)
        except FarmError as e:
            return self._renderer.refused(request, e)

    def _shown(self, _: Request, ledger: Ledger, target: str) -> Response:
        first, _comma, second = target.partition(",")
        if second:
            return page_of(self._documents.compared((first, second)))
        if ledger.listed.among([target]):
            return page_of(self._documents.report_of(target))
        if "@" in target or target.startswith(OF_SUITE):
            night = target if "@" in target else _suite(ledger, target, 1)[-1].night_id
            return page_of(nights.morning(ledger, night, ""))
        story = story_of(ledger, target, self._watch.look().reasons)
        data = {"story": story, "progress": None, "public": True}
        return self._renderer.public(Page("job.html.j2", story.label, "", data, live=False))

    def _badge(self, _: Request, ledger: Ledger, target: str) -> Response:
        from orchestrator.report.nights.feed import badge

        headers = {"Cross-Origin-Resource-Policy": "cross-origin", "Content-Security-Policy": DOCUMENT_POLICY}
        text = badge(_suite(ledger, target, 1)[-1])
        return Response(text, media_type="image/svg+xml", headers=headers)

    def _feed(self, request: Request, ledger: Ledger, target: str) -> Response:
        from orchestrator.report.nights.feed import feed

        page = str(request.url.replace(query="")).removesuffix("/feed.atom")
        return Response(feed(_suite(ledger, target, FEED_NIGHTS), page), media_type="application/atom+xml")


def _suite(ledger: Ledger, target: str, most: int) -> list[Night]:
    """Return the last nights of a suite that were judged, at least one, the oldest first. Raises UnknownName."""
    suite = target.removeprefix(OF_SUITE)
    found = nights_of(ledger, suite)[-most:] if target.startswith(OF_SUITE) else []
    if not found:
        raise UnknownName("this link has no badge and no feed: it is of no suite, or no night of it was judged yet")
    return found
