"""A kernel as it is for the buffers that a step gives it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kernels.lower.draft import DraftBuffer
from kernels.lower.gpu.values import View
from kernels.source.kernel import Kernel


def as_bound(
    kernel: Kernel, given: Mapping[str, str | View], buffers: Mapping[str, DraftBuffer], singles: Collection[str]
) -> tuple[Kernel, list[str]]:
    """The kernel whose parameters lie as those given, by name; and the words that tell its program from others.

    `singles`: the buffers that hold data in fp32.
    """
    names = {name: place.buffer if isinstance(place, View) else place for name, place in given.items()}
    images = frozenset(name for name, buffer in names.items() if buffers[buffer].image)
    single = frozenset(b.name for b in kernel.buffers if b.storage == "data" and names[b.name] in singles)
    planes = {name: place.planes for name, place in given.items() if isinstance(place, View) and place.planes}
    words = [f"image_{name}" for name in sorted(images)] + [f"single_{name}" for name in sorted(single)]
    words += [f"planes{count}_{name}" for name, count in sorted(planes.items())]
    return kernel.with_images(images).in_single(single).with_planes(planes), words
