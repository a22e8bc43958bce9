"""Strategies for whole compilations: any small graph, with any options, for any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernels.ir.fusion import ALL
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import output_shape
from kernels.options import Limits, Options

WINDOWS = ((1, 1), (2, 2), (3, 3), (3, 3), (5, 5), (1, 3), (7, 7))
INPUTS = (
    *(((1, 1, 2), (1, 3, 4, 5, 8, 12), (5, 7, 8), (5, 6, 9)),) * 6,
    ((1, 7, 20),),
    ((1, 2, 3), (1, 4, 7, 12)),
    *(((1, 2, 3), (1, 3, 4, 6), (1, 5, 8)),) * 2,
    *(((1, 2), (1, 3, 4, 6), (1, 2), (3, 4), (1, 5)),) * 2,
)
"""Extents of the graph's input: an image, or another rank."""
MOST_ELEMENTS = 20_000
DENSE_INPUTS = 2000


class Constants(dict[str, Array]):
    """Says what is in it, not every number."""

    def __repr__(self) -> str:
        return repr({name: array.shape for name, array in self.items()})


class Sketch:
    """A graph under construction: any step reads any earlier tensor of a rank that it knows."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
        shape = tuple(draw(st.sampled_from(extents)) for extents in draw(st.sampled_from(INPUTS)))
        self.graph = Graph("any", ("x",), (), [], {"x": shape}, Constants())
        self.tensors = ["x"]

    def of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def permuted(self, values: Sequence[int]) -> list[int]:
        return self._draw(st.permutations(list(values)))

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.shapes[name]

    def constant(self, *shape: int, scale: float = 0.5) -> str:
        name = f"c{len(self.graph.shapes)}"
        self.graph.constants[name] = (self._rng.standard_normal(shape) * scale).astype(np.float32)
        self.graph.shapes[name] = shape
        return name

    def add(self, op: str, *inputs: str, ceil: bool = False, **attributes: Any) -> str:
        name = f"t{len(self.graph.shapes)}"
        node = Node(name, op, inputs, (name,), attributes)
        self.graph.shapes[name] = output_shape(node, self.graph.shapes, ceil=ceil)
        self.graph.nodes.append(node)
        self.tensors.append(name)
        return name

    def conv(
        self,
        x: str,
        k: int,
        window: tuple[int, int],
        *,
        stride: int = 1,
        pad: int = 0,
        dilation: int = 1,
        groups: int = 1,
    ) -> str:
        c = self.shape(x)[1] // groups
        weight = self.constant(k, c, *window, scale=(c * prod(window)) ** -0.5)
        bias = [self.constant(k)] if self.of(True, True, False) else []
        return self.add(
            "conv", x, weight, *bias, strides=(stride,) * 2, pads=(pad,) * 4, dilations=(dilation,) * 2, groups=groups
        )

    def alike(self, x: str) -> str:
        """An earlier tensor of the same shape; it may be the same."""
        return str(self.of(*(name for name in self.tensors if self.shape(name) == self.shape(x))))

    def joinable(self, x: str, axis: int) -> str:
        """An earlier tensor that differs along this axis only; it may be the same."""

        def rest(name: str) -> tuple[int, tuple[int, ...]]:
            return len(self.shape(name)), self.shape(name)[:axis] + self.shape(name)[axis + 1 :]

        return str(self.of(*(name for name in self.tensors if rest(name) == rest(x))))

    def axis(self, x: str) -> int:
        return int(self.of(*range(len(self.shape(x)))))


def _conv(s: Sketch, x: str) -> None:
    window, dilation = s.of(*WINDOWS), s.of(1, 1, 1, 2)
    pad = s.of(0, window[0] // 2)
    if all(size + 2 * pad > dilation * (edge - 1) for size, edge in zip(s.shape(x)[2:], window, strict=True)):
        y = s.conv(x, s.of(1, 3, 4, 6, 8, 13, 16), window, stride=s.of(1, 1, 2), pad=pad, dilation=dilation)
        if s.of(True, False):
            s.add("relu", y)


def _residual(s: Sketch, x: str) -> None:
    y = s.conv(x, s.shape(x)[1], (3, 3), pad=1)
    s.add(s.of("relu", "sigmoid"), s.add("add", y, s.alike(x)))


def _by_channel(s: Sketch, x: str) -> None:
    c = s.shape(x)[1]
    s.conv(x, c, (3, 3), stride=s.of(1, 2), pad=1, groups=c)


def _grouped(s: Sketch, x: str) -> None:
    groups = s.of(*(count for count in (1, 2, 4) if s.shape(x)[1] % count == 0))
    s.conv(x, groups * s.of(1, 2, 4), (3, 3), pad=1, groups=groups)


def _concat(s: Sketch, x: str) -> None:
    axis = s.of(1, s.axis(x)) if len(s.shape(x)) > 1 else 0
    parts = [x, *(s.joinable(x, axis) for _ in range(s.of(1, 1, 2)))]
    if sum(prod(s.shape(name)) for name in parts) <= MOST_ELEMENTS:
        s.add("concat", *parts, axis=axis)


def _pool(s: Sketch, x: str) -> None:
    (window, stride), pad = s.of((2, 2), (3, 2), (3, 1)), s.of(0, 1)
    if min(s.shape(x)[2:]) < window:
        return
    op = s.of("max_pool", "average_pool")
    extra = {"count_include_pad": s.of(True, False)} if op == "average_pool" else {}
    s.add(op, x, ceil=s.of(True, False), kernel=(window,) * 2, strides=(stride,) * 2, pads=(pad,) * 4, **extra)


def _slice(s: Sketch, x: str) -> None:
    axis = s.axis(x)
    stop = s.of(*range(1, s.shape(x)[axis] + 1))
    s.add("slice", x, axis=axis, start=s.of(*range(stop)), stop=stop)


def _pad(s: Sketch, x: str) -> None:
    if min(s.shape(x)[2:]) >= 3:
        s.add("pad", x, pads=(1, 2, 1, 2), mode=s.of("reflect", "constant", "edge"), value=0.0)


def _instance_norm(s: Sketch, x: str) -> None:
    c = s.shape(x)[1]
    s.add("instance_norm", x, s.constant(c), s.constant(c), epsilon=1.0)


def _lrn(s: Sketch, x: str) -> None:
    s.add("lrn", x, size=s.of(3, 4), alpha=0.1, beta=0.75, bias=1.0)


def _affine(s: Sketch, x: str) -> None:
    if len(s.shape(x)) > 1:
        c = s.shape(x)[1]
        s.add("affine", x, s.constant(c), s.constant(c))


def _pointwise(s: Sketch, x: str) -> None:
    op, attributes = s.of(
        ("relu", {}),
        ("sigmoid", {}),
        ("clip", {"min": -0.5, "max": 0.7}),
        ("leaky_relu", {"slope": 0.2}),
        ("hard_sigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("hard_swish", {}),
    )
    s.add(op, x, **attributes)


def _softmax(s: Sketch, x: str) -> None:
    s.add("softmax", x, axis=s.axis(x))


def _transpose(s: Sketch, x: str) -> None:
    if len(s.shape(x)) <= 4:
        s.add("transpose", x, perm=tuple(s.permuted(range(len(s.shape(x))))))


def _reshape(s: Sketch, x: str) -> None:
    """Reshape to any rank: each axis takes some of the number's divisors."""
    left, shape = prod(s.shape(x)), []
    for _ in range(s.of(0, 1, 2, 3, 4)):
        shape.append(s.of(*(count for count in range(1, min(left, 16) + 1) if left % count == 0)))
        left //= shape[-1]
    s.add("reshape", x, shape=tuple(s.permuted([*shape, left])))


