"""Steps in waves: those that need nothing of each other stand side by side, so that a device may run them together.

Vulkan orders steps by barriers, and each lets the device run dry. Steps sorted by the longest way to them need one
barrier a wave; memory is shared between waves, not within one, or the steps would have to wait for each other again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernels.checkpoint import checkpoint
from kernels.lower.draft import Draft, DraftStep
from kernels.plan.model import BufferArgument, Copy, Dispatch, PartArgument


@dataclass(frozen=True)
class _Access:
    buffer: str
    begin: int
    end: int
    writes: bool

    def clashes(self, other: _Access) -> bool:
        return (self.writes or other.writes) and self.begin < other.end and other.begin < self.end


def in_waves(draft: Draft) -> Draft:
    """The same steps, each as early as what it reads and overwrites allows. Of drafts that are not swapped yet."""
    earlier: dict[str, list[tuple[int, _Access]]] = defaultdict(list)
    waves: list[int] = []
    for step in draft.steps:
        checkpoint()
        accesses = list(_accesses(draft, step))
        before = (wave for a in accesses for wave, other in earlier[a.buffer] if a.clashes(other))
        waves.append(max(before, default=-1) + 1)
        for access in accesses:
            earlier[access.buffer].append((waves[-1], access))
    order = sorted(range(len(waves)), key=lambda index: waves[index])
    return replace(draft, steps=[draft.steps[i] for i in order], waves=[waves[i] for i in order])


def _accesses(draft: Draft, step: DraftStep) -> Iterator[_Access]:
    if isinstance(step, Copy):
        yield _Access(step.source, step.source_offset, step.source_offset + step.bytes, writes=False)
        yield _Access(step.target, step.target_offset, step.target_offset + step.bytes, writes=True)
    elif isinstance(step, Dispatch):
        kernel = draft.programs[step.program].kernel
        assert kernel is not None, "the CPU backend runs its steps one after the other"
        for parameter, argument in zip(kernel.parameters, step.arguments, strict=True):
            if isinstance(argument, BufferArgument):
                whole = 0, draft.buffers[argument.buffer].size
                part = argument.part if isinstance(argument, PartArgument) else whole
                yield _Access(argument.buffer, *part, writes=parameter.access != "read")
