"""Read what an ELF file asks of the device that runs it: its machine, its loader, the libraries that it needs.

The format: System V ABI, chapters 4 and 5 (program header, dynamic section).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"\x7fELF"
MACHINES = {(1, 40): "armeabi-v7a", (2, 183): "arm64-v8a", (1, 3): "x86", (2, 62): "x86_64", (2, 243): "riscv64"}
"""Class (1: 32 bits, 2: 64) and machine of an ABI."""
LOAD, DYNAMIC, INTERPRETER = 1, 2, 3
NEEDED, STRINGS = 1, 5
MOST_HEADERS, LONGEST_NAME = 256, 4096


class NotElf(ValueError):
    """The file is no ELF file, or not a whole one; the message says what is wrong."""


@dataclass(frozen=True)
class Elf:
    abi: str
    """`class C machine M` of one that is no ABI of Android's."""
    needed: tuple[str, ...]
    interpreter: str
    """Path of its loader; empty: it is a library, or static."""


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read_elf(content: bytes) -> Elf:
    """Raises NotElf."""
    try:
        return _read(content)
    except (struct.error, UnicodeDecodeError, OverflowError) as e:
        raise NotElf(f"it is cut off or damaged: {e}") from e


def _read(content: bytes) -> Elf:
    if content[:4] != MAGIC or content[4:6] not in (b"\1\1", b"\2\1"):
        raise NotElf("it is no ELF file of a little-endian machine")
    wide = content[4] == 2
    (machine,) = struct.unpack_from("<H", content, 18)
    (start,) = struct.unpack_from("<Q" if wide else "<I", content, 32 if wide else 28)
    size, count = struct.unpack_from("<HH", content, 54 if wide else 42)
    if count > MOST_HEADERS:
        raise NotElf(f"it has {count} program headers")
    headers = [_header(content, start + place * size, wide) for place in range(count)]
    needed, strings = list[int](), 0
    for _, offset, _, length in (each for each in headers if each[0] == DYNAMIC):
        pair = "<qQ" if wide else "<iI"
        for tag, value in struct.iter_unpack(pair, _part(content, offset, length - length % struct.calcsize(pair))):
            if tag == 0:
                break
            needed += [value] if tag == NEEDED else []
            strings = value if tag == STRINGS else strings
    table = next((at + strings - address for kind, at, address, length in headers
                  if kind == LOAD and address <= strings < address + length), strings)  # fmt: skip
    loaders = [_part(content, offset, length) for kind, offset, _, length in headers if kind == INTERPRETER]
    return Elf(
        MACHINES.get((content[4], machine), f"class {content[4]} machine {machine}"),
        tuple(_name(content, table + each) for each in needed),
        loaders[0].rstrip(b"\0").decode() if loaders else "",
    )


def _header(content: bytes, at: int, wide: bool) -> tuple[int, int, int, int]:
    """Kind, offset, address, and length in the file."""
    if wide:
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", content, at)
    else:
        kind, offset, address, _, length = struct.unpack_from("<IIIII", content, at)
    return kind, offset, address, length


def _part(content: bytes, start: int, length: int) -> bytes:
    if start + length > len(content):
        raise NotElf("it is cut off")
    return content[start : start + length]


def _name(content: bytes, at: int) -> str:
    end = content.find(b"\0", at, at + LONGEST_NAME) if at < len(content) else -1
    if end < 0:
        raise NotElf("the name of a library that it needs is cut off")
    return content[at:end].decode()
