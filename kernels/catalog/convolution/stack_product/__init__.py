"""Matrix product of packed weights with stacks of flat pixels, for algorithms that turn a convolution into one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernels.catalog.convolution.group_tile import GroupTile
from kernels.catalog.convolution.kernel_parts import TILES, layer_kernel
from kernels.catalog.family import Call
from kernels.catalog.packing import pack_stages, padded
from kernels.ir.graph import Array

KERNEL = layer_kernel(
    "product_tiled",
    Path(__file__).with_name("kernel.c"),
    ("in_stacks", "out_stacks", "stages", "pixels", "weight_batch"),
    GroupTile,
    TILES,
)


def stack_product(
    tile: GroupTile, weight: Array, bias: Array | None, *, pixels: int, in_stacks: int, out_stacks: int, batch: int
) -> Call:
    """A product of (matrices, K, C) weights with `batch` stacks of flat pixels; the caller sets its buffers."""
    matrices = weight.shape[0]
    packed = pack_stages(weight[..., np.newaxis].astype(np.float32), tile.tile_vectors, tile.depth)
    zeros = np.zeros(packed.shape[1] * 4 * tile.tile_vectors, np.float32)
    return Call(
        KERNEL,
        work_items(tile, pixels, out_stacks, batch),
        tile,
        ints={
            "in_stacks": in_stacks, "out_stacks": out_stacks, "stages": packed.shape[2] // tile.depth, "pixels": pixels,
            "weight_batch": packed[0].size // 4 if matrices > 1 else 0,
        },
        group=tile.work_group,
        weight=packed,
        bias=zeros if bias is None else padded(bias, 0, 4 * tile.tile_vectors),
    )  # fmt: skip


def work_items(tile: GroupTile, pixels: int, stacks: int, batch: int) -> tuple[int, int, int]:
    """Whole work-groups over pixels, vectors of channels, and pictures or matrices."""
    return -(-pixels // tile.tile_pixels) * tile.work_group, -(-stacks // tile.tile_vectors), batch
