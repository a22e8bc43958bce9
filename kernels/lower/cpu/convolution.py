"""conv -> a call of the chosen algorithm."""

from __future__ import annotations

from kernels.catalog.convolution import Convolution, convolution_of
from kernels.ir.graph import Array, Node
from kernels.lower.activation import activation_scalars
from kernels.plan.model import Tensor

from .algorithms import algorithm_of
from .context import CpuContext
from .packing import BLOCK, WINOGRAD_TILE, blocks, pack_bias, pack_depthwise, pack_int8, pack_product, pack_winograd

_POSITIONS = (WINOGRAD_TILE + 2) ** 2
_WORKSPACE_FLOATS = 384 << 10
"""Of a band of Winograd's tiles: what two cores keep in their second-level caches."""


def lower_conv(context: CpuContext, node: Node) -> None:
    """One call; its weights are constants or, for `direct`, any tensor."""
    conv = convolution_of(context.graph, node)
    algorithm = algorithm_of(context.options, context.graph, node).name
    context.draft.chosen[node.name] = algorithm
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
    weight = pack_product(context.graph.constants[node.inputs[1]], plain_source=plain)
    ints = {**_sizes(conv), "k": conv.k, "groups": conv.groups, "src_plain": int(plain)}
    _call(context, node, conv, "conv2d_nc16", {"src": src}, weight, ints)


def _int8(context: CpuContext, node: Node, conv: Convolution) -> None:
    plain = conv.c < BLOCK and context.is_plain(node.inputs[0])
    src = context.read(node.inputs[0]) if plain else context.read_blocks(node.inputs[0])
    weight = context.graph.constants[node.inputs[1]]
    packed = pack_int8(weight, plain_source=plain, on_grid="input_steps" in node.attributes)
    given, step = input_steps(node)
    ints = {**_sizes(conv), "k": conv.k, "groups": conv.groups, "src_plain": int(plain), **given}
    (kh, kw), (sh, sw), (dh, dw) = conv.kernel, conv.strides, conv.dilations
    rows, columns = (conv.oh - 1) * sh + (kh - 1) * dh + 1, (conv.ow - 1) * sw + (kw - 1) * dw + 1
    lanes = -(-conv.c // 4) * 4 if plain else blocks(conv.c) * BLOCK
    buffers = {
        "src": src,
        "scale": context.weight(f"{node.name}:scale", packed.scale, "packed"),
        "sums": context.packed(f"{node.name}:sums", packed.sums),
        "values": context.scratch(f"{node.name}:values", rows * columns * lanes // 4),
    }
    _call(context, node, conv, "conv2d_int8", buffers, context.packed(f"{node.name}:weight", packed.weight), ints, step)


def input_steps(node: Node) -> tuple[dict[str, int], dict[str, float]]:
    """How the input becomes whole numbers, for an operation in 8 bits: by its own range, or as the model says."""
    step, zero = node.attributes.get("input_steps", (0.0, 0))
    return {"steps_given": int(step > 0), "zero": zero}, {"step": step}


def _depthwise(context: CpuContext, node: Node, conv: Convolution) -> None:
    weight = pack_depthwise(context.graph.constants[node.inputs[1]])
    _call(context, node, conv, "depthwise_nc16", {"src": context.read_blocks(node.inputs[0])}, weight, _sizes(conv))


def _winograd(context: CpuContext, node: Node, conv: Convolution) -> None:
    weight = pack_winograd(context.graph.constants[node.inputs[1]])
    tiles = conv.n * -(-conv.oh // WINOGRAD_TILE) * -(-conv.ow // WINOGRAD_TILE)
    each = _POSITIONS * (blocks(conv.c) + blocks(conv.k)) * BLOCK
    together = min(tiles, max(BLOCK, _WORKSPACE_FLOATS // each))
    described = Tensor(shape=(together, each), dtype="f32", layout="packed")
    scratch = context.draft.add_buffer(f"{node.name}:winograd", 4 * together * each, "scratch", described)
    ints = {name: value for name, value in _sizes(conv).items() if name not in ("kh", "kw", "sh", "sw", "dh", "dw")}
    buffers = {"src": context.read_blocks(node.inputs[0]), "scratch": scratch}
    _call(context, node, conv, "winograd_nc16", buffers, weight, {**ints, "k": conv.k})


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
    dst, channels, offset = context.place_blocks(node.output)
    bias = residual = dst
    if _has(node, 2):
        bias = context.weight(f"{node.name}:bias", pack_bias(context.graph.constants[node.inputs[2]]), "packed")
    if _has(node, 3):
        residual = context.read_blocks(node.inputs[3])
    if not isinstance(weight, str):
        weight = context.weight(f"{node.name}:weight", weight, "packed")
    buffers |= {"weight": weight, "bias": bias}
    buffers |= {"residual": residual, "dst": dst}
    ints |= {"has_bias": int(_has(node, 2)), "has_residual": int(_has(node, 3)), "activation": code}
    ints |= {"dst_channels": channels, "dst_offset": offset}
    context.call(operation, node, buffers, ints, {"lo": lo, "hi": hi, **(floats or {})}, conv.flops)


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
    """Of the matrix of windows; one where the input already is that matrix."""
    w = conv.window
    is_matrix = (w["kh"], w["kw"], w["sh"], w["sw"]) == (1, 1, 1, 1) and (w["oh"], w["ow"]) == (w["h"], w["w"])
    return 1 if is_matrix else conv.c // conv.groups * w["kh"] * w["kw"] * w["oh"] * w["ow"]


def _has(node: Node, index: int) -> bool:
    return len(node.inputs) > index and bool(node.inputs[index])