def _combined(s: Sketch, x: str) -> None:
    """Combine with another tensor, or with a constant that varies along no axis, one, or all."""
    shape = s.shape(x)
    vector = tuple(extent if axis == s.axis(x) else 1 for axis, extent in enumerate(shape))
    other = s.of(s.alike(x), s.constant(*vector), s.constant(*(1 for _ in shape)), s.constant(*shape))
    s.add(s.of("add", "mul"), x, other)


def _matmul(s: Sketch, x: str) -> None:
    """Multiply with itself, transposed."""
    shape = s.shape(x)
    if 2 <= len(shape) <= 4 and prod(shape[:-1]) * shape[-2] <= MOST_ELEMENTS:
        axes = range(len(shape))
        turned = s.add("transpose", x, perm=(*axes[:-2], axes[-1], axes[-2]))
        s.add("mul", s.add("matmul", x, turned), s.constant(*(1 for _ in shape), scale=shape[-1] ** -0.5))


ANY_RANK: tuple[Callable[[Sketch, str], None], ...] = (
    _affine, _affine, _pointwise, _combined, _slice, _concat, _softmax, _transpose, _reshape, _matmul,
)  # fmt: skip
IMAGES: tuple[Callable[[Sketch, str], None], ...] = (
    _conv, _conv, _conv, _residual, _by_channel, _grouped, _concat, _pool, _pad, _instance_norm, _lrn, *ANY_RANK[1:6],
)  # fmt: skip
"""Steps that any tensor can take, and those of images: there, now and then another one."""


