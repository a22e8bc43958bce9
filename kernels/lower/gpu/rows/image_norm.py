"""Layer normalisation of an image's channels: it is read in stacks and written in rows."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.catalog.work_group import group_conflict
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant
from kernels.lower.gpu.layout import packed
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import Tile, derived

_MOST = 12
"""Vectors that a work-item holds at most."""


@dataclass(frozen=True)
class _Pixels(Tile):
    """`width` pixels, each of which `lines` work-items share out, `each` vectors a work-item."""

    width: int
    lines: int
    each: int

    @property
    def group(self) -> int:
        """Work-items of a work-group."""
        return self.width * self.lines

    @derived
    def pitch(self) -> int:
        """Odd, against conflicts of banks."""
        return self.lines + 1

    @derived
    def local_square(self) -> int:
        return self.width * self.pitch

    @derived
    def local_sums(self) -> int:
        """Numbers of two sums."""
        return 2 * self.width * self.lines


_KERNEL = Kernel(
    "row_norm_image",
    body("row_norm_image"),
    (Buffer("src"), Buffer("scale"), Buffer("shift"), result("dst")),
    (*view("src"), "hw", "columns4"),
    ("epsilon",),
    tile=_Pixels,
    locals=(LocalArray("partial", "LOCAL_SUMS", 1), LocalArray("square", "LOCAL_SQUARE")),
)


def image_normalised(context: GpuContext, node: Node) -> bool:
    """Write the rows, where a GPU holds a pixel's channels in a few work-items; else False."""
    dims = context.dims(node.inputs[0])
    tile = _Pixels(16, 16, -(-dims.stacks // 16))
    limits, local_bytes = context.limits.within(_KERNEL.name), _KERNEL.local_bytes(tile.constants)
    refused = group_conflict(limits, group=tile.group, local_bytes=local_bytes) is not None
    if limits.unified_memory or limits.cpu_device or refused or tile.each > _MOST:
        return False
    source = packed(context, node.inputs[0])
    scale, shift = (context.weight(node.inputs[i], constant(context, node, i)) for i in (1, 2))
    context.dispatch(
        _KERNEL, node.name, {"src": source, "scale": scale, "shift": shift, "dst": context.new_plain(node.output)},
        {**source.ints("src"), "hw": dims.hw, "columns4": dims.stacks},
        (-(-dims.hw // tile.width) * tile.group, dims.n, 1), floats={"epsilon": node.attributes["epsilon"]}, tile=tile,
        group=tile.group, flops=8 * dims.elements, traffic=context.traffic(node),
    )  # fmt: skip
    return True
