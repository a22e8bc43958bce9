"""A host that speaks the ADB protocol by hand, with whatever key it likes."""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests.servers import adb_key
from tests.waiting import LIMIT_S
from virtual_phones.adb.message import MAX_PAYLOAD, VERSION, Message, encode_header

TOKEN, SIGNATURE, PUBLIC_KEY = 1, 2, 3
_SHA1 = bytes.fromhex("3021300906052b0e03021a05000414")


def sign(key: Path, token: bytes) -> bytes:
    """The token as adb signs it: PKCS #1, version 1.5, as if it were a SHA-1 digest."""
    modulus, exponent = _private(key)
    tail = b"\0" + _SHA1 + token
    block = b"\0\1" + b"\xff" * (254 - len(tail)) + tail
    return pow(int.from_bytes(block, "big"), exponent, modulus).to_bytes(256, "big")


@lru_cache
def _private(key: Path) -> tuple[int, int]:
    """Modulus and private exponent of a PEM file (PKCS #8)."""
    text = "".join(line for line in key.read_text().splitlines() if not line.startswith("-"))
    inner = list(_der(base64.b64decode(text)))[2]
    _version, modulus, _public, exponent, *_ = _der(inner)
    return int.from_bytes(modulus, "big"), int.from_bytes(exponent, "big")


def _der(data: bytes) -> Iterator[bytes]:
    """Contents of the elements of a DER sequence."""
    _, inner, _ = _element(data)
    while inner:
        _, content, inner = _element(inner)
        yield content


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    size, start = data[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    return data[0], data[start : start + size], data[start + size :]


class Host:
    """The adb server's end of a connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)

    def send(self, command: bytes, arg0: int, arg1: int, data: bytes = b"") -> None:
        self.socket.sendall(encode_header(Message(command, arg0, arg1, data)) + data)

    def take(self) -> Message:
        """The next message. Raises TimeoutError where none comes, EOFError at the end; checks magic and sum."""
        command, arg0, arg1, size, total, magic = struct.unpack("<4sIIIII", self._exactly(24))
        assert magic == int.from_bytes(command, "little") ^ 0xFFFFFFFF
        data = self._exactly(size)
        assert total in (0, sum(data))
        self.sum = total
        return Message(command, arg0, arg1, data)

    def greet(self, version: int = VERSION, limit: int = MAX_PAYLOAD) -> Message:
        """The phone's answer to the first message: a token to sign."""
        self.send(b"CNXN", version, limit, b"host::features=shell_v2")
        return self.take()

    def admitted(self, version: int = VERSION, limit: int = MAX_PAYLOAD) -> Message:
        """The phone's banner, after the token was signed with the tests' key."""
        self.send(b"AUTH", SIGNATURE, 0, sign(adb_key(), self.greet(version, limit).data))
        return self.take()

    def is_quiet(self, for_s: float = 0.3) -> bool:
        """Tell whether nothing comes for a while."""
        self.socket.settimeout(for_s)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(LIMIT_S)
        return False

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data
