"""`append` and `attend` (`kernels/ir/cache.py`): a vector of the cache a work-item, a row of a head a work-group."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import plain, single
from kernels.lower.gpu.taking import grown
from kernels.source.kernel import Buffer, Kernel, LocalArray, changed, result
from kernels.source.tile import Tile, derived

from .attention import cached_tile

_GROUP = 64


@dataclass(frozen=True)
class RowTile(Tile):
    """Vectors of a row, and of half of what is turned."""

    depth4: int
    half4: int


@dataclass(frozen=True)
class AppendTile(RowTile):
    """Vectors of a row of a second cache."""

    values4: int


@dataclass(frozen=True)
class AttendTile(RowTile):
    """`group` work-items; vectors of a row of the result."""

    columns4: int
    group: int

    parts = derived(lambda tile: tile.group // tile.columns4)


PLACE = ("src_start", "src_batch", "src_head", "src_row")
_ENDS = Buffer("ends", 1, "f32")
_APPEND = Kernel(
    "append",
    body("append"),
    (Buffer("src"), _ENDS, changed("dst")),
    ("heads", "rows", "capacity", *PLACE),
    tile=RowTile,
)
_BESIDE = tuple(f"value_{of}" for of in ("start", "batch", "head", "row"))
_APPEND_BOTH = replace(
    _APPEND,
    name="append_both",
    buffers=(*_APPEND.buffers[:-1], Buffer("new_value"), changed("value_cache"), _APPEND.buffers[-1]),
    ints=(*_APPEND.ints, *_BESIDE),
    tile=AppendTile,
)
_ATTEND = Kernel(
    "attend",
    body("attend"),
    (Buffer("src"), Buffer("k"), Buffer("v"), _ENDS, result("dst")),
    (*_APPEND.ints, "kept", "window"),
    ("scale", "softcap"),
    tile=AttendTile,
    locals=(
        LocalArray("tile_q", "DEPTH4"),
        LocalArray("sums", "GROUP"),
        LocalArray("meeting", "GROUP", 1),
        LocalArray("weight", "GROUP", 1),
    ),
)


def lower_cached(context: GpuContext, node: Node, values: Node | None = None) -> None:
    """Lower either; depths, columns and halves of what is turned are whole vectors (`cached.py` of the frontend).

    `values`: what appends to a second cache at the same places, and does nothing else to its rows."""
    a, shapes, attends = node.attributes, context.graph.shapes, node.op == "attend"
    names, operands = (("src", "k", "v"), node.inputs) if attends else (("src",), node.inputs[1:])
    given = dict(zip((*names, "ends", "cosines", "sines", "norm"), operands, strict=False))
    batch, shared, capacity, depth = shapes[node.inputs[1 if attends else 0]]
    heads, rows = a.get("heads", shared), a["rows"]
    first, *steps = a["place"]
    ints = {"heads": heads, "rows": rows, "capacity": capacity, "src_start": first // 4}
    ints |= {name: step // 4 for name, step in zip(PLACE[1:], steps, strict=True)}
    buffers = {name: plain(context, tensor) for name, tensor in given.items() if tensor and name != "ends"}
    buffers |= {"ends": single(context, given["ends"])}
    floats = {"epsilon": float(a["epsilon"])} if a["normed"] else {}
    ints |= {"places": shapes[given["cosines"]][0]} if a["turned"] else {}
    switches = {"NORMED": int(a["normed"]), "BY_PLACE": int(a["by_place"])}
    half4 = a["turned"] // 8
    tile: Tile = RowTile(depth // 4, half4)
    items, group = (depth // 4, rows, batch * shared), 0
    kernel = _ATTEND if attends else _APPEND
    if values is not None:
        kernel, values4 = _APPEND_BOTH, shapes[values.output][3] // 4
        tile, items = AppendTile(depth // 4, half4, values4), (max(depth // 4, values4), rows, batch * shared)
        buffers |= {"new_value": plain(context, values.inputs[1]), "value_cache": grown(context, values)}
        ints |= {name: n // 4 for name, n in zip(_BESIDE, values.attributes["place"], strict=True)}
    if attends:
        columns4 = shapes[given["v"]][3] // 4
        ints |= {"kept": shared, "window": a["window"]}
        floats |= {"scale": float(a["scale"]), "softcap": float(a["softcap"])}
        switches |= {"CAPPED": int(a["softcap"] > 0)}
        if (tiled := cached_tile(context, node)) is None:
            group = _GROUP * -(-columns4 // _GROUP)
            tile, items = AttendTile(depth // 4, half4, columns4, group), (rows * group, heads, batch)
        else:
            kernel, rows_tile = tiled
            tile, group = rows_tile, rows_tile.group
            items = (-(-rows // rows_tile.tile_rows) * group, heads, batch)
            buffers["q"] = buffers.pop("src")
            ints |= {f"q_{word}": ints.pop(f"src_{word}") for word in ("start", "batch", "head", "row")}
            ints |= {"dst_start": 0, "dst_batch": rows * heads * columns4, "dst_head": columns4}
            ints |= {"dst_row": heads * columns4}
    dispatched = {**buffers, "dst": context.new_plain(node.output) if attends else grown(context, node)}
    context.dispatch(
        beside(kernel, turned=half4 > 0, normed=a["normed"]), node.name, dispatched, ints,
        items, floats=floats, tile=tile, switches=switches, group=group, traffic=context.traffic(node),
        flops=4 * batch * heads * rows * capacity * depth if attends else 0,
    )  # fmt: skip


def beside(kernel: Kernel, *, turned: bool, normed: bool) -> Kernel:
    """The kernel with what it reads of angles and of a scale."""
    *read, written = kernel.buffers
    angles = (*(Buffer("cosines"), Buffer("sines")) * turned, *(Buffer("norm"),) * normed)
    return replace(
        kernel,
        name=f"{kernel.name}{'_turned' * turned}{'_normed' * normed}",
        buffers=(*read, *angles, written),
        ints=(*kernel.ints, *("places",) * turned),
        floats=(*("epsilon",) * normed, *kernel.floats),
    )
