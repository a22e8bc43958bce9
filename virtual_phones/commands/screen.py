"""`screencap`: a picture of a screen that says that the phone is virtual."""

from __future__ import annotations

import struct
import zlib

from virtual_phones.shell.table import Call, CommandError

from .table import command

WIDTH, HEIGHT, SCALE = 360, 640, 8
_GROUND, _INK = b"\x30\x38\x48", b"\xff\xb0\x00"
_LETTERS = ("10001 111 1110 11111 1001 01110 1000", "10001 010 1001 00100 1001 10001 1000",
            "10001 010 1110 00100 1001 11111 1000", "01010 010 1010 00100 1001 10001 1000",
            "00100 111 1001 00100 0110 10001 1111")  # fmt: skip
"""`VIRTUAL`, row by row."""


@command("screencap")
async def screencap(call: Call) -> int:
    """Write the picture to standard output, as adb asks for it; to no file."""
    if call.arguments != ["-p"]:
        raise CommandError("only `screencap -p` is known here")
    profile = call.phone.profile
    await call.io.out(_png(f"virtual phone, profile {profile.name}, serial {call.phone.serial}"))
    return 0


def _png(comment: str) -> bytes:
    """Return a picture of 8 bits a channel (RFC 2083), with a comment."""
    ground, top = _GROUND * WIDTH, (HEIGHT - len(_LETTERS) * SCALE) // 2
    rows = [ground] * HEIGHT
    for number, letters in enumerate(_LETTERS):
        bits = letters.replace(" ", "0")
        ink = b"".join((_INK if bit == "1" else _GROUND) * SCALE for bit in bits)
        left = (WIDTH - len(bits) * SCALE) // 2
        row = _GROUND * left + ink + _GROUND * (WIDTH - left - len(bits) * SCALE)
        rows[top + number * SCALE : top + (number + 1) * SCALE] = [row] * SCALE
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    told = b"Comment\0" + comment.encode("latin-1", "replace")
    parts = [_chunk(b"IHDR", head), _chunk(b"tEXt", told), _chunk(b"IDAT", body), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
