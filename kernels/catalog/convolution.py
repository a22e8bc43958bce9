"""Facts of one convolution, and what an algorithm makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernels.ir.graph import Array, Graph, Node


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
    def is_depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.c == self.k

    @property
    def has_whole_groups(self) -> bool:
        """Whether it has groups that are whole stacks of four channels."""
        return self.groups > 1 and (self.c // self.groups) % 4 == 0 and (self.k // self.groups) % 4 == 0

    @property
    def padding(self) -> dict[str, int]:
        """The tunable of kernels that read a window."""
        return {"REFLECT": 1} if self.mirrored else {}

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
        n, c, h, w, k, oh, ow, (kh, kw), (sh, sw), (top, left, bottom, right), (dh, dw), int(a.get("groups", 1)),
        a.get("pad_mode") == "reflect",
    )  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One dispatch of an algorithm: which kernel, how specialised, with which packed weights and scalars.

    An algorithm may need several, which hand values on in scratch buffers. Views, residual and activation are added by
    the lowering.
    """

    kernel: str
    tunables: Mapping[str, int]
    weight: Array | None = None
    bias: Array | None = None
    """Padded like the weights; zeros where the network has none."""
    ints: Mapping[str, int] = field(default_factory=dict)
    work_items: tuple[int, int, int] = (1, 1, 1)
    group: int = 0
    """Work-items of a work-group, where the kernel needs just so many; 0: as the device likes."""
    reads: str = "src"
    """`src`, the convolution's own source, or the name of a scratch buffer."""
    writes: str = "dst"
    """`dst`, the convolution's own result, or the name of a scratch buffer."""
    scratch_elements: int = 0
    """Size of the scratch buffer that it writes."""
    adds: str = ""
    """The name of a scratch buffer that is added to the result; it may be the one that is written."""
    is_last: bool = True
    """Adds bias, residual and activation."""
