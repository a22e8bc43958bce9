"""Summarise a compiled plan: steps, programs, memory, and what it moves without computing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from kernels.options import COMPILE_AXES
from kernels.plan.data_movement import PORTS, Movement, movements
from kernels.plan.live_memory import LiveMemory, live_memory
from kernels.plan.model import Copy, Dispatch, Plan, SwapIn, SwapOut, Transfer
from kernels.plan.sides import TRANSFER, segments
from orchestrator.model.quantity import counted
from orchestrator.report import wording
from orchestrator.report.listing import Head, Listing, Row
from workers.engines.pocketfarm.plans.layer_memory import layer_memory

SHOWN = 3
"""Layers and tensors that are named where most memory is taken."""


def as_data(plan: Plan) -> dict[str, Any]:
    """Figures of a plan."""
    dispatches = [step for step in plan.steps if isinstance(step, Dispatch)]
    copies = [step for step in plan.steps if isinstance(step, Copy)]
    moved = movements(plan)
    roles: dict[str, int] = {}
    for buffer in plan.buffers:
        roles[buffer.role] = roles.get(buffer.role, 0) + buffer.bytes
    return {
        "name": plan.name,
        "plan_hash": plan.plan_hash,
        "api": plan.api,
        "precision": plan.precision,
        "options": plan.options,
        "steps": len(plan.steps),
        "dispatches": len(dispatches),
        "copies": len(copies),
        "copied_bytes": sum(step.bytes for step in copies),
        "movements": [asdict(one) for one in moved],
        "moved_bytes": sum(one.bytes for one in moved),
        "moved_bytes_beyond_ports": sum(one.bytes for one in moved if one.kind not in PORTS),
        "swaps": sum(isinstance(step, SwapIn | SwapOut) for step in plan.steps),
        "swapped_bytes": _swapped_bytes(plan),
        "segments": _segments(plan),
        "live_bytes": _busiest(plan),
        "largest_live_set_bytes": live_memory(plan).most,
        "largest_buffers": _largest(plan),
        "programs": len(plan.programs),
        "flops": sum(step.flops for step in dispatches),
        "pool_bytes": sum(pool.bytes for pool in plan.pools),
        "buffer_bytes_by_role": roles,
        "requires": plan.requires.model_dump(mode="json"),
        "inputs": {port.name: list(port.shape) for port in plan.inputs},
        "outputs": {port.name: list(port.shape) for port in plan.outputs},
    }


def _is_shown(option: str, value: object) -> bool:
    """Return whether an option says more than the defaults, and is not of one layer."""
    axis = COMPILE_AXES.get(option)
    return ":" not in option and (axis is None or value != axis.default)


def render(plan: Plan) -> RenderableType:
    """Head figures, then one row a step."""
    facts = as_data(plan)
    rows: list[Row] = []
    options = " ".join(f"{key}={value}" for key, value in plan.options.items() if _is_shown(key, value))
    rows.append(("[bold]plan[/]", escape(f"{plan.name} {plan.api} {plan.precision}  {facts['plan_hash']}  {options}")))
    rows.append(("[bold]ports[/]", escape(_ports(plan))))
    rows.append(
        (
            "[bold]steps[/]",
            f"{counted(facts['dispatches'], 'dispatch', 'dispatches')}, "
            f"{counted(facts['copies'], 'copy', 'copies')} ({wording.memory_size(facts['copied_bytes'])}), "
            f"{counted(facts['swaps'], 'swap')}; {counted(facts['programs'], 'program')}; "
            f"{facts['flops'] / 1e9:.2f} GFLOP",
        )
    )
    roles = ", ".join(f"{role} {wording.memory_size(size)}" for role, size in facts["buffer_bytes_by_role"].items())
    rows.append(
        (
            "[bold]memory[/]",
            f"{wording.memory_size(facts['pool_bytes'])} in {counted(len(plan.pools), 'allocation')} (largest "
            f"{wording.memory_size(plan.requires.max_buffer_bytes)}); buffers: {roles}",
        )
    )
    for number, each in enumerate(facts["segments"]):
        rows.append((f"[bold]segment {number + 1}[/]", escape(_segment_text(each))))
    rows.append(("[bold]peak[/]", escape(_peak_text(facts))))
    rows.append(("[bold]bound[/]", _bound_text(live_memory(plan))))
    for layer, why in plan.refused.items():
        rows.append(("[bold]refused[/]", escape(f"{layer}: {why}; by {plan.options[f'algorithm:{layer}']} instead")))
    for layer, words in _divided(plan).items():
        rows.append(("[bold]divided[/]", escape(f"{layer} into {words}")))
    moved = movements(plan)
    rows.append(("[bold]moved[/]", _moved_text(moved)))
    return Group(Listing(("", ""), rows, header=False), "", _movements(moved), "", _steps(plan))


def _swapped_bytes(plan: Plan) -> int:
    """Bytes that one inference moves to host memory and back."""
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    return sum(sizes[step.buffer] for step in plan.steps if isinstance(step, SwapIn | SwapOut))


def _segments(plan: Plan) -> list[dict[str, Any]]:
    """Return a mixed plan's segments: who computes what, and what goes on from there; empty for every other plan."""
    found: list[dict[str, Any]] = []
    for api, numbered in segments(plan):
        steps = [step for _, step in numbered]
        if api != TRANSFER:
            layers = list(dict.fromkeys(step.layer for step in steps))
            flops = sum(step.flops for step in steps if isinstance(step, Dispatch))
            found.append({"api": api, "layers": layers, "steps": len(steps), "flops": flops, "transfers": {}})
        elif found:
            sizes = {step.layer: step.bytes for step in steps if isinstance(step, Transfer)}
            found[-1]["transfers"] = sizes
    return found if len(found) > 1 else []


