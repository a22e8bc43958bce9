"""What a kernel is, apart from any API: its body, its ordered parameters and its compile-time tunables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Literal

from kernels.plan import Parameter

from .unroll import unroll

Storage = Literal["data", "f32"]
"""data: half in an fp16 plan, else single; f32: always single (ports)."""


@dataclass(frozen=True)
class BufferSpec:
    """A buffer parameter, accessed by `LOAD_<name>(i)` and `STORE_<name>(i, v)` in elements of 1 or 4 lanes."""

    name: str
    lanes: Literal[1, 4]
    access: Literal["read", "write"]
    storage: Storage = "data"


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

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Ordered parameters: buffers, then integers, then floats."""
        return (
            *(Parameter(name=b.name, kind="buffer", access=b.access) for b in self.buffers),
            *(Parameter(name=name, kind="i32") for name in self.ints),
            *(Parameter(name=name, kind="f32") for name in self.floats),
        )

    def source(self, tunables: Mapping[str, int]) -> str:
        """Text of the body with its marked loops written out."""
        return unroll(_read(self.body), tunables)


def derived(tunables: Mapping[str, int]) -> dict[str, int]:
    """The tunables with the numbers that follow from them and that bodies use as well."""
    full = dict(tunables)
    if "LANES" in full:
        full["PARTS"] = full["LANES"] // 4
        full["STACKS"] = full["VECTORS"] * full["PARTS"]
    if "KW" in full:
        full["COLUMNS"] = full["PIXELS"] + full["KW"] - 1
    return full


@lru_cache
def _read(body: str) -> str:
    return (resources.files(__package__) / "bodies" / body).read_text()


def kernel(
    name: str, buffers: str, ints: str = "", floats: str = "", tunables: str = "", body: str | None = None
) -> Kernel:
    """Describe a kernel compactly: `src:4 scale:4:f32 dst:4*` are buffers with their lanes; `*` marks a result."""
    return Kernel(
        name=name,
        body=f"{body or name}.c",
        buffers=tuple(map(_buffer, buffers.split())),
        ints=tuple(ints.split()),
        floats=tuple(floats.split()),
        tunables=tuple(tunables.split()),
    )


def _buffer(text: str) -> BufferSpec:
    name, lanes, *storage = text.rstrip("*").split(":")
    return BufferSpec(
        name=name,
        lanes=4 if lanes == "4" else 1,
        access="write" if text.endswith("*") else "read",
        storage="f32" if storage == ["f32"] else "data",
    )
