"""Swapping: what is needed only much later waits in host memory (study M).

What goes is chosen by Belady's rule: the buffer whose next use is furthest; one that the host still has counts for
more, because nothing is moved. Each stay of a buffer on the device is a buffer of its own, so that it may come back to
another place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kernels.checkpoint import checkpoint
from kernels.errors import LimitExceeded
from kernels.lower.draft import Draft, DraftBuffer
from kernels.plan.model import BufferArgument, Copy, Dispatch, Step, SwapIn, SwapOut
from kernels.plan.steps import LASTING, touched, written

_CLEAN = 2
"""How much further a buffer's next use counts where the host still has its content."""


def swap(draft: Draft, budget: int) -> Draft:
    """The draft with swaps, so that activations and scratch of at most `budget` bytes live at once.

    Raises LimitExceeded where a single step needs more.
    """
    return _Swapper(draft, budget).run()


@dataclass
class _Stay:
    """A buffer on the device."""

    id: str
    is_clean: bool
    """Whether the host has the same content."""


@dataclass
class _Swapper:
    draft: Draft
    budget: int
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._all = self.draft.buffers
        self._parameters = self.draft.parameters
        self._buffers = {name: b for name, b in self._all.items() if b.role not in LASTING}
        self._uses: dict[str, list[int]] = {}
        for index, step in enumerate(self.draft.steps):
            for name in set(touched(step)) & self._buffers.keys():
                self._uses.setdefault(name, []).append(index)
        self._on_device: dict[str, _Stay] = {}
        self._on_host: set[str] = set()
        self._stays: dict[str, DraftBuffer] = {}
        self._count: dict[str, int] = {}

    def run(self) -> Draft:
        for index, step in enumerate(self.draft.steps):
            checkpoint()
            needed = sorted(set(touched(step)) & self._buffers.keys())
            self._make_room(index, step, needed)
            for name in needed:
                self._bring(name, step.layer)
            self.steps.append(_renamed(step, {name: self._on_device[name].id for name in needed}))
            for name in set(written(step, self._parameters)) & set(needed):
                self._on_device[name].is_clean = False
                self._on_host.discard(name)
            for name in needed:
                if self._next_use(name, index) is None:
                    del self._on_device[name]
        others = {name: b for name, b in self._all.items() if name not in self._buffers}
        return replace(self.draft, steps=list(self.steps), buffers={**others, **self._stays})

    def _make_room(self, index: int, step: Step, needed: Sequence[str]) -> None:
        """Move away what is needed last until the step's buffers fit."""
        size = sum(self._buffers[name].size for name in needed)
        if size > self.budget:
            raise LimitExceeded(
                f"layer {step.layer!r} alone needs {size} bytes of activations and scratch at once, "
                f"{size - self.budget} more than the {self.budget} that the memory budget leaves"
            )
        held = size + sum(self._buffers[name].size for name in self._on_device if name not in needed)
        while held > self.budget:
            name = max((n for n in self._on_device if n not in needed), key=lambda n: self._distance(n, index))
            held -= self._buffers[name].size
            self._move_away(name, step.layer)

    def _distance(self, name: str, index: int) -> tuple[float, int, str]:
        following = self._next_use(name, index)
        assert following is not None
        is_clean = self._on_device[name].is_clean
        return (following - index) * (_CLEAN if is_clean else 1), self._buffers[name].size, name

    def _next_use(self, name: str, index: int) -> int | None:
        uses = self._uses[name]
        at = bisect_right(uses, index)
        return uses[at] if at < len(uses) else None

    def _move_away(self, name: str, layer: str) -> None:
        stay = self._on_device.pop(name)
        if not stay.is_clean:
            self.steps.append(SwapOut(layer=layer, buffer=stay.id, host=name))
            self._on_host.add(name)

    def _bring(self, name: str, layer: str) -> None:
        if name in self._on_device:
            return
        count = self._count.get(name, 0)
        self._count[name] = count + 1
        stay = name if count == 0 else f"{name}@{count}"
        self._stays[stay] = replace(self._buffers[name], id=stay)
        self._on_device[name] = _Stay(stay, is_clean=name in self._on_host)
        if name in self._on_host:
            self.steps.append(SwapIn(layer=layer, buffer=stay, host=name))


def _renamed(step: Step, names: dict[str, str]) -> Step:
    if isinstance(step, Copy):
        source, target = (names.get(name, name) for name in (step.source, step.target))
        return step.model_copy(update={"source": source, "target": target})
    if isinstance(step, Dispatch):
        arguments = tuple(
            argument.model_copy(update={"buffer": names.get(argument.buffer, argument.buffer)})
            if isinstance(argument, BufferArgument)
            else argument
            for argument in step.arguments
        )
        return step.model_copy(update={"arguments": arguments})
    raise AssertionError("a draft is swapped once")
