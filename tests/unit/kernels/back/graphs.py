"""Small graphs of canonical operations with random weights, and how a plan's result is compared with their meaning."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from kernels.compile import compile_graph
from kernels.ir.graph import Array, Graph, Node
from kernels.options import Limits, Options
from kernels.plan.opencl_interpreter import Run, run_opencl
from kernels.reference import evaluate

from .lent_half import lend_half

T = TypeVar("T")
TOLERANCE = {"fp32": 1e-5, "relaxed": 1e-5, "imprecise": 1e-5, "fp16": 3e-3, "fp16_arithmetic": 3e-3, "int8": 0.1}
"""Largest error in norm, relative to the result's."""


def generator(salt: int = 0) -> np.random.Generator:
    """Fresh random numbers in every session; the session's header prints the seed."""
    return np.random.default_rng([int(os.environ["POCKETFARM_TEST_SEED"]), salt])


def some(names: Iterable[T], count: int, salt: str = "") -> list[T]:
    """Return so many of these, in their order, other ones in every run: each takes a compiler's time."""
    every = list(names)
    rng = random.Random(os.environ["POCKETFARM_TEST_SEED"] + salt)
    return [every[index] for index in sorted(rng.sample(range(len(every)), min(count, len(every))))]


def covering(salt: str, *axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return rows with every value of each axis, as few as that takes, other ones in every run."""
    rng, most = random.Random(os.environ["POCKETFARM_TEST_SEED"] + salt), max(map(len, axes))
    columns = [rng.sample([axis[i % len(axis)] for i in range(most)], most) for axis in axes]
    return list(zip(*columns, strict=True))


def shares(names: Iterable[T], count: int, salt: str = "") -> list[list[T]]:
    """Deal these out to so many lists, other ones in every run; never to none."""
    every = list(names)
    random.Random(os.environ["POCKETFARM_TEST_SEED"] + salt).shuffle(every)
    return [every[first :: max(1, count)] for first in range(max(1, count))]


@dataclass
class Builder:
    """Writes a graph node by node; shapes of results are given."""

    rng: np.random.Generator = field(default_factory=generator)
    graph: Graph = field(default_factory=lambda: Graph("small", (), (), [], {}, {}))

    def input(self, *shape: int, name: str = "x") -> str:
        self.graph.inputs += (name,)
        self.graph.shapes[name] = shape
        return name

    def constant(self, *shape: int, scale: float = 1.0) -> str:
        name = f"constant{len(self.graph.constants)}"
        self.graph.constants[name] = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        self.graph.shapes[name] = shape
        return name

    def node(self, op: str, inputs: list[str], shape: tuple[int, ...], /, **attributes: Any) -> str:
        name = f"{op}{len(self.graph.nodes)}"
        self.graph.nodes.append(Node(name, op, tuple(inputs), (f"{name}:0",), attributes))
        self.graph.shapes[f"{name}:0"] = shape
        return f"{name}:0"

    def conv(
        self,
        x: str,
        k: int,
        kernel: tuple[int, int],
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilations: tuple[int, int] = (1, 1),
        groups: int = 1,
        *,
        bias: bool = True,
        residual: str = "",
        activation: tuple[Any, ...] = (),
    ) -> str:
        n, c, h, w = self.graph.shapes[x]
        oh = (h + pads[0] + pads[2] - dilations[0] * (kernel[0] - 1) - 1) // strides[0] + 1
        ow = (w + pads[1] + pads[3] - dilations[1] * (kernel[1] - 1) - 1) // strides[1] + 1
        fan_in = c // groups * kernel[0] * kernel[1]
        inputs = [
            x,
            self.constant(k, c // groups, *kernel, scale=fan_in**-0.5),
            self.constant(k) if bias else "",
            residual,
        ]
        while not inputs[-1]:
            inputs.pop()
        extra = {"activation": activation} if activation else {}
        attributes = {"strides": strides, "pads": pads, "dilations": dilations, "groups": groups, **extra}
        return self.node("conv", inputs, (n, k, oh, ow), **attributes)

    def outputs(self, *names: str) -> Graph:
        return replace(self.graph, outputs=names)


def inputs_of(graph: Graph, rng: np.random.Generator | None = None) -> dict[str, Array]:
    rng = rng or generator(1)
    return {name: rng.standard_normal(graph.shapes[name]).astype(np.float32) for name in graph.inputs}


def relu_of(size: tuple[int, ...]) -> tuple[str, ...]:
    """The relu after a convolution: none after one pixel, of which it may leave next to nothing but rounding."""
    return () if size[2:] == (1, 1) else ("relu",)


def relative_error(got: Array, wanted: Array) -> float:
    return float(np.linalg.norm((got - wanted).ravel()) / max(np.linalg.norm(wanted.ravel()), 1e-30))


def side_by_side(graphs: dict[str, Graph]) -> Graph:
    """One graph that computes them all, each name prefixed by its graph's: programs are built once."""
    whole = Graph("every_operation", (), (), [], {}, {})
    for prefix, graph in graphs.items():

        def to(name: str, prefix: str = prefix) -> str:
            return f"{prefix}.{name}" if name else ""

        whole.inputs += tuple(map(to, graph.inputs))
        whole.outputs += tuple(map(to, graph.outputs))
        whole.nodes += [
            replace(node, name=to(node.name), inputs=tuple(map(to, node.inputs)), outputs=tuple(map(to, node.outputs)))
            for node in graph.nodes
        ]
        whole.shapes |= {to(name): shape for name, shape in graph.shapes.items()}
        whole.constants |= {to(name): array for name, array in graph.constants.items()}
        whole.types |= {to(name): kind for name, kind in graph.types.items()}
    return whole


def check(
    graph: Graph, precision: str = "fp32", *, cpu_device: bool = True, tolerance: float | None = None, **options: Any
) -> Run:
    """Compile for OpenCL, run on this machine, and compare every output with the reference in double precision.

    `cpu_device`: with the tiles for PoCL; else with those for a GPU, which PoCL runs as well.
    """
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, Options("opencl", precision, **options), Limits(cpu_device=cpu_device))  # type: ignore[arg-type]
    run = run_opencl(lend_half(bundle), inputs)
    keep = options.get("keep_all", False)
    wanted = evaluate(graph, inputs, keep=keep)
    for name, got in run.outputs.items():
        assert got.shape == wanted[name].shape, name
        assert relative_error(got, wanted[name]) <= (tolerance or TOLERANCE[precision]), name
    assert set(graph.outputs) <= set(run.outputs)
    return run


