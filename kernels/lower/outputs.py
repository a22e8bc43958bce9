"""Outputs without copies: what a copy would bring into an output is written there at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from types import MappingProxyType

from kernels.errors import checkpoint
from kernels.ir.graph import Graph
from kernels.ir.shapes import Shape
from kernels.plan.model import ITEM_BYTES, Copy, Dtype, Port, Tensor
from kernels.plan.steps import Parameters, written

from .draft import Draft


def output_buffer(draft: Draft, name: str, shape: Shape, dtype: Dtype) -> tuple[str, int]:
    """Add a port, and its buffer; return this and its bytes."""
    size = prod(shape) * ITEM_BYTES[dtype]
    target = draft.add_buffer(f"{name}:output", size, "output", Tensor(shape=shape, dtype=dtype))
    draft.outputs.append(Port(name=name, buffer=target, shape=shape, dtype=dtype))
    return target, size


def ended(
    draft: Draft, graph: Graph, add_output: Callable[[str], None], operations: Parameters = MappingProxyType({})
) -> Draft:
    """Return the draft with the outputs that no node computes, in the graph's order. Each becomes the activation that a
    step only copies into it, where nothing overwrites that later. `operations`: what those without a kernel take."""
    for name in graph.ports_out:
        if name in graph.inputs or name in graph.constants:
            add_output(name)
    draft.outputs.sort(key=lambda port: graph.outputs.index(port.name))
    for copy in [step for step in draft.steps if isinstance(step, Copy)]:
        checkpoint()
        if _is_needless(draft, copy, {**draft.parameters, **operations}):
            _replace(draft, copy)
    return draft


def _is_needless(draft: Draft, copy: Copy, parameters: Parameters) -> bool:
    source, target = draft.buffers[copy.source], draft.buffers[copy.target]
    if target.role != "output" or source.role != "activation":
        return False
    if source.size != target.size or source.tensor.dtype != target.tensor.dtype or copy.source_offset:
        return False
    later = draft.steps[draft.steps.index(copy) + 1 :]
    return not any(copy.source in written(step, parameters) for step in later)


def _replace(draft: Draft, copy: Copy) -> None:
    source, target = draft.buffers[copy.source], draft.buffers.pop(copy.target)
    draft.buffers[source.id] = replace(source, role="output", tensor=target.tensor)
    draft.steps.remove(copy)
    draft.outputs = [
        port.model_copy(update={"buffer": source.id}) if port.buffer == target.id else port for port in draft.outputs
    ]
