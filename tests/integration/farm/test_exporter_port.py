"""The answer on the exporter's port that is believed, and the port that is taken where the usual one is not free."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.composition import compose
from farm.parts import services
from farm.parts.part import Part, free_port
from farm.parts.ports import Ports
from farm.processes import MARK
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings
from tests.servers import Server, required

ANSWER = """
import http.server, sys
class Ok(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ok).serve_forever()
"""


def answering(folder: Path, port: int, **marks: str) -> Server:
    """A process that answers every scrape with 200."""

    def answers() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    argv = [sys.executable, "-c", ANSWER, str(port)]
    return Server(argv, folder / f"{port}.log", answers, env={**os.environ, **marks})


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[int]:
    """A port on which somebody else's server answers."""
    port = free_port()
    other = answering(tmp_path, port)
    other.start()
    yield port
    other.stop()


def exporter_of(settings: Settings) -> Part:
    required("redis-server"), required("adb")
    with Ports() as ports:
        parts = compose(settings, ["galaxy_s7"], ports=ports, real_phones=False).parts
    return next(part for part in parts if part.name == "exporter")


def test_the_answer_of_somebody_else_is_not_ours(tmp_path: Path, taken: int) -> None:
    assert not services.exporter(taken, tmp_path).is_ready()
    port = free_port()
    ours = answering(tmp_path, port, **{MARK: str(tmp_path)})
    ours.start()
    assert services.exporter(port, tmp_path).is_ready()
    assert not services.exporter(port, tmp_path / "another farm").is_ready()
    ours.stop()


def test_a_port_is_taken_where_it_is_free(tmp_path: Path) -> None:
    port = free_port()
    assert exporter_of(Settings(state=tmp_path, exporter_port=port)).detail == f"http://127.0.0.1:{port}/metrics"


def test_another_port_is_taken_and_told_where_the_usual_one_is_busy(tmp_path: Path) -> None:
    settings = Settings(state=tmp_path)
    with Ports() as other:
        other.take(settings.exporter_port)
        part = exporter_of(settings)
    assert f"port {settings.exporter_port} is taken by another process" in part.detail
    assert f":{settings.exporter_port}/" not in part.detail


def test_a_port_that_was_asked_for_is_not_replaced(tmp_path: Path, taken: int) -> None:
    with pytest.raises(SetupError, match=f"port {taken} for the metrics .* is taken") as caught:
        exporter_of(Settings(state=tmp_path, exporter_port=taken))
    assert caught.value.remedy


def test_port_0_is_a_free_one(tmp_path: Path) -> None:
    with Ports() as ports:
        farm = compose(Settings(state=tmp_path, exporter_port=0), ["galaxy_s7"], ports=ports, real_phones=False)
    assert farm.endpoints.exporter_port > 0
    assert farm.environment["FARM_EXPORTER_PORT"] == str(farm.endpoints.exporter_port)


def test_farms_that_start_at_the_same_time_have_ports_of_their_own(tmp_path: Path) -> None:
    settings = [Settings(state=tmp_path / name) for name in ("a", "b")]
    with Ports() as one, Ports() as two:
        farms = [
            compose(own, ["galaxy_s7"], ports=ports, real_phones=False).endpoints
            for own, ports in zip(settings, (one, two), strict=True)
        ]
        assert len({port for each in farms for port in (each.exporter_port, each.pages_port)}) == 4
        asked = Settings(state=tmp_path / "c", pages_port=farms[0].pages_port)
        with Ports() as three, pytest.raises(SetupError, match="FARM_PAGES_PORT"):
            compose(asked, ["galaxy_s7"], ports=three, real_phones=False)
    with Ports() as later:
        assert later.take(farms[0].pages_port), "a farm that has ended holds none"