def densely_connected(images: int, growth: int) -> Graph:
    """DenseNet's block: each layer reads, normalised, what all before it wrote."""
    build = Builder()
    parts = [build.conv(build.input(images, 4, 3, 5), growth, (1, 1))]
    whole, channels = parts[0], growth
    for _ in range(3):
        factors = [build.constant(channels), build.constant(channels)]
        normalised = build.node("affine", [whole, *factors], (images, channels, 3, 5))
        parts.append(build.conv(build.node("relu", [normalised], (images, channels, 3, 5)), growth, (1, 1)))
        channels += growth
        whole = build.node("concat", parts, (images, channels, 3, 5), axis=1)
    return build.outputs(whole)


def joined_twice(images: int, channels: int) -> Graph:
    """Parts that begin one concat, and are parts of others: there twice, in the middle, and by themselves."""
    build = Builder()
    x = build.input(images, 4, 3, 5)
    a, b = (build.conv(x, channels, (1, 1)) for _ in range(2))

    def joined(*parts: str) -> str:
        total = sum(build.graph.shapes[part][1] for part in parts)
        return build.node("concat", list(parts), (images, total, 3, 5), axis=1)

    twice = joined(a, a)
    return build.outputs(joined(a, twice, b), joined(b, a), joined(twice, b, twice), joined(b, x))


def shuffled_units(images: int, half: int, *, units: int) -> Graph:
    """A stage of ShuffleNet: halves of the channels, shuffled after each unit; then readers of all."""
    build = Builder()
    x, shape = build.input(images, 5, 6, 7), (images, 2 * half, 6, 7)
    parts = [build.conv(build.conv(x, half, (1, 1)), half, (1, 1), activation=("relu",)) for _ in range(2)]
    for unit in range(units):
        whole = _shuffled(build, build.node("concat", parts, shape, axis=1))
        if unit < units - 1:
            ends = {"start": 0, "stop": half}, {"start": half, "stop": 2 * half}
            left, y = (build.node("slice", [whole], (images, half, 6, 7), axis=1, **end) for end in ends)
            y = build.conv(y, half, (1, 1), activation=("relu",))
            y = build.conv(y, half, (3, 3), pads=(1, 1, 1, 1), groups=half)
            parts = [left, build.conv(y, half, (1, 1), activation=("relu",))]
    deep = build.conv(whole, 2 * half, (3, 3), pads=(1, 1, 1, 1), groups=2 * half)
    pooled = build.node("max_pool", [whole], shape, kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    ends_here = [build.conv(each, 6, (1, 1)) for each in (deep, pooled)]
    return build.outputs(build.node("add", ends_here, (images, 6, 6, 7)), whole)


def _shuffled(build: Builder, x: str) -> str:
    n, c, h, w = build.graph.shapes[x]
    parted = build.node("reshape", [x], (n, 2, c // 2, h * w), shape=(n, 2, c // 2, h * w))
    turned = build.node("transpose", [parted], (n, c // 2, 2, h * w), perm=(0, 2, 1, 3))
    return build.node("reshape", [turned], (n, c, h, w), shape=(n, c, h, w))
