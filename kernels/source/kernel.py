"""A kernel, apart from any API: its body, its ordered parameters and what it is compiled for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from kernels.options import Precision
from kernels.plan.model import Parameter

from .tile import Tile
from .unroll import unroll

_INCLUDE = re.compile(r"^ *INCLUDE (\w+)$", re.MULTILINE)
_HELD = re.compile(r"\bHELD\b")

Rewrite = Callable[[str, Mapping[str, int]], str]
Number = Literal["f32", "i32", "i64"]
"""Types in which a kernel computes."""
Storage = Literal["data", "f32", "i32", "i64"]
"""data: half in an fp16 plan, else single; f32: always single (ports); i32, i64: whole numbers."""
NUMBERS: dict[Number, str] = {"f32": "float", "i32": "int", "i64": "LONG"}
"""Types of single numbers in bodies and texts; `LONG` is in `kernels/source/integers.py`."""


def single_type(storage: str) -> str:
    """Return the type of a number that is stored so, where it is no half."""
    return NUMBERS["i32" if storage == "i32" else "i64" if storage == "i64" else "f32"]


@dataclass(frozen=True)
class Buffer:
    """A buffer parameter, accessed by `LOAD_<name>(i)` and `STORE_<name>(i, v)` in elements of 1 or 4 lanes."""

    name: str
    lanes: Literal[1, 4] = 4
    storage: Storage = "data"
    access: Literal["read", "write", "readwrite"] = "read"
    planes: int = 0
    """Number of channels, one to four, of an fp32 array, each a plane of the kernel's `h` x `w`; 0: there are none.

    Element i has in its lanes what lies at i, and as many planes later as the lane's number; lanes beyond are 0."""
    in_order: bool = False
    """True: values are asked for where the body does. NVIDIA's compiler else moves each load to its use, which saves
    registers: a work-item waits for memory as often as it loads."""


def result(name: str, lanes: Literal[1, 4] = 4, storage: Storage = "data") -> Buffer:
    """A buffer parameter that the kernel writes."""
    return Buffer(name, lanes, storage, "write")


def changed(name: str, lanes: Literal[1, 4] = 4, storage: Storage = "data") -> Buffer:
    """A buffer parameter that the kernel reads and writes."""
    return Buffer(name, lanes, storage, "readwrite")


def view(name: str) -> tuple[str, str]:
    """The integers that say which stacks of a buffer a tensor is: stacks of one image of the buffer, and the first."""
    return f"{name}_stacks", f"{name}_stack0"


@dataclass(frozen=True)
class LocalArray:
    """An array in local (shared) memory of a work-group."""

    name: str
    size: str
    """Number of elements: the name of a constant of the tile."""
    lanes: Literal[1, 4] = 4
    storage: Literal["computed", "f32", "raw8", "i32", "number"] = "f32"
    """computed: vectors of what the kernel computes in, half where it does so; f32: always single (sums); raw8:
    vectors of eight halves as they lie in memory; i32: whole numbers; number: what the body calls `HELD`."""


