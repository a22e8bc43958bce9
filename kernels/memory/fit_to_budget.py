"""A draft that fits the device's memory: the cheapest of the ways to save it (study M's) that is enough.

In the order in which they are tried: results in the place of their operands, and nodes in the order that needs least
(always); convolutions over parts instead of concats; tensors in smaller parts; swapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernels.errors import LimitExceeded, PlanError, TooManyParts, checkpoint
from kernels.ir.graph import Array, Graph
from kernels.ir.packed import packed_bytes
from kernels.lower.draft import Draft
from kernels.lower.gpu import joined_copies, lower_gpu
from kernels.options import Limits, Options
from kernels.passes import divided, fused
from kernels.passes.split_weights import DIVISIBLE, largest_weight, oversized, split_weights

from .choose_layout import fits, place_memory, total_bytes
from .floor import Floor, floor_of
from .layout import Layout
from .offload import swap_to_fit
from .waves import in_waves

_SHARES = (8, 16, 32)
"""Parts of the budget that one tensor may take, where it must be split to fit."""
_DESKTOP_SHARE = 5
"""The first of them where the device's memory is its own: kernels gain more than swaps lose."""
_MARGINS = (1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6)
"""Shares of the room that may be taken: offsets leave gaps."""

_WEIGHTS = 2048
"""Weights below such a part of the budget are not offloaded: each costs a wait, and all of them little room."""


@dataclass(frozen=True)
class Way:
    """A way to save memory."""

    split: bool = False
    """Concats are removed."""
    largest_bytes: int = 0
    """Bytes of one tensor; 0: any size."""
    swap: bool = False

    @property
    def words(self) -> str:
        parts = ["split" if self.split else "join"]
        parts += [f"parts of {self.largest_bytes} bytes"] if self.largest_bytes else []
        return ", ".join([*parts, *(["swap"] if self.swap else [])])


def budget_of(options: Options, limits: Limits) -> int:
    """Bytes that the plan may take: what was asked for, but no more than the device has; 0: not known."""
    known = [size for size in (options.memory_budget, limits.memory_budget_bytes) if size]
    return min(known, default=0)


def lower_to_fit(graph: Graph, options: Options, limits: Limits) -> tuple[Draft, Layout]:
    """Lower a graph for a GPU so that it keeps to the budget, and lay it out.

    A way that takes more than the budget even at least (`floor.py`) is not lowered. Raises LimitExceeded with the
    figures where nothing is enough. What keeps to the budget, but has an allocation above the largest, is left to the
    validation of the plan, which knows it by name.
    """
    limits = replace(limits, memory_budget_bytes=budget_of(options, limits))
    search = _Search(limits.memory_budget_bytes)
    whole = fused(graph, options, local_bytes=limits.local_bytes)
    for way in _ways(options, limits):
        checkpoint()
        try:
            parted, in_parts = _divided(whole, way, options, limits)
        except TooManyParts as e:
            search.leave_out(e)
            continue
        if search.budget and not search.may_fit(floor_of(parted, options, swap=way.swap)):
            continue
        draft = lower_gpu(parted, options, limits)
        draft.in_parts |= in_parts
        draft.saved = way.words
        layout = place_memory(draft, options, limits)
        if way.swap and not fits(layout.pools, limits):
            try:
                draft, layout = _swapped(draft, layout, options, limits)
            except PlanError as e:
                search.refused = e
                continue
        if fits(layout.pools, limits):
            return (draft, layout) if way.swap else _in_fewer_steps(draft, layout, options, limits)
        search.note(draft, layout)
    if search.too_large is not None:
        return search.too_large
    raise LimitExceeded(f"{search.figures(options, limits)}; {_mend(options)}")


