"""`reduce`: rows to one number each: by a work-group a row where elements lie side by side, else by a work-item a row,
long rows in two steps, of which the first one's results stay in fp32."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kernels.ir.graph import Node
from kernels.ir.shapes import REDUCTIONS
from kernels.plan.model import ITEM_BYTES, Tensor
from kernels.source.kernel import Buffer, Kernel, LocalArray, Number, result
from kernels.source.tile import SharedSum

from .bodies import body
from .context import GpuContext
from .layout import as_kept

_INTS = ("n", "inner", "parts", "part_length", "count")
_REDUCE = Kernel("reduce", body("reduce"), (Buffer("src", 1), result("dst", 1)), _INTS, ("scale",))
_FIRST = Kernel("reduce_first", body("reduce"), (Buffer("src", 1), result("dst", 1, "f32")), _INTS, ("scale",))
_LAST = Kernel("reduce_last", body("reduce"), (Buffer("src", 1, "f32"), result("dst", 1)), _INTS, ("scale",))
_ROWS = Kernel(
    "reduce_rows",
    body("reduce_rows"),
    (Buffer("src", 1), result("dst", 1)),
    ("n",),
    ("scale",),
    tile=SharedSum,
    locals=(LocalArray("partial", "SHARED", 1, "number"),),
)
_KINDS = {kind: index for index, kind in enumerate(k for k in REDUCTIONS if k != "mean")} | {"mean": 0}
_SHORT, _FEW_ROWS, _LONGEST = 128, 4096, 4096
"""Rows of so few elements, or so many rows, are done in one step; none is longer than the last."""
_SHARED = (64, 16384)
"""Elements of a row that a work-group adds up by itself, at least and at most."""


def lower_reduce(context: GpuContext, node: Node) -> None:
    """See the module."""
    shape, a = context.graph.shapes[node.inputs[0]], node.attributes
    n, inner = prod(shape[a["start"] : a["stop"]]), prod(shape[a["stop"] :])
    rows = prod(shape[: a["start"]]) * inner
    kind, scale = _KINDS[a["kind"]], 1 / n if a["kind"] == "mean" else 1.0
    squared = {"SQUARED": 1} if a.get("squared") else {}
    source, target = as_kept(context, node.inputs[0]), context.new_plain(node.output)
    number = context.held(node.inputs[0])
    group = context.sharing(_ROWS, n) if inner == 1 and kind < _KINDS["argmax"] and _SHARED[0] <= n <= _SHARED[1] else 0
    if group:
        context.dispatch(
            _typed(_ROWS, number), node.name, {"src": source, "dst": target}, {"n": n}, (rows * group, 1, 1),
            floats=_scale(scale, number),
            tile=SharedSum(1, group), switches={"KIND": kind, **squared}, group=group, flops=rows * n,
            traffic=context.traffic(node),
        )  # fmt: skip
        return
    length = n
    if kind < _KINDS["argmax"] and n > _SHORT and (rows < _FEW_ROWS or n > _LONGEST):
        length = max(32, int(n**0.5))
    if length == n:
        _step(context, node, _REDUCE, source, target, (rows, n, inner, n), {"KIND": kind, **squared}, scale)
        return
    parts = -(-n // length)
    described, size = Tensor(shape=(rows, parts), dtype=number), rows * parts * ITEM_BYTES[number]
    between = context.draft.add_buffer(f"{node.name}:parts", size, "scratch", described)
    context.stored |= {between: number} if number != "f32" else {}
    _step(context, node, _FIRST, source, between, (rows, n, inner, length), {"KIND": kind, **squared}, 1.0)
    _step(context, node, _LAST, between, target, (rows, parts, inner, parts), {"KIND": kind}, scale)


def _step(
    context: GpuContext, node: Node, kernel: Kernel, source: str, target: str, sizes: tuple[int, int, int, int],
    switches: Mapping[str, int], scale: float,
) -> None:  # fmt: skip
    rows, n, inner, length = sizes
    number, parts = context.held(node.inputs[0]), -(-n // length)
    ints = {"n": n, "inner": inner, "parts": parts, "part_length": length, "count": rows * parts}
    context.dispatch(
        _typed(kernel, number), node.name, {"src": source, "dst": target}, ints, (rows * parts, 1, 1),
        floats=_scale(scale, number),
        switches=switches, flops=rows * n, traffic=context.traffic(node),
    )  # fmt: skip


def _typed(kernel: Kernel, number: Number) -> Kernel:
    return kernel if number == "f32" else kernel.of_numbers(number, _unscaled)


def _unscaled(text: str, _: Mapping[str, int]) -> str:
    return text.replace(" * scale", "")


def _scale(scale: float, number: Number) -> dict[str, float]:
    return {"scale": scale} if number == "f32" else {}
