"""Lowering for OpenCL and Vulkan: the same steps, kernels and layout for both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kernels.catalog import FAMILIES
from kernels.errors import UnsupportedNode, checkpoint
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Graph, Node
from kernels.lower.cpu.algorithms import in_int8
from kernels.lower.draft import Draft
from kernels.lower.outputs import ended, output_buffer
from kernels.lower.states import keep_states
from kernels.options import Limits, Options
from kernels.plan.model import Copy, Port

from .context import GpuContext
from .convolution import lower_conv, lower_im2col, lower_row_conv
from .convolution.squeeze import lower_squeeze
from .elementwise import lower_affine, lower_binary
from .instance_norm import lower_instance_norm
from .int8 import lower_int8
from .layout import plain, row_major, single, write_single
from .maps import lower_map
from .movement import lower_concat, lower_reshape, lower_slice
from .pooling import lower_global_average_pool, lower_lrn, lower_pool, lower_softmax
from .product import lower_dense, lower_matmul
from .reduction import lower_reduce
from .resampling import lower_pad, lower_resize, lower_roi_align
from .rows import (
    joined_copies,
    lower_append,
    lower_attend,
    lower_attention,
    lower_gather,
    lower_row_norm,
    lower_sort,
    lower_suppress,
    lower_transpose,
)
from .taking import lower_put_rows, lower_take
from .values import Value

LOWERINGS: dict[str, Callable[[GpuContext, Node], None]] = {
    "conv": lower_conv,
    "row_conv": lower_row_conv,
    "im2col": lower_im2col,
    "dense": lower_dense,
    "matmul": lower_matmul,
    **dict.fromkeys(ACTIVATIONS, lower_map),
    "max_pool": lower_pool,
    "average_pool": lower_pool,
    "global_average_pool": lower_global_average_pool,
    "concat": lower_concat,
    "add": lower_binary,
    "mul": lower_binary,
    "affine": lower_affine,
    "instance_norm": lower_instance_norm,
    "softmax": lower_softmax,
    "lrn": lower_lrn,
    "reshape": lower_reshape,
    "transpose": lower_transpose,
    "slice": lower_slice,
    "pad": lower_pad,
    "resize": lower_resize,
    "map": lower_map,
    "take": lower_take,
    "gather": lower_gather,
    "put_rows": lower_put_rows,
    "reduce": lower_reduce,
    "sort": lower_sort,
    "suppress": lower_suppress,
    "roi_align": lower_roi_align,
    "append": lower_append,
    "attend": lower_attend,
    "row_norm": lower_row_norm,
    "attention": lower_attention,
}


def lower_gpu(graph: Graph, options: Options, limits: Limits, *, at_ports: bool = True) -> Draft:
    """Lower a graph of canonical operations. Raises OptionError, UnsupportedNode.

    `at_ports`: the first and last layers are those of a network; else they read and write as layers within one.
    """
    for family in FAMILIES:
        cases = family.cases(graph)
        family.check(options, limits, cases)
        for layer, sizes in cases:
            if layer in options.layers:
                family.check(options.of(layer), limits, [(layer, sizes)])
    context = GpuContext(graph, options, limits, at_ports=at_ports)
    for name in graph.inputs:
        if name in graph.state:
            context.new_data(name, "variable")
        else:
            _add_input(context, name)
    for context.position, node in enumerate(graph.nodes):
        checkpoint()
        if node.output in context.within or node.output in context.squeezed:
            continue
        if node.op not in LOWERINGS:
            raise UnsupportedNode(f"{node.name}: no lowering for {node.op!r}; known: {', '.join(LOWERINGS)}")
        inner = context.squeezed.get(node.inputs[0]) if node.inputs else None
        lower = lower_int8 if in_int8(options, graph, node) else LOWERINGS[node.op]
        if inner is None:
            lower(context, node)
        else:
            lower_squeeze(context, node, inner)
        if node.output in graph.ports_out:  # at once, so that its memory is free for the next
            _add_output(context, node.output)
    keep_states(context.draft, graph, lambda name: (plain(context, name), 0))
    return ended(context.draft, graph, partial(_add_output, context))


def _add_input(context: GpuContext, name: str) -> None:
    buffer, kind = context.plain_buffer(name, "f32", role="input"), context.held(name)
    context.values[name] = Value(single=buffer, plain=buffer if kind != "f32" else None)
    context.draft.inputs.append(Port(name=name, buffer=buffer, shape=context.graph.shapes[name], dtype=kind))


def _add_output(context: GpuContext, name: str) -> None:
    target, size = output_buffer(context.draft, name, context.graph.shapes[name], context.held(name))
    value = context.values.get(name, Value())
    in_stacks = value.packed is not None and value.single is None and row_major(context, name, value) is None
    in_half = context.half and value.single is None and value != Value()
    if in_stacks or in_half:
        write_single(context, name, target)
    else:
        source = single(context, name)
        context.draft.steps.append(Copy(layer=f"{name}:output", source=source, target=target, bytes=size))


__all__ = ["LOWERINGS", "joined_copies", "lower_gpu"]
