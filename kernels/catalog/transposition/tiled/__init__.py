"""Squares through local memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.tile_text import numbers
from kernels.catalog.transposition.sizes import Transposition
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import Tile, derived

_MEANING, _EXAMPLE = "edge x rows of work-items", "32x8"
_TILES = ((32, 8), (16, 16), (64, 4), (32, 32), (16, 4))


@dataclass(frozen=True)
class Square(Tile):
    """A square of `edge` numbers or vectors, by `edge` x `lines` work-items."""

    edge: int
    lines: int

    @property
    def group(self) -> int:
        """Work-items of a work-group."""
        return self.edge * self.lines

    pitch = derived(lambda tile: tile.edge + 1)
    """Odd, against conflicts of banks."""
    local_square = derived(lambda tile: tile.edge * tile.pitch)


KERNEL = Kernel(
    "transpose_tiled",
    Path(__file__).with_name("kernel.c"),
    (Buffer("src", 1), result("dst", 1)),
    (
        "across", "along", "inner", "src_across", "dst_along", "src_inner", "dst_inner", "src_outer", "dst_outer",
    ),
    tile=Square,
    locals=(LocalArray("square", "LOCAL_SQUARE", 1),),
)  # fmt: skip


class Tiled:
    """Squares through local memory: reads and writes are side by side; the pitch is odd, against conflicts of banks."""

    name = "tiled"
    summary = f"squares through local memory, where the last axis moves; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, sizes: Transposition, options: Options, limits: Limits, tile: str = "") -> str | None:
        if sizes.source_axis == 3:
            return "the last axis stays where it is"
        square = _parse(tile) if tile else Square(*min(_TILES))
        if square.edge % square.lines:
            return f"an edge of {square.edge} is no multiple of {square.lines} rows of work-items"
        local_bytes = KERNEL.local_bytes(square.constants)
        return group_conflict(limits.within(KERNEL.name), group=square.group, local_bytes=local_bytes)

    def tiles(self, sizes: Transposition, options: Options, limits: Limits) -> Sequence[str]:
        words = [f"{edge}x{rows}" for edge, rows in _TILES]
        return [tile for tile in words if self.why_not(sizes, options, limits, tile) is None]

    def lower(
        self, sizes: Transposition, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> Calls:
        square = _parse(tile or self.tiles(sizes, options, limits)[0])
        along = sizes.source_axis
        outer, inner = (axis for axis in range(3) if axis != along)
        steps = [prod(sizes.sizes[axis + 1 :]) for axis in range(4)]
        ints = {
            "across": sizes.sizes[3], "along": sizes.sizes[along], "src_across": sizes.strides[3],
            "dst_along": steps[along], "inner": sizes.sizes[inner], "src_inner": sizes.strides[inner],
            "dst_inner": steps[inner], "src_outer": sizes.strides[outer], "dst_outer": steps[outer],
        }  # fmt: skip
        across, down = -(-sizes.sizes[3] // square.edge), -(-sizes.sizes[along] // square.edge)
        work_items = across * square.group, down, sizes.sizes[outer] * sizes.sizes[inner]
        return (Call(KERNEL, work_items, square, ints=ints, group=square.group),)


def _parse(tile: str) -> Square:
    return Square(*numbers(tile, _MEANING, _EXAMPLE))
