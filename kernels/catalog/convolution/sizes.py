"""Sizes of one convolution."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.ir.dims import TO_IMAGE
from kernels.ir.graph import Graph, Node


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
    mirrored: bool = False
    """Padded by reflection, not by zeros."""

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
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        (kh, kw), (sh, sw), (dh, dw) = self.kernel, self.strides, self.dilations
        pads = ".".join(map(str, self.pads))
        sizes = f"n{self.n} c{self.c} {self.h}x{self.w} k{self.k} w{kh}x{kw}"
        return f"conv {sizes} s{sh}x{sw} p{pads} d{dh}x{dw} g{self.groups}{' reflect' if self.mirrored else ''}"

    @property
    def own_filters(self) -> int:
        """Filters of each channel, where every channel has its own (its depth multiplier); else 0."""
        return self.k // self.c if self.groups == self.c > 1 else 0

    @property
    def is_depthwise(self) -> bool:
        return self.own_filters == 1

    @property
    def has_whole_groups(self) -> bool:
        """True if it has groups that are whole stacks of four channels."""
        return self.groups > 1 and (self.c // self.groups) % 4 == 0 and (self.k // self.groups) % 4 == 0

    @property
    def padding(self) -> dict[str, int]:
        """The switch of kernels that read a window."""
        return {"REFLECT": 1} if self.mirrored else {}

    @property
    def window(self) -> dict[str, int]:
        """The scalars that every windowed kernel takes."""
        return {
            "h": self.h, "w": self.w, "oh": self.oh, "ow": self.ow, "kh": self.kernel[0], "kw": self.kernel[1],
            "sh": self.strides[0], "sw": self.strides[1], "pad_t": self.pads[0], "pad_l": self.pads[1],
        }  # fmt: skip

    @property
    def dilation(self) -> dict[str, int]:
        """The scalars of kernels whose windows may have gaps."""
        return {"dh": self.dilations[0], "dw": self.dilations[1]}


def convolution_of(graph: Graph, node: Node) -> Convolution:
    """Read the sizes of a conv node, or of a row_conv node, whose images are rows of channels."""
    of_rows = TO_IMAGE if node.op == "row_conv" else (0, 1, 2, 3)
    n, c, h, w = (graph.shapes[node.inputs[0]][axis] for axis in of_rows)
    _, k, oh, ow = (graph.shapes[node.output][axis] for axis in of_rows)
    _, _, kh, kw = graph.shapes[node.inputs[1]]
    a = node.attributes
    top, left, bottom, right = a.get("pads", (0, 0, 0, 0))
    sh, sw = a.get("strides", (1, 1))
    dh, dw = a.get("dilations", (1, 1))
    return Convolution(
        n, c, h, w, k, oh, ow, (kh, kw), (sh, sw), (top, left, bottom, right), (dh, dw), int(a.get("groups", 1)),
        a.get("pad_mode") == "reflect",
    )  # fmt: skip
