"""Find cells that ran the same plan on a device, so that their difference is no effect of their options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.figures import BlockFigures
from orchestrator.model.axes import AXES
from orchestrator.model.job import Cell
from orchestrator.model.record import Doubt, DoubtCode

Key = tuple[str, str, str]
"""Device, source and cell."""


def same_plan_doubts(blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]) -> dict[Key, Doubt]:
    """Return a doubt for each cell that ran others' plan, in the same way on the same device: which ones."""
    ran: dict[Any, dict[Key, None]] = defaultdict(dict)
    for block in blocks:
        if plan := block.provenance.program_hash:
            key = block.serial, block.source.value, block.cell_id
            ran[*key[:2], plan, _at_run(cells[block.cell_id])][key] = None
    found: dict[Key, list[str]] = defaultdict(list)
    for together in ran.values():
        for key in together:
            found[key] += [cells[other[2]].label for other in together if other != key]
    return {key: _doubt(dict.fromkeys(labels)) for key, labels in found.items() if labels}


def _at_run(cell: Cell) -> tuple[Any, ...]:
    """Return what the agent is told beside the plan."""
    agent_options = tuple((name, cell.options.get(name, axis.default)) for name, axis in AXES.items() if axis.at_run)
    own = sorted((name, value) for name, value in cell.options.items() if name not in AXES)
    return (cell.workload.model_dump_json(), *agent_options, *own)


def _doubt(labels: Iterable[str]) -> Doubt:
    return Doubt(code=DoubtCode.SAME_PLAN, detail=f"the plan is that of {', '.join(f'`{label}`' for label in labels)}")
