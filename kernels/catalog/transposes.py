"""Algorithms of transposition: any permutation of up to four axes of a row-major array (study P)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from kernels.options import Choice, Limits, Options

from .named import Named, Untiled, asked_or_tuned, check_asked
from .words import numbers
from .work_group import group_conflict

_MEANING, _EXAMPLE = "edge x rows of work-items", "32x8"
_TILES = ((32, 8), (16, 16), (64, 4), (32, 32), (16, 4))


@dataclass(frozen=True)
class Transpose:
    """Sizes of the result's axes, and the source's strides in their order; four of each."""

    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        return f"transpose {'x'.join(map(str, self.sizes))} s{'.'.join(map(str, self.strides))}"

    @property
    def source_axis(self) -> int:
        """The result's axis along which the source lies contiguously; of those, the longest."""
        found = [axis for axis in range(4) if self.strides[axis] == 1]
        return max(found, key=lambda axis: self.sizes[axis], default=3)


def transpose_of(old: Sequence[int], perm: Sequence[int]) -> Transpose:
    """Result axis i is the source's axis perm[i]; shapes of up to four axes."""
    strides = [prod(old[axis + 1 :]) for axis in range(len(old))]
    missing = 4 - len(old)
    sizes = [1] * missing + [old[axis] for axis in perm]
    steps = [0] * missing + [strides[axis] for axis in perm]
    return Transpose((sizes[0], sizes[1], sizes[2], sizes[3]), (steps[0], steps[1], steps[2], steps[3]))


@dataclass(frozen=True)
class TransposeCall:
    """The dispatch of an algorithm."""

    kernel: str
    tunables: dict[str, int]
    ints: dict[str, int]
    work_items: tuple[int, int, int]
    group: int = 0


class TransposeAlgorithm(Named[Transpose], Protocol):
    """One way to transpose."""

    def lower(self, sizes: Transpose, options: Options, limits: Limits, tile: str = "") -> TransposeCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        ...


class Naive(Untiled[Transpose]):
    """Results side by side, sources wherever they are."""

    name = "naive"
    summary = "one number a work-item: writes side by side, reads apart"

    def lower(self, sizes: Transpose, options: Options, limits: Limits, tile: str = "") -> TransposeCall:
        """The dispatch."""
        del options, limits, tile
        count = prod(sizes.sizes)
        ints = {"count": count, **{f"d{i}": sizes.sizes[i] for i in (1, 2, 3)}}
        ints |= {f"s{i}": sizes.strides[i] for i in range(4)}
        return TransposeCall("transpose", {}, ints, (count, 1, 1))


class Tiled:
    """Squares through local memory: reads and writes are side by side; the pitch is odd, against conflicts of banks."""

    name = "tiled"
    summary = f"squares through local memory, where the last axis moves; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, sizes: Transpose, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        del options
        if sizes.source_axis == 3:
            return "the last axis stays where it is"
        edge, rows = _parse(tile) if tile else min(_TILES)
        if edge % rows:
            return f"an edge of {edge} is no multiple of {rows} rows of work-items"
        return group_conflict(limits.within("transpose_tiled"), group=edge * rows, local_bytes=4 * edge * (edge + 1))

    def tiles(self, sizes: Transpose, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        words = [f"{edge}x{rows}" for edge, rows in _TILES]
        return [tile for tile in words if self.why_not(sizes, options, limits, tile) is None]

    def lower(self, sizes: Transpose, options: Options, limits: Limits, tile: str = "") -> TransposeCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        edge, rows = _parse(tile or self.tiles(sizes, options, limits)[0])
        along = sizes.source_axis
        outer, inner = (axis for axis in range(3) if axis != along)
        steps = [prod(sizes.sizes[axis + 1 :]) for axis in range(4)]
        ints = {
            "across": sizes.sizes[3], "along": sizes.sizes[along], "src_across": sizes.strides[3],
            "dst_along": steps[along], "inner": sizes.sizes[inner], "src_inner": sizes.strides[inner],
            "dst_inner": steps[inner], "src_outer": sizes.strides[outer], "dst_outer": steps[outer],
        }  # fmt: skip
        squares = -(-sizes.sizes[3] // edge), -(-sizes.sizes[along] // edge)
        group = edge * rows
        work_items = squares[0] * group, squares[1], sizes.sizes[outer] * sizes.sizes[inner]
        return TransposeCall("transpose_tiled", {"EDGE": edge, "LINES": rows}, ints, work_items, group)


TRANSPOSES: dict[str, TransposeAlgorithm] = {entry.name: entry for entry in (Naive(), Tiled())}
_TILED_EDGE = 16
"""From so long axes on, squares pay on a GPU."""


def choose_transpose(options: Options, limits: Limits, layer: str, sizes: Transpose) -> Choice:
    """The algorithm of one transposition: asked for where it fits, else tuned, else by the kind of device."""
    found = asked_or_tuned(TRANSPOSES, options.transpose, (layer, sizes.key), sizes, options, limits)
    if found:
        return found
    large = min(sizes.sizes[3], sizes.sizes[sizes.source_axis]) >= _TILED_EDGE and not limits.cpu_device
    return Choice("tiled" if large and TRANSPOSES["tiled"].why_not(sizes, options, limits) is None else "naive")


def check_transpose(options: Options, limits: Limits, cases: Sequence[tuple[str, Transpose]]) -> None:
    """Raise OptionError where the asked one is unknown or fits nowhere."""
    check_asked(TRANSPOSES, "transpose", options.transpose, cases, options, limits)


def _parse(tile: str) -> tuple[int, int]:
    edge, rows = numbers(tile, _MEANING, _EXAMPLE)
    return edge, rows
