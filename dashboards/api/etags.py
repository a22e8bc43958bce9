"""ETags: an answer that is as it was is not sent again."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Tagged:
    """Every answer to GET in JSON gets the hash of its body as its tag; streams pass as they come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        wanted = {each.strip().removeprefix("W/") for each in Headers(scope=scope).get("if-none-match", "").split(",")}
        start: Message | None = None
        parts = list[bytes]()

        async def tagged(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                if message["status"] == 200 and kind.startswith("application/json"):
                    start = message
                    return
            if start is None or message["type"] != "http.response.body":
                await send(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                await _send(start, b"".join(parts), wanted, send)

        await self._app(scope, receive, tagged)


async def _send(start: Message, body: bytes, wanted: set[str], send: Send) -> None:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = MutableHeaders(raw=list(start["headers"]))
    headers["ETag"], headers["Cache-Control"] = tag, "private, no-cache"
    same = bool(wanted & {tag, "*"})
    if same:
        for name in ("content-length", "content-type"):
            del headers[name]
    status = 304 if same else 200
    await send({"type": "http.response.start", "status": status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": b"" if same else body})
