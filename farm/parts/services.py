"""The farm's own processes: scheduler, host worker, beat, metrics exporter."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from farm import processes
from orchestrator.coordination import keys

from .part import Part, nothing
from .redis_server import RedisServer

if TYPE_CHECKING:
    from farm.reach import Reach  # certificates take a while to import, and most farms have none
    from farm.reach.certificates import Certificate

Connect = Callable[[], redis.Redis]
WORKER_GRACE_S = 10.0
"""The host worker ends its agents and puts phones back as they were."""


def scheduler(server: RedisServer) -> Part:
    """Places waiting jobs and takes records in. It is ready when it has ended a turn, in which it says what waits."""

    def forget() -> None:
        """Remove what an earlier scheduler said."""
        with suppress(redis.RedisError), server.client() as client:
            client.delete(keys.WAITING)

    return Part(
        name="scheduler",
        command=(*processes.START, "orchestrator.scheduling.scheduler"),
        is_ready=lambda: _is_there(server.client, keys.WAITING),
        before_start=forget,
    )


def beat(state: Path) -> Part:
    """Does the periodic work, nights among it. It is ready when it has looked for nights."""
    turned = state / "beat.turned"
    return Part(
        name="beat",
        command=(*processes.START, "farm.tasks.beat"),
        is_ready=turned.exists,
        before_start=lambda: turned.unlink(missing_ok=True),
        beside=True,
    )


def host_worker(connect: Connect, host: str) -> Part:
    """Discovers devices and runs jobs. It is ready when it has announced itself."""
    return Part(
        name="worker",
        command=(*processes.START, "workers.host"),
        detail=f"host {host}",
        is_ready=lambda: _is_there(connect, keys.host(host)),
        grace_s=WORKER_GRACE_S,
    )


def exporter(port: int, state: Path, note: str = "") -> Part:
    """Serves Prometheus metrics. It is ready when a scrape works, and it is ours that was scraped."""
    url = f"http://127.0.0.1:{port}/metrics"
    ours = partial(_answers, url, lambda: processes.listens(port, state))
    command = (*processes.START, "orchestrator.metrics")
    return Part(name="exporter", command=command, detail=url + note, is_ready=ours, beside=True, needed=False)


def web(reach: Reach) -> Part:
    """Serves files to hosts. It is ready when it answers."""
    return _by_tls(reach, "web", "farm.web", reach.web_port, "health", reach.web_url)


def people(reach: Reach, port: int, state: Path, given: Certificate | None, note: str = "") -> Part:
    """Serves the pages to people of other machines, with a certificate that somebody else renews, or the farm's own. It
    is ready when it answers."""
    detail = reach.people_url(port) + note
    part = _by_tls(reach, "people", "farm.web.pages", port, "static/icon.svg", detail, "--name", reach.address)
    if given is None:
        return part
    ours = partial(processes.listens, port, state)
    any_certificate = ssl.create_default_context()
    any_certificate.check_hostname, any_certificate.verify_mode = False, ssl.CERT_NONE  # whose port it is, tells /proc
    asked = f"{reach.own_url(port)}static/icon.svg"
    command = (*part.command[: part.command.index("--certificate")], *_files(given))
    is_ready = partial(_answers, asked, ours, any_certificate)
    return replace(part, command=command, before_start=nothing, is_ready=is_ready)


def _by_tls(reach: Reach, name: str, module: str, port: int, asked: str, detail: str, *more: str) -> Part:
    own = reach.certificate()
    trusted = ssl.create_default_context(cafile=reach.authority.certificate)
    command = (*processes.START, module, "--address", reach.bind, "--port", str(port), *more)

    def renew() -> None:
        reach.certificate()

    return Part(
        name=name,
        command=(*command, *_files(own)),
        detail=detail,
        before_start=renew,
        is_ready=partial(_answers, f"{reach.own_url(port)}{asked}", context=trusted),
        beside=True,
    )


def _files(own: Certificate) -> tuple[str, ...]:
    return ("--certificate", str(own.certificate), "--key", str(own.key))


def pages(port: int, state: Path, note: str = "") -> Part:
    """Serves the pages. It is ready when it answers, and it is ours that answers."""
    url, asked = f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}/static/icon.svg"
    ours = partial(_answers, asked, lambda: processes.listens(port, state))
    command = (*processes.START, "farm.web.pages", "--port", str(port))
    return Part(name="pages", command=command, detail=url + note, is_ready=ours, beside=True, needed=False)


def _answers(url: str, is_ours: Callable[[], bool] = lambda: True, context: ssl.SSLContext | None = None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1.0, context=context) as reply:  # noqa: S310 (a part of our own)
            return bool(reply.status == 200) and is_ours()
    except (OSError, HTTPException):
        return False


def _is_there(connect: Connect, key: str) -> bool:
    try:
        with connect() as client:
            return bool(client.exists(key))
    except (redis.RedisError, OSError):
        return False
