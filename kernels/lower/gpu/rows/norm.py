"""Layer, RMS and L2 normalisation of the last axis: a work-group a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from kernels.catalog.desktop.units.known import MATRIX, WIDTH, KnownTile
from kernels.catalog.work_group import group_conflict
from kernels.ir.dims import TO_ROWS
from kernels.ir.graph import Node
from kernels.ir.links import is_root_mean_square
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.lower.gpu.layout import plain
from kernels.lower.gpu.values import Value
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import Tile, derived

from .dealing import is_read_dealt, new_dealt
from .folding import folds
from .image_norm import image_normalised
from .turning import lower_transpose

_EIGHT = 8
_GROUPS, _MOST = (32, 64, 128, 256), 4
"""Work-items that hold a row, and vectors of each at most."""
_SUBGROUPS, _MOST_OF_TWO = 8, 32
"""Subgroups of a work-group whose rows lie as matrix units have them, and vectors of a row that a work-item holds at
most."""


@dataclass(frozen=True)
class _Row(Tile):
    """`ky` work-items share out a row; eight of them add up."""

    ky: int

    @derived
    def shared(self) -> int:
        return self.ky + _EIGHT


@dataclass(frozen=True)
class _HeldRow(Tile):
    """`ky` work-items hold a row, `each` vectors of it."""

    ky: int
    each: int

    @derived
    def quarters(self) -> int:
        """Vectors of what each work-item adds up to."""
        return -(-self.ky // 4)

    @derived
    def shared(self) -> int:
        """Numbers of two sums."""
        return 2 * self.quarters


@dataclass(frozen=True)
class _DealtRows(KnownTile):
    """A subgroup holds two rows, of which a work-item has `each` vectors."""

    subgroups: int
    each: int

    @derived
    def group(self) -> int:
        return WIDTH * self.subgroups


_KERNEL = Kernel(
    "row_norm",
    body("row_norm"),
    (Buffer("src"), Buffer("scale"), Buffer("shift"), result("dst")),
    ("columns4",),
    ("epsilon", "least"),
    tile=_Row,
    locals=(LocalArray("partial", "SHARED", 1),),
)

_HELD = Kernel(
    "row_norm_held",
    body("row_norm_held"),
    _KERNEL.buffers,
    _KERNEL.ints,
    _KERNEL.floats,
    tile=_HeldRow,
    locals=(LocalArray("partial", "SHARED"),),
)

DEALT = Kernel(
    "row_norm_dealt",
    body("row_norm_dealt"),
    _KERNEL.buffers,
    ("rows", *_KERNEL.ints),
    _KERNEL.floats,
    tile=_DealtRows,
    matrix_units=True,
)
"""The rows lie as matrix units have them then (`dealing.py`)."""


def lower_row_norm(context: GpuContext, node: Node) -> None:
    """See `kernels/passes/rows/row_norms.py`, `kernels/passes/channels/norms_of_images.py`."""
    if node.output in context.values:
        return  # the norm before it is one step with it
    if node.attributes.get("of_image"):
        if image_normalised(context, node):
            return
        node = _of_rows(context, node)
    shape = context.graph.shapes[node.output]
    rows, columns = prod(shape[:-1]), shape[-1]
    if folds(context, node):
        context.folded_norms.add(node.output)
        source = plain(context, node.inputs[0])
        context.values[node.output] = Value(plain=source, single=None if context.half else source)
        return
    each = -(-columns // (4 * WIDTH))
    if each <= _MOST_OF_TWO and is_read_dealt(context, node):
        groups = -(-rows // MATRIX)
        group, target = _SUBGROUPS * WIDTH, new_dealt(context, node.output, rows, columns)
        _dispatch(context, node, DEALT, _DealtRows(_SUBGROUPS, each), target, (groups, group))
        return
    kernel, tile = _kernel(context, columns // 4)
    _dispatch(context, node, kernel, tile, context.new_plain(node.output), (rows, tile.ky))


def _dispatch(
    context: GpuContext, node: Node, kernel: Kernel, tile: Tile, target: str, groups: tuple[int, int]
) -> None:
    """`groups`: work-groups, and work-items of each."""
    *before, columns = context.graph.shapes[node.output]
    scale, shift = (context.weight(node.inputs[i], constant(context, node, i)) for i in (1, 2))
    *read, written = kernel.buffers
    buffers, switches = {"src": plain(context, node.inputs[0]), "scale": scale, "shift": shift, "dst": target}, {}
    floats = {"epsilon": node.attributes["epsilon"], "least": node.attributes.get("least", 0.0)}
    if len(node.inputs) > 3:
        read.append(Buffer("residual"))
        kernel = replace(kernel, name=f"{kernel.name}_beside", buffers=(*read, written))
        buffers, switches = {**buffers, "residual": plain(context, node.inputs[3])}, {"ADDED": 1}
    behind = None if kernel.tile is _DealtRows else _norm_of_result(context, node)
    if behind is not None:
        kernel = _with_next(kernel)
        buffers["next_scale"] = context.weight(behind.inputs[1], constant(context, behind, 1))
        buffers["next"], floats["next_epsilon"] = context.new_plain(behind.output), behind.attributes["epsilon"]
        switches["NEXT"] = 1
    switches |= {} if node.attributes.get("centred", True) else {"UNCENTRED": 1}
    ints = {name: {"rows": prod(before), "columns4": columns // 4}[name] for name in kernel.ints}
    context.dispatch(
        kernel, node.name, buffers, ints, (groups[0] * groups[1], 1, 1), floats=floats, tile=tile,
        switches=switches, group=groups[1], flops=8 * prod(before) * columns, traffic=context.traffic(node),
    )  # fmt: skip


def _norm_of_result(context: GpuContext, node: Node) -> Node | None:
    """Return the only RMS norm that reads a norm's result, where it is a step; None where there is none."""
    graph = context.graph
    found = [each for each in graph.consumers(node.output) if is_root_mean_square(graph, each)]
    if len(found) != 1 or folds(context, found[0]) or is_read_dealt(context, found[0]):
        return None
    return found[0]


def _with_next(kernel: Kernel) -> Kernel:
    """The kernel that normalises its result, too."""
    buffers = (*kernel.buffers, Buffer("next_scale"), result("next"))
    return replace(kernel, name=f"{kernel.name}_next", buffers=buffers, floats=(*kernel.floats, "next_epsilon"))


def _of_rows(context: GpuContext, node: Node) -> Node:
    """The normalisation of rows, which are made of the image first."""
    rows = f"{node.output}.rows"
    context.graph.shapes[rows] = context.graph.shapes[node.output]
    lower_transpose(context, Node(node.name, "transpose", node.inputs[:1], (rows,), {"perm": TO_ROWS}))
    return replace(node, inputs=(rows, *node.inputs[1:]))


def _kernel(context: GpuContext, columns4: int) -> tuple[Kernel, _Row | _HeldRow]:
    """Work-items hold a row where a device with memory of its own has enough of them."""
    limits = context.limits
    if not limits.unified_memory and not limits.cpu_device:
        for group in _GROUPS:
            if columns4 <= _MOST * group and group_conflict(limits, group=group, local_bytes=8 * group) is None:
                return _HELD, _HeldRow(group, -(-columns4 // group))
    group = context.sharing(_KERNEL, columns4)
    return _KERNEL, _Row(group if group >= _EIGHT else 1)
