"""Lowering for CPU threads: calls of the agent's built-in operations, on fp32 and on whole numbers."""

from __future__ import annotations

from functools import partial

from kernels.errors import UnsupportedNode, checkpoint
from kernels.ir.graph import Graph
from kernels.lower.draft import Draft
from kernels.lower.outputs import ended, output_buffer
from kernels.lower.states import keep_states
from kernels.options import Limits, Options
from kernels.plan.model import Copy, Port

from .agent_operations import CPU_OPERATIONS
from .algorithms import ALGORITHMS, CPU_CONVOLUTIONS
from .context import CpuContext
from .operations import LOWERINGS

__all__ = ["ALGORITHMS", "CPU_CONVOLUTIONS", "lower_cpu"]


def lower_cpu(graph: Graph, options: Options) -> Draft:
    """Lower a graph of canonical operations. Raises OptionError, UnsupportedNode."""
    CPU_CONVOLUTIONS.check(options, Limits(), CPU_CONVOLUTIONS.cases(graph))
    context = CpuContext(graph, options)
    for name in graph.inputs:
        if name in graph.state:
            context.write(name, "variable")
            continue
        port = Port(name=name, buffer=context.write(name, "input"), shape=graph.shapes[name], dtype=context.held(name))
        context.draft.inputs.append(port)
    for node in graph.nodes:
        checkpoint()
        if node.op not in LOWERINGS:
            raise UnsupportedNode(f"{node.name}: no CPU lowering for {node.op!r}; known: {', '.join(LOWERINGS)}")
        LOWERINGS[node.op](context, node)
        if node.output in graph.ports_out:  # at once, so that its memory is free for the next
            _add_output(context, node.output)
    keep_states(context.draft, graph, lambda name: context.place_of(context.read(name))[:2])
    return ended(context.draft, graph, partial(_add_output, context), CPU_OPERATIONS)


def _add_output(context: CpuContext, name: str) -> None:
    target, size = output_buffer(context.draft, name, context.graph.shapes[name], context.held(name))
    source, first, _ = context.place_of(context.read(name))
    copy = Copy(layer=f"{name}:output", source=source, source_offset=first, target=target, bytes=size)
    context.draft.steps.append(copy)
