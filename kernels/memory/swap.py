"""Swapping: what is needed only much later waits in host memory (study M).

What goes is chosen by Belady's rule: the buffer whose next use is furthest; one that the host still has counts for
more, because nothing is moved. Each stay of a buffer on the device is a buffer of its own, so that it may come back to
another place.

Weights may be offloaded: they wait in host memory from the start, as what is swapped out does later. A queue of its own
moves swaps on some devices; there, tensors come back a few steps ahead of their use, so that kernels run meanwhile.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from kernels.checkpoint import checkpoint
from kernels.errors import LimitExceeded
from kernels.lower.draft import Draft, DraftBuffer
from kernels.plan.model import BufferArgument, Copy, Dispatch, Step, SwapIn, SwapOut
from kernels.plan.steps import LASTING, touched, written

_CLEAN = 2
"""How much further a buffer's next use counts where the host still has its content."""


_AHEAD = 4
"""Steps ahead of its use a tensor comes back, where swaps have a queue of their own."""
_FAR = 8
"""What is needed within so many steps more is not moved away for that: chosen on PyNET (docs/decisions/0083)."""


def swap(draft: Draft, budget: int, *, offloaded: Set[str] = frozenset(), ahead: bool = False) -> Draft:
    """The draft with swaps, so that activations and scratch of at most `budget` bytes live at once.

    `offloaded`: weights that count, too, and wait in host memory. `ahead`: tensors come back ahead of their use. Raises
    LimitExceeded where a single step needs more.
    """
    return _Swapper(draft, budget, offloaded, ahead).run()


def moved_bytes(draft: Draft) -> int:
    """What the swaps of a draft move."""
    return sum(draft.buffers[step.buffer].size for step in draft.steps if isinstance(step, SwapIn | SwapOut))


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
    offloaded: Set[str]
    ahead: bool
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._all = self.draft.buffers
        self._parameters = self.draft.parameters
        self._buffers = {name: b for name, b in self._all.items() if b.role not in LASTING or name in self.offloaded}
        self._needs = [sorted(set(touched(step)) & self._buffers.keys()) for step in self.draft.steps]
        self._uses: dict[str, list[int]] = {}
        for index, names in enumerate(self._needs):
            for name in names:
                self._uses.setdefault(name, []).append(index)
        self._on_device: dict[str, _Stay] = {}
        self._on_host = set(self.offloaded)
        self._stays: dict[str, DraftBuffer] = {}
        self._count: dict[str, int] = {}

    def run(self) -> Draft:
        for index, step in enumerate(self.draft.steps):
            checkpoint()
            needed = self._needs[index]
            self._make_room(index, step, needed)
            for name in needed:
                self._bring(name, step.layer)
            if self.ahead:
                self._bring_ahead(index)
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

    def _bring_ahead(self, index: int) -> None:
        """What the next steps need, as far as there is room beside them and what is needed soon after."""
        kept = set(self._needs[index])
        last = min(index + _AHEAD, len(self.draft.steps) - 1)
        for later in range(index + 1, last + 1):
            kept |= set(self._needs[later])
            for name in self._needs[later]:
                if name in self._on_device or name not in self._on_host:
                    continue
                if not self._has_room(self._buffers[name].size, index, later, kept):
                    return
                self._bring(name, self.draft.steps[later].layer)

    def _has_room(self, size: int, index: int, later: int, kept: set[str]) -> bool:
        """Whether `size` bytes more fit, once what is needed only much later than `later` is moved away."""
        held = size + sum(self._buffers[name].size for name in self._on_device)
        while held > self.budget:
            others = [name for name in self._on_device if name not in kept]
            name = max(others, key=lambda n: self._distance(n, index), default=None)
            following = None if name is None else self._next_use(name, index)
            if name is None or following is None or following <= later + _FAR:
                return False
            held -= self._buffers[name].size
            self._move_away(name, self.draft.steps[later].layer)
        return True

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
        self._stays[stay] = self._stay(name, stay, is_first=count == 0)
        self._on_device[name] = _Stay(stay, is_clean=name in self._on_host)
        if name in self._on_host:
            self.steps.append(SwapIn(layer=layer, buffer=stay, host=name))

    def _stay(self, name: str, stay: str, *, is_first: bool) -> DraftBuffer:
        """The first stay of a weight has its content; the host keeps that."""
        if name not in self.offloaded:
            return replace(self._buffers[name], id=stay)
        if is_first:
            return replace(self._buffers[name], role="offloaded")
        return replace(self._buffers[name], id=stay, role="scratch", content=None)


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
