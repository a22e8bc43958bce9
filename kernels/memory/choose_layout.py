"""The choice of a draft's memory plan (`memory.py`): offsets in few pools, or objects that buffers share."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.lower.draft import Draft
from kernels.options import Limits, Options
from kernels.plan.model import Pool

from .layout import WORKING, Layout, plan_memory


def place_memory(draft: Draft, options: Options, limits: Limits) -> Layout:
    """The asked plan; with `auto` the preferred one, unless only the other fits; the smaller where neither does.

    Desktop OpenCL prefers objects, every other device offsets.
    """
    prefers_objects = options.backend == "opencl" and not limits.unified_memory
    ways = {"auto": (prefers_objects, not prefers_objects), "offsets": (False,), "objects": (True,)}[options.pools]
    layouts: list[Layout] = []
    for objects in ways:
        layouts.append(_layout(draft, options, limits, objects))
        if fits(layouts[-1].pools, limits):
            return layouts[-1]
    return min(layouts, key=lambda layout: total_bytes(layout.pools))


def fits(pools: Sequence[Pool], limits: Limits) -> bool:
    """Return whether the pools keep to the memory budget and to the largest allocation, where these are known."""
    largest = max((pool.bytes for pool in pools if not pool.api), default=0)
    within = not limits.memory_budget_bytes or total_bytes(pools) <= limits.memory_budget_bytes
    return within and (not limits.max_buffer_bytes or largest <= limits.max_buffer_bytes)


def total_bytes(pools: Sequence[Pool]) -> int:
    """Return the bytes on the plan's own device."""
    return sum(pool.bytes for pool in pools if not pool.api)


def _layout(draft: Draft, options: Options, limits: Limits, objects: bool) -> Layout:
    return plan_memory(
        draft,
        alignment=max(16, limits.offset_alignment),
        largest=limits.max_buffer_bytes,
        shared=_shared(options, limits),
        objects=objects,
    )


def _shared(options: Options, limits: Limits) -> tuple[str, ...]:
    """Kinds of pools that host and device both see."""
    unified = ("ports",) if limits.unified_memory else ()
    mapped = ("ports", "weights")
    return {"auto": unified, "copy": (), "map": mapped, "map_all": (*mapped, *WORKING)}[options.transfers]
