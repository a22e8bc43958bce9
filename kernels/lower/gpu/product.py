"""dense and matmul -> the dispatch of its algorithm."""

from __future__ import annotations

from math import prod

from kernels.catalog.family import Call
from kernels.catalog.packing import padded
from kernels.catalog.product import PRODUCTS
from kernels.ir.graph import Node
from kernels.lower.activation import activation_scalars
from kernels.plan.model import Tensor
from kernels.source.kernel import Buffer, Kernel, result

from .bodies import body
from .context import GpuContext
from .convolution import constant
from .flatten import flattened_from, rows_by_stack
from .layout import packed, plain
from .values import Value, View

_INTS = ("columns", "vectors", "count")
PAD_ROWS = Kernel("pad_rows", body("pad_rows"), (Buffer("src", 1), result("dst")), _INTS)
TRIM_ROWS = Kernel("trim_rows", body("trim_rows"), (Buffer("src"), result("dst", 1)), _INTS)


def lower_dense(context: GpuContext, node: Node) -> None:
    """x (N, C) in stacks times w (C, M) packed in rows of vectors."""
    n, c = context.graph.shapes[node.inputs[0]]
    m = context.graph.shapes[node.output][1]
    weight = constant(context, node, 1)
    has_bias = len(node.inputs) > 2 and node.inputs[2] != ""
    image, pixels = flattened_from(context.graph, node), 1
    if image is not None:
        pixels = context.dims(image).hw
        weight = rows_by_stack(weight, pixels)
    product, (call,) = context.calls(PRODUCTS, node, {"weight": weight})
    weight = padded(weight, 1, 4) if call.weight is None else call.weight
    source = packed(context, image or node.inputs[0])
    target = context.new_packed(node.output)
    weights = context.weight(node.inputs[1], weight)
    bias = context.weight(f"{node.name}:bias", padded(constant(context, node, 2), 0, 4)) if has_bias else weights
    _product(
        context, node, call, product.flops, source, weights, bias, target,
        {
            "rows": n, "depth": c, "columns4": -(-m // 4), "a_start": source.stack0 * pixels,
            "a_stride": source.stacks * pixels, "a_batch": 0, "b_stride": -(-m // 4), "b_batch": 0,
            "dst_start": target.stack0,
            "dst_stride": target.stacks, "dst_batch": 0, "has_bias": int(has_bias),
        },
    )  # fmt: skip


def lower_matmul(context: GpuContext, node: Node) -> None:
    """a (.., M, K) times b (.., K, N): rows are padded to vectors first where they are not whole ones."""
    a_shape, b_shape = (context.graph.shapes[name] for name in node.inputs[:2])
    shape = context.graph.shapes[node.output]
    rows, depth, columns = shape[-2], a_shape[-1], shape[-1]
    batch = prod(shape[:-2])
    depth4, columns4 = -(-depth // 4), -(-columns // 4)
    left = _rows(context, node.inputs[0], prod(a_shape[:-1]), depth)
    right = _rows(context, node.inputs[1], prod(b_shape[:-1]), columns)
    target, direct = _result_rows(context, node.output, batch * rows, columns)
    product, (call,) = context.calls(PRODUCTS, node)
    _product(
        context, node, call, product.flops, left, right, right, target,
        {
            "rows": rows, "depth": depth, "columns4": columns4, "a_start": 0, "a_stride": depth4,
            "a_batch": rows * depth4 if prod(a_shape[:-2]) > 1 else 0, "b_stride": columns4,
            "b_batch": depth * columns4 if prod(b_shape[:-2]) > 1 else 0, "dst_start": 0, "dst_stride": columns4,
            "dst_batch": rows * columns4, "has_bias": 0,
        },
    )  # fmt: skip
    if direct:
        context.values[node.output] = Value(plain=target, single=None if context.half else target)
    else:
        _unpad(context, node, target, batch * rows, columns)


def _product(
    context: GpuContext, node: Node, call: Call, flops: int, a: str | View, b: str, bias: str, target: str | View,
    ints: dict[str, int],
) -> None:  # fmt: skip
    code, lo, hi = activation_scalars(node)
    wanted = {parameter.name for parameter in call.kernel.parameters}
    context.dispatch(
        call.kernel, node.name, {"a": a, "b": b, "bias": bias, "dst": target},
        {name: value for name, value in {**ints, **call.ints, "activation": code}.items() if name in wanted},
        call.work_items, floats={"lo": lo, "hi": hi}, tile=call.tile, switches=call.switches, group=call.group,
        flops=flops, traffic=context.traffic(node),
    )  # fmt: skip


def _rows(context: GpuContext, tensor: str, rows: int, columns: int) -> str:
    """A tensor as rows of whole vectors: itself, or a padded copy."""
    source = plain(context, tensor)
    if columns % 4 == 0:
        return source
    target = _new_rows(context, tensor, rows, columns)
    _move_rows(context, PAD_ROWS, f"{tensor}:rows", source, target, rows, columns)
    return target


def _result_rows(context: GpuContext, tensor: str, rows: int, columns: int) -> tuple[str, bool]:
    if columns % 4 == 0:
        return context.plain_buffer(tensor), True
    return _new_rows(context, tensor, rows, columns), False


def _unpad(context: GpuContext, node: Node, source: str, rows: int, columns: int) -> None:
    _move_rows(context, TRIM_ROWS, f"{node.name}:rows", source, context.new_plain(node.output), rows, columns)


def _move_rows(
    context: GpuContext, kernel: Kernel, layer: str, source: str, target: str, rows: int, columns: int
) -> None:
    """Between rows of any length and rows of whole vectors, a work-item a vector."""
    vectors = -(-columns // 4)
    ints = {"columns": columns, "vectors": vectors, "count": rows * vectors}
    places = {"src": source, "dst": target}
    context.dispatch(kernel, layer, places, ints, (rows * vectors, 1, 1), traffic=_moved(context, rows, columns))


def _moved(context: GpuContext, rows: int, columns: int) -> int:
    """Bytes read and written where rows are padded to whole vectors, or the padding is taken off."""
    return rows * (columns + -(-columns // 4) * 4) * (2 if context.half else 4)


def _new_rows(context: GpuContext, tensor: str, rows: int, columns: int) -> str:
    vectors = -(-columns // 4)
    described = Tensor(shape=(rows, columns), dtype=context.dtype, layout="nc4hw4")
    return context.draft.add_buffer(
        f"{tensor}:rows", rows * vectors * 4 * (2 if context.half else 4), "scratch", described
    )
