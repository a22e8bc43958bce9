"""Server-sent events: whoever looks at a page is told what changes on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from orchestrator.model.errors import FarmError

from .access import NOBODY, Access, Visitor
from .look import Watch
from .parts import hash_of, news
from .renderer import Renderer

QUIET_S = 10.0
"""The time without news after which a comment is sent: who does not take it is gone."""
ASKED_S = 2.0
"""The time after which a stream asks again who looks: a session may have ended, and roles may have changed."""
SHARE = 3.0
"""The pause between two makings of a page as a multiple of the time that those take which are watched: they take a
third of a core at most, and where many watch, each is told later."""
Key = tuple[str, str]
"""An address, and who looks at it with which roles."""


class Made(NamedTuple):
    """The inside of a page."""

    at: float
    main: str | None
    """None: it is away."""
    live: bool
    """It may change."""
    took_s: float = 0.0
    """The time of the processor."""


class Events:
    """A page that several people watch is made once for each look."""

    def __init__(self, renderer: Renderer, watch: Watch, access: Access) -> None:
        self._renderer, self._watch, self._access = renderer, watch, access
        self._made: dict[Key, Made] = {}
        self._making: dict[Key, asyncio.Lock] = {}

    async def stream(self, request: Request) -> Response:
        """`?page=` address and query of a page, `?have=` the hash of what is shown; ends where no more can change."""
        address = request.query_params.get("page", "/")
        have = request.headers.get("last-event-id") or request.query_params.get("have", "")
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._news(address, have, request), media_type="text/event-stream", headers=headers)

    async def _news(self, address: str, have: str, request: Request) -> AsyncIterator[str]:
        clock = asyncio.get_running_loop().time
        begun = asked = clock()
        visitor = self._access.visitor(request)
        shown, quiet_s = self._renderer.sent(have), 0.0
        yield "retry: 1000\n\n"
        if shown is not None:  # it was just made, and the browser still draws it
            await asyncio.sleep(self.pause_s)
        while True:
            if clock() > asked + ASKED_S:
                visitor, asked = await run_in_threadpool(self._access.visitor_now, request), clock()
                if visitor is NOBODY:
                    return
            made = await self._now(address, visitor, begun)
            now = made.main
            if now is not None and (name := hash_of(now)) != have:
                yield f"id: {name}\ndata: {news(shown, now)}\n\n"
                have, quiet_s = name, 0.0
            shown = now if now is not None else shown
            if not made.live:
                yield "event: over\ndata: \n\n"
                return
            pause_s = self.pause_s
            await asyncio.sleep(pause_s)
            quiet_s += pause_s
            if quiet_s >= QUIET_S:
                yield ": still here\n\n"
                quiet_s = 0.0

    @property
    def pause_s(self) -> float:
        """Return the time from one making of a page to the next."""
        return max(self._watch.pause_s, SHARE * sum(each.took_s for each in self._made.values()))

    async def _now(self, address: str, visitor: Visitor, begun: float) -> Made:
        """Return the page as it is, but nothing that was made before a stream had `begun`: that may be older than the
        page which the stream is to renew."""
        key = (address, visitor.key)
        async with self._making.setdefault(key, asyncio.Lock()):
            clock = asyncio.get_running_loop().time
            made = self._made.get(key)
            if made is None or made.at < begun or clock() >= made.at + self.pause_s:
                start = clock()
                made = (await run_in_threadpool(self._make, address, visitor))._replace(at=start)
                oldest = clock() - max(QUIET_S, 2 * self.pause_s)
                self._made = {each: kept for each, kept in self._made.items() if kept.at > oldest} | {key: made}
                self._making = {each: lock for each, lock in self._making.items() if each in self._made}
        return made

    def _make(self, address: str, visitor: Visitor) -> Made:
        parts, began = urlsplit(address), time.thread_time()
        try:
            page, main = self._renderer.main(unquote(parts.path), dict(parse_qsl(parts.query)), visitor)
        except FarmError:
            return Made(0.0, None, live=True)
        return Made(0.0, main, page.live, time.thread_time() - began)
