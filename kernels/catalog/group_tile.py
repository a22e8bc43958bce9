"""The tile that a work-group computes together through local memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.errors import OptionError
from kernels.options import Limits


@dataclass(frozen=True)
class GroupTile:
    """`tx` x `ty` work-items, each `tp` pixels x `tv` vectors of four channels; `depth` stacks of inputs a stage."""

    tx: int
    ty: int
    tp: int
    tv: int
    depth: int

    @property
    def group(self) -> int:
        return self.tx * self.ty

    @property
    def pixels(self) -> int:
        return self.tx * self.tp

    @property
    def vectors(self) -> int:
        return self.ty * self.tv

    @property
    def local_bytes(self) -> int:
        """Both operands, twice."""
        return 32 * self.depth * (self.pixels + 4 * self.vectors)

    @property
    def tunables(self) -> Mapping[str, int]:
        return {"TX": self.tx, "TY": self.ty, "TP": self.tp, "TV": self.tv, "DEPTH": self.depth}

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.tx}x{self.ty}x{self.tp}x{self.tv}x{self.depth}"


TILES = tuple(
    GroupTile(*sizes)
    for sizes in (
        (16, 16, 8, 2, 2), (32, 8, 8, 2, 2), (16, 8, 8, 2, 2), (32, 4, 8, 2, 2), (16, 8, 4, 2, 2), (32, 4, 4, 2, 2),
        (64, 2, 4, 2, 2), (64, 1, 4, 4, 2), (64, 1, 8, 1, 2), (16, 4, 4, 2, 2), (8, 8, 4, 1, 2), (8, 8, 2, 1, 4),
    )
)  # fmt: skip
"""Large first."""
_LOCAL_BYTES = 32 << 10
_BUSY = 264
"""Work-groups that keep a large GPU busy."""


def choose_group_tile(limits: Limits, *, pixels: int, stacks: int, matrices: int) -> GroupTile:
    """The tile that wastes least of what it computes, large ones first as long as there are enough work-groups.

    Raises OptionError where the device has too little local memory, or too small work-groups, for any.
    """
    fitting = [
        tile
        for tile in TILES
        if tile.local_bytes <= (limits.local_bytes or _LOCAL_BYTES) and tile.group <= (limits.max_work_group or 256)
    ]
    if not fitting:
        least = min(TILES, key=lambda tile: tile.local_bytes)
        raise OptionError(
            f"a tile needs {least.local_bytes} bytes of local memory and a work-group of {least.group}; the device has "
            f"{limits.local_bytes} and {limits.max_work_group}"
        )

    def cost(tile: GroupTile) -> float:
        groups = -(-pixels // tile.pixels) * -(-stacks // tile.vectors) * matrices
        computed = groups * tile.pixels * tile.vectors
        idle = max(1.0, _BUSY / groups)
        reuse = 1 + 4.0 / (tile.tp + 4 * tile.tv)
        return computed * idle * reuse

    return min(fitting, key=cost)