def _segment_text(segment: dict[str, Any]) -> str:
    sizes = segment["transfers"]
    onward = ", ".join(f"{tensor} {wording.memory_size(size)}" for tensor, size in sizes.items())
    first, last = segment["layers"][0], segment["layers"][-1]
    return (
        f"{segment['api']}: {first} to {last}, {counted(segment['steps'], 'step')}, {segment['flops'] / 1e9:.3f} GFLOP"
        + (f"; then transfers {onward}, {wording.memory_size(sum(sizes.values()))} in all" if onward else "")
    )


def _busiest(plan: Plan) -> dict[str, int]:
    """Layers with most bytes of activations alive, the first three."""
    layers = sorted(layer_memory(plan), key=lambda each: -each.live_bytes)
    return {each.layer: each.live_bytes for each in layers[:SHOWN]}


def _largest(plan: Plan) -> dict[str, int]:
    buffers = sorted((b for b in plan.buffers if b.role != "weight"), key=lambda b: -b.bytes)
    return {buffer.id: buffer.bytes for buffer in buffers[:SHOWN]}


def _peak_text(facts: dict[str, Any]) -> str:
    layers = ", ".join(f"{name} {wording.memory_size(size)}" for name, size in facts["live_bytes"].items())
    buffers = ", ".join(f"{name} {wording.memory_size(size)}" for name, size in facts["largest_buffers"].items())
    swapped = facts["swapped_bytes"]
    through = f"; {wording.memory_size(swapped)} through host memory" if swapped else ""
    return f"most alive in {layers or 'no layer'}; largest tensors {buffers}{through}"


def _bound_text(memory: LiveMemory) -> str:
    return (
        f"largest live set {wording.memory_size(memory.most)}, a lower bound for steps in this order; "
        f"placing loses {wording.memory_size(memory.gaps)} ({memory.gaps / max(1, memory.most):.1%})"
    )


def _divided(plan: Plan) -> dict[str, str]:
    """Layers in parts, with the reason."""
    parts = {key: str(words) for key, words in plan.options.items() if key.startswith("parts:")}
    return {key.removeprefix("parts:"): words for key, words in parts.items()}


def _moved_text(moved: Sequence[Movement]) -> str:
    beyond = [one for one in moved if one.kind not in PORTS]
    size = wording.memory_size(sum(one.bytes for one in beyond))
    ports = wording.memory_size(sum(one.bytes for one in moved if one.kind in PORTS))
    steps = counted(len(beyond), "step")
    rest = f"{size} in {steps} between layers" if beyond else "nothing between layers"
    return f"read and written without computing: {ports} at inputs and outputs, {rest}"


def _movements(moved: Sequence[Movement]) -> Listing:
    rows = []
    for one in moved:
        size = f"{one.bytes / 2**20:.2f}"
        rows.append((str(one.index), escape(one.layer), one.step, one.kind, size, escape(one.why)))
    return Listing((Head("#", True), "moved at", "step", "kind", Head("MiB", True), "why"), rows)


def _ports(plan: Plan) -> str:
    def worded(ports: Iterable[Any]) -> str:
        return ", ".join(f"{port.name} {'x'.join(map(str, port.shape))}" for port in ports)

    return f"{worded(plan.inputs)} -> {worded(plan.outputs)}"


def _steps(plan: Plan) -> Listing:
    kernels = {program.id: program for program in plan.programs}
    rows: list[Row] = []
    for index, step in enumerate(plan.steps):
        if isinstance(step, Dispatch):
            program = kernels[step.program]
            sizes = (" x ".join(map(str, step.work_items)), " x ".join(map(str, program.work_group)))
            cost = (f"{step.flops / 1e6:.1f}", f"{step.bytes / 2**20:.2f}")
            rows.append((str(index), escape(step.layer), escape(program.kernel), *sizes, *cost))
        elif isinstance(step, Copy | Transfer):
            size = f"{step.bytes / 2**20:.2f}"
            rows.append((str(index), escape(step.layer), step.kind, "", "", "", size))
        else:
            rows.append((str(index), escape(step.layer), step.kind, "", "", "", ""))
    heads = (Head("#", True), "layer", "step", "work-items", "work-group", Head("MFLOP", True), Head("MiB", True))
    return Listing(heads, rows)
