"""Lowering for CPU threads: calls of the agent's built-in operations, on fp32 and on whole numbers."""

from __future__ import annotations

from math import prod

from kernels.errors import UnsupportedNode, checkpoint
from kernels.ir.graph import Graph
from kernels.lower.draft import Draft
from kernels.lower.outputs import write_outputs_directly
from kernels.options import Limits, Options
from kernels.plan.model import ITEM_BYTES, Copy, Port, Tensor

from .algorithms import ALGORITHMS, CPU_CONVOLUTIONS
from .context import CpuContext
from .operations import LOWERINGS

__all__ = ["ALGORITHMS", "CPU_CONVOLUTIONS", "lower_cpu"]


def lower_cpu(graph: Graph, options: Options) -> Draft:
    """Lower a graph of canonical operations. Raises OptionError, UnsupportedNode."""
    CPU_CONVOLUTIONS.check(options, Limits(), CPU_CONVOLUTIONS.cases(graph))
    context = CpuContext(graph, options)
    for name in graph.inputs:
        port = Port(name=name, buffer=context.write(name, "input"), shape=graph.shapes[name], dtype=context.held(name))
        context.draft.inputs.append(port)
    for node in graph.nodes:
        checkpoint()
        if node.op not in LOWERINGS:
            raise UnsupportedNode(f"{node.name}: no CPU lowering for {node.op!r}; known: {', '.join(LOWERINGS)}")
        LOWERINGS[node.op](context, node)
        if node.output in graph.outputs:  # at once, so that its memory is free for the next
            _add_output(context, node.output)
    for name in graph.outputs:
        if name in graph.inputs or name in graph.constants:
            _add_output(context, name)
    context.draft.outputs.sort(key=lambda port: graph.outputs.index(port.name))
    write_outputs_directly(context.draft)
    return context.draft


def _add_output(context: CpuContext, name: str) -> None:
    shape, dtype = context.graph.shapes[name], context.held(name)
    size = prod(shape) * ITEM_BYTES[dtype]
    target = context.draft.add_buffer(f"{name}:output", size, "output", Tensor(shape=shape, dtype=dtype))
    source, first, _ = context.place_of(context.read(name))
    copy = Copy(layer=f"{name}:output", source=source, source_offset=first, target=target, bytes=size)
    context.draft.steps.append(copy)
    context.draft.outputs.append(Port(name=name, buffer=target, shape=shape, dtype=dtype))
