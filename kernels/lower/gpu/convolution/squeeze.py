"""A layer of single pixels that computes the one before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.catalog.convolution.squeeze import squeeze_call
from kernels.catalog.packing import pack_tiles, padded
from kernels.ir.graph import Array, Node
from kernels.lower.activation import activation_scalars
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import packed
from kernels.lower.squeeze import Squeezed


def lower_squeeze(context: GpuContext, node: Node, inner: Squeezed) -> None:
    """Lower both layers: `inner`, and `node`, which reads it."""
    sizes, first = inner.sizes, inner.node
    weight, bias = _constants(context, first)
    call = squeeze_call(sizes, *_constants(context, node), inner.tile)
    context.draft.chosen[node.name] = f"squeeze {inner.tile.words}"
    source, target = packed(context, first.inputs[0]), context.new_packed(node.output)
    code, lo, hi = activation_scalars(node)
    inner_code, inner_lo, inner_hi = activation_scalars(first)
    assert call.weight is not None and call.bias is not None
    lanes = sizes.outputs % 4
    context.dispatch(
        call.kernel, node.name,
        {
            "src": source, "dst": target,
            "inner_weight": context.weight(first.inputs[1], pack_tiles(weight, inner.tile.hidden)),
            "inner_bias": context.weight(f"{first.name}:bias", padded(bias, 0, 4)),
            "weight": context.weight(node.inputs[1], call.weight),
            "bias": context.weight(f"{node.name}:bias", call.bias),
        },
        {
            **source.ints("src"), **target.ints("dst"), **call.ints,
            "inner_activation": inner_code, "activation": code,
        },
        call.work_items,
        floats={"inner_lo": inner_lo, "inner_hi": inner_hi, "lo": lo, "hi": hi},
        tile=call.tile, switches={"LAST_LANES": lanes} if lanes else {}, group=call.group,
        flops=2 * sizes.pictures * sizes.hidden * (sizes.inputs + sizes.outputs),
        traffic=context.traffic(replace(node, inputs=(*first.inputs, *node.inputs[1:]))),
    )  # fmt: skip


def _constants(context: GpuContext, node: Node) -> tuple[Array, Array]:
    """The weight (outputs, inputs) and the bias (outputs) of a convolution or a dense layer."""
    given = context.graph.constants
    outputs = context.graph.shapes[node.output][1]
    weight = given[node.inputs[1]].astype(np.float32, copy=False)
    weight = weight.T if node.op == "dense" else weight.reshape(outputs, -1)
    named = [name for name in node.inputs[2:3] if name]
    return weight, given[named[0]].astype(np.float32, copy=False) if named else np.zeros(outputs, np.float32)
