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
from dataclasses import dataclass, replace
from typing import NamedTuple

from kernels.errors import LimitExceeded, checkpoint
from kernels.lower.draft import Draft, DraftBuffer
from kernels.plan.model import BufferArgument, Copy, Dispatch, Step, SwapIn, SwapOut
from kernels.plan.steps import LASTING, touched, written

_CLEAN = 2
"""The factor by which a buffer's next use counts as further where the host still has its content."""


_AHEAD = 4
"""Steps ahead of its use a tensor comes back, where swaps have a queue of their own."""
_FAR = 8
"""Steps within which a needed buffer is not moved away for that: chosen on PyNET."""


class Swaps:
    """Adds swaps to a draft, so that activations and scratch of at most `budget` bytes live at once: for any number of
    tries, for which what the steps use is found once.

    `offloaded`: weights that count, too, and wait in host memory. `ahead`: tensors come back ahead of their use. Both
    methods raise LimitExceeded where a single step needs more.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._uses = [(set(touched(step)), set(written(step, draft.parameters))) for step in draft.steps]

    def moved_bytes(self, budget: int, *, offloaded: Set[str]) -> int:
        """Return the bytes that swaps move in an inference, where nothing comes back ahead of its use."""
        return self._planned(budget, offloaded, ahead=False).moved_bytes

    def swapped(self, budget: int, *, offloaded: Set[str] = frozenset(), ahead: bool = False) -> Draft:
        return self._planned(budget, offloaded, ahead).made()

    def _planned(self, budget: int, offloaded: Set[str], ahead: bool) -> _Swapper:
        swapper = _Swapper(self._draft, self._uses, budget, offloaded, ahead)
        swapper.plan()
        return swapper


class _Moved(NamedTuple):
    """Content of a buffer goes to host memory, or comes back to where it stays then."""

    kind: type[SwapIn] | type[SwapOut]
    layer: str
    stay: str
    name: str

    def written_out(self) -> Step:
        return self.kind(layer=self.layer, buffer=self.stay, host=self.name)


class _Done(NamedTuple):
    """A step of the draft, and where the buffers that it uses stay."""

    step: Step
    stays: dict[str, str]

    def written_out(self) -> Step:
        return _renamed(self.step, {name: stay for name, stay in self.stays.items() if stay != name})


@dataclass
class _Stay:
    """A buffer on the device."""

    id: str
    is_clean: bool
    """True if the host has the same content."""


@dataclass
class _Swapper:
    draft: Draft
    uses: Sequence[tuple[Set[str], Set[str]]]
    """Buffers that each step touches, and those that it writes."""
    budget: int
    offloaded: Set[str]
    ahead: bool
    moved_bytes: int = 0

    def __post_init__(self) -> None:
        self._all = self.draft.buffers
        self._buffers = {name: b for name, b in self._all.items() if b.role not in LASTING or name in self.offloaded}
        self._needs = [sorted(touches & self._buffers.keys()) for touches, _ in self.uses]
        self._uses: dict[str, list[int]] = {}
        for index, names in enumerate(self._needs):
            for name in names:
                self._uses.setdefault(name, []).append(index)
        self._on_device: dict[str, _Stay] = {}
        self._held = 0
        """Bytes of what is on the device."""
        self._on_host = set(self.offloaded)
        self._order: list[_Moved | _Done] = []
        self._stays: dict[str, tuple[str, bool]] = {}
        """Buffers to be -> of which they are a stay, and whether it is the first."""
        self._count: dict[str, int] = {}

    def plan(self) -> None:
        for index, step in enumerate(self.draft.steps):
            checkpoint()
            needed = self._needs[index]
            self._make_room(index, step, needed)
            for name in needed:
                self._bring(name, step.layer)
            if self.ahead:
                self._bring_ahead(index)
            self._order.append(_Done(step, {name: self._on_device[name].id for name in needed}))
            for name in self.uses[index][1] & set(needed):
                self._on_device[name].is_clean = False
                self._on_host.discard(name)
            for name in needed:
                if self._next_use(name, index) is None:
                    self._take_off(name)

    def made(self) -> Draft:
        """The draft, as planned."""
        steps = [each.written_out() for each in self._order]
        others = {name: b for name, b in self._all.items() if name not in self._buffers}
        stays = {stay: self._stay(name, stay, is_first=is_first) for stay, (name, is_first) in self._stays.items()}
        return replace(self.draft, steps=steps, buffers={**others, **stays})

    def _make_room(self, index: int, step: Step, needed: Sequence[str]) -> None:
        """Move away what is needed last until the step's buffers fit."""
        size = sum(self._buffers[name].size for name in needed)
        if size > self.budget:
            raise LimitExceeded(
                f"layer {step.layer!r} alone needs {size} bytes of activations and scratch at once, "
                f"{size - self.budget} more than the {self.budget} that the memory budget leaves"
            )
        missing = sum(self._buffers[name].size for name in needed if name not in self._on_device)
        while self._held + missing > self.budget:
            name = max((n for n in self._on_device if n not in needed), key=lambda n: self._distance(n, index))
            self._move_away(name, step.layer)

    def _bring_ahead(self, index: int) -> None:
        """Bring what the next steps need, as far as there is room beside them and what is needed soon after."""
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
        """Return whether `size` bytes more fit, once what is needed only much later than `later` is moved away."""
        while self._held + size > self.budget:
            others = [name for name in self._on_device if name not in kept]
            name = max(others, key=lambda n: self._distance(n, index), default=None)
            following = None if name is None else self._next_use(name, index)
            if name is None or following is None or following <= later + _FAR:
                return False
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
        stay = self._take_off(name)
        if not stay.is_clean:
            self._move(SwapOut, layer, stay.id, name)
            self._on_host.add(name)

    def _take_off(self, name: str) -> _Stay:
        self._held -= self._buffers[name].size
        return self._on_device.pop(name)

    def _move(self, kind: type[SwapIn] | type[SwapOut], layer: str, stay: str, name: str) -> None:
        self._order.append(_Moved(kind, layer, stay, name))
        self.moved_bytes += self._buffers[name].size

    def _bring(self, name: str, layer: str) -> None:
        if name in self._on_device:
            return
        count = self._count.get(name, 0)
        self._count[name] = count + 1
        stay = name if count == 0 else f"{name}@{count}"
        self._stays[stay] = name, count == 0
        self._on_device[name] = _Stay(stay, is_clean=name in self._on_host)
        self._held += self._buffers[name].size
        if name in self._on_host:
            self._move(SwapIn, layer, stay, name)

    def _stay(self, name: str, stay: str, *, is_first: bool) -> DraftBuffer:
        """The first stay of a weight has its content; the host keeps that."""
        if name not in self.offloaded:
            return replace(self._buffers[name], id=stay)
        if is_first:
            return replace(self._buffers[name], role="offloaded")
        return replace(self._buffers[name], id=stay, role="scratch", content=None)


def _renamed(step: Step, names: dict[str, str]) -> Step:
    if not names:
        return step
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
