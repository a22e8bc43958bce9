"""A kernel as it is for the buffers that a step gives it."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.lower.gpu.values import View
from kernels.source.kernel import Kernel, Storage

_WORDS: dict[Storage, str] = {"f32": "single", "i32": "int", "i64": "long"}


def as_bound(
    kernel: Kernel, given: Mapping[str, str | View], stored: Mapping[str, Storage]
) -> tuple[Kernel, list[str]]:
    """The kernel whose parameters lie as those given, by name; and the words that tell its program from others.

    `stored`: the types of buffers that hold fp32 in a plan of halves, or whole numbers.
    """
    names = {name: place.buffer if isinstance(place, View) else place for name, place in given.items()}
    types = {b.name: stored[names[b.name]] for b in kernel.buffers if names[b.name] in stored}
    own = {b.name: b.storage for b in kernel.buffers}
    types = {name: kind for name, kind in types.items() if own[name] in ("data", "f32") and own[name] != kind}
    planes = {name: place.planes for name, place in given.items() if isinstance(place, View) and place.planes}
    words = [f"{_WORDS[types[name]]}_{name}" for name in sorted(types)]
    words += [f"planes{count}_{name}" for name, count in sorted(planes.items())]
    return kernel.stored(types).with_planes(planes), words
