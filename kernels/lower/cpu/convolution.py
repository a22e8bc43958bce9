"""conv -> a call of the chosen algorithm."""

from __future__ import annotations

import numpy as np

from kernels.catalog.convolution import Convolution, convolution_of
from kernels.ir.graph import Array, Node
from kernels.lower.activation import activation_scalars
from kernels.options import Limits
from kernels.plan.model import Tensor

from .algorithms import CPU_CONVOLUTIONS, algorithm_of, has_own_filters, joined_groups, rounds_input
from .context import CpuContext
from .packing import (
    BLOCK,
    MOST_WITH_OFFSETS,
    WINOGRAD_TILE,
    blocks,
    join_groups,
    pack_bias,
    pack_depthwise,
    pack_int8,
    pack_int8_depthwise,
    pack_product,
    pack_winograd,
)

_POSITIONS = (WINOGRAD_TILE + 2) ** 2
_WORKSPACE_FLOATS = 384 << 10
"""Numbers of a band of Winograd's tiles: two cores keep so many in their second-level caches."""
RESIDUAL, SCALE = 3, 4
"""Numbers of inputs; the latter, and a shift behind it, of layers in 8 bits only (`rounded_outputs`)."""
_OPTIONAL = {"conv2d_int8": ("affine", "values", "codes"), "depthwise_int8": ("affine", "codes")}
"""Buffers of the operations in 8 bits that are given as the result where there are none."""
_IN_PLACE = (1, 2, 4)
"""Strides along rows at which a product reads row-major pictures where they lie."""
_NO_STEPS = (0.0, 0)
_CODES, _RESIDUAL_CODES = 2, 2
"""Values of `source` and `has_residual`."""
_BY_ALL = 2
"""A value of `steps`."""
_FLOATS, _AS_CODES, _ROUNDED = 1, 2, 4
"""Values of `writes`."""


def lower_conv(context: CpuContext, node: Node) -> None:
    """One call; its weights are constants or, for `direct`, any tensor."""
    conv = convolution_of(context.graph, node)
    algorithm = algorithm_of(context.options, context.graph, node).name
    context.draft.choose(node.name, algorithm, CPU_CONVOLUTIONS.refusal(context.options, Limits(), conv))
    in_blocks = {"winograd": _winograd, "implicit_gemm": _product, "depthwise": _depthwise, "int8": _int8}
    if algorithm in in_blocks:
        in_blocks[algorithm](context, node, conv)
    else:
        _row_major(context, node, conv, algorithm)


def lower_im2col(context: CpuContext, node: Node) -> None:
    """The windows of a convolution, whose product is on the other side."""
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    oh, ow = context.graph.shapes[node.output][2:]
    a = node.attributes
    ints = {
        "n": n, "c": c, "h": h, "w": w, "oh": oh, "ow": ow, "kh": a["kernel"][0], "kw": a["kernel"][1],
        "sh": a["strides"][0], "sw": a["strides"][1], "pad_t": a["pads"][0], "pad_l": a["pads"][1],
        "dh": a["dilations"][0], "dw": a["dilations"][1],
    }  # fmt: skip
    context.call("im2col", node, {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}, ints)


def _sizes(conv: Convolution) -> dict[str, int]:
    return {"n": conv.n, "c": conv.c, "dh": conv.dilations[0], "dw": conv.dilations[1], **conv.window}