@st.composite
def any_graph(draw: st.DrawFn) -> Graph:
    """Draw up to ten steps, and perhaps a classifier; what nobody reads is an output, and now and then more."""
    sketch = Sketch(draw)
    for _ in range(draw(st.integers(1, 10))):
        x = sketch.of(*sketch.tensors[-3:])
        steps = IMAGES if len(sketch.shape(x)) == 4 and sketch.of(*(True,) * 7, False) else ANY_RANK
        sketch.of(*steps)(sketch, x)
    if len(sketch.tensors) == 1:
        sketch.add("relu", "x")
    n, *rest = sketch.shape(sketch.tensors[-1])
    if draw(st.booleans()) and prod(rest) <= DENSE_INPUTS:
        flat = sketch.add("reshape", sketch.tensors[-1], shape=(n, prod(rest)))
        sketch.add("dense", flat, sketch.constant(prod(rest), sketch.of(3, 10, 17), scale=prod(rest) ** -0.5))
    read = {name for node in sketch.graph.nodes for name in node.inputs}
    ends = [name for name in sketch.tensors[1:] if name not in read]
    more = draw(st.sets(st.sampled_from(sketch.tensors[1:]), max_size=1))
    return replace(sketch.graph, outputs=tuple(sorted({*ends, *more})))


def any_options(backend: str) -> st.SearchStrategy[Options]:
    """Choices that hold for any network; a budget and an algorithm are the caller's."""
    fuse = st.sampled_from(["all", "all", "none"]) | st.sets(st.sampled_from(sorted(ALL)), min_size=1).map(
        lambda names: "+".join(sorted(names))
    )
    if backend == "cpu":
        algorithms = st.sampled_from(["auto", "auto", "im2col", "direct"])
        return st.builds(Options, st.just("cpu"), algorithm=algorithms, threads=st.integers(1, 3), fuse=fuse)  # type: ignore[arg-type]
    return st.builds(
        Options,
        st.just(backend),  # type: ignore[arg-type]
        precision=st.sampled_from(["fp32", "fp32", "relaxed", "fp16"]),  # type: ignore[arg-type]
        concat=st.sampled_from(["auto", "join", "split"]),  # type: ignore[arg-type]
        order=st.sampled_from(["auto", "waves", "memory"]),  # type: ignore[arg-type]
        pools=st.sampled_from(["auto", "offsets", "objects"]),  # type: ignore[arg-type]
        in_place=st.booleans(),
        fuse=fuse,
    )


def any_limits(backend: str) -> st.SearchStrategy[Limits]:
    if backend == "cpu":
        return st.just(Limits(cpu_device=True))
    return st.builds(
        Limits,
        cpu_device=st.booleans(),
        unified_memory=st.booleans(),
        max_work_group=st.sampled_from([64, 256, 1024]),
        kernel_groups=st.dictionaries(
            st.sampled_from(
                [
                    "conv_direct",
                    "conv_window",
                    "conv_tiled",
                    "conv_separable",
                    "conv_squeeze",
                    "conv_taking",
                    "product_tiled",
                    "matvec",
                    "matmul_tiled",
                ]
            ),
            st.sampled_from([24, 64, 128]),
            max_size=2,
        ),
        local_bytes=st.just(32 << 10),
        subgroup_size=st.sampled_from([0, 8]) if backend == "vulkan" else st.just(0),
        max_buffer_bytes=st.sampled_from([0, 0, 0, 16 << 10, 64 << 10]),
    )
