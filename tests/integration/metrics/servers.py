"""A real exporter and a real Prometheus, started as a user would, ended by pid."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farm.parts.part import free_port
from tests.servers import Server, required
from tests.source_tree import ROOT

DASHBOARDS = ROOT / "dashboards"
AS_PROMETHEUS = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
    "Accept-Encoding": "gzip",
}


@contextmanager
def exporter(environment: dict[str, str]) -> Iterator[str]:
    """`python -m orchestrator.metrics`; yields the URL that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.metrics"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("exporter: ").strip()
    finally:
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.close()


def get(url: str, **query: str) -> str:
    """The body of a reply with status 200."""
    full = f"{url}?{urllib.parse.urlencode(query)}" if query else url
    with urllib.request.urlopen(full, timeout=60) as reply:
        return str(reply.read().decode())


def scraped(address: str) -> str:
    """The exporter's text, asked for as a Prometheus asks."""
    request = urllib.request.Request(address, headers=AS_PROMETHEUS)
    with urllib.request.urlopen(request, timeout=60) as reply:
        body = reply.read()
    return gzip.decompress(body).decode() if reply.headers["Content-Encoding"] == "gzip" else str(body.decode())


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int, alertmanagers: Path) -> None:
        """`alertmanagers`: its file of them, which it reads again when that changes."""
        self.url, self.alertmanagers = f"http://127.0.0.1:{port}", alertmanagers

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        reply = json.loads(get(f"{self.url}/api/v1/query", query=expression))
        assert reply["status"] == "success", reply
        result: list[dict[str, Any]] = reply["data"]["result"]
        return result

    def wait_for(self, expression: str, limit_s: float = 60.0) -> list[dict[str, Any]]:
        """Ask until there is a result."""
        end = time.monotonic() + limit_s
        while not (found := self.query(expression)):
            assert time.monotonic() < end, f"no result within {limit_s} s: {expression}"
            time.sleep(0.2)
        return found


@contextmanager
def prometheus(folder: Path, exporter_url: str) -> Iterator[Prometheus]:
    """A Prometheus with the repository's own configuration, but our exporter and a quicker pace: not so quick that a
    busy machine is late with an answer, for then all series end, and begin anew."""
    binary, port = required("prometheus"), free_port()
    paces = {"scrape_interval: 15s": "scrape_interval: 5s", "evaluation_interval: 15s": "evaluation_interval: 1s"}
    text = (DASHBOARDS / "prometheus.yml").read_text()
    for usual, quicker in paces.items():
        text = text.replace(usual, quicker)
    (folder / "prometheus.yml").write_text(text)
    for name in ("rules.yml", "alerts.yml", "alertmanagers.yml"):
        (folder / name).write_text((DASHBOARDS / name).read_text())
    target = urllib.parse.urlsplit(exporter_url).netloc
    (folder / "targets.yml").write_text((DASHBOARDS / "targets.yml").read_text().replace("127.0.0.1:9464", target))
    argv = [
        binary,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--rules.alert.resend-delay=1s",
    ]
    server = Server([*argv, f"--web.listen-address=127.0.0.1:{port}"], folder / "prometheus.log", lambda: ready(port))
    server.start()
    try:
        yield Prometheus(port, folder / "alertmanagers.yml")
    finally:
        server.stop()


def ready(port: int) -> bool:
    try:
        return bool(get(f"http://127.0.0.1:{port}/-/ready"))
    except OSError:
        return False
