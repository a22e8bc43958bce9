"""Strategies for whole compilations: any small graph, with any options, for any device."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernels.fusion import ALL
from kernels.graph import Graph, Node
from kernels.options import Limits, Options
from kernels.shapes import output_shape

WINDOWS = ((1, 1), (2, 2), (3, 3), (3, 3), (5, 5), (1, 3), (7, 7))
MOST_CHANNELS = 40
DENSE_INPUTS = 2000


class Sketch:
    """A graph under construction: any step reads any earlier tensor of four dimensions."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
        shape = tuple(
            draw(st.sampled_from(extents)) for extents in ((1, 1, 2), (1, 3, 4, 5, 8, 12), (5, 7, 8), (5, 6, 9))
        )
        self.graph = Graph("any", ("x",), (), [], {"x": shape}, {})
        self.tensors = ["x"]

    def of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def shape(self, name: str) -> tuple[int, ...]:
        return self.graph.shapes[name]

    def constant(self, *shape: int, scale: float = 0.5) -> str:
        name = f"c{len(self.graph.shapes)}"
        self.graph.constants[name] = (self._rng.standard_normal(shape) * scale).astype(np.float32)
        self.graph.shapes[name] = shape
        return name

    def add(self, op: str, *inputs: str, pooled: tuple[int, ...] | None = None, **attributes: Any) -> str:
        name = f"t{len(self.graph.shapes)}"
        node = Node(name, op, inputs, (name,), attributes)
        self.graph.shapes[name] = pooled or output_shape(node, self.graph.shapes)
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

    def joinable(self, x: str) -> str:
        n, _, *image = self.shape(x)
        fitting = (name for name in self.tensors if self.shape(name)[:1] + self.shape(name)[2:] == (n, *image))
        return str(self.of(*fitting))


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
    parts = [x, *(s.joinable(x) for _ in range(s.of(1, 1, 2)))]
    if sum(s.shape(name)[1] for name in parts) <= MOST_CHANNELS:
        s.add("concat", *parts, axis=1)


def _pool(s: Sketch, x: str) -> None:
    (n, c, *image), (window, stride), pad = s.shape(x), s.of((2, 2), (3, 2), (3, 1)), s.of(0, 1)
    if min(image) < window:
        return
    op = s.of("max_pool", "average_pool")
    extra = {"count_include_pad": s.of(True, False)} if op == "average_pool" else {}
    pooled = (n, c, *((size + 2 * pad - window) // stride + 1 for size in image))
    s.add(op, x, pooled=pooled, kernel=(window,) * 2, strides=(stride,) * 2, pads=(pad,) * 4, dilations=(1, 1), **extra)


def _slice(s: Sketch, x: str) -> None:
    stop = s.of(*range(1, s.shape(x)[1] + 1))
    s.add("slice", x, axis=1, start=s.of(*range(stop)), stop=stop)


def _pad(s: Sketch, x: str) -> None:
    if min(s.shape(x)[2:]) >= 3:
        s.add("pad", x, pads=(1, 2, 1, 2), mode=s.of("reflect", "constant", "edge"), value=0.0)


def _normalised(s: Sketch, x: str) -> None:
    c = s.shape(x)[1]
    if s.of(True, False):
        s.add("affine", x, s.constant(c), s.constant(c))
    else:
        s.add("instance_norm", x, s.constant(c), s.constant(c), epsilon=1.0)


def _pointwise(s: Sketch, x: str) -> None:
    op, attributes = s.of(
        ("relu", {}), ("sigmoid", {}), ("clip", {"min": -0.5, "max": 0.7}), ("leaky_relu", {"slope": 0.2}),
        ("lrn", {"size": 3, "alpha": 0.1, "beta": 0.75, "bias": 1.0}), ("transpose", {"perm": (0, 1, 3, 2)}),
    )  # fmt: skip
    s.add(op, x, **attributes)


def _combined(s: Sketch, x: str) -> None:
    s.add(s.of("add", "mul"), x, s.of(s.alike(x), s.constant(1, s.shape(x)[1], 1, 1)))


STEPS: tuple[Callable[[Sketch, str], None], ...] = (
    _conv, _conv, _conv, _residual, _by_channel, _grouped, _concat, _concat, _pool, _slice, _pad, _normalised,
    _pointwise, _combined,
)  # fmt: skip


@st.composite
def any_graph(draw: st.DrawFn) -> Graph:
    """Up to ten steps, and perhaps a classifier; what nobody reads is an output, and now and then more."""
    sketch = Sketch(draw)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=10)):
        step(sketch, sketch.of(*sketch.tensors[-3:]))
    if len(sketch.tensors) == 1:
        sketch.add("relu", "x")
    n, *rest = sketch.shape(sketch.tensors[-1])
    if draw(st.booleans()) and prod(rest) <= DENSE_INPUTS:
        flat = sketch.add("reshape", sketch.tensors[-1], shape=(n, prod(rest)))
        sketch.add("dense", flat, sketch.constant(prod(rest), sketch.of(3, 10, 17), scale=prod(rest) ** -0.5))
    read = {name for node in sketch.graph.nodes for name in node.inputs}
    ends = [name for name in sketch.tensors[1:] if name not in read]
    more = draw(st.sets(st.sampled_from(sketch.tensors[1:]), max_size=1))
    sketch.graph.outputs = tuple(sorted({*ends, *more}))
    return sketch.graph


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
        layout=st.sampled_from(["buffer", "buffer", "image"]),  # type: ignore[arg-type]
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
        local_bytes=st.just(32 << 10),
        subgroup_size=st.sampled_from([0, 8]) if backend == "vulkan" else st.just(0),
        max_buffer_bytes=st.sampled_from([0, 0, 0, 16 << 10, 64 << 10]),
    )
