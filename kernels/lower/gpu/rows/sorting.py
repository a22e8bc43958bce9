"""`sort` and `suppress`: a row, or a run of one, by a work-group that keeps what it compares in local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from kernels.ir.graph import Node
from kernels.ir.sorting import GIVES, twin
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.expression_text import whole_number
from kernels.lower.gpu.layout import plain, single
from kernels.plan.model import ITEM_BYTES, Dtype, Tensor
from kernels.source.kernel import Buffer, Kernel, LocalArray, Number, result
from kernels.source.tile import Tile, derived


@dataclass(frozen=True)
class Run(Tile):
    """A work-group sorts `block` elements, a power of two."""

    block: int
    group: int


@dataclass(frozen=True)
class Walk(Tile):
    """A work-group looks at `group` boxes at a time, and takes `most` at most."""

    most: int
    group: int

    @derived
    def corners(self) -> int:
        return 5 * self.group


_LAST = (result("found", 1), result("at", 1))
_BETWEEN = (result("found", 1, "f32"), result("at", 1, "f32"))
_PAIRS = (Buffer("src", 1), Buffer("keys", 1, "f32"), Buffer("places", 1, "f32"))
_RUN = ("n", "runs", "keep")
_LOCALS = (LocalArray("keys", "BLOCK", 1, "number"), LocalArray("places", "BLOCK", 1))
_SORT = Kernel("sort_row", body("sort_block"), (Buffer("src", 1), *_LAST), _RUN, tile=Run, locals=_LOCALS)
_BLOCK = Kernel("sort_block", body("sort_block"), (Buffer("src", 1), *_BETWEEN), _RUN, tile=Run, locals=_LOCALS)
_MERGED = ("n", "runs", "length", "keep", "count")
_MERGE = Kernel("sort_merge", body("sort_merge"), (*_PAIRS[1:], *_BETWEEN), _MERGED)
_END = Kernel("sort_end", body("sort_merge"), (*_PAIRS, *_LAST), _MERGED)
_SUPPRESS = Kernel(
    "suppress",
    body("suppress"),
    (Buffer("boxes", 1), Buffer("order", 1, "f32"), Buffer("valid", 1, "f32"), result("dst", 1)),
    ("batch", "n", "rows", "length", "rounds"),
    ("overlap",),
    tile=Walk,
    locals=(LocalArray("waiting", "GROUP", 1), LocalArray("near", "CORNERS", 1), LocalArray("taken", "MOST", 1)),
)
_LOCAL_BYTES = 16384
"""Every device of Vulkan has so much."""
_LONGEST, _GROUPS = {True: 128, False: 2048}, {True: 8, False: 256}
"""Elements of a run and work-items at most, by whether the device is a CPU: there a barrier costs more than a merge."""


def lower_sort(context: GpuContext, node: Node) -> None:
    """Runs that fit into local memory, which are then merged two by two; both results where both are asked for."""
    if node.output in context.values:
        return
    (rows, n), a, other = context.graph.shapes[node.inputs[0]], node.attributes, twin(context.graph, node)
    k, number = a["k"], context.held(node.inputs[0])
    most = (context.limits.local_bytes or _LOCAL_BYTES) // (12 if number == "i64" else 8)
    block = min(_LONGEST[context.limits.cpu_device], 1 << most.bit_length() - 1, max(2, 1 << (n - 1).bit_length()))
    runs = -(-n // block)
    first = _typed(_SORT if runs == 1 else _BLOCK, number)
    source, group = plain(context, node.inputs[0]), _group(context, first, block // 2)
    targets = {a["gives"]: context.new_plain(node.output)}
    for gives in GIVES:
        if gives not in targets:
            kind: Number = number if gives == "values" else "f32"
            unread = context.new_plain(other.output) if other else _scratch(context, node, gives, rows * k, kind)
            targets[gives] = unread
    last = {"src": source, "found": targets["values"], "at": targets["places"]}
    length = min(block, k)
    between = last if runs == 1 else _between(context, node, rows * runs * length, number)
    context.dispatch(
        first, node.name, {**between, "src": source}, {"n": n, "runs": runs, "keep": length},
        (rows * runs * group, 1, 1), tile=Run(block, group), group=group, traffic=context.traffic(node),
        switches={"LAST": int(runs == 1), "LARGEST": int(a["largest"])},
    )  # fmt: skip
    while runs > 1:
        pairs, keep = (runs + 1) // 2, min(2 * length, k)
        read = {"keys": between["found"], "places": between["at"]}
        between = last if pairs == 1 else _between(context, node, rows * pairs * keep, number)
        count = rows * pairs * 2 * length
        context.dispatch(
            _typed(_END if pairs == 1 else _MERGE, number), node.name, {**read, **between},
            {"n": n, "runs": runs, "length": length, "keep": keep, "count": count}, (count, 1, 1),
            switches={"LAST": int(pairs == 1)}, traffic=16 * count,
        )  # fmt: skip
        runs, length = pairs, keep


def _typed(kernel: Kernel, number: Number) -> Kernel:
    return kernel if number == "f32" else kernel.of_numbers(number, _of_whole)


def _of_whole(text: str, _: Mapping[str, int]) -> str:
    """Return the text without NaN; `~x` falls where x rises, the least number too."""
    text = text.replace("IS_NAN1(x) ? LOWEST : LARGEST == 1 ? x : -x", "LARGEST == 1 ? x : ~x")
    kind: Number = "i64" if "LONG" in text else "i32"
    return text.replace("LOWEST", whole_number(-inf, kind))


def _between(context: GpuContext, node: Node, count: int, number: Number) -> dict[str, str]:
    kinds: tuple[tuple[str, Dtype], ...] = (("found", number), ("at", "f32"))
    return {name: _scratch(context, node, name, count, kind, between=True) for name, kind in kinds}


def _scratch(context: GpuContext, node: Node, what: str, count: int, dtype: Dtype, *, between: bool = False) -> str:
    dtype = "f16" if context.half and dtype == "f32" and not between else dtype
    described = Tensor(shape=(count,), dtype=dtype)
    buffer = context.draft.add_buffer(f"{node.name}:{what}", count * ITEM_BYTES[dtype], "scratch", described)
    if dtype in ("i32", "i64"):
        context.stored[buffer] = dtype
    return buffer


def _group(context: GpuContext, kernel: Kernel, most: int) -> int:
    """Work-items of its group, a power of two."""
    limits = context.limits.within(kernel.name)
    sizes = (_GROUPS[limits.cpu_device], limits.max_work_group, *limits.max_work_item_sizes[:1], most)
    return 1 << (min(size for size in sizes if size).bit_length() - 1)


def lower_suppress(context: GpuContext, node: Node) -> None:
    """A work-group a row."""
    shapes, rounds = context.graph.shapes, node.attributes["rounds"]
    (batch, n, _), (rows, length) = (shapes[name] for name in node.inputs[:2])
    group, local = min(128, _group(context, _SUPPRESS, max(1, length))), context.limits.local_bytes or _LOCAL_BYTES
    while group > 1 and _SUPPRESS.local_bytes(Walk(rounds, group).constants) > local:
        group //= 2
    buffers = {
        "boxes": plain(context, node.inputs[0]), "order": single(context, node.inputs[1]),
        "valid": single(context, node.inputs[2]), "dst": context.new_plain(node.output),
    }  # fmt: skip
    ints = {"batch": batch, "n": n, "rows": rows, "length": length, "rounds": rounds}
    context.dispatch(
        _SUPPRESS, node.name, buffers, ints, (rows * group, 1, 1), tile=Walk(rounds, group), group=group,
        floats={"overlap": float(node.attributes["overlap"])}, traffic=context.traffic(node),
    )  # fmt: skip
