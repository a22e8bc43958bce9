"""A draft that fits the device's memory: the cheapest of the ways to save it (study M's) that is enough.

In the order in which they are tried: results in the place of their operands, and nodes in the order that needs least
(always); convolutions over parts instead of concats; tensors in smaller parts; swapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .checkpoint import checkpoint
from .errors import PlanError
from .graph import Graph
from .lower.draft import Draft
from .lower.gpu import lower_gpu
from .options import Limits, Options
from .passes import prepare
from .passes.order import peak_elements
from .passes.split_weights import largest_weight, oversized, split_weights
from .placing import fits, place_memory, total_bytes
from .plan import Pool
from .swapping import swap
from .waves import in_waves

_SHARES = (8, 16, 32)
"""Parts of the budget that one tensor may take, where it must be split to fit."""
_MARGINS = (1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6)
"""Of the arena, what may live at once: offsets leave gaps."""


@dataclass(frozen=True)
class Way:
    """How memory is saved."""

    split: bool = False
    """Concats are removed."""
    largest_bytes: int = 0
    """Of one tensor; 0: any size."""
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


def lower_to_fit(graph: Graph, options: Options, limits: Limits) -> Draft:
    """Lower a graph for a GPU so that it keeps to the budget.

    Raises PlanError with the figures where nothing is enough. What keeps to the budget, but has an allocation above the
    largest, is left to the validation of the plan, which knows it by name.
    """
    budget = budget_of(options, limits)
    limits = replace(limits, memory_budget_bytes=budget)
    least: tuple[int, str] | None = None
    refused: PlanError | None = None
    too_large: Draft | None = None
    fixed = 0  # weights, inputs and outputs, once they are known
    for way in _ways(options, limits):
        checkpoint()
        prepared = prepare(graph, options, split=way.split, largest_bytes=way.largest_bytes)
        floor = fixed + peak_elements(prepared) * (2 if options.half else 4)
        if not way.swap and fixed and budget and floor > budget:
            continue
        draft = _lower(prepared, options, limits)
        draft.saved = way.words
        pools, _ = place_memory(draft, options, limits)
        fixed = total_bytes([pool for pool in pools if not pool.id.startswith(("arena", "image"))])
        if way.swap and not fits(pools, limits):
            try:
                draft, pools = _swapped(draft, fixed, options, limits)
            except PlanError as e:
                refused = e
                continue
        if fits(pools, limits):
            return draft if way.swap else _in_waves(draft, options, limits)
        size = total_bytes(pools)
        if not budget or size <= budget:
            too_large = draft
        least = min(least or (size, way.words), (size, way.words))
    if too_large is not None:
        return too_large
    raise PlanError(_figures(least, refused, budget, options, limits))


def _lower(prepared: Graph, options: Options, limits: Limits) -> Draft:
    """Lowered, with weights that no buffer could hold in parts."""
    cuts = oversized(prepared, largest_weight(options, limits))
    draft = lower_gpu(split_weights(prepared, cuts), options, limits)
    draft.in_parts = {
        node.name: f"{len(cuts[node.name])} parts by output features: its "
        f"{prepared.constants[node.inputs[1]].size * (2 if options.half else 4)} bytes of weights exceed the largest "
        f"buffer of {limits.max_buffer_bytes}"
        for node in prepared.nodes
        if node.name in cuts
    }
    return draft


def _ways(options: Options, limits: Limits) -> Iterator[Way]:
    """From the cheapest on."""
    largest, budget = limits.max_buffer_bytes, limits.memory_budget_bytes
    modes = {"auto": (False, True), "join": (False,), "split": (True,)}[options.concat]
    fused = not options.keep_all
    for split in modes if fused else (False,):
        yield Way(split, largest if fused else 0)
    if not budget:
        return
    smaller = [size for size in (budget // share for share in _SHARES) if not largest or size < largest]
    if fused and True in modes:
        yield from (Way(True, size) for size in smaller)
    if options.swap == "auto":
        yield from (Way(modes[-1] and fused, size if fused else 0, swap=True) for size in (smaller or [largest]))


def _in_waves(draft: Draft, options: Options, limits: Limits) -> Draft:
    """In waves where they are wanted and fit as well."""
    gains = options.backend == "vulkan" and not limits.cpu_device
    if options.order == "memory" or (options.order == "auto" and not gains):
        return draft
    waved = in_waves(draft)
    return waved if fits(place_memory(waved, options, limits)[0], limits) else draft


def _swapped(draft: Draft, fixed: int, options: Options, limits: Limits) -> tuple[Draft, list[Pool]]:
    """With as few swaps as the budget allows. Raises PlanError where a single step needs more."""
    arena = limits.memory_budget_bytes - fixed
    if arena <= 0:
        raise PlanError(f"weights, inputs and outputs alone take {fixed} bytes")
    for margin in _MARGINS:
        swapped = swap(draft, int(arena * margin))
        pools, _ = place_memory(swapped, options, limits)
        if fits(pools, limits):
            break
    return swapped, pools


def _figures(
    least: tuple[int, str] | None, refused: PlanError | None, budget: int, options: Options, limits: Limits
) -> str:
    parts = []
    if least is not None:
        over = f", {least[0] - budget} more than the memory budget of {budget}" if budget and least[0] > budget else ""
        parts.append(f"the network needs {least[0]} bytes of device memory at least ({least[1]}){over}")
    if limits.max_buffer_bytes:
        parts.append(f"the largest allocation is {limits.max_buffer_bytes} bytes")
    if refused is not None:
        parts.append(f"with swapping: {refused}")
    elif options.swap == "never":
        parts.append("swapping is switched off")
    algorithm = "" if options.algorithm == "direct" else " or algorithm (`direct` has the smallest weights)"
    mend = f"give a larger memory_budget, another precision{algorithm}, a smaller workspace or input"
    return f"{'; '.join(parts)}; {mend}"
