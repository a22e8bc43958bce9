"""A second browser for the pages: any Firefox, without a window, over its own WebDriver BiDi."""

from __future__ import annotations

import base64
import itertools
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.waiting import eventually

FIREFOX = "POCKETFARM_TEST_FIREFOX"
"""The variable with the path of a Firefox."""


class Firefox:
    """A page of a Firefox, which is asked as Playwright's pages are. The protocol: w3.org/TR/webdriver-bidi, in frames
    of RFC 6455."""

    def __init__(self, line: socket.socket, stream: IO[bytes]) -> None:
        self._line, self._stream, self._numbers = line, stream, itertools.count(1)
        key = base64.b64encode(os.urandom(16)).decode()
        host = "{}:{}".format(*line.getpeername())
        line.sendall(
            f"GET /session HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        assert b" 101 " in self._stream.readline()
        while self._stream.readline().strip():
            pass
        self.ask("session.new", capabilities={})
        self._page = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **params: Any) -> Any:
        text = json.dumps({"id": (number := next(self._numbers)), "method": method, "params": params}).encode()
        wide = 0 if len(text) < 126 else 2 if len(text) < 1 << 16 else 8
        size = bytes([0x80 | {0: len(text), 2: 126, 8: 127}[wide]]) + len(text).to_bytes(8, "big")[8 - wide :]
        mask = os.urandom(4)
        masked = bytes(each ^ key for each, key in zip(text, itertools.cycle(mask), strict=False))
        self._line.sendall(bytes([0x81]) + size + mask + masked)
        while (found := json.loads(self._message())).get("id") != number:
            pass
        assert found["type"] == "success", found
        return found["result"]

    def _message(self) -> bytes:
        text, ended = b"", 0
        while not ended:
            first, size = self._stream.read(2)
            wide = {126: 2, 127: 8}.get(size, 0)
            text += self._stream.read(int.from_bytes(self._stream.read(wide), "big") if wide else size)
            ended = first & 0x80
        return text

    def goto(self, address: str) -> None:
        self.ask("browsingContext.navigate", context=self._page, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        found = self.ask("script.evaluate", expression=expression, awaitPromise=True, target={"context": self._page})
        assert found["type"] == "success", found
        return plain(found["result"])

    def be_wide(self, width: int, height: int) -> None:
        self.ask("browsingContext.setViewport", context=self._page, viewport={"width": width, "height": height})


def plain(told: dict[str, Any]) -> Any:
    """Return a value as JSON has it."""
    value = told.get("value")
    if told["type"] == "array":
        return [plain(each) for each in value or []]
    return {name: plain(each) for name, each in value or []} if told["type"] == "object" else value


@contextmanager
def firefox(scheme: str, width: int, height: int) -> Iterator[Firefox]:
    """Start it, light or dark; where no variable names one: skip."""
    if not (binary := os.environ.get(FIREFOX)):
        pytest.skip(f"{FIREFOX} names no firefox: the pages are read in Chromium alone")
    with tempfile.TemporaryDirectory(prefix="firefox-", ignore_cleanup_errors=True) as folder:
        dark = int(scheme == "light")
        Path(folder, "user.js").write_text(f'user_pref("layout.css.prefers-color-scheme.content-override", {dark});\n')
        told = Path(folder, "WebDriverBiDiServer.json")
        words = [binary, "--headless", "--no-remote", "--profile", folder, "--remote-debugging-port", "0"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: told.is_file() and json.loads(told.read_text() or "{}"))
                place = "127.0.0.1", json.loads(told.read_text())["ws_port"]
                with socket.create_connection(place, 120) as line, line.makefile("rb") as stream:
                    page = Firefox(line, stream)
                    page.be_wide(width, height)
                    yield page
            finally:
                process.kill()
