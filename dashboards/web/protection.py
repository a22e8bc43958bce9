"""The protection of every answer: names by which we are called, and what a browser may do with a page."""

from __future__ import annotations

from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .access import NOBODY, Access

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""No style, script or address that is not one of our files."""
DOCUMENT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The policy of a report: one self-contained file, with its styles inside and no script."""
DOORS = ("/static/", "/api/")
"""The start of what asks nobody who they are: our own files, and the API, whose door takes tokens."""
OPEN_TO_ALL = ("/sign-in", "/password", "/public/", *DOORS)
"""The start of what takes no session: the ways to get one, and what a link's secret opens."""


class Protection:
    """The protection around the whole application."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if not self._access.is_meant(request.headers.get("host", "")):
            text = "these are the pages of a farm, and they have another name than the one that was asked for\n"
            await PlainTextResponse(text, 421)(scope, receive, send)
            return
        path: str = scope["path"]
        if not path.startswith(DOORS):
            visitor = self._access.visitor_at_once(request)
            if visitor is None:
                visitor = await run_in_threadpool(self._access.visitor, request)
            if visitor is NOBODY and not path.startswith(OPEN_TO_ALL):
                await RedirectResponse(f"/sign-in?back={quote(path, safe='')}", 303)(scope, receive, send)
                return
        await self._app(scope, receive, _protected(scope, send))


def _protected(scope: Scope, send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
            static = scope["path"].startswith("/static/")
            headers.setdefault("Cache-Control", "max-age=31536000, immutable" if static else "no-store")
        await send(message)

    return with_headers
