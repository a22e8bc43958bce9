"""The savings of each way to save memory in one network: the same plan with one more of them, from none on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.live_memory import LiveMemory, live_memory

STEPS: dict[str, dict[str, Any]] = {
    "none of them": {"in_place": False, "concat": "join"},
    "in place, in the order that needs least": {"concat": "join"},
    "concats removed": {"concat": "split"},
}
"""Each beside those before it; what then follows is what was asked for, with its budget: smaller parts, swapping."""


@dataclass(frozen=True)
class Saving:
    """One more way."""

    way: str
    memory: LiveMemory | None
    """None: no such plan can be made."""
    why_not: str = ""


def savings(graph: Graph, options: Options, limits: Limits) -> Iterator[Saving]:
    """The steps in their order, then the plan as it was asked for: for that alone the memory has limits."""
    free = replace(limits, memory_budget_bytes=0, max_buffer_bytes=0)
    unlimited = replace(options, memory_budget=0, largest_object=0, swap="never")
    for way, changes in STEPS.items():
        yield _saving(way, graph, replace(unlimited, **changes), free)
    yield _saving("as asked for", graph, options, limits)


def _saving(way: str, graph: Graph, options: Options, limits: Limits) -> Saving:
    try:
        plan = compile_graph(graph, options, limits).plan
    except CompileError as e:
        return Saving(way, None, str(e))
    saved = plan.options.get("memory", "")
    return Saving(f"{way} ({saved})" if way == "as asked for" and saved else way, live_memory(plan))
