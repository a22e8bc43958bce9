"""The places of a tensor: up to three representations, each made when first needed."""

from __future__ import annotations

from dataclasses import dataclass

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

    def lies_in(self, buffer: str) -> bool:
        """Return whether any representation is in a buffer."""
        return buffer in (self.plain, self.single, self.dealt) or (
            self.packed is not None and self.packed.buffer == buffer
        )
