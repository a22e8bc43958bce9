"""Garbage in place of what an agent wrote: the same length, reproducible, never valid JSON."""

from __future__ import annotations

import random


class Garbler:
    """Spoils bytes; line ends stay, so that readers which go by lines get lines."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def spoil(self, data: bytes) -> bytes:
        """Bytes of the same length, with the line ends where they were."""
        noise = self._random.randbytes(len(data)).replace(b"\n", b"\xff").replace(b"{", b"\xfe")
        return bytes(old if old == 0x0A else new for old, new in zip(data, noise, strict=True))
