"""The farm's own processes: scheduler, host worker, metrics exporter."""

from __future__ import annotations

import sys
import urllib.request
from http.client import HTTPException
from pathlib import Path

import redis

from farm import processes
from orchestrator.coordination import keys

from .part import Part
from .redis_server import RedisServer

WORKER_GRACE_S = 10.0
"""The host worker ends its agents and puts phones back as they were."""


def scheduler() -> Part:
    """Places waiting jobs and takes records in. It is ready once it runs: it waits for nothing but the ledger."""
    return Part(
        name="scheduler", command=(sys.executable, "-m", "orchestrator.scheduling.scheduler"), is_ready=lambda: True
    )


def host_worker(server: RedisServer, host: str) -> Part:
    """Discovers devices and runs jobs. It is ready when it has announced itself."""

    def announced() -> bool:
        try:
            with redis.Redis(port=server.port, password=server.password, socket_timeout=0.5) as client:
                return bool(client.exists(keys.host(host)))
        except redis.RedisError:
            return False

    return Part(
        name="worker",
        command=(sys.executable, "-m", "workers.host"),
        detail=f"host {host}",
        is_ready=announced,
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
