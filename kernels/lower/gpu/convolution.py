"""conv -> the catalog's choice."""

from __future__ import annotations

import numpy as np

from kernels.catalog import choose, convolution_of
from kernels.errors import UnsupportedNode
from kernels.graph import Array, Node
from kernels.lower.activation import activation_scalars

from .context import GpuContext
from .layout import packed


def lower_conv(context: GpuContext, node: Node) -> None:
    """One dispatch; bias, residual and activation are part of it."""
    conv = convolution_of(context.graph, node)
    algorithm = choose(context.options.algorithm, conv)
    context.draft.chosen[node.name] = algorithm.name
    weight = constant(context, node, 1)
    bias = constant(context, node, 2) if _has(node, 2) else np.zeros(conv.k, np.float32)
    call = algorithm.lower(conv, weight, bias, context.options, context.limits)
    source = packed(context, node.inputs[0])
    residual = packed(context, node.inputs[3]) if _has(node, 3) else None
    target = context.new_packed(node.output)
    code, lo, hi = activation_scalars(node)
    context.dispatch(
        call.kernel,
        node.name,
        {
            "src": source.buffer,
            "weight": context.weight(node.inputs[1], call.weight),
            "bias": context.weight(f"{node.name}:bias", call.bias),
            "residual": (residual or source).buffer,  # bound but not read where there is none
            "dst": target.buffer,
        },
        {
            **source.ints("src"),
            **(residual or source).ints("residual"),
            **target.ints("dst"),
            **call.ints,
            "has_residual": int(residual is not None),
            "activation": code,
        },
        call.work_items,
        floats={"lo": lo, "hi": hi},
        tunables=call.tunables,
        flops=conv.flops,
        traffic=context.traffic(node),
    )


def constant(context: GpuContext, node: Node, index: int) -> Array:
    """A constant operand. Raises UnsupportedNode where it is computed by the network."""
    name = node.inputs[index]
    if name not in context.graph.constants:
        raise UnsupportedNode(f"{node.name} ({node.op}): operand {name!r} must be a constant of the model")
    return context.graph.constants[name].astype(np.float32, copy=False)


def _has(node: Node, index: int) -> bool:
    return len(node.inputs) > index and node.inputs[index] != ""
