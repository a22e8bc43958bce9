"""Half-sent requests, slow bodies and uploads that are more than they say: what a server bounds."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from farm.web import patience, room
from farm.web.patience import Patient
from farm.web.room import NoRoom, Room
from tests.waiting import eventually

HEAD = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
BODY = b"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    async def health(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def busy(_: Request) -> PlainTextResponse:
        time.sleep(0.3)
        return PlainTextResponse("")

    app = Starlette(routes=[Route("/health", health, methods=["GET", "POST"]), Route("/busy", busy)])
    server = uvicorn.Server(
        uvicorn.Config(
            app, port=0, http=Patient, log_config=None, limit_concurrency=64, timeout_graceful_shutdown=1,
            timeout_keep_alive=60,  # on a machine with much other work people ask again late
        )
    )  # fmt: skip
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def sent(port: int, text: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(text)
    return connection


def has_ended(connection: socket.socket) -> bool:
    """Tell whether it has ended without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def answer(port: int) -> bytes:
    with closing(sent(port, HEAD)) as connection:
        return connection.recv(12)


def test_what_is_no_http_is_told_as_any_fault(port: int, seed: int) -> None:
    chance = random.Random(seed)
    length = chance.choice(["-1", "1.5", "+3", "0x10", f"{chance.randrange(9)}, 10", "", "9" * 30])
    for wrong in (f"Content-Length: {length}", "Transfer-Encoding: gzip", "no colon", "Host: another", "bad name: x"):
        with closing(sent(port, f"GET /health HTTP/1.1\r\nHost: a\r\n{wrong}\r\n\r\n".encode())) as connection:
            head, _, body = b"".join(iter(lambda: connection.recv(4096), b"")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ") and b"application/problem+json" in head, (wrong, head)
        assert json.loads(body)["status"] == 400 and json.loads(body)["remedy"]


def test_half_sent_requests_keep_nobody_out_and_end(port: int, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    with ExitStack() as stack:
        halves = [
            stack.enter_context(closing(sent(port, chance.choice((HEAD, BODY))[: chance.randrange(1, 30)])))
            for _ in range(100)
        ]
        assert answer(port) == b"HTTP/1.1 200"
        monkeypatch.setattr(patience, "HEAD_S", 0.2)
        assert all(map(has_ended, halves))
    assert answer(port) == b"HTTP/1.1 200"


def test_all_of_a_laboratory_behind_one_address_are_answered(port: int, seed: int) -> None:
    """They come while the server is busy, more than may wait, and ask again on kept connections after halves came."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        stack.enter_context(closing(sent(port, HEAD.replace(b"health", b"busy"))))
        people = [stack.enter_context(closing(sent(port, HEAD))) for _ in range(2 * patience.OF_AN_ADDRESS)]
        for _ in range(2):
            for each in people:
                said = b""
                while not said.endswith(b"\r\n\r\n0"):
                    said += (come := each.recv(4096))
                    assert come, said
            for _ in range(chance.randrange(20)):
                stack.enter_context(closing(sent(port, HEAD[: chance.randrange(1, 30)])))
            for each in chance.sample(people, len(people)):
                each.sendall(HEAD)


def test_a_slow_body_is_told_so_and_ends_and_one_that_comes_does_not(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "BODY_S", 1.0)
    monkeypatch.setattr(patience, "LEAST_BYTES_PER_S", 10)
    with closing(sent(port, BODY + b"x")) as slow, closing(sent(port, BODY)) as steady:
        for _ in range(10):
            steady.sendall(b"x" * 100)
            time.sleep(0.2)
        assert steady.recv(12) == b"HTTP/1.1 200"
        told = b"".join(iter(lambda: slow.recv(4096), b""))
    assert told.startswith(b"HTTP/1.1 408 Request Timeout") and json.loads(told.partition(b"\r\n\r\n")[2])["remedy"]


def test_room_is_set_apart_for_all_that_come_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_has = room.shutil.disk_usage(tmp_path)  # of this moment: others write there, too
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: disk_has)
    monkeypatch.setattr(room, "FREE_BYTES", disk_has.free - 10_000_000)
    monkeypatch.setattr(room, "HOST_BYTES", 6_000_000)
    disk = Room(tmp_path)
    first = disk.set_apart("lab", 3_000_000)
    first.__enter__()
    with pytest.raises(NoRoom, match="no room for 3000000 bytes"), disk.set_apart("lab", 3_000_000):
        pass
    first.__exit__(None, None, None)
    with disk.set_apart("lab", 3_000_000):
        pass
    with pytest.raises(NoRoom, match="within a day"), disk.set_apart("lab", 3_000_000):
        pass
    with pytest.raises(NoRoom, match="within a day"), Room(tmp_path).set_apart("lab", 3_000_000):
        pass  # the process was started anew
    with Room(tmp_path).set_apart("other", 3_000_000):
        pass
    for text in (json.dumps([time.time() - room.DAY_S, {"lab": 6_000_000}]), "", "[]", "{", '["x", 1]', "[1, [2]]"):
        (tmp_path / room.SENT).write_text(text)
        with Room(tmp_path).set_apart("lab", 3_000_000):
            pass
