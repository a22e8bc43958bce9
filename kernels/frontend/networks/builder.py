"""Building a network layer by layer, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod, sqrt
from typing import Any
from zlib import crc32

import numpy as np

from kernels.errors import checkpoint
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import output_shape

Pair = tuple[int, int]


class NetworkBuilder:
    """Adds layers; each method returns the name of its output, which is the layer's name.

    Weights are normal with variance gain/fan-in, so that activations keep their scale (He et al. 2015); each depends on
    the seed and its own name only. Without a seed they are zeros that take no memory: for a look at shapes.
    """

    def __init__(self, name: str, seed: int | None, input_shape: tuple[int, ...], *, input_name: str = "data") -> None:
        self.seed = seed
        self.graph = Graph(name, (input_name,), (), [], {input_name: input_shape}, {})
        self.input = input_name

    def finish(self, *outputs: str) -> Graph:
        """The network with its outputs."""
        return replace(self.graph, outputs=outputs)

    def channels(self, x: str) -> int:
        return self.graph.shapes[x][1]

    def conv(
        self,
        name: str,
        x: str,
        k: int,
        kernel: int | Pair,
        *,
        stride: int = 1,
        pad: int | Pair = 0,
        groups: int = 1,
        bias: bool = True,
    ) -> str:
        """Convolution to k channels; `kernel` and `pad` are one number for both axes, or (vertical, horizontal)."""
        per_group, window = self.channels(x) // groups, _pair(kernel)
        weights = [self._weight(f"{name}.weight", (k, per_group, *window), per_group * prod(window))]
        weights += [self._bias(f"{name}.bias", k)] if bias else []
        geometry = {"strides": (stride, stride), "pads": _pair(pad) * 2, "dilations": (1, 1), "groups": groups}
        return self._add("conv", name, (x, *weights), geometry)

    def dense(self, name: str, x: str, m: int, *, gain: float = 2.0) -> str:
        """Fully connected to m features; `gain` 2 before relu, 1 otherwise."""
        c = self.channels(x)
        weight = self._weight(f"{name}.weight", (c, m), c, gain)
        return self._add("dense", name, (x, weight, self._bias(f"{name}.bias", m)))

    def batch_norm(self, name: str, x: str, *, scale: float = 1.0) -> str:
        """Batch normalisation at inference, as scale (around `scale`) and shift per channel."""
        c = self.channels(x)
        factors = self._constant(f"{name}.scale", (c,), lambda normal: scale * (1 + 0.1 * normal))
        return self._add("affine", name, (x, factors, self._bias(f"{name}.shift", c)))

    def instance_norm(self, name: str, x: str) -> str:
        """Normalisation of each image's channels by themselves."""
        c = self.channels(x)
        scale = self._constant(f"{name}.scale", (c,), lambda normal: 1 + 0.1 * normal)
        return self._add("instance_norm", name, (x, scale, self._bias(f"{name}.shift", c)), {"epsilon": 1e-5})

    def reflect_pad(self, name: str, x: str, pad: int) -> str:
        return self._add("pad", name, (x,), {"pads": (pad,) * 4, "mode": "reflect", "value": 0.0})

    def upsample(self, name: str, x: str) -> str:
        """Twice the size: bilinear, corners on corners."""
        size = tuple(2 * extent for extent in self.graph.shapes[x][2:])
        return self._add("resize", name, (x,), {"size": size, "mode": "linear", "coordinates": "align_corners"})

    def relu(self, x: str) -> str:
        return self._add("relu", f"{x}.relu", (x,))

    def relu6(self, x: str) -> str:
        return self._add("clip", f"{x}.relu6", (x,), {"min": 0.0, "max": 6.0})

    def sigmoid(self, x: str, *, name: str = "") -> str:
        return self._add("sigmoid", name or f"{x}.sigmoid", (x,))

    def max_pool(self, name: str, x: str, kernel: int = 3, *, stride: int = 2, pad: int = 0, ceil: bool = False) -> str:
        return self._pool("max_pool", name, x, kernel, stride, pad, ceil, {})

    def average_pool(
        self, name: str, x: str, kernel: int = 3, *, stride: int = 2, pad: int = 0, ceil: bool = False
    ) -> str:
        """Mean of each window's elements inside the input."""
        return self._pool("average_pool", name, x, kernel, stride, pad, ceil, {"count_include_pad": 0})

    def global_average_pool(self, name: str, x: str) -> str:
        return self._add("global_average_pool", name, (x,))

    def lrn(self, name: str, x: str) -> str:
        """Local response normalisation over five channels, with the constants of AlexNet."""
        return self._add("lrn", name, (x,), {"size": 5, "alpha": 1e-4, "beta": 0.75, "bias": 1.0})

    def concat(self, name: str, parts: Sequence[str]) -> str:
        return self._add("concat", name, tuple(parts), {"axis": 1})

    def add(self, name: str, a: str, b: str) -> str:
        return self._add("add", name, (a, b))

    def flatten(self, name: str, x: str) -> str:
        n, *rest = self.graph.shapes[x]
        return self._add("reshape", name, (x,), {"shape": (n, prod(rest))})

    def softmax(self, name: str, x: str) -> str:
        return self._add("softmax", name, (x,), {"axis": 1})

    def _pool(
        self, op: str, name: str, x: str, kernel: int, stride: int, pad: int, ceil: bool, attributes: dict[str, int]
    ) -> str:
        window: dict[str, Any] = {"kernel": (kernel,) * 2, "strides": (stride,) * 2, "pads": (pad,) * 4}
        return self._add(op, name, (x,), {**window, **attributes}, ceil=ceil)

    def _add(
        self,
        op: str,
        name: str,
        inputs: tuple[str, ...],
        attributes: dict[str, Any] | None = None,
        *,
        ceil: bool = False,
    ) -> str:
        checkpoint()
        node = Node(name, op, inputs, (name,), attributes or {})
        assert name not in self.graph.shapes, f"two layers are called {name}"
        self.graph.shapes[name] = output_shape(node, self.graph.shapes, ceil=ceil)
        self.graph.nodes.append(node)
        return name

    def _weight(self, name: str, shape: tuple[int, ...], fan_in: int, gain: float = 2.0) -> str:
        return self._constant(name, shape, lambda normal: normal * np.float32(sqrt(gain / fan_in)))

    def _bias(self, name: str, size: int) -> str:
        return self._constant(name, (size,), lambda normal: normal * np.float32(0.1))

    def _constant(self, name: str, shape: tuple[int, ...], scaled: Callable[[Array], Array]) -> str:
        if self.seed is None:
            value = np.broadcast_to(np.float32(0), shape)
        else:
            value = np.ascontiguousarray(scaled(seeded_normal(self.seed, name, shape)), np.float32)
        self.graph.constants[name] = value
        self.graph.shapes[name] = shape
        return name


def _pair(value: int | Pair) -> Pair:
    return (value, value) if isinstance(value, int) else value


def seeded_normal(seed: int, name: str, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers (fp32) that depend on the seed and the tensor's name only."""
    return _generator(seed, name).standard_normal(shape, dtype=np.float32)


def seeded_whole(seed: int, name: str, shape: tuple[int, ...], count: int) -> Array:
    """Whole numbers (fp32) from 0 to below `count`, each as likely, that depend on the seed and the name only."""
    return _generator(seed, name).integers(count, size=shape).astype(np.float32)


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng((seed, crc32(name.encode())))
