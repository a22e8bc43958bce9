"""Change an input a little, the way faults and attackers do."""

from __future__ import annotations

import random

TOKENS = (
    *(b"0", b"-1", b"1e999", b"nan", b"inf", b"-0", b"1.2.3", b"9" * 40, b"9" * 5000),
    *(b"18446744073709551616", b"2147483648", b"4294967295"),
    *(b"null", b"true", b"[]", b"{}", b'""', b"[[[[[[[[", b'{"a":', b"&a [*a,*a]"),
    *(b"!!python/name:os.system", b"<<: *a"),
    *(b"\xff\xfe", b"\xc3\x28", "\u00b2".encode(), "\u0663".encode(), b"\0", b"\r\n", b"\n\n", b"\x1b[2J", b"%s%n"),
    *(b"../../..", b"/", b"'", b"$(id)", b";", b"|", b"*", b":", b"\\"),
)  # fmt: skip
LONGEST = 1 << 16


def mutate(seeds: list[bytes], draw: random.Random) -> bytes:
    """One to six changes of a seed."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(1, 6)):
        _change(data, seeds, draw)
    return bytes(data[:LONGEST])


def _change(data: bytearray, seeds: list[bytes], draw: random.Random) -> None:
    at = draw.randint(0, len(data))
    end = min(len(data), at + draw.choice((1, 2, 4, 8, 40, 400)))
    match draw.randrange(8):
        case 0 if data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        case 1:
            data[at:end] = b""
        case 2:
            data[at:at] = data[at:end] * draw.choice((1, 2, 50))
        case 3:
            data[at:end] = draw.choice(TOKENS)
        case 4:
            data[at:at] = draw.choice(TOKENS)
        case 5:
            data[at:end] = draw.randbytes(end - at)
        case 6:
            other = draw.choice(seeds)
            start = draw.randint(0, len(other))
            data[at:end] = other[start : start + draw.choice((4, 20, 100))]
        case _:
            _replace_number(data, at, draw)


def _replace_number(data: bytearray, at: int, draw: random.Random) -> None:
    """The next run of digits becomes something else."""
    digits = b"0123456789"
    start = next((i for i in range(at, len(data)) if data[i] in digits), None)
    if start is None:
        return
    end = start
    while end < len(data) and data[end] in digits:
        end += 1
    data[start:end] = draw.choice(TOKENS)
