"""Two layers of single pixels, as squeeze and excitation has them, as one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.convolution.kernel_parts import BOUNDS
from kernels.catalog.desktop.cost import UNITS
from kernels.catalog.family import Call
from kernels.catalog.packing import pack_tiles, padded
from kernels.catalog.work_group import group_conflict
from kernels.ir.graph import Array
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import Tile, derived

_MOST_BYTES = 1 << 19
"""Bytes of a layer's weights: each compute unit reads the first one's whole, some 100 GB/s from a large GPU's cache."""
_MOST_PRODUCTS = 1 << 24
"""Products of a layer: with more, matrix units are faster, which read weights for many pictures at once."""
_GROUP, _ROWS_OF_LARGE, _SMALL_GROUP = 512, 4, 256
"""Work-items of a work-group: as many as have loads on their way that the cache's answers never stop, or, of more
pictures, as local memory has place for."""
_BLOCKS, _MOST_ROWS = 8, 8
"""Groups of pictures that read the weights anew, at least; and the most pictures of a group."""
_BUSY = 3
"""Compute units for each work-group: all at once would get less than half as much each from the cache."""


@dataclass(frozen=True)
class SqueezeSizes:
    """`pictures` of `inputs` channels, to `hidden` ones, to `outputs`."""

    pictures: int
    inputs: int
    hidden: int
    outputs: int

    @property
    def largest(self) -> int:
        """Products of the larger layer for a picture."""
        return self.hidden * max(self.inputs, self.outputs)


@dataclass(frozen=True)
class SqueezeTile(Tile):
    """A work-group computes `hidden` vectors of four hidden channels by `ky` parts of the inputs, and `vectors` of the
    outputs by `kz` parts of the hidden channels, of `rows` pictures; the last hidden vector has `hidden_lanes`."""

    hidden: int
    ky: int
    vectors: int
    kz: int
    rows: int
    hidden_lanes: int

    @property
    def group(self) -> int:
        """Work-items."""
        return max(self.hidden * self.ky, self.vectors * self.kz)

    @property
    def local_bytes(self) -> int:
        return 16 * (self.kept + self.partials)

    kept = derived(lambda tile: tile.rows * tile.hidden)
    """Vectors of the hidden layer."""
    waiting = derived(lambda tile: max(1, *(width * (parts - -(-parts // 4)) for width, parts in tile._phases)))
    """Partial sums of a picture that are handed on at once: three quarters of them."""
    partials = derived(lambda tile: tile.rows * tile.waiting)

    @property
    def words(self) -> str:
        """The tile's text for people."""
        return f"{self.hidden}x{self.ky} {self.vectors}x{self.kz} {self.rows}"

    @property
    def _phases(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.hidden, self.ky), (self.vectors, self.kz)


KERNEL = Kernel(
    "conv_squeeze",
    Path(__file__).with_name("kernel.c"),
    (*map(Buffer, ("src", "inner_weight", "inner_bias", "weight", "bias")), result("dst")),
    (*view("src"), *view("dst"), "in_stacks", "out_stacks", "pictures", "inner_activation", "activation"),
    ("inner_lo", "inner_hi", *BOUNDS),
    SqueezeTile,
    (LocalArray("hidden", "KEPT"), LocalArray("partial", "PARTIALS")),
)


def squeeze_tile(sizes: SqueezeSizes, options: Options, limits: Limits) -> SqueezeTile | None:
    """The tile; None where each layer is better alone, or the device has too little local memory."""
    item = 2 if options.half else 4
    if item * sizes.largest > _MOST_BYTES or sizes.pictures * sizes.largest > _MOST_PRODUCTS:
        return None
    limits = limits.within(KERNEL.name)
    blocks = max(min(_BLOCKS, sizes.pictures), -(-sizes.pictures // _MOST_ROWS))
    rows = -(-sizes.pictures // blocks)
    most = min(_GROUP if rows <= _ROWS_OF_LARGE else _SMALL_GROUP, limits.max_work_group or _SMALL_GROUP)
    inputs, hidden, outputs = (-(-channels // 4) for channels in (sizes.inputs, sizes.hidden, sizes.outputs))
    if hidden > most:
        return None
    groups = max(1, (limits.compute_units or UNITS) // (_BUSY * blocks), -(-outputs // most))
    vectors = -(-outputs // min(groups, outputs))
    tile = SqueezeTile(
        hidden, _even(inputs, most // hidden), vectors, _even(hidden, most // vectors), rows,
        sizes.hidden - 4 * (hidden - 1),
    )  # fmt: skip
    return tile if group_conflict(limits, group=tile.group, local_bytes=tile.local_bytes) is None else None


def _even(count: int, most: int) -> int:
    """Parts, at most so many, of which the largest is as small as it can be; as few as leave it so."""
    return -(-count // -(-count // most))


def squeeze_call(sizes: SqueezeSizes, weight: Array, bias: Array, tile: SqueezeTile) -> Call:
    """The dispatch; of the second layer the weight (outputs, hidden) and bias (outputs)."""
    outputs = -(-sizes.outputs // 4)
    across, blocks = -(-outputs // tile.vectors), -(-sizes.pictures // tile.rows)
    return Call(
        KERNEL,
        (across * tile.group, blocks, 1),
        tile,
        ints={"in_stacks": -(-sizes.inputs // 4), "out_stacks": outputs, "pictures": sizes.pictures},
        group=tile.group,
        weight=pack_tiles(weight, tile.vectors),
        bias=padded(bias, 0, 4 * tile.vectors),
    )
