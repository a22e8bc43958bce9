"""Study P's tables: times by size, crossovers, and what a first start costs. Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.frontend.networks import FAMILIES

from .crossover import Point, crossover
from .operation_runs import Measured


def times(operation: str, found: Sequence[Measured]) -> str:
    """A row a size; for each backend the time of an inference, with copies in brackets, and a GPU's set-up."""
    apis = list(dict.fromkeys(one.api for one in found))
    heads = [f"{api}, ms (with copies) | {api} cold set-up, ms" for api in apis]
    lines = [f"### {operation}: {FAMILIES[operation].meaning}", "", f"| size | {' | '.join(heads)} |"]
    lines.append(f"|--:|{'--:|--:|' * len(apis)}")
    for size in sorted({one.size for one in found}):
        cells = [_cells(next(one for one in found if (one.size, one.api) == (size, api))) for api in apis]
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def crossovers(found: Sequence[Measured]) -> str:
    """Return the size from which on each GPU interface beats the CPU backend, without copies and with them."""
    lines = ["| operation | GPU by | device | sizes | crossover | with copies |", "|---|---|---|---|---|---|"]
    for operation, api in dict.fromkeys((one.operation, one.api) for one in found if one.api != "cpu"):
        mine = {one.size: one for one in found if (one.operation, one.api) == (operation, api) and not one.failed}
        cpu = {one.size: one for one in found if (one.operation, one.api) == (operation, "cpu") and not one.failed}
        both = sorted(mine.keys() & cpu.keys())
        if not both:
            lines.append(f"| {operation} | {api} | - | - | not measured | not measured |")
            continue
        plain = crossover([Point(size, mine[size].ms, cpu[size].ms) for size in both])
        copied = crossover([Point(size, mine[size].with_copies_ms, cpu[size].with_copies_ms) for size in both])
        device, sizes = mine[both[0]].device, f"{both[0]} to {both[-1]}"
        lines.append(f"| {operation} | {api} | {device} | {sizes} | {plain.words} | {copied.words} |")
    return "\n".join(lines)


def steps(found: Sequence[Measured]) -> str:
    """Set-up by step of each backend's smallest and largest size."""
    lines = ["| operation | backend | size | cold set-up by step, ms |", "|---|---|--:|---|"]
    for operation, api in dict.fromkeys((one.operation, one.api) for one in found):
        mine = [one for one in found if (one.operation, one.api) == (operation, api) and not one.failed]
        for one in sorted({one.size: one for one in mine}.values(), key=lambda one: one.size)[:: max(1, len(mine) - 1)]:
            words = ", ".join(f"{step} {ms:.3g}" for step, ms in one.cold_ms.items() if ms >= 0.01)
            lines.append(f"| {operation} | {api} | {one.size} | {words} |")
    return "\n".join(lines)


def _cells(one: Measured) -> str:
    if one.failed:
        return "failed | -"
    return f"{one.ms:.3g} ({one.with_copies_ms:.3g}) | {sum(one.cold_ms.values()):.3g}"
