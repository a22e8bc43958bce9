"""Layer normalisation of the last axis: a work-group a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from kernels.catalog.work_group import group_conflict
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.lower.gpu.layout import plain
from kernels.lower.gpu.values import Value
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import Tile, derived

from .dealing import is_read_dealt, new_dealt
from .folding import folds

_EIGHT = 8
_GROUPS, _MOST = (32, 64, 128, 256), 4
"""Work-items that hold a row, and vectors of each at most."""


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
        """Of two sums."""
        return 2 * self.quarters


_KERNEL = Kernel(
    "row_norm",
    body("row_norm"),
    (Buffer("src"), Buffer("scale"), Buffer("shift"), result("dst")),
    ("columns4",),
    ("epsilon",),
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


def lower_row_norm(context: GpuContext, node: Node) -> None:
    """See `kernels/passes/rows/fuse_rows.py`."""
    shape = context.graph.shapes[node.output]
    rows, columns = prod(shape[:-1]), shape[-1]
    if folds(context, node):
        context.folded_norms.add(node.output)
        context.values[node.output] = Value(plain=plain(context, node.inputs[0]))
        return
    kernel, tile = _kernel(context, columns // 4)
    scale, shift = (context.weight(node.inputs[i], constant(context, node, i)) for i in (1, 2))
    source, is_dealt = plain(context, node.inputs[0]), kernel is _HELD and is_read_dealt(context, node)
    target = new_dealt(context, node.output, rows, columns) if is_dealt else context.new_plain(node.output)
    buffers, switches = {"src": source, "scale": scale, "shift": shift, "dst": target}, {"DEALT": 1} if is_dealt else {}
    if len(node.inputs) > 3:
        *read, written = kernel.buffers
        kernel = replace(kernel, name=f"{kernel.name}_beside", buffers=(*read, Buffer("residual"), written))
        buffers, switches = {**buffers, "residual": plain(context, node.inputs[3])}, {**switches, "ADDED": 1}
    context.dispatch(
        kernel, node.name, buffers, {"columns4": columns // 4}, (rows * tile.ky, 1, 1),
        floats={"epsilon": node.attributes["epsilon"]}, tile=tile, switches=switches, group=tile.ky,
        flops=8 * rows * columns, traffic=context.traffic(node),
    )  # fmt: skip


def _kernel(context: GpuContext, columns4: int) -> tuple[Kernel, _Row | _HeldRow]:
    """Work-items hold a row where a device with memory of its own has enough of them."""
    limits = context.limits
    if not limits.unified_memory and not limits.cpu_device:
        for group in _GROUPS:
            if columns4 <= _MOST * group and group_conflict(limits, group=group, local_bytes=8 * group) is None:
                return _HELD, _HeldRow(group, -(-columns4 // group))
    group = context.sharing(_KERNEL, columns4)
    return _KERNEL, _Row(group if group >= _EIGHT else 1)
