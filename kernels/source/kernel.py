"""What a kernel is, apart from any API: its body, its ordered parameters and its compile-time tunables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from typing import Literal

from kernels.options import Precision
from kernels.plan.model import Parameter

from .unroll import unroll
from .winograd import expand

_INCLUDE = re.compile(r"^ *INCLUDE (\w+)$", re.MULTILINE)

Storage = Literal["data", "f32"]
"""data: half in an fp16 plan, else single; f32: always single (ports)."""


@dataclass(frozen=True)
class BufferSpec:
    """A buffer parameter, accessed by `LOAD_<name>(i)` and `STORE_<name>(i, v)` in elements of 1 or 4 lanes."""

    name: str
    lanes: Literal[1, 4]
    access: Literal["read", "write"]
    storage: Storage = "data"
    image: bool = False
    """It lies in an image: element i of four lanes is its texel (i % width, i / width)."""


@dataclass(frozen=True)
class LocalSpec:
    """An array in local (shared) memory of a work-group."""

    name: str
    size: str
    """Number of elements: the name of a tunable or of a derived number."""
    lanes: Literal[1, 4] = 4
    storage: Literal["computed", "f32"] = "f32"
    """computed: vectors of what the kernel computes in, half where it does so; f32: always single (sums)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel's description. `body` is a file in `kernels/source/bodies`."""

    name: str
    body: str
    buffers: tuple[BufferSpec, ...]
    ints: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    tunables: tuple[str, ...] = ()
    """Names of compile-time integers."""
    locals: tuple[LocalSpec, ...] = ()
    computes_in_half: bool = False
    """Whether products and short sums are half in a plan of `fp16_arithmetic`; else values are widened when read."""

    def local_bytes(self, tunables: Mapping[str, int], precision: Precision = "fp32") -> int:
        """Local memory of a work-group, bytes."""
        full, narrow = derived(tunables), self.is_narrow(precision)
        return sum(
            (2 if narrow and array.storage == "computed" else 4) * array.lanes * full[array.size]
            for array in self.locals
        )

    def is_narrow(self, precision: Precision) -> bool:
        """Whether it computes in half."""
        return self.computes_in_half and precision == "fp16_arithmetic"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Ordered parameters: buffers, then integers, then floats."""
        return (
            *(Parameter(name=b.name, kind="image" if b.image else "buffer", access=b.access) for b in self.buffers),
            *(Parameter(name=name, kind="i32") for name in self.ints),
            *(Parameter(name=name, kind="f32") for name in self.floats),
        )

    def with_images(self, names: AbstractSet[str]) -> Kernel:
        """The kernel with these parameters in images. Single lanes of one cannot be written: that is a ValueError."""
        for buffer in self.buffers:
            if buffer.name in names and (buffer.storage == "f32" or (buffer.lanes == 1 and buffer.access == "write")):
                raise ValueError(f"kernel {self.name}: {buffer.name} cannot lie in an image")
        return replace(self, buffers=tuple(replace(b, image=b.image or b.name in names) for b in self.buffers))

    def fixing(self, names: Collection[str]) -> Kernel:
        """The same kernel with these integers as tunables."""
        return replace(self, ints=tuple(name for name in self.ints if name not in names)) if names else self

    def source(self, tunables: Mapping[str, int]) -> str:
        """Text of the body with its marked loops written out."""
        return expand(unroll(_read(self.body), tunables), tunables)


def derived(tunables: Mapping[str, int]) -> dict[str, int]:
    """The tunables with the numbers that follow from them and that bodies use as well."""
    full = dict(tunables)
    if "LANES" in full:
        full["PARTS"] = full["LANES"] // 4
    if "VECTORS" in full:
        full["STACKS"] = full["VECTORS"] * full["PARTS"]
        full["SUMS"] = full["PIXELS"] * full["VECTORS"]
        full["WEIGHTS"] = 4 * full["VECTORS"]
    elif "SW" in full:
        full["WEIGHTS"] = full["KW"]
    if "ROWS" in full:
        full["SUMS"] = full["ROWS"] * full["COLUMNS"]
    if "KW" in full:
        full["COLUMNS"] = (full["PIXELS"] - 1) * full.get("SW", 1) + full["KW"]
    if "TILE" in full:
        full["POSITIONS"] = full["ALPHA"] ** 2
        full["HALF_POSITIONS"] = full["ALPHA"] * full["TILE"]
    if "KY" in full:
        full["SHARED"] = full["CX"] * full["KY"]
        full["SUMS"] = 1
    if "PIXELS" in full and "LANES" not in full:
        full["SUMS"] = full["PIXELS"]
    if "TX" in full:
        full |= _group_tile(full)
    if "BX" in full:
        full["GROUP"] = full["BX"] * full["BY"]
        full["BLOCK_A"], full["BLOCK_B"] = full["BY"] * full["BK"], full["BK"] * full["BX"]
    if "EDGE" in full:
        full["PITCH"], full["LOCAL_SQUARE"] = full["EDGE"] + 1, full["EDGE"] * (full["EDGE"] + 1)
    if "GX" in full:
        full |= _product_tile(full)
    return full


def _product_tile(tunables: Mapping[str, int]) -> dict[str, int]:
    """Of a matrix product's tile: GX x GY work-items, each RV vectors of four rows x CV vectors of four columns.

    A fetch is a square of 4 x 4 numbers; those of the left operand come first.
    """
    group, depth = tunables["GX"] * tunables["GY"], tunables["DEPTH"]
    rows4, columns4 = tunables["GY"] * tunables["RV"], tunables["GX"] * tunables["CV"]
    fetches = -(-(rows4 + columns4) * depth // group)
    return {
        "GROUP": group,
        "TILE_ROWS4": rows4,
        "TILE_COLUMNS4": columns4,
        "TILE_DEPTH": 4 * depth,
        "PITCH": rows4 + 1,
        "SUMS": 4 * tunables["RV"] * tunables["CV"],
        "FETCHES": fetches,
        "FETCHED": 4 * fetches,
        "FETCHES_A": rows4 * depth,
        "FETCHES_ALL": (rows4 + columns4) * depth,
        "HALF_A": 4 * depth * (rows4 + 1),
        "HALF_B": 4 * depth * columns4,
        "LOCAL_A": 8 * depth * (rows4 + 1),
        "LOCAL_B": 8 * depth * columns4,
    }


def _group_tile(tunables: Mapping[str, int]) -> dict[str, int]:
    """Of a tile that a work-group computes together: TX x TY work-items, each TP pixels x TV vectors of channels.

    SPLIT such parts share out the sum. SQUARE: the source lies in local memory in vectors of four pixels of a channel,
    so that fewer registers hold what is multiplied, else in vectors of four channels of a pixel.
    """
    group = tunables["TX"] * tunables["TY"]
    split = tunables["SPLIT"]
    pixels, vectors, depth = tunables["TX"] * tunables["TP"], tunables["TY"] * tunables["TV"], tunables["DEPTH"]
    return {
        "GROUP": group,
        "TILE_PIXELS": pixels,
        "TILE_VECTORS": vectors,
        "TILE_DEPTH": 4 * depth,
        "SQUARE": int(tunables["TP"] % 4 == 0),
        "PIXEL_VECTORS": max(1, tunables["TP"] // 4),
        "SUMS": tunables["TP"] * tunables["TV"],
        "LOADS_SRC": pixels * depth // group,
        "LOADS_WEIGHT": -(-4 * vectors * depth // group),
        "PIXEL_SLOTS": max(1, pixels // group),
        "STACK_SLOTS": pixels * depth // group // max(1, pixels // group),
        "STACK_STEP": max(1, group // pixels),
        "HALF_SRC": pixels * depth,
        "HALF_WEIGHT": 4 * vectors * depth,
        "LOCAL_SRC": max(2 * pixels * depth * split, (split - 1) * tunables["TP"] * tunables["TV"] * group),
        "LOCAL_WEIGHT": 8 * vectors * depth * split,
    }


@lru_cache
def _read(body: str) -> str:
    """A body with the parts that it includes: a line `INCLUDE name` stands for the file `parts/name.c`."""
    text = (resources.files(__package__) / "bodies" / body).read_text()
    return _INCLUDE.sub(lambda match: _read(f"parts/{match[1]}.c").rstrip("\n"), text)


def kernel(
    name: str,
    buffers: str,
    ints: str = "",
    floats: str = "",
    tunables: str = "",
    body: str | None = None,
    locals_: str = "",
    *,
    in_half: bool = False,
) -> Kernel:
    """Describe a kernel compactly: `src:4 scale:4:f32 dst:4*` are buffers with their lanes; `*` marks a result.

    `locals_`: arrays in local memory with the tunables that give their sizes: of vectors of four, `tile_a:LOCAL_SRC`;
    of single numbers, `tile_a:BLOCK_A:1`; of vectors of what the kernel computes in, `tile_a:LOCAL_SRC:computed`.
    """
    return Kernel(
        name=name,
        body=f"{body or name}.c",
        buffers=tuple(map(_buffer, buffers.split())),
        ints=tuple(ints.split()),
        floats=tuple(floats.split()),
        tunables=tuple(tunables.split()),
        locals=tuple(map(_local, locals_.split())),
        computes_in_half=in_half,
    )


def _buffer(text: str) -> BufferSpec:
    name, lanes, *storage = text.rstrip("*").split(":")
    return BufferSpec(
        name=name,
        lanes=4 if lanes == "4" else 1,
        access="write" if text.endswith("*") else "read",
        storage="f32" if storage == ["f32"] else "data",
    )


def _local(text: str) -> LocalSpec:
    name, size, *kind = text.split(":")
    return LocalSpec(name, size, 1 if kind == ["1"] else 4, "computed" if kind == ["computed"] else "f32")
