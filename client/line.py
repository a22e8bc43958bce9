"""The line to a farm: requests over HTTP, repeated where they may be, and what the farm refuses as errors."""

from __future__ import annotations

import hashlib
import json
import ssl
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from os import PathLike
from pathlib import Path
from typing import IO, Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

API = "/api/v1"
PATIENCE_S = 60.0
"""The time for which a farm may be away before we give up."""
PAUSE_S = 0.5
QUIET_S, ACT_S = 30.0, 60.0
"""The longest silence of an answer, since a farm says every ten seconds that it is still there, and of an act: a
command on a phone takes 40 s at most."""
MOST = 500
"""Items of a page of a list."""
CHUNK_BYTES = 1 << 20
AGAIN = frozenset({409, 502, 503, 504})
"""Statuses after which the same request may be sent again."""


Told = Callable[[int, int], None]
"""Hears how many bytes of how many have been sent."""


def silent(_sent: int, _size: int) -> None:
    """Hear it and do nothing."""


class Refused(Exception):
    """The farm refuses it, or does not answer: what, where, and how to mend it."""

    def __init__(self, detail: str, *, cause: str, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(detail)
        self.detail, self.cause, self.where, self.remedy = detail, cause, where, remedy

    def __str__(self) -> str:
        where, mend = f"[{self.where}] " if self.where else "", f"\n  remedy: {self.remedy}" if self.remedy else ""
        return f"{where}{self.detail}{mend}"


class Problem(BaseModel):
    """A fault, as the farm tells it (RFC 9457)."""

    detail: str
    cause: str
    where: str | None = None
    remedy: str | None = None


class Answer(BaseModel):
    """The result of an act."""

    model_config = ConfigDict(frozen=True)

    did: bool
    ok: bool
    said: list[str] = Field(description="What it tells a person.")
    result: dict[str, Any] = Field(description="The same for programs.")


class Line:
    """A farm at its address. Its methods raise Refused."""

    def __init__(self, url: str, token: str, ca: str | PathLike[str] | None = None) -> None:
        self.url = _checked(url)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        verify = _trust(ca) if self.url.startswith("https:") else False
        self._http = httpx.Client(
            base_url=self.url + API, headers=headers, verify=verify, timeout=QUIET_S, trust_env=False
        )
        self.close = weakref.finalize(self, self._http.close)

    def get(self, path: str, **query: Any) -> Any:
        """Return the answer of a path, from JSON."""
        return self._asked("GET", path, params=query).json()

    def items(self, path: str, **query: Any) -> Iterator[Any]:
        """Yield all items of a list, page after page."""
        first: int | None = 0
        while first is not None:
            page = self.get(path, first=first, most=MOST, **query)
            yield from page["items"]
            first = page["next"]

    def act(self, name: str, /, *, once: bool | str = False, **body: Any) -> Answer:
        """Do an act. `once`: with a key, a new one or this, so that it is done once although the line breaks."""
        headers = {"Idempotency-Key": once if isinstance(once, str) else str(uuid.uuid4())} if once else {}
        path = f"/acts/{name.replace(' ', '-')}"
        reply = self._asked("POST", path, json=body, headers=headers, again=bool(once), timeout=ACT_S)
        return Answer.model_validate(reply.json())

    def events(self, path: str, *, until: float = float("inf"), **query: Any) -> Iterator[dict[str, Any]]:
        """Yield server-sent events until one says `finished`, or until this moment of the monotonic clock; a line that
        breaks is opened again."""
        while (left_s := until - time.monotonic()) > 0:
            wait = httpx.Timeout(QUIET_S, read=min(QUIET_S, left_s))
            try:
                with self._http.stream("GET", path, params=_query(query), timeout=wait) as reply:
                    if reply.status_code not in AGAIN:
                        self._told(reply)
                        for line in reply.iter_lines():
                            if line.startswith("data: "):
                                yield (event := json.loads(line.removeprefix("data: ")))
                                if event["finished"]:
                                    return
                            if time.monotonic() >= until:
                                return
            except httpx.TransportError:
                self.get("/me")  # raises where the farm stays away
            time.sleep(min(PAUSE_S, max(0.0, until - time.monotonic())))

    def save(self, path: str, file: IO[bytes], **query: Any) -> httpx.Headers:
        """Write an answer into a file as it comes; its headers."""
        try:
            with self._http.stream("GET", path, params=query) as reply:
                self._told(reply)
                for piece in reply.iter_bytes():
                    file.write(piece)
                return reply.headers
        except httpx.TransportError as e:
            raise self._away(e) from e

    def send(self, file: Path, project: str, told: Told = silent) -> str:
        """Send a file, unless the project has it; from where it stopped, if the line breaks. Returns its SHA-256."""
        with file.open("rb") as source:
            size, sha256 = file.stat().st_size, hashlib.file_digest(source, "sha256").hexdigest()
            path, query, end = f"/files/{sha256}", {"project": project}, time.monotonic() + PATIENCE_S
            while True:
                held = self._asked("HEAD", path, params=query).headers
                if held["Upload-Complete"] == "?1":
                    told(size, size)
                    return sha256
                offset = int(held["Upload-Offset"])
                headers = {
                    "Upload-Offset": str(offset),
                    "Upload-Length": str(size),
                    "Content-Length": str(size - offset),
                }
                source.seek(offset)
                try:
                    reply = self._http.put(path, params=query, headers=headers, content=_pieces(source, size, told))
                    if reply.status_code not in AGAIN:
                        self._told(reply)
                        end = time.monotonic() + PATIENCE_S
                        continue
                    if time.monotonic() > end:
                        self._told(reply)
                except httpx.TransportError as e:
                    if time.monotonic() > end:
                        raise self._away(e) from e
                time.sleep(PAUSE_S)

    def _asked(self, method: str, path: str, *, again: bool = True, **request: Any) -> httpx.Response:
        """Ask; `again` and again where the farm is away, for as long as it may be."""
        end = time.monotonic() + (PATIENCE_S if again else 0.0)
        request["params"] = _query(request.get("params") or {})
        while True:
            try:
                reply = self._http.request(method, path, **request)
            except httpx.ConnectError as e:
                raise self._away(e) from e
            except httpx.TransportError as e:
                if time.monotonic() >= end:
                    raise self._away(e) from e
            else:
                if reply.status_code not in AGAIN - {503} or time.monotonic() >= end:
                    self._told(reply)
                    return reply
            time.sleep(PAUSE_S)

    def _told(self, reply: httpx.Response) -> None:
        """Raise Refused for a status that is no success."""
        if reply.is_success:
            return
        reply.read()
        try:
            found = Problem.model_validate_json(reply.content)
        except ValidationError:
            what = f"{self.url} answers {reply.status_code} to {reply.request.method} {reply.request.url.path}"
            raise Refused(what, cause="http", remedy="check the address, and that both have the same version") from None
        raise Refused(found.detail, cause=found.cause, where=found.where, remedy=found.remedy)

    def _away(self, why: Exception) -> Refused:
        what = f"{self.url} does not answer: {why or type(why).__name__}"
        remedy = "check the address, and that `farm up` or `farm web` runs there"
        if "CERTIFICATE" in str(why):
            remedy = "give the certificate of the farm's authority: `--ca FILE`, or Farm(..., ca=FILE)"
        return Refused(what, cause="service_down", remedy=remedy)


def _query(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in given.items()}


def _pieces(source: IO[bytes], size: int, told: Told) -> Iterator[bytes]:
    while piece := source.read(CHUNK_BYTES):
        yield piece
        told(source.tell(), size)


def _trust(ca: str | PathLike[str] | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as e:
        raise Refused(f"{ca}: no certificate can be read from it: {e}", cause="setup", remedy="give a PEM file") from e


def _checked(url: str) -> str:
    """Return an address without its end. Raises Refused for what is none, and where a token would be heard."""
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL:
        found = httpx.URL("")
    if found.scheme not in ("http", "https") or not found.host:
        raise Refused(f"{url!r} is no address of a farm", cause="setup", remedy="give one like https://farm.lab:8421")
    if found.scheme == "http" and not _is_loopback(found.host):
        what = f"{url}: over plain HTTP everybody on the way reads the token"
        raise Refused(what, cause="setup", remedy="use https://; `farm web --listen ADDRESS` serves it")
    return url.partition(API)[0].rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