@dataclass(frozen=True)
class Kernel:
    """A kernel's description; the conventions of bodies are in `kernels/source/__init__.py`."""

    name: str
    body: Path
    """Its text, from the outermost `{` to its `}`."""
    buffers: tuple[Buffer, ...]
    ints: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    tile: type[Tile] = Tile
    locals: tuple[LocalArray, ...] = ()
    computes_in_half: bool = False
    """True if products and short sums are half in a plan of `fp16_arithmetic`; else values are widened when read."""
    matrix_units: bool = False
    """True if subgroups multiply matrices of halves at once (`kernels/catalog/desktop/units/`)."""
    fragments: bool = False
    """True if work-items hand each other what they hold of a matrix."""
    warpgroups: bool = False
    """True if 128 work-items at once multiply matrices of halves in local memory (NVIDIA's, through OpenCL)."""
    whole_numbers: bool = False
    """True if it multiplies whole numbers of 8 bits (`kernels/source/dot_products.py`)."""
    number: Number = "f32"
    """The type that its body calls `HELD`."""
    rewrite: Rewrite | None = None
    """Writes out what this body marks by words of its own, from the constants."""
    functions: str = ""
    """Text before its macros: functions that these call."""

    def local_bytes(self, constants: Mapping[str, int], precision: Precision = "fp32") -> int:
        """Local memory of a work-group, bytes; 0 where it may take more than the API tells, which its tile knows."""
        if self.warpgroups:
            return 0
        narrow = self.is_narrow(precision)
        sizes = {"computed": 2 if narrow else 4, "number": 8 if self.number == "i64" else 4}
        return sum(sizes.get(array.storage, 4) * array.lanes * constants[array.size] for array in self.locals)

    def type_of(self, array: LocalArray) -> str:
        """Return the type of a local array's single numbers."""
        return single_type(self.number if array.storage == "number" else array.storage)

    def is_narrow(self, precision: Precision) -> bool:
        """Return whether it computes in half."""
        return self.computes_in_half and precision == "fp16_arithmetic"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Ordered parameters: buffers, then integers, then floats."""
        return (
            *(Parameter(name=b.name, kind="buffer", access=b.access) for b in self.buffers),
            *(Parameter(name=name, kind="i32") for name in self.ints),
            *(Parameter(name=name, kind="f32") for name in self.floats),
        )

    @property
    def loads_raw(self) -> bool:
        """Return whether it takes values from memory as they lie there, and converts them where it needs them.

        A conversion waits for its load; behind the arithmetic it does not.
        """
        text = _read(self.body, self.body.parent)
        return "LOAD_RAW_" in text or "LOAD_RAW8_" in text

    @property
    def loads_eights(self) -> bool:
        """Return whether it may take eight halves at once, and convert them itself."""
        return "LOAD_EIGHT_" in _read(self.body, self.body.parent)

    def stored(self, types: Mapping[str, Storage]) -> Kernel:
        """The kernel with these parameters in such types, whatever the plan's data type."""
        return self._replacing({b.name: replace(b, storage=types[b.name]) for b in self.buffers if b.name in types})

    def in_order(self, *names: str) -> Kernel:
        """Return the kernel that asks for these parameters' values in the order of its body."""
        return self._replacing({b.name: replace(b, in_order=True) for b in self.buffers if b.name in names})

    def with_planes(self, planes: Mapping[str, int]) -> Kernel:
        """The kernel that reads these parameters, by name, from so many planes."""
        found = (b for b in self.buffers if b.name in planes)
        return self._replacing({b.name: replace(b, storage="f32", planes=planes[b.name]) for b in found})

    def of_numbers(self, number: Number, rewrite: Rewrite) -> Kernel:
        """Return the kernel that computes in a type, by the text that `rewrite` makes; it has no scalars of floats."""
        return replace(self, name=f"{self.name}_{number}", number=number, rewrite=rewrite, floats=())

    def _replacing(self, changed: Mapping[str, Buffer]) -> Kernel:
        return replace(self, buffers=tuple(changed.get(b.name, b) for b in self.buffers)) if changed else self

    def of_lanes(self, lanes: Literal[1, 4], kept: Collection[str] = ()) -> Kernel:
        """The same kernel, whose buffers' elements have so many lanes, but for those that are kept."""
        changed = (each if each.name in kept else replace(each, lanes=lanes) for each in self.buffers)
        return replace(self, buffers=tuple(changed))

    def fixing(self, names: Collection[str]) -> Kernel:
        """The same kernel with these integers as constants."""
        return replace(self, ints=tuple(name for name in self.ints if name not in names)) if names else self

    def source(self, constants: Mapping[str, int]) -> str:
        """Text of the body with its marked loops written out."""
        return _source(self.body, self.rewrite, self.number, tuple(constants.items()))

    def rewritten(self, text: str, constants: Mapping[str, int]) -> str:
        """Return the text that `rewrite` makes."""
        return self.rewrite(text, constants) if self.rewrite else text


@lru_cache(maxsize=512)
def _source(body: Path, rewrite: Rewrite | None, number: Number, constants: tuple[tuple[str, int], ...]) -> str:
    """Kept: a renderer asks several times, and others ask for the same in another precision."""
    values = dict(constants)
    text = _HELD.sub(NUMBERS[number], unroll(_read(body, body.parent), values))
    return rewrite(text, values) if rewrite else text


@lru_cache
def _read(file: Path, home: Path) -> str:
    """A body with its parts: a line `INCLUDE name` stands for `name.c` beside the body, else in a `parts` above it."""
    return _INCLUDE.sub(lambda match: _read(_part(match[1], home), home).rstrip("\n"), file.read_text())


def _part(name: str, home: Path) -> Path:
    places = [home / f"{name}.c", *(folder / "parts" / f"{name}.c" for folder in home.parents)]
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise FileNotFoundError(f"{home}: no part {name}.c beside the body, and in no folder `parts` above it")
    return found
