"""conv -> the dispatches of its algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from kernels.catalog.convolution import CONVOLUTIONS
from kernels.catalog.convolution.depthwise import KERNEL as DEPTHWISE
from kernels.catalog.convolution.depthwise import OF_ROWS, of_rows
from kernels.catalog.convolution.sizes import convolution_of
from kernels.catalog.family import Call
from kernels.errors import UnsupportedNode
from kernels.ir.graph import Array, Node
from kernels.lower.activation import activation_scalars
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import packed, plain
from kernels.lower.gpu.values import View
from kernels.plan.model import Tensor
from kernels.source.chunks import long_sums

from .planes import port_in_planes
from .separable import Work, lower_separable
from .windows import lower_im2col

__all__ = ["constant", "lower_conv", "lower_im2col", "lower_row_conv"]


def lower_conv(context: GpuContext, node: Node) -> None:
    """The dispatches of the chosen algorithm; bias, residual and activation are part of the last of each round."""
    constants = _constants(context, node)
    inner = context.within.get(node.inputs[0])
    if inner is None:
        conv, calls = context.calls(CONVOLUTIONS, node, constants)
        work = Work(conv.flops, context.traffic(node))
        source = port_in_planes(context, node, calls) or packed(context, node.inputs[0])
    else:
        call, work = lower_separable(context, inner, node, constants)
        calls, source = (call,), packed(context, inner.source)
    residual = packed(context, node.inputs[3]) if _has(node, 3) else None
    sums = node.inputs[3:] if source.buffer != (residual or source).buffer else ()
    target = context.new_packed(node.output, over=sums)
    places: dict[str, str | View] = {"src": source, "dst": target}
    views = {**source.ints("src"), **(residual or source).ints("residual"), **target.ints("dst")}
    for call in calls:
        if call.writes not in places:
            places[call.writes] = _scratch(context, node, call)
        _dispatch(context, node, call, places, views, residual, work if call is calls[-1] else Work())


def lower_row_conv(context: GpuContext, node: Node) -> None:
    """One dispatch from rows to rows, with bias, residual and activation."""
    conv = convolution_of(context.graph, node)
    call = of_rows(conv, _constants(context, node), context.limits)
    residual = plain(context, node.inputs[3]) if _has(node, 3) else None
    places: dict[str, str | View] = {"src": plain(context, node.inputs[0]), "dst": context.new_plain(node.output)}
    _dispatch(context, node, call, places, {}, residual, Work(conv.flops, context.traffic(node)))


def _constants(context: GpuContext, node: Node) -> dict[str, Array]:
    weight = constant(context, node, 1)
    bias = constant(context, node, 2) if _has(node, 2) else np.zeros(len(weight), np.float32)
    return {"weight": weight, "bias": bias}


def _scratch(context: GpuContext, node: Node, call: Call) -> str:
    size = call.scratch_elements * (2 if context.half else 4)
    described = Tensor(shape=(call.scratch_elements,), dtype=context.dtype, layout="packed")
    return context.draft.add_buffer(f"{node.name}:{call.writes}", size, "scratch", described)


def _dispatch(
    context: GpuContext,
    node: Node,
    call: Call,
    places: Mapping[str, str | View],
    views: Mapping[str, int],
    residual: str | View | None,
    work: Work,
) -> None:
    code, lo, hi = activation_scalars(node) if call.is_last else (0, 0.0, 0.0)
    buffers: dict[str, str | View] = {
        **work.weights,
        "src": places[call.reads],
        "dst": places[call.writes],
        # bound but not read where there is none
        "residual": residual if residual and call.is_last else places[call.adds or call.reads],
    }
    if call.weight is not None:
        buffers["weight"] = context.weight(node.inputs[1], call.weight)
    if call.bias is not None:
        buffers["bias"] = context.weight(f"{node.name}:bias", call.bias)
    ints = {
        **views,
        "has_residual": int(residual is not None and call.is_last),
        "activation": code,
        **call.ints,
        **work.ints,
    }
    floats = {"lo": lo, "hi": hi, **work.floats}
    wanted = {parameter.name for parameter in call.kernel.parameters}
    context.dispatch(
        call.kernel,
        node.name,
        {name: buffer for name, buffer in buffers.items() if name in wanted},
        {name: value for name, value in ints.items() if name in wanted},
        call.work_items,
        floats={name: value for name, value in floats.items() if name in wanted},
        tile=call.tile,
        switches={
            **call.switches,
            **_last_lanes(context, node, call),
            **long_sums(call.kernel, prod(context.graph.shapes[node.inputs[1]][1:]), context.limits),
        },
        group=call.group,
        flops=work.flops,
        traffic=work.traffic,
    )


def _last_lanes(context: GpuContext, node: Node, call: Call) -> dict[str, int]:
    """Channels of the last stack where it is not full: the lanes beyond are set to zero.

    Their weights are zero, and zero times infinity would be NaN, which the next layer would spread.
    """
    lanes = context.dims(node.output).c % 4
    return {"LAST_LANES": lanes} if lanes and call.is_last and call.kernel not in (DEPTHWISE, OF_ROWS) else {}


def constant(context: GpuContext, node: Node, index: int) -> Array:
    """A constant operand. Raises UnsupportedNode where it is computed by the network."""
    name = node.inputs[index]
    if name not in context.graph.constants:
        raise UnsupportedNode(f"{node.name} ({node.op}): operand {name!r} must be a constant of the model")
    return context.graph.constants[name].astype(np.float32, copy=False)


def _has(node: Node, index: int) -> bool:
    return len(node.inputs) > index and node.inputs[index] != ""
