"""The application: `GET` (of its jobs) and `PUT /files/SHA256` for a host of this farm, `GET /health` for anybody."""

from __future__ import annotations

import hashlib
import hmac
import logging
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError, ModelFileError
from orchestrator.system.config import Settings

from .granted import Granted
from .room import NoRoom, Room

log = logging.getLogger(__name__)
BELIEVED_S = 1.0
"""The time for which the hosts' secrets are kept in memory: then a host that was removed is refused."""


def make_app(settings: Settings) -> Starlette:
    """Nothing is opened before the first request."""
    ledger, kept = cache(lambda: Ledger(settings.ledger)), Artifacts(settings.state)
    hosts, granted = Hosts(ledger), Granted(ledger, kept)
    files, room = Files(kept), Room(settings.state)

    async def sent(_: Request, wanted: str, host: str) -> Response:
        try:
            if not await run_in_threadpool(granted.may_have, host, wanted):
                log.warning("event=file_not_granted host=%s sha256=%s", host, wanted)
                return PlainTextResponse("no job that this host has in hand needs this file\n", 403)
            path = await run_in_threadpool(files.path, wanted)
        except ModelFileError as e:
            log.warning("event=file_missing host=%s sha256=%s error=%s", host, wanted, str(e).replace("\n", " "))
            return PlainTextResponse(f"{e.args[0]}\n", 404)
        log.info("event=file_sent host=%s sha256=%s", host, wanted)
        return FileResponse(path, media_type="application/octet-stream")

    async def received(request: Request, wanted: str, host: str) -> Response:
        size = request.headers.get("content-length", "")
        if not size.isdecimal() or len(size) > 15 or "transfer-encoding" in request.headers:
            return PlainTextResponse("say how many bytes come (Content-Length, and no Transfer-Encoding)\n", 411)
        try:
            with room.set_apart(host, int(size)), tempfile.TemporaryFile(dir=settings.state) as body:
                await _taken(request, int(size), body)
                await run_in_threadpool(kept.receive, body, wanted)
        except NoRoom as e:
            return PlainTextResponse(f"{e}\n", 507)
        except (ModelFileError, ValueError) as e:
            log.warning("event=file_refused host=%s sha256=%s error=%s", host, wanted, str(e).replace("\n", " "))
            return PlainTextResponse(f"{e.args[0]}\n", 422)
        log.info("event=file_received host=%s sha256=%s", host, wanted)
        return Response(status_code=204)

    async def file(request: Request) -> Response:
        try:
            host = await run_in_threadpool(hosts.of, request.headers.get("authorization", ""))
            if not host:
                return PlainTextResponse("no host of this farm has this secret\n", 401, {"WWW-Authenticate": "Bearer"})
            answer = received if request.method == "PUT" else sent
            return await answer(request, request.path_params["sha256"], host)
        except FarmError as e:
            return PlainTextResponse(f"the ledger does not answer: {e}\n", 503)

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    return Starlette(routes=[Route("/files/{sha256}", file, methods=["GET", "PUT"]), Route("/health", health)])


async def _taken(request: Request, size: int, body: IO[bytes]) -> None:
    """Write what comes, and no more than was said. Raises NoRoom."""
    left = size
    async for chunk in request.stream():
        left -= len(chunk)
        if left < 0:
            raise NoRoom(f"more than the {size} bytes that were said")
        await run_in_threadpool(body.write, chunk)
    body.seek(0)


class Hosts:
    """The hosts by their secrets: whose secret does a request show?"""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._secrets: dict[str, str] = {}
        self._read_at = float("-inf")

    def of(self, authorization: str) -> str:
        """The host's name; empty where it is none of this farm. Raises FarmError where the ledger is away."""
        kind, _, secret = authorization.partition(" ")
        shown = hashlib.sha256(secret.encode()).hexdigest()
        if kind.lower() != "bearer" or not secret:
            return ""
        if time.monotonic() - self._read_at > BELIEVED_S:
            self._read()
        return next((host for host, known in self._secrets.items() if hmac.compare_digest(known, shown)), "")

    def _read(self) -> None:
        self._secrets = {row.name: row.secret_sha256 for row in self._ledger().standing.hosts() if row.secret_sha256}
        self._read_at = time.monotonic()


class Files:
    """Files whose content was verified once, as long as they stay as they are."""

    def __init__(self, kept: Artifacts) -> None:
        self._kept = kept
        self._verified: dict[str, tuple[Path, int, int]] = {}

    def path(self, sha256: str) -> Path:
        """Raises ModelFileError where the farm lacks the file, or it is damaged."""
        known = self._verified.get(sha256)
        if known is None or not _same(*known):
            path = self._kept.path(sha256)
            now = path.stat()
            self._verified[sha256] = (path, now.st_mtime_ns, now.st_size)
            return path
        return known[0]


def _same(path: Path, mtime_ns: int, size: int) -> bool:
    try:
        now = path.stat()
    except OSError:
        return False
    return (now.st_mtime_ns, now.st_size) == (mtime_ns, size)