def _product(context: CpuContext, node: Node, conv: Convolution) -> None:
    plain = conv.c < BLOCK and conv.groups == 1 and context.is_plain(node.inputs[0])
    src = context.read(node.inputs[0]) if plain else context.read_blocks(node.inputs[0])
    together = joined_groups(conv)
    joined = join_groups(context.graph.constants[node.inputs[1]], conv.groups, together)
    weight = pack_product(joined, plain_source=plain)
    ints = {**_sizes(conv), "k": conv.k, "groups": conv.groups // together, "src_plain": int(plain)}
    if plain and any(node.attributes["pads"]) and conv.strides[1] in _IN_PLACE:
        src, sizes = _padded(context, node, src)
        ints |= sizes
    _call(context, node, conv, "conv2d_nc16", {"src": src}, weight, ints)


def _padded(context: CpuContext, node: Node, src: str) -> tuple[str, dict[str, int]]:
    """Row-major pictures with their pads around them, and the sizes of these: windows that lie inside are read where
    they lie, the others would be gathered."""
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    top, left, bottom, right = node.attributes["pads"]
    tall, wide = h + top + bottom, w + left + right
    target = context.scratch(f"{node.name}:padded", n * c * tall * wide)
    ints = {"planes": n * c, "h": h, "w": w, "pad_t": top, "pad_l": left, "pad_b": bottom, "pad_r": right, "mode": 0}
    context.call("pad2d", node, {"src": src, "dst": target}, ints, {"value": 0.0})
    return target, {"h": tall, "w": wide, "pad_t": 0, "pad_l": 0}


def _int8(context: CpuContext, node: Node, conv: Convolution) -> None:
    depthwise, on_grid = has_own_filters(conv), rounds_input(node)
    codes = context.codes.get(node.inputs[0])
    in_codes = codes is not None and codes.steps == node.attributes.get("input_steps")
    plain = not in_codes and not depthwise and conv.c < BLOCK and context.is_plain(node.inputs[0])
    weight = context.graph.constants[node.inputs[1]]
    offsets = on_grid and weight[0].size <= MOST_WITH_OFFSETS
    if depthwise:
        packed = pack_int8_depthwise(weight, on_grid=on_grid, offsets=offsets)
    else:
        packed = pack_int8(weight, plain_source=plain, on_grid=on_grid, offsets=offsets)
    given, step = input_steps(node)
    ints = {**_sizes(conv), "k": conv.k, "groups": conv.groups, **given}
    ints["offsets"] = int(packed.sums.ndim > packed.scale.ndim)
    ints["source"] = _CODES if in_codes else int(plain)
    buffers = {
        "scale": context.weight(f"{node.name}:scale", packed.scale, "packed"),
        "sums": context.packed(f"{node.name}:sums", packed.sums),
    }
    if in_codes:
        buffers["src"] = context.code_buffer(node.inputs[0])
    else:
        buffers["src"] = context.read(node.inputs[0]) if plain else context.read_blocks(node.inputs[0])
    if not depthwise:
        buffers |= _values(context, node, conv, in_place=in_codes, plain=plain)
    weights = context.packed(f"{node.name}:weight", packed.weight)
    _call(context, node, conv, "depthwise_int8" if depthwise else "conv2d_int8", buffers, weights, ints, step)


def _values(context: CpuContext, node: Node, conv: Convolution, *, in_place: bool, plain: bool) -> dict[str, str]:
    """Memory for the input in whole numbers, with its edges; none where the layer before wrote just that."""
    (kh, kw), (sh, sw), (dh, dw) = conv.kernel, conv.strides, conv.dilations
    rows, columns = (conv.oh - 1) * sh + (kh - 1) * dh + 1, (conv.ow - 1) * sw + (kw - 1) * dw + 1
    if in_place and conv.pads[:2] == (0, 0) and rows <= conv.h and columns <= conv.w:
        return {}
    lanes = -(-conv.c // 4) * 4 if plain else blocks(conv.c) * BLOCK
    return {"values": context.scratch(f"{node.name}:values", rows * columns * lanes, "u8")}


def _int8_end(context: CpuContext, node: Node) -> tuple[dict[str, str], dict[str, int], dict[str, float]]:
    """Return the further arguments of the end of a layer in 8 bits: grids, and whole numbers as residual and result."""
    sums, branch = (node.attributes.get(name, _NO_STEPS) for name in ("sum_steps", "branch_steps"))
    codes, rounds = context.codes.get(node.output), "output_steps" in node.attributes
    out = codes.steps if codes is not None else node.attributes.get("output_steps", _NO_STEPS)
    residual = context.codes.get(node.inputs[RESIDUAL]) if _has(node, RESIDUAL) else None
    other = residual.steps if residual is not None and residual.on_grid else _NO_STEPS
    buffers, writes = dict[str, str](), 0
    if codes is None or codes.floats:
        writes |= _ROUNDED if rounds else _FLOATS
    if codes is not None:
        writes |= _AS_CODES
        buffers["codes"] = context.code_buffer(node.output)
    ints = {"sums_rounded": int(sums[0] > 0), "branch_rounded": int(branch[0] > 0), "scaled": int(_has(node, SCALE))}
    ints |= {"sums_zero": sums[1], "branch_zero": branch[1], "residual_zero": other[1], "out_zero": out[1]}
    if other[0] > 0:
        buffers["residual"] = context.code_buffer(node.inputs[RESIDUAL])
        ints["has_residual"] = _RESIDUAL_CODES
    if _has(node, SCALE):
        both = [pack_bias(context.graph.constants[name].reshape(-1)) for name in node.inputs[SCALE : SCALE + 2]]
        buffers["affine"] = context.weight(f"{node.name}:affine", np.stack(both), "packed")
    floats = {"sums_step": sums[0], "branch_step": branch[0], "residual_step": other[0], "out_step": out[0]}
    return buffers, {**ints, "writes": writes}, floats


def input_steps(node: Node) -> tuple[dict[str, int], dict[str, float]]:
    """Return how the input becomes whole numbers, for an operation in 8 bits: by ranges of its rows or images, by the
    model's steps, or by the range of all."""
    step, zero = node.attributes.get("input_steps", (0.0, 0))
    steps = _BY_ALL if "own_range" in node.attributes else int(step > 0)
    return {"steps": steps, "zero": zero}, {"step": step}


def _depthwise(context: CpuContext, node: Node, conv: Convolution) -> None:
    weight = pack_depthwise(context.graph.constants[node.inputs[1]])
    ints = {**_sizes(conv), "c": conv.k, "width": conv.c // conv.groups, "times": conv.k // conv.c}
    _call(context, node, conv, "depthwise_nc16", {"src": context.read_blocks(node.inputs[0])}, weight, ints)


def _winograd(context: CpuContext, node: Node, conv: Convolution) -> None:
    weight = pack_winograd(context.graph.constants[node.inputs[1]])
    tiles = conv.n * -(-conv.oh // WINOGRAD_TILE) * -(-conv.ow // WINOGRAD_TILE)
    each = _POSITIONS * (blocks(conv.c) + blocks(conv.k)) * BLOCK
    together = min(tiles, max(BLOCK, _WORKSPACE_FLOATS // each))
    described = Tensor(shape=(together, each), dtype="f32", layout="packed")
    scratch = context.draft.add_buffer(f"{node.name}:winograd", 4 * together * each, "scratch", described)
    ints = {name: value for name, value in _sizes(conv).items() if name not in ("kh", "kw", "sh", "sw", "dh", "dw")}
    buffers = {"src": context.read_blocks(node.inputs[0]), "scratch": scratch}
    _call(context, node, conv, "winograd_4x4_nc16", buffers, weight, {**ints, "k": conv.k})


def _call(
    context: CpuContext,
    node: Node,
    conv: Convolution,
    operation: str,
    buffers: dict[str, str],
    weight: Array | str,
    ints: dict[str, int],
    floats: dict[str, float] | None = None,
) -> None:
    """A call on blocks of channels: weights in their own order, and what every such call takes."""
    code, lo, hi = activation_scalars(node)
    own, more, steps = _int8_end(context, node) if operation in _OPTIONAL else ({}, {}, {})
    if more.get("writes", _FLOATS) == _AS_CODES:
        dst, channels, offset = own["codes"], conv.k, 0
    else:
        dst, channels, offset = context.place_blocks(node.output)
    optional = _OPTIONAL.get(operation, ())
    bias = residual = dst
    if _has(node, 2):
        bias = context.weight(f"{node.name}:bias", pack_bias(context.graph.constants[node.inputs[2]]), "packed")
    if _has(node, RESIDUAL) and "residual" not in own:
        residual = context.read_blocks(node.inputs[RESIDUAL])
    if not isinstance(weight, str):
        weight = context.weight(f"{node.name}:weight", weight, "packed")
    buffers = {**dict.fromkeys(optional, dst), **buffers}
    buffers |= {"weight": weight, "bias": bias, "residual": residual, "dst": dst, **own}
    ints |= {"has_bias": int(_has(node, 2)), "has_residual": int(_has(node, RESIDUAL)), "activation": code}
    ints |= {"dst_channels": channels, "dst_offset": offset, **more}
    context.call(operation, node, buffers, ints, {"lo": lo, "hi": hi, **(floats or {}), **steps}, conv.flops)


_ROW_MAJOR = {"direct": "conv2d", "im2col": "conv2d_im2col", "sequential": "conv2d_sequential"}


def _row_major(context: CpuContext, node: Node, conv: Convolution, algorithm: str) -> None:
    code, lo, hi = activation_scalars(node)
    src, weight = context.read(node.inputs[0]), context.read(node.inputs[1])
    dst, channels, offset = context.place(node.output)
    bias = context.read(node.inputs[2]) if _has(node, 2) else dst
    residual = context.read(node.inputs[3]) if _has(node, 3) else dst
    ints = {
        **_sizes(conv), "k": conv.k, "groups": conv.groups, "has_bias": int(_has(node, 2)),
        "has_residual": int(_has(node, 3)), "activation": code, "dst_channels": channels, "dst_offset": offset,
    }  # fmt: skip
    buffers = {"src": src, "weight": weight, "bias": bias, "residual": residual, "dst": dst}
    if algorithm == "im2col":
        buffers["columns"] = context.scratch(f"{node.name}:columns", _column_elements(conv))
    context.call(_ROW_MAJOR[algorithm], node, buffers, ints, {"lo": lo, "hi": hi}, conv.flops)


def _column_elements(conv: Convolution) -> int:
    """Return the elements of the matrix of windows; one where the input already is that matrix."""
    w = conv.window
    is_matrix = (w["kh"], w["kw"], w["sh"], w["sw"]) == (1, 1, 1, 1) and (w["oh"], w["ow"]) == (w["h"], w["w"])
    return 1 if is_matrix else conv.c // conv.groups * w["kh"] * w["kw"] * w["oh"] * w["ow"]


def _has(node: Node, index: int) -> bool:
    return len(node.inputs) > index and bool(node.inputs[index])
