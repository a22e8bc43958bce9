"""Convolutions and dense layers in 8 bits: the numbers of the CPU backend (`kernels/lower/cpu/`).

An input becomes whole numbers by the step that the model gives, or by the range of its picture (or row); a product adds
up int32, and its end scales, rounds and activates as the node says. A layer hands its result on as whole numbers where
others read it by the same step (`kernels/lower/cpu/codes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kernels.catalog.convolution import Convolution, convolution_of
from kernels.catalog.work_group import WorkItems
from kernels.ir.graph import Node
from kernels.lower.cpu.algorithms import has_own_filters
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.lower.gpu.places.flatten import flattened_from, rows_by_stack
from kernels.lower.gpu.values import CodeBuffer, View
from kernels.plan.model import Tensor
from kernels.source.dot_products import dot_switch
from kernels.source.kernel import Kernel
from kernels.source.tile import Tile

from .ending import Ending, ending_of
from .packing import pack_depthwise, pack_products, whole_weights
from .product import DEPTHWISE, PRODUCT, PixelTile, product_tile
from .quantize import quantized

_WORDS = {"": "byte by byte", "khr": "dot products", "ptx": "dot products"}


def lower_int8(context: GpuContext, node: Node) -> None:
    """A conv or dense node that `in_int8` names."""
    if node.op == "dense":
        _dense(context, node)
    elif has_own_filters(convolution_of(context.graph, node)):
        _depthwise(context, node, convolution_of(context.graph, node))
    else:
        conv = convolution_of(context.graph, node)
        source = quantized(context, node.inputs[0], node.attributes.get("input_steps"))
        _product(context, node, conv, source)


def _dense(context: GpuContext, node: Node) -> None:
    """A convolution of rows, each a picture of one pixel; behind a flatten its channels are those of every pixel."""
    (n, c), m = context.graph.shapes[node.inputs[0]], context.graph.shapes[node.output][1]
    image = flattened_from(context.graph, node)
    conv = Convolution(n, c, 1, 1, m, 1, 1, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1)
    source = quantized(context, image or node.inputs[0], node.attributes.get("input_steps"))
    _product(context, node, conv, source, pixels=context.dims(image).hw if image is not None else 1)


def _product(context: GpuContext, node: Node, conv: Convolution, source: CodeBuffer, pixels: int = 1) -> None:
    weight = constant(context, node, 1)
    if node.op == "dense":
        weight = (rows_by_stack(weight, pixels) if pixels > 1 else weight).T[:, :, None, None]
    whole = whole_weights(weight, on_grid="input_steps" in node.attributes)
    in_stacks, out_stacks = (-(-channels // conv.groups // 4) for channels in (conv.c, conv.k))
    count, taps = conv.n * conv.oh * conv.ow, conv.kernel[0] * conv.kernel[1]
    tile = product_tile(context.limits, count, out_stacks, conv.groups, taps * in_stacks)
    weights = pack_products(whole, conv.groups, tile.vectors)
    ints = {
        "in_stacks": in_stacks, "out_stacks": out_stacks, "groups": conv.groups, "count": count,
        **conv.window, **conv.dilation,
    }  # fmt: skip
    switches = {"PADDED": int(_reads_outside(conv)), **dot_switch(context.limits.dot_product)}
    items = (-(-count // (tile.cx * tile.pixels)) * tile.cx * tile.ky, -(-out_stacks // tile.vectors), conv.groups)
    ending = ending_of(context, node, whole)
    context.draft.chosen[node.name] = f"int8 {tile.words}, {_WORDS[context.limits.dot_product]}"
    _dispatch(
        context, node, PRODUCT, source, weights, ending, items, tile, ints, switches, group=tile.cx * tile.ky,
        flops=conv.flops,
    )  # fmt: skip


def _reads_outside(conv: Convolution) -> bool:
    (kh, kw), (sh, sw), (dh, dw) = conv.kernel, conv.strides, conv.dilations
    rows, columns = (conv.oh - 1) * sh + (kh - 1) * dh + 1, (conv.ow - 1) * sw + (kw - 1) * dw + 1
    return any(conv.pads) or rows > conv.h or columns > conv.w


def _depthwise(context: GpuContext, node: Node, conv: Convolution) -> None:
    source = quantized(context, node.inputs[0], node.attributes.get("input_steps"))
    whole = whole_weights(constant(context, node, 1), on_grid="input_steps" in node.attributes)
    pixels = conv.oh * conv.ow
    tile = PixelTile(4 if pixels * conv.out_stacks * conv.n >= 1 << 18 else 1)
    ints = {"channels": conv.c, "in_stacks": conv.in_stacks, **conv.window, **conv.dilation}
    items = (-(-pixels // tile.pixels), conv.out_stacks, conv.n)
    context.draft.chosen[node.name] = f"int8 {tile.pixels}"
    _dispatch(
        context, node, DEPTHWISE, source, pack_depthwise(whole), ending_of(context, node, whole), items, tile, ints,
        {"FILTERS": conv.k // conv.c, **dot_switch("")}, flops=conv.flops,
    )  # fmt: skip


def _dispatch(
    context: GpuContext, node: Node, kernel: Kernel, source: CodeBuffer, weights: npt.NDArray[np.int32],
    ending: Ending, items: WorkItems, tile: Tile, ints: Mapping[str, int], switches: Mapping[str, int], *,
    group: int = 0, flops: int,
) -> None:  # fmt: skip
    described = Tensor(shape=weights.shape, dtype="i32", layout="packed")
    buffers: dict[str, str | View] = {
        "src": source.words, "steps": source.steps, **ending.buffers,
        "weight": context.draft.add_weight(f"{node.name}:weight", weights.tobytes(), described),
    }  # fmt: skip
    context.dispatch(
        ending.of(kernel), node.name, buffers, {**ints, **ending.ints, "per_picture": int(source.by_picture)}, items,
        floats=ending.floats, tile=tile, switches={**switches, **ending.switches}, group=group, flops=flops,
        traffic=context.traffic(node),
    )  # fmt: skip
