"""The farm's own processes: scheduler, host worker, metrics exporter."""

from __future__ import annotations

import sys
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import redis

from farm import processes
from orchestrator.coordination import keys

from .part import Part
from .redis_server import RedisServer

WORKER_GRACE_S = 10.0
"""The host worker ends its agents and puts phones back as they were."""


def scheduler(server: RedisServer) -> Part:
    """Places waiting jobs and takes records in. It is ready when it has ended a turn, in which it says what waits."""

    def forget() -> None:
        """What an earlier one said."""
        with suppress(redis.RedisError), _client(server) as client:
            client.delete(keys.WAITING)

    return Part(
        name="scheduler",
        command=(sys.executable, "-m", "orchestrator.scheduling.scheduler"),
        is_ready=lambda: _is_there(server, keys.WAITING),
        before_start=forget,
        ready_limit_s=60.0,
    )


def host_worker(server: RedisServer, host: str) -> Part:
    """Discovers devices and runs jobs. It is ready when it has announced itself."""
    return Part(
        name="worker",
        command=(sys.executable, "-m", "workers.host"),
        detail=f"host {host}",
        is_ready=lambda: _is_there(server, keys.host(host)),
        ready_limit_s=60.0,
        grace_s=WORKER_GRACE_S,
    )


def exporter(port: int, state: Path, note: str = "") -> Part:
    """Serves Prometheus metrics. It is ready when a scrape works, and it is ours that was scraped."""
    url = f"http://127.0.0.1:{port}/metrics"

    def scraped() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=1.0) as reply:
                return bool(reply.status == 200) and processes.listens(port, state)
        except (OSError, HTTPException):
            return False

    return Part(
        name="exporter", command=(sys.executable, "-m", "orchestrator.metrics"), detail=url + note, is_ready=scraped
    )


def _client(server: RedisServer) -> redis.Redis:
    return redis.Redis(port=server.port, password=server.password, socket_timeout=0.5)


def _is_there(server: RedisServer, key: str) -> bool:
    try:
        with _client(server) as client:
            return bool(client.exists(key))
    except redis.RedisError:
        return False
