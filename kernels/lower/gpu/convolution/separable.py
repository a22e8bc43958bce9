"""A 1x1 convolution that computes the depthwise convolution, the gate or the choice of channels before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kernels.catalog.convolution import convolution_of
from kernels.catalog.convolution.separable import separable_call
from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import pack_depthwise, padded
from kernels.ir.graph import Node
from kernels.ir.taking import taken_channels
from kernels.lower.activation import activation_scalars
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import packed
from kernels.lower.gpu.taking import channels_table
from kernels.lower.gpu.values import View
from kernels.lower.separable import Within


@dataclass(frozen=True)
class Work:
    """The work and arguments of a layer's last dispatch, beside what every convolution takes."""

    flops: int = 0
    traffic: int = 0
    """Bytes."""
    weights: Mapping[str, str | View] = field(default_factory=dict)
    ints: Mapping[str, int] = field(default_factory=dict)
    floats: Mapping[str, float] = field(default_factory=dict)


def lower_separable(context: GpuContext, inner: Within, node: Node, constants: Constants) -> tuple[Call, Work]:
    """The dispatch of `node`, and all that both layers do; constants: weight (K, C, 1, 1), bias (K)."""
    last = convolution_of(context.graph, node)
    code, lo, hi = activation_scalars(inner.node)
    context.draft.chosen[node.name] = f"separable {inner.tile.words}"
    if inner.takes:
        channels = taken_channels(context.graph, inner.node) or []
        work = Work(last.flops, context.traffic(node), {"table": channels_table(context, inner.node, channels)})
        return separable_call(inner.sizes, last, constants, inner.tile), work
    weight, view = _gates(context, inner) if inner.gates else _filters(context, inner)
    work = Work(
        inner.sizes.flops + last.flops,
        context.traffic(replace(node, inputs=(*inner.node.inputs, *node.inputs[1:]))),
        {"inner_weight": weight, "inner_bias": _bias(context, inner)},
        {"inner_activation": code, **view},
        {"inner_lo": lo, "inner_hi": hi},
    )
    return separable_call(inner.sizes, last, constants, inner.tile), work


def _gates(context: GpuContext, inner: Within) -> tuple[View, dict[str, int]]:
    gates = packed(context, inner.gates)
    return gates, gates.ints("inner")


def _filters(context: GpuContext, inner: Within) -> tuple[str, dict[str, int]]:
    """The same of every picture."""
    name = inner.node.inputs[1]
    weight = context.weight(name, pack_depthwise(context.graph.constants[name]))
    return weight, {"inner_stacks": 0, "inner_stack0": 0}


def _bias(context: GpuContext, inner: Within) -> str:
    given = [] if inner.gates else [name for name in inner.node.inputs[2:3] if name]
    bias = context.graph.constants[given[0]] if given else np.zeros(inner.sizes.k, np.float32)
    return context.weight(f"{inner.node.name}:bias", padded(bias, 0, 4))
