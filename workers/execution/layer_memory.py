"""Memory of a plan layer by layer, from its memory plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernels.plan.model import BufferArgument, Copy, Dispatch, Plan, Repeat, Step, SwapIn, SwapOut
from orchestrator.model.record import LayerMemory

FlatStep = Dispatch | Copy | SwapIn | SwapOut


def layer_memory(plan: Plan) -> tuple[LayerMemory, ...]:
    """Layers in the order in which they run: the most bytes of activations that are alive in one of its steps, and the
    bytes of all weights that it reads. Inputs and outputs are alive throughout; what is swapped out is not."""
    steps = list(_flat(plan.steps))
    lives = _lives(plan, steps)
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    weights = {buffer.id for buffer in plan.buffers if buffer.role == "weight"}
    live: dict[str, int] = {}
    read: dict[str, set[str]] = {}
    for index, step in enumerate(steps):
        alive = sum(sizes[name] for name, spans in lives.items() if any(a <= index <= b for a, b in spans))
        live[step.layer] = max(live.get(step.layer, 0), alive)
        read.setdefault(step.layer, set()).update(weights & set(_touched(step)))
    return tuple(
        LayerMemory(layer=layer, live_bytes=most, weight_bytes=sum(sizes[name] for name in read[layer]))
        for layer, most in live.items()
    )


def _flat(steps: Sequence[Step]) -> Iterator[FlatStep]:
    """Each step once: a repetition needs no more memory than its first turn."""
    for step in steps:
        if isinstance(step, Repeat):
            yield from _flat(step.steps)
        else:
            yield step


def _lives(plan: Plan, steps: Sequence[FlatStep]) -> dict[str, list[tuple[int, int]]]:
    """Activation -> spans of steps, first to last inclusive, in which it is on the device."""
    lives: dict[str, list[tuple[int, int]]] = {}
    for buffer in plan.buffers:
        if buffer.role in ("input", "output"):
            lives[buffer.id] = [(0, len(steps))]
        elif buffer.role != "weight":
            uses = [(index, step) for index, step in enumerate(steps) if buffer.id in _touched(step)]
            lives[buffer.id] = _spans(uses)
    return lives


def _spans(uses: Sequence[tuple[int, FlatStep]]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    is_out = True
    for index, step in uses:
        first = index if is_out else spans.pop()[0]
        spans.append((first, index))
        is_out = isinstance(step, SwapOut)
    return spans


def _touched(step: FlatStep) -> list[str]:
    if isinstance(step, Dispatch):
        return [argument.buffer for argument in step.arguments if isinstance(argument, BufferArgument)]
    return [step.source, step.target] if isinstance(step, Copy) else [step.buffer]
