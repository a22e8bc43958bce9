"""Layer normalisation of the last axis: a work-group a row."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.lower.gpu.layout import plain
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import Tile, derived

_EIGHT = 8


@dataclass(frozen=True)
class _Row(Tile):
    """`ky` work-items share out a row; eight of them add up."""

    ky: int

    @derived
    def shared(self) -> int:
        return self.ky + _EIGHT


_KERNEL = Kernel(
    "row_norm",
    body("row_norm"),
    (Buffer("src"), Buffer("scale"), Buffer("shift"), result("dst")),
    ("columns4",),
    ("epsilon",),
    tile=_Row,
    locals=(LocalArray("partial", "SHARED", 1),),
)


def lower_row_norm(context: GpuContext, node: Node) -> None:
    """See `kernels/passes/fuse_rows.py`."""
    shape = context.graph.shapes[node.output]
    rows, columns = prod(shape[:-1]), shape[-1]
    group = context.sharing(_KERNEL, columns // 4)
    group = group if group >= _EIGHT else 1
    scale, shift = (context.weight(node.inputs[i], constant(context, node, i)) for i in (1, 2))
    source = plain(context, node.inputs[0])
    context.dispatch(
        _KERNEL, node.name, {"src": source, "scale": scale, "shift": shift, "dst": context.new_plain(node.output)},
        {"columns4": columns // 4}, (rows * group, 1, 1), floats={"epsilon": node.attributes["epsilon"]},
        tile=_Row(group), group=group, flops=8 * rows * columns, traffic=context.traffic(node),
    )  # fmt: skip
