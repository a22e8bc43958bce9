"""dense and matmul -> the dispatch of its algorithm."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from kernels.catalog.desktop.product import NORMALISING
from kernels.catalog.desktop.units.tile import UnitTile
from kernels.catalog.family import Call
from kernels.catalog.packing import padded
from kernels.catalog.product import PRODUCTS
from kernels.catalog.product.packed import BlockTile
from kernels.ir.expressions import Expression, Program, program_of
from kernels.ir.graph import Node
from kernels.lower.activation import activation_scalars
from kernels.plan.model import Tensor
from kernels.source.chunks import long_sums
from kernels.source.kernel import Buffer, Kernel, result
from kernels.source.tile import Tile

from .bodies import body
from .context import GpuContext
from .convolution import constant
from .expression_text import in_halves, statements
from .layout import packed, plain
from .places.flatten import flattened_from, rows_by_stack
from .rows.dealing import dealt, is_read_dealt, new_dealt
from .rows.folding import FoldedNorm, add_columns_sum, folded
from .rows.one_row import Beside, beside_row, is_taken_along
from .rows.packed_rows import check_halves, packed_weights, panels, unpacked_copy
from .values import View

_INTS = ("columns", "vectors", "count")
PAD_ROWS = Kernel("pad_rows", body("pad_rows"), (Buffer("src", 1), result("dst")), _INTS)

_WHOLE = Kernel(
    "matmul_whole",
    body("matmul_whole"),
    (Buffer("a", 1), Buffer("b", 1), result("dst", 1)),
    ("rows", "depth", "columns", "count", "a_batch", "b_batch"),
)


@dataclass(frozen=True)
class PartsTile(Tile):
    """Parts of a depth."""

    parts: int


SUM_PARTS = Kernel(
    "sum_parts",
    body("sum_parts"),
    (Buffer("parts", storage="f32"), Buffer("bias"), result("dst")),
    ("count", "columns4", "dst_start", "dst_stride", "has_bias", "activation"),
    ("lo", "hi"),
    PartsTile,
)
TRIM_ROWS = Kernel("trim_rows", body("trim_rows"), (Buffer("src"), result("dst", 1)), _INTS)


def lower_dense(context: GpuContext, node: Node) -> None:
    """x (N, C) in stacks times w (C, M) packed in rows of vectors."""
    if is_taken_along(context, node):
        return
    n, c = context.graph.shapes[node.inputs[0]]
    m = context.graph.shapes[node.output][1]
    matrix = packed_weights(context, node)
    weight = constant(context, node, 1) if matrix is None else None
    has_bias = len(node.inputs) > 2 and node.inputs[2] != ""
    image, pixels = flattened_from(context.graph, node), 1
    if image is not None and weight is not None:
        pixels = context.dims(image).hw
        weight = rows_by_stack(weight, pixels)
    given = constant(context, node, 2) if has_bias else None
    norm = folded(context, node, weight, given) if image is None and weight is not None else None
    if norm is not None:
        weight, given = norm.weight, norm.bias
    asked = replace(node, attributes={**node.attributes, "dealt_out": is_read_dealt(context, node)})
    product, (call,) = context.calls(PRODUCTS, asked, {} if weight is None else {"weight": weight})
    source = _left(context, image or node.inputs[0], pixels, call, (n, c))
    is_dealt = "DEALT_OUT" in call.switches
    target = View(new_dealt(context, node.output, n, m), m // 4, 0) if is_dealt else context.new_packed(node.output)
    if weight is not None:
        weights = context.weight(node.inputs[1], padded(weight, 1, 4) if call.weight is None else call.weight)
    elif matrix is not None:
        is_read = isinstance(call.tile, BlockTile)
        if context.half if not is_read else call.kernel.is_narrow(context.options.precision):
            check_halves(node, matrix)
        weights = (panels if is_read else unpacked_copy)(context, node, matrix)
    bias = source if given is None else context.weight(f"{node.name}:bias", padded(given, 0, 4))
    beside = beside_row(context, node, call)
    adds = len(node.inputs) > 3 and not beside.computes_other
    residual = _rows(context, node.inputs[3], n, m) if adds else ""
    _product(
        context, node, beside.call, product.flops, source, weights, bias, target,
        {
            "rows": n, "depth": c, "columns4": -(-m // 4), "a_start": source.stack0, "a_stride": source.stacks,
            "a_batch": 0, "b_stride": -(-m // 4), "b_batch": 0,
            "dst_start": target.stack0,
            "dst_stride": target.stacks, "dst_batch": 0, "has_bias": int(given is not None),
        },
        residual, norm, beside,
    )  # fmt: skip


def _left(context: GpuContext, name: str, pixels: int, call: Call, sizes: tuple[int, int]) -> View:
    """Rows of the left operand, each a stack after the other, or dealt out where the tile reads them so."""
    value, wants_dealt = context.values.get(name), isinstance(call.tile, UnitTile) and call.tile.dealt
    if wants_dealt and value is not None and value.dealt is not None:
        return View(value.dealt, sizes[1] // 4, 0)
    view = packed(context, name)
    rows = View(view.buffer, view.stacks * pixels, view.stack0 * pixels, view.part)
    return View(dealt(context, name, rows, *sizes), sizes[1] // 4, 0) if wants_dealt else rows


def lower_matmul(context: GpuContext, node: Node) -> None:
    """a (.., M, K) times b (.., K, N): rows are padded to vectors first where they are not whole ones."""
    a_shape, b_shape = (context.graph.shapes[name] for name in node.inputs[:2])
    shape = context.graph.shapes[node.output]
    rows, depth, columns = shape[-2], a_shape[-1], shape[-1]
    batch = prod(shape[:-2])
    if context.is_whole(node.output):
        _of_whole(context, node, batch, rows, depth, columns)
        return
    depth4, columns4 = -(-depth // 4), -(-columns // 4)
    left = _rows(context, node.inputs[0], prod(a_shape[:-1]), depth)
    right = _rows(context, node.inputs[1], prod(b_shape[:-1]), columns)
    direct = columns % 4 == 0
    target = context.new_plain(node.output) if direct else _new_rows(context, node.output, batch * rows, columns)
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
    if not direct:
        _unpad(context, node, target, batch * rows, columns)


def _of_whole(context: GpuContext, node: Node, batch: int, rows: int, depth: int, columns: int) -> None:
    """A result a work-item."""
    a, b = (plain(context, name) for name in node.inputs)
    many = [prod(context.graph.shapes[name][:-2]) > 1 for name in node.inputs]
    ints = {"rows": rows, "depth": depth, "columns": columns, "count": batch * rows * columns}
    ints |= {"a_batch": rows * depth * many[0], "b_batch": depth * columns * many[1]}
    kernel = replace(_WHOLE, name=f"matmul_{context.held(node.output)}", number=context.held(node.output))
    context.dispatch(
        kernel, node.name, {"a": a, "b": b, "dst": context.new_plain(node.output)}, ints, (ints["count"], 1, 1),
        flops=2 * ints["count"] * depth, traffic=context.traffic(node),
    )  # fmt: skip


def _product(
    context: GpuContext, node: Node, call: Call, flops: int, a: str | View, b: str, bias: str | View,
    target: str | View, ints: dict[str, int], residual: str = "", norm: FoldedNorm | None = None,
    beside: Beside | None = None,
) -> None:  # fmt: skip
    code, lo, hi = activation_scalars(node)
    ints = {**ints, **call.ints, "activation": code}
    switches = {**call.switches, **long_sums(call.kernel, ints["depth"], context.limits)}
    if "EIGHTS_A" in switches and (ints["a_start"] % 2 or ints["a_stride"] % 2):
        switches["EIGHTS_A"] = 0
    stores_halves = (target.buffer if isinstance(target, View) else target) not in context.stored
    if "PAIRED" in switches and stores_halves and not (ints["dst_start"] % 2 or ints["dst_stride"] % 2):
        switches["EIGHTS_OUT"] = 1
    kernel, last, buffers = call.kernel, SUM_PARTS, {"a": a, "b": b, "bias": bias, "dst": target}
    if norm is not None:
        kernel, switches = NORMALISING, {**switches, "NORMALISED": 1}
        buffers["columns_sum"] = add_columns_sum(context, node, norm.columns_sum)
    floats: tuple[float, ...] = (lo, hi) if norm is None else (lo, hi, norm.epsilon)
    if beside is not None:
        buffers, floats = {**buffers, **beside.buffers}, (*floats, *beside.epsilon)
    if call.parts > 1:
        parts = _new_parts(context, node, call.parts, ints["rows"], ints["columns4"])
        own = {"dst_start": 0, "dst_stride": ints["columns4"], "dst_batch": ints["rows"] * ints["columns4"]}
        *read, written = kernel.buffers
        part = replace(kernel, name=f"{kernel.name}_part", buffers=(*read, replace(written, storage="f32")))
        _dispatch(
            context, node, part, {**buffers, "dst": parts}, {**ints, **own, "has_bias": 0, "activation": 0},
            call.work_items, (0.0, 0.0), call, switches, flops,
        )  # fmt: skip
        count = ints["rows"] * ints["columns4"]
        ints |= {"count": count}
        kernel, buffers = last, {"parts": parts, "bias": bias, "dst": target}
    if "ending" in node.attributes:
        ending = node.attributes["ending"]
        other = beside is not None and beside.computes_other
        ending = in_halves(ending) if context.half else ending
        kernel = ended(kernel, ending, has_residual=bool(residual), has_other=other)
        ints["residual_stride"] = ints["columns4"]
        buffers |= {"residual": residual} if residual else {}
    if call.parts > 1:
        _dispatch(context, node, kernel, buffers, ints, (ints["count"], 1, 1), (lo, hi), PartsTile(call.parts), {}, 0)
    else:
        _dispatch(context, node, kernel, buffers, ints, call.work_items, floats, call, switches, flops)


def _dispatch(
    context: GpuContext, node: Node, kernel: Kernel, buffers: Mapping[str, str | View], ints: Mapping[str, int],
    work_items: tuple[int, int, int], floats: tuple[float, ...], call: Call | Tile, switches: Mapping[str, int],
    flops: int,
) -> None:  # fmt: skip
    wanted = {parameter.name for parameter in kernel.parameters}
    tile, group = (call.tile, call.group) if isinstance(call, Call) else (call, 0)
    context.dispatch(
        kernel, node.name, buffers, {name: value for name, value in ints.items() if name in wanted}, work_items,
        floats=dict(zip(("lo", "hi", "epsilon"), floats, strict=False)), tile=tile, switches=switches, group=group,
        flops=flops, traffic=context.traffic(node),
    )  # fmt: skip


def _new_parts(context: GpuContext, node: Node, parts: int, rows: int, columns4: int) -> str:
    """Sums of each part, in single precision."""
    described = Tensor(shape=(parts, rows, 4 * columns4), dtype="f32")
    return context.draft.add_buffer(f"{node.name}:parts", parts * rows * columns4 * 16, "scratch", described)


_STORE = re.compile(r"STORE_dst\((.+), ACTIVATE(1?)\((\w+)\)\);")
_BESIDE = re.compile(r"BESIDE\((\w+\[\w+\]), (.+)\);")
"""The place where a kernel reads what lies beside several sums, before it stores the first one; then it is `other`
there."""
_BESIDES = re.compile(r"BESIDES\((\w+\[[^,]+\]), (\w+\[[^,]+\]), (.+)\);")
"""The same of two adjacent sums, at a place that is a multiple of two vectors."""


def ended(kernel: Kernel, ending: Expression, *, has_residual: bool, has_other: bool = False) -> Kernel:
    """The kernel that applies an expression to each sum `a`, and to what lies beside it, `b`, before it is stored.
    `has_other`: the kernel itself computes what lies beside, as `other`."""
    program = program_of(ending)

    def write(text: str, constants: Mapping[str, int]) -> str:
        text = kernel.rewritten(text, constants)
        is_fetched = has_other or _BESIDE.search(text) is not None
        ending_of = _ending_of(program, has_residual=has_residual or has_other, is_fetched=is_fetched)
        text = _STORE.sub(ending_of, text)
        if not has_residual:
            return text
        text = _BESIDES.sub(lambda match: _load_besides(*match.groups()), text)
        return _BESIDE.sub(lambda match: f"{match[1]} = TO_WIDE4({_load_beside(match[2])});", text)

    digest = hashlib.sha256(f"{ending}".encode()).hexdigest()[:8]
    *read, written = kernel.buffers
    beside = (Buffer("residual", written.lanes),) if has_residual else ()
    ints = (*kernel.ints, *(("residual_stride",) if has_residual else ()))
    return replace(kernel, name=f"{kernel.name}_{digest}", buffers=(*read, *beside, written), ints=ints, rewrite=write)


def _load_beside(place: str) -> str:
    """Return the text that loads what lies beside the result at a place."""
    return f"LOAD_residual({_beside(place)})"


def _load_besides(first: str, second: str, place: str) -> str:
    """Return the text that loads it for two results at once."""
    load = f"const RAW8 both = LOAD_RAW8_residual(({_beside(place)}) / 2);"
    return f"{{ {load} {first} = FROM_RAW(both.xy); {second} = FROM_RAW(both.zw); }}"


def _beside(place: str) -> str:
    return place.replace("dst_start + ", "").replace("batch * dst_batch + ", "").replace("dst_", "residual_")


def _ending_of(program: Program, *, has_residual: bool, is_fetched: bool) -> Callable[[re.Match[str]], str]:
    def written(match: re.Match[str]) -> str:
        place, single, value = match.groups()
        lanes = ("",) if single else ("x", "y", "z", "w")
        lines, found = [], []
        if has_residual:
            load = "other" if is_fetched else _load_beside(place)
            lines.append(f"const float beside = {load};" if single else f"const WIDE4 beside = TO_WIDE4({load});")
        for lane in lanes:
            end, of = f"_{lane}" if lane else "", f".{lane}" if lane else ""
            lines.append(f"const float v_a{end} = {value}{of};")
            lines += [f"const float v_b{end} = beside{of};"] if has_residual else []
            steps, last = statements(program, end)
            lines.append(steps)
            found.append(last)
        whole = found[0] if single else f"WIDE_VEC4({', '.join(found)})"
        return "{ " + " ".join(lines) + f" STORE_dst({place}, {whole}); }}"

    return written


def _rows(context: GpuContext, tensor: str, rows: int, columns: int) -> str:
    """A tensor as rows of whole vectors: itself, or a padded copy."""
    source = plain(context, tensor)
    if columns % 4 == 0:
        return source
    target = _new_rows(context, tensor, rows, columns)
    _move_rows(context, PAD_ROWS, f"{tensor}:rows", source, target, rows, columns)
    return target


def _unpad(context: GpuContext, node: Node, source: str, rows: int, columns: int) -> None:
    _move_rows(context, TRIM_ROWS, f"{node.name}:rows", source, context.new_plain(node.output), rows, columns)


def _move_rows(
    context: GpuContext, kernel: Kernel, layer: str, source: str, target: str, rows: int, columns: int
) -> None:
    """Move between rows of any length and rows of whole vectors, a work-item a vector."""
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
