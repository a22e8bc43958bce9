"""A 1x1 convolution that computes the depthwise convolution before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kernels.catalog.convolution import convolution_of
from kernels.catalog.convolution.separable import separable_call
from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import pack_depthwise, padded
from kernels.ir.graph import Node
from kernels.lower.activation import activation_scalars
from kernels.lower.gpu.context import GpuContext
from kernels.lower.separable import Within


@dataclass(frozen=True)
class Work:
    """What a layer's last dispatch does, and what it takes beside what every convolution takes."""

    flops: int = 0
    traffic: int = 0
    """Bytes."""
    weights: Mapping[str, str] = field(default_factory=dict)
    ints: Mapping[str, int] = field(default_factory=dict)
    floats: Mapping[str, float] = field(default_factory=dict)


def lower_separable(context: GpuContext, inner: Within, node: Node, constants: Constants) -> tuple[Call, Work]:
    """The dispatch of `node`, and all that both layers do; constants: weight (K, C, 1, 1), bias (K)."""
    depthwise = inner.depthwise
    first, last = convolution_of(context.graph, depthwise), convolution_of(context.graph, node)
    weight, *bias = (context.graph.constants[name] for name in depthwise.inputs[1:] if name)
    code, lo, hi = activation_scalars(depthwise)
    context.draft.chosen[node.name] = f"separable {inner.tile.words}"
    work = Work(
        first.flops + last.flops,
        context.traffic(replace(node, inputs=(*depthwise.inputs, *node.inputs[1:]))),
        {
            "inner_weight": context.weight(depthwise.inputs[1], pack_depthwise(weight)),
            "inner_bias": context.weight(
                f"{depthwise.name}:bias", padded(bias[0] if bias else np.zeros(first.k, np.float32), 0, 4)
            ),
        },
        {"inner_activation": code},
        {"inner_lo": lo, "inner_hi": hi},
    )
    return separable_call(first, last, constants, inner.tile), work