@dataclass
class _Search:
    """The best findings while nothing was enough."""

    budget: int
    floor: Floor | None = None
    """The lowest."""
    least: tuple[int, str] | None = None
    """Bytes of the smallest plan that was made, and how."""
    refused: PlanError | None = None
    """The reason why swapping was not enough."""
    endless: TooManyParts | None = None
    too_large: tuple[Draft, Layout] | None = None

    def may_fit(self, floor: Floor) -> bool:
        """Note the least that a way takes."""
        self.floor = min(self.floor or floor, floor, key=lambda each: each.total)
        return floor.total <= self.budget

    def leave_out(self, why: TooManyParts) -> None:
        """A way of more parts than are tried: of activations it may take next to nothing."""
        self.endless = why
        self.floor = replace(self.floor, activations=0) if self.floor else None

    def note(self, draft: Draft, layout: Layout) -> None:
        """A plan that does not fit."""
        size = total_bytes(layout.pools)
        if not self.budget or size <= self.budget:
            self.too_large = draft, layout
        self.least = min(self.least or (size, draft.saved), (size, draft.saved))

    def figures(self, options: Options, limits: Limits) -> str:
        parts = []
        if self.floor is not None:
            parts.append(
                f"the network needs at least {self.floor.total} bytes of device memory "
                f"({self.floor.words}){self._over(self.floor.total)}"
            )
        if self.least is not None:
            parts.append(
                f"the smallest plan found needs {self.least[0]} bytes ({self.least[1]}){self._over(self.least[0])}"
            )
        if limits.max_buffer_bytes:
            parts.append(f"the largest allocation is {limits.max_buffer_bytes} bytes")
        if self.refused is not None:
            parts.append(f"with swapping: {self.refused}")
        if options.swap == "never":
            parts.append("swapping is switched off")
        if self.endless is not None and (self.floor is None or self.floor.total <= self.budget):
            parts.append(f"smaller parts were not tried: {self.endless}")
        return "; ".join(parts)

    def _over(self, size: int) -> str:
        return f", {size - self.budget} more than the memory budget of {self.budget}" if size > self.budget > 0 else ""


def _divided(graph: Graph, way: Way, options: Options, limits: Limits) -> tuple[Graph, dict[str, str]]:
    """Divide the fused graph, and weights larger than a buffer; return also the layers in parts, with the reason."""
    prepared = divided(graph, options, split=way.split, largest_bytes=way.largest_bytes)
    cuts = oversized(prepared, largest_weight(options, limits))
    in_parts = {
        node.name: f"{len(cuts[node.name])} parts by output features: its "
        f"{_bytes(prepared.constants[node.inputs[1]], options)} bytes of weights exceed the largest "
        f"buffer of {limits.max_buffer_bytes}"
        for node in prepared.nodes
        if node.op in DIVISIBLE and node.name in cuts
    }
    return split_weights(prepared, cuts), in_parts


def _bytes(weight: Array, options: Options) -> int:
    return packed_bytes(weight, weight.size, 2 if options.half else 4)


def _ways(options: Options, limits: Limits) -> Iterator[Way]:
    """Yield the ways, the cheapest first."""
    largest, budget = limits.max_buffer_bytes, limits.memory_budget_bytes
    modes = {"auto": (False, True), "join": (False,), "split": (True,)}[options.concat]
    fused = not options.keep_all
    for split in modes if fused else (False,):
        yield Way(split, largest if fused else 0)
    if not budget:
        return
    shares = _SHARES if limits.unified_memory else (_DESKTOP_SHARE, *_SHARES)
    smaller = [size for size in (budget // share for share in shares) if not largest or size < largest]
    if fused and True in modes:
        yield from (Way(True, size) for size in smaller)
    if options.swap == "auto":
        yield from (Way(modes[-1] and fused, size if fused else 0, swap=True) for size in (smaller or [largest]))


def _in_fewer_steps(draft: Draft, layout: Layout, options: Options, limits: Limits) -> tuple[Draft, Layout]:
    """Join steps that unpack weights, and sort steps into waves, where that is wanted and fits."""
    gains = options.backend == "vulkan" and not limits.cpu_device
    unwanted = options.order == "memory" or (options.order == "auto" and not gains)
    for change in (joined_copies,) if unwanted else (joined_copies, in_waves):
        changed = change(draft)
        placed = layout if changed is draft else place_memory(changed, options, limits)
        if fits(placed.pools, limits):
            draft, layout = changed, placed
    return draft, layout


def _swapped(draft: Draft, layout: Layout, options: Options, limits: Limits) -> tuple[Draft, Layout]:
    """Swap with as few bytes moved as the budget allows. Raises LimitExceeded where a single step needs more."""
    least = limits.memory_budget_bytes // _WEIGHTS
    weights = [name for name, b in draft.buffers.items() if b.role == "weight" and b.size >= least]
    fixed = total_bytes([pool for pool in layout.pools if not pool.id.startswith("arena")])
    fixed -= sum(draft.buffers[name].size for name in weights)
    room = limits.memory_budget_bytes - fixed
    if room <= 0:
        raise LimitExceeded(f"small weights, inputs and outputs alone take {fixed} bytes")
    for margin in _MARGINS:
        swapped = swap_to_fit(draft, int(room * margin), weights, ahead=not limits.unified_memory)
        placed = place_memory(swapped, options, limits)
        if fits(placed.pools, limits):
            break
    return swapped, placed


def _mend(options: Options) -> str:
    algorithm = "" if options.algorithm == "direct" else " or algorithm (`direct` has the smallest weights)"
    return f"give a larger memory_budget, another precision{algorithm}, a smaller workspace or input"
