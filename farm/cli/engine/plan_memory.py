"""The device memory of a plan: drawn over its steps, and what each way to save it saves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farm.cli.output import log, write_whole
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.live_memory import live_memory
from kernels.plan.model import Plan
from orchestrator.report import wording
from orchestrator.report.listing import Head, Listing
from workers.engines.pocketfarm.plans.savings import Saving, savings


def draw(plan: Plan, path: Path) -> None:
    """Raises TableError for a file of another kind."""
    from orchestrator.report.charts.plan_memory import draw as drawn

    write_whole(path, drawn(live_memory(plan), plan.name, int(plan.options["memory_budget"]), path), "--memory-plot")
    log().print(f"memory drawn into {path}")


def saved(graph: Graph, options: Options, limits: Limits) -> list[Saving]:
    return list(savings(graph, options, limits))


def as_data(found: Sequence[Saving]) -> list[dict[str, Any]]:
    return [
        {
            "way": one.way,
            "allocated_bytes": one.memory.allocated if one.memory else None,
            "largest_live_set_bytes": one.memory.most if one.memory else None,
            "why_not": one.why_not,
        }
        for one in found
    ]


def render(found: Sequence[Saving]) -> Listing:
    """One row a way, with what it saves beside the row before."""
    rows, before = [], 0
    for one in found:
        if one.memory is None:
            rows.append((one.way, "", "", one.why_not))
            continue
        less = f"{wording.memory_size(before - one.memory.allocated)} less" if before > one.memory.allocated else ""
        rows.append((one.way, wording.memory_size(one.memory.allocated), wording.memory_size(one.memory.most), less))
        before = one.memory.allocated
    return Listing(("ways to save memory", Head("allocated", True), Head("largest live set", True), ""), rows)
