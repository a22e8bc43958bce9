"""The outputs of a work-item: a tile of pixels x vectors of output channels.

What is scarce differs. On a GPU it is registers: eight vectors of four. PoCL turns a vector of the source into one of
the processor, so its vectors are as wide as the widest processor's. lavapipe computes eight work-items at once and pays
for loads and stores, not for registers: its tiles are large, as far as the time to compile them allows (twice the
pixels gain nothing and take twice as long to compile).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.errors import OptionError
from kernels.options import MAX_PIXELS, Limits, Options
from kernels.source.tile import Tile, derived

_WIDTHS = (16, 8, 4)


@dataclass(frozen=True)
class OutputTile(Tile):
    """The outputs of one work-item: `pixels` adjacent pixels x `vectors` vectors of `lanes` channels."""

    pixels: int
    vectors: int
    lanes: int

    parts = derived(lambda tile: tile.lanes // 4)
    """Stacks of four channels of a vector."""
    stacks = derived(lambda tile: tile.vectors * tile.parts)
    """Stacks of four channels."""
    sums = derived(lambda tile: tile.pixels * tile.vectors)
    weights = derived(lambda tile: 4 * tile.vectors)
    """Vectors of weights of a tap and a stack of inputs."""

    @property
    def words(self) -> str:
        """The text that `parse_tile` reads."""
        return f"{self.pixels}x{self.vectors}x{self.lanes}"


@dataclass(frozen=True)
class _Device:
    """The tile with which a kind of device computes best."""

    stacks: int
    sums: int
    """Vectors of sums of a work-item."""
    widest: int = 4
    """Lanes of a vector."""


_GPU = _Device(stacks=2, sums=8)
_POCL = _Device(stacks=4, sums=8, widest=16)
_LAVAPIPE = _Device(stacks=4, sums=16)


def choose_tile(options: Options, limits: Limits, *, width: int, stacks: int, whole: int = 0) -> OutputTile:
    """The tile for rows of `width` pixels and `stacks` stacks of output channels. Raises OptionError.

    `whole`: a number of stacks that no tile may straddle (those of a group); 0: there is none.
    """
    device = _device(options, limits)
    chosen = options.granularity and _asked_stacks(options.granularity)
    chosen = chosen or min(device.stacks, 1 << (stacks - 1).bit_length())
    if whole:
        chosen = _dividing(chosen, whole)
    lanes = next(lanes for lanes in _WIDTHS if lanes <= device.widest and 4 * chosen % lanes == 0)
    vectors = 4 * chosen // lanes
    by_shape = 1 if width == 1 or options.granularity else max(1, min(device.sums // vectors, MAX_PIXELS))
    return OutputTile(options.pixels or by_shape, vectors, lanes)


def tile_words(options: Options, limits: Limits, *, width: int, stacks: int, whole: int = 0) -> list[str]:
    """Tiles worth trying, the default first."""
    default = choose_tile(options, limits, width=width, stacks=stacks, whole=whole)
    widest = 16 if limits.cpu_device and options.backend == "opencl" else 4
    found = [default.words]
    for tall in (1, 2, 4, 8):
        if (tall > 1 and tall > 1 << (stacks - 1).bit_length()) or (whole and whole % tall):
            continue
        for pixels in (1, 2, 4, 8) if width > 1 else (1,):
            lanes = next(lanes for lanes in _WIDTHS if lanes <= widest and 4 * tall % lanes == 0)
            tile = OutputTile(pixels, 4 * tall // lanes, lanes)
            if 1 <= tile.pixels * tile.vectors * tile.lanes // 4 <= 32 and tile.words not in found:
                found.append(tile.words)
    return found


def parse_tile(words: str) -> OutputTile:
    """`4x2x4`: pixels, vectors and lanes. Raises OptionError."""
    try:
        pixels, vectors, lanes = map(int, words.split("x"))
    except ValueError as e:
        raise OptionError(f"tile {words!r} is not known; write pixels x vectors x lanes, e.g. 4x2x4") from e
    if not (1 <= pixels <= 64 and 1 <= vectors <= 64 and lanes in _WIDTHS):
        raise OptionError(f"tile {words!r}: pixels and vectors are 1 to 64, lanes are 4, 8 or 16")
    return OutputTile(pixels, vectors, lanes)


def _device(options: Options, limits: Limits) -> _Device:
    if not limits.cpu_device:
        return _GPU
    return _POCL if options.backend == "opencl" else _LAVAPIPE


def _asked_stacks(granularity: int) -> int:
    """Whole stacks: beside `dot`, which takes any number, layers that it does not fit take the next fours."""
    return -(-granularity // 4)


def _dividing(stacks: int, group_stacks: int) -> int:
    """The largest tile up to `stacks` that does not straddle two groups."""
    return next(size for size in range(min(stacks, group_stacks), 0, -1) if group_stacks % size == 0)
