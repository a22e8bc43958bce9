"""The door: nobody passes without a token but to what is open, and no body is taken that is too long."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.ledger import Ledger
from orchestrator.ledger.experiments import user
from orchestrator.model.errors import FarmError
from orchestrator.model.people import Door
from orchestrator.model.rights import WHOLE, Actor

from .problems import problem, told

log = logging.getLogger(__name__)
OPEN = frozenset({"/health", "/openapi.json"})
"""The paths that are open to anybody; how a person logs in comes here."""
LONGEST = 4 << 20
"""Bytes of a body: an experiment of ten thousand cells takes less than one of them."""
FILES = "/files/"
"""The path of files: their bodies are counted by who keeps them, up to what a project may have."""
TOO_LONG = f"a body has at most {LONGEST} bytes"


class Known:
    """The bearers of tokens: the owner of the machine by the farm's own, people by theirs."""

    def __init__(self, own: str, ledger: Callable[[], Ledger]) -> None:
        self._own, self._ledger = own.encode(), ledger

    def actor(self, authorization: str, origin: str) -> Actor | None:
        """Return who shows it; None: nobody. Raises FarmError where the ledger is away."""
        kind, _, shown = authorization.partition(" ")
        text = shown.strip()
        if kind.lower() != "bearer" or not text:
            return None
        if hmac.compare_digest(text.encode(), self._own):
            return Actor(user(), Door.API, WHOLE, origin)
        bearer = self._ledger().people.tokens.bearer(text)
        return None if bearer is None else Actor(bearer.person, Door.API, bearer.grants, origin)


class Guarded:
    """The whole application behind the door: also what it has no route for."""

    def __init__(self, app: ASGIApp, known: Known) -> None:
        self._app, self._known = app, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
        if path not in OPEN:
            try:
                shown, origin = request.headers.get("authorization", ""), request.client.host if request.client else ""
                actor = await run_in_threadpool(self._known.actor, shown, origin)
            except FarmError as e:
                await told(e)(scope, receive, send)
                return
            if actor is None:
                log.warning("event=api_refused path=%r", path)
                await _nobody()(scope, receive, send)
                return
            scope["actor"] = actor
        if scope["method"] == "PUT" and path.startswith(FILES):
            await self._app(scope, receive, send)
            return
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()) or len(length) > 12 or int(length) > LONGEST:
            await problem(413, "request", TOO_LONG, "send less, in several requests")(scope, receive, send)
            return
        await self._app(scope, Counted(receive).receive, send)


class Counted:
    """A body that is counted while it comes: chunks say no length."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._bytes = receive, 0

    async def receive(self) -> Message:
        """Raises HTTPException where more has come than a body may have."""
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        if self._bytes > LONGEST:
            raise HTTPException(413, TOO_LONG)
        return message


def _nobody() -> ASGIApp:
    remedy = "send `Authorization: Bearer TOKEN`; `farm tokens create` makes one"
    return problem(401, "unknown_token", "no token of this farm was shown", remedy, {"WWW-Authenticate": "Bearer"})
