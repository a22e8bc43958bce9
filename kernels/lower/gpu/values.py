"""The places of a tensor: up to three representations, each made when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernels.plan.model import BufferArgument, PartArgument


@dataclass(frozen=True)
class View:
    """A range of a buffer's four-channel stacks."""

    buffer: str
    stacks: int
    """Stacks of one image of the whole buffer."""
    stack0: int
    part: tuple[int, int] | None = None
    """Its bytes, where they are known and not the whole buffer."""
    planes: int = 0
    """Channels of a port that a kernel reads itself: it has no stacks but so many channels, each a row-major plane of
    fp32; there `stacks` counts these."""

    @property
    def argument(self) -> BufferArgument:
        return PartArgument(buffer=self.buffer, part=self.part) if self.part else BufferArgument(buffer=self.buffer)

    def ints(self, name: str) -> dict[str, int]:
        """The scalars by which kernels address it."""
        return {f"{name}_stacks": self.stacks, f"{name}_stack0": self.stack0}


@dataclass(frozen=True)
class CodeBuffer:
    """A tensor in whole numbers of 8 bits, less 128: words of four channels (n, stacks, hw)."""

    words: str
    steps: str
    """Vectors of the scale and the whole number of 0, less 128: one a picture, or one for all."""
    by_picture: bool


@dataclass
class Value:
    """Representations of one tensor that exist so far."""

    packed: View | None = None
    plain: str | None = None
    """Row-major buffer of the plan's data type."""
    single: str | None = None
    """Row-major fp32 buffer; the same as `plain` in fp32 plans."""
    dealt: str | None = None
    """Rows of the last axis as matrix units have them (`kernels/parts/dealt_place.c`)."""

    until: int = field(default=-1, compare=False)
    """The last node that reads one of the tensors that lie here."""
    _buffers: dict[str, int] | None = field(default=None, compare=False, repr=False)

    def share(self, until: int, buffers: dict[str, int]) -> None:
        """Let a tensor lie here that nodes read until this one; `buffers` learns it of each place, now and later."""
        self.until, self._buffers = max(self.until, until), buffers
        for name in ("packed", "plain", "single", "dealt"):
            setattr(self, name, getattr(self, name))

    def __setattr__(self, name: str, place: Any) -> None:
        super().__setattr__(name, place)
        if isinstance(place, str | View) and self._buffers is not None:
            buffer = place.buffer if isinstance(place, View) else place
            self._buffers[buffer] = max(self._buffers.get(buffer, -1), self.until)


class Values(dict[str, Value]):
    """The places of all tensors; `read_until` of each buffer is the last node that reads what lies in it."""

    def __init__(self, last_read: Mapping[str, int]) -> None:
        super().__init__()
        self._last_read = last_read
        self.read_until: dict[str, int] = {}

    def __setitem__(self, tensor: str, value: Value) -> None:
        value.share(self._last_read.get(tensor, -1), self.read_until)
        super().__setitem__(tensor, value)

    def of(self, tensor: str) -> Value:
        """Return a tensor's places, which are none before it has some."""
        if tensor not in self:
            self[tensor] = Value()
        return self[tensor]
