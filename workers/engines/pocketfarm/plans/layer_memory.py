"""Memory of a plan layer by layer, from its memory plan. Pure."""

from __future__ import annotations

from kernels.plan.model import Plan
from kernels.plan.steps import Span, lifetimes, touched
from orchestrator.model.record import LayerMemory


def layer_memory(plan: Plan) -> tuple[LayerMemory, ...]:
    """Layers in the order in which they run: the most bytes of activations that are alive in one of its steps, and the
    bytes of all weights that it reads. Inputs and outputs are alive throughout; what is swapped out is not."""
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    roles = {buffer.id: buffer.role for buffer in plan.buffers}
    weights = {name for name, role in roles.items() if role == "weight"}
    lives = {name: spans for name, spans in lifetimes(plan.steps, roles).items() if name not in weights}
    live: dict[str, int] = {}
    read: dict[str, set[str]] = {}
    for index, step in enumerate(plan.steps):
        now = Span(index, index)
        alive = sum(sizes[name] for name, spans in lives.items() if any(span.meets(now) for span in spans))
        live[step.layer] = max(live.get(step.layer, 0), alive)
        read.setdefault(step.layer, set()).update(weights & set(touched(step)))
    return tuple(
        LayerMemory(
            layer=layer,
            live_bytes=most,
            weight_bytes=sum(sizes[name] for name in read[layer]),
            refused=plan.refused.get(layer, ""),
        )
        for layer, most in live.items()
    )
