"""Where a tensor is: up to three representations, each made when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

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

    @property
    def argument(self) -> BufferArgument:
        return PartArgument(buffer=self.buffer, part=self.part) if self.part else BufferArgument(buffer=self.buffer)

    def ints(self, name: str) -> dict[str, int]:
        """The scalars by which kernels address it."""
        return {f"{name}_stacks": self.stacks, f"{name}_stack0": self.stack0}


@dataclass
class Value:
    """Representations of one tensor that exist so far."""

    packed: View | None = None
    plain: str | None = None
    """Row-major buffer of the plan's data type."""
    single: str | None = None
    """Row-major fp32 buffer; the same as `plain` in fp32 plans."""

    def lies_in(self, buffer: str) -> bool:
        """Whether any representation is in a buffer."""
        return buffer in (self.plain, self.single) or (self.packed is not None and self.packed.buffer == buffer)


@dataclass(frozen=True)
class Dims:
    """A tensor seen as images of channels: rank 4 as it is, rank 2 with one pixel, any other as one flat row.

    The "channels" of a flat row are its elements: only what works element by element may use them (`has_channels`).
    """

    n: int
    c: int
    h: int
    w: int

    @property
    def hw(self) -> int:
        return self.h * self.w

    @property
    def stacks(self) -> int:
        return -(-self.c // 4)

    @property
    def elements(self) -> int:
        return self.n * self.c * self.hw

    @property
    def packed_elements(self) -> int:
        return self.n * self.stacks * 4 * self.hw


def has_channels(shape: tuple[int, ...]) -> bool:
    """Whether the stacks of a tensor are of its channels (axis 1)."""
    return len(shape) in (2, 4)


def dims_of(shape: tuple[int, ...]) -> Dims:
    """See `Dims`."""
    if len(shape) == 4:
        return Dims(*shape)
    if len(shape) == 2:
        return Dims(shape[0], shape[1], 1, 1)
    return Dims(1, prod(shape), 1, 1)
