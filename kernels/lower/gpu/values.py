"""Where a tensor is: up to three representations, each made when first needed."""

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
