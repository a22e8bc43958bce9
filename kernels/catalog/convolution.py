"""Facts of one convolution, and what an algorithm makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernels.graph import Array, Graph, Node


@dataclass(frozen=True)
class Convolution:
    """Sizes of a convolution; pairs are (height, width), `pads` is (top, left, bottom, right)."""

    n: int
    c: int
    h: int
    w: int
    k: int
    oh: int
    ow: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    groups: int

    @property
    def in_stacks(self) -> int:
        return -(-self.c // 4)

    @property
    def out_stacks(self) -> int:
        return -(-self.k // 4)

    @property
    def flops(self) -> int:
        """Two for each multiplication and addition."""
        kh, kw = self.kernel
        return 2 * self.n * self.k * self.oh * self.ow * (self.c // self.groups) * kh * kw

    @property
    def is_depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.c == self.k

    @property
    def window(self) -> dict[str, int]:
        """The scalars that every windowed kernel takes."""
        return {
            "h": self.h, "w": self.w, "oh": self.oh, "ow": self.ow, "kh": self.kernel[0], "kw": self.kernel[1],
            "sh": self.strides[0], "sw": self.strides[1], "pad_t": self.pads[0], "pad_l": self.pads[1],
        }  # fmt: skip


def convolution_of(graph: Graph, node: Node) -> Convolution:
    """Read a conv node's sizes."""
    n, c, h, w = graph.shapes[node.inputs[0]]
    _, k, oh, ow = graph.shapes[node.output]
    _, _, kh, kw = graph.shapes[node.inputs[1]]
    a = node.attributes
    top, left, bottom, right = a.get("pads", (0, 0, 0, 0))
    sh, sw = a.get("strides", (1, 1))
    dh, dw = a.get("dilations", (1, 1))
    return Convolution(
        n, c, h, w, k, oh, ow, (kh, kw), (sh, sw), (top, left, bottom, right), (dh, dw), int(a.get("groups", 1))
    )  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One dispatch of an algorithm: which kernel, how specialised, with which packed weights and scalars.

    Source, residual and destination views and the activation are added by the lowering.
    """

    kernel: str
    tunables: Mapping[str, int]
    weight: Array
    bias: Array
    """Padded like the weights; zeros where the network has none."""
    ints: Mapping[str, int] = field(default_factory=dict)
    work_items: tuple[int, int, int] = (1, 1, 1)
