"""Layers side by side that read one tensor, and whose results are added or subtracted, are one layer.

A convolution is linear in its weights: W x + V x = (W + V) x. Networks are trained in such branches (RepVGG, MobileOne,
FastViT), and each file has them still. A normalisation of the same tensor is a branch of one tap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from kernels.ir.activations import expression_of
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import use_counts
from kernels.ir.programs import in_floats
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, rebuilt

Wide = npt.NDArray[np.float64]
_SIGNS = {("add", "a", "b"): (1, 1), ("add", "b", "a"): (1, 1), ("sub", "a", "b"): (1, -1), ("sub", "b", "a"): (-1, 1)}


@dataclass(frozen=True)
class _Axis:
    """The taps of a window along one axis: the first one's place, and the distance of the others; pads behind."""

    first: int
    gap: int
    taps: int
    after: int

    @property
    def last(self) -> int:
        return self.first + (self.taps - 1) * self.gap


@dataclass(frozen=True)
class _Branch:
    """A linear layer: `weights` (K, C / groups, kh, kw)."""

    weights: Wide
    bias: Wide
    groups: int
    strides: tuple[int, ...]
    axes: tuple[_Axis, ...]

    @property
    def work(self) -> int:
        """Products of a result."""
        return prod(self.weights.shape[1:])


def join_branches(graph: Graph) -> Graph:
    """Join two layers, and then their sum with a third one, where that takes no more products than they do apart."""
    counts, nodes = use_counts(graph), dict[str, Node]()
    known, constants = dict(graph.constants), dict[str, Array]()
    for node in graph.nodes:
        nodes[node.output] = node
        signs = _SIGNS.get(expression) if isinstance(expression := expression_of(node), tuple) else None
        pair = [nodes[name] for name in node.inputs if name in nodes and counts[name] == 1] if signs else []
        if signs is None or len(pair) != 2 or pair[0].inputs[:1] != pair[1].inputs[:1] or not pair[0].inputs:
            continue
        one, other = (_branch(known, each, graph.shapes) for each in pair)
        joined = _joined(one, other, signs) if one and other and in_floats(node, graph.types) else None
        if joined is None:
            continue
        weight, bias = (fresh(graph, f"{node.output}:{name}") for name in ("weights", "bias"))
        constants[weight], constants[bias] = joined.weights.astype(np.float32), joined.bias.astype(np.float32)
        known |= {weight: constants[weight], bias: constants[bias]}
        for name in node.inputs:
            del nodes[name]
        inputs = (pair[0].inputs[0], weight, bias)
        nodes[node.output] = replace(node, op="conv", inputs=inputs, attributes=_attributes(joined))
    return rebuilt(graph, list(nodes.values()), constants=constants) if constants else graph


def _branch(known: Mapping[str, Array], node: Node, shapes: Mapping[str, Shape]) -> _Branch | None:
    """Return the layer that a node is; None where it does more, or is none."""
    a, shape = node.attributes, shapes[node.output]
    if len(shape) != 4 or a.get("activation") or any(name and name not in known for name in node.inputs[1:]):
        return None
    wide = [known[name].astype(np.float64) if name else np.zeros(1) for name in node.inputs[1:]]
    if node.op == "affine":
        weights, bias = wide[0].reshape(-1, 1, 1, 1), wide[1].reshape(-1)
        return _Branch(weights, bias, shape[1], (1, 1), (_Axis(0, 1, 1, 0),) * 2)
    if node.op != "conv" or len(wide) > 2 or "pad_mode" in a or "output_steps" in a or wide[0].dtype.kind != "f":
        return None
    pads, gaps = a.get("pads", (0, 0, 0, 0)), a.get("dilations", (1, 1))
    axes = tuple(_Axis(-pads[i], gaps[i], wide[0].shape[2 + i], pads[2 + i]) for i in (0, 1))
    bias = wide[1] if len(wide) > 1 else np.zeros(1)
    strides = tuple(a.get("strides", (1, 1)))
    return _Branch(wide[0], np.broadcast_to(bias, shape[1:2]), a.get("groups", 1), strides, axes)


def _joined(one: _Branch, other: _Branch, signs: tuple[int, int]) -> _Branch | None:
    """Return the sum of two branches; None where it has more products than they have."""
    if one.strides != other.strides:
        return None
    groups = min(one.groups, other.groups)
    own, its = _in_groups(one, groups), _in_groups(other, groups)
    tall, wide = (_spanned(*pair) for pair in zip(one.axes, other.axes, strict=True))
    if own is None or its is None or tall is None or wide is None:
        return None
    weights: Wide = np.zeros((*own.shape[:2], tall.taps, wide.taps))
    if prod(weights.shape[1:]) > one.work + other.work:
        return None
    for branch, given, sign in ((one, own, signs[0]), (other, its, signs[1])):
        rows, columns = (_places(*pair) for pair in zip(branch.axes, (tall, wide), strict=True))
        weights[:, :, rows, columns] += sign * given
    bias = signs[0] * one.bias + signs[1] * other.bias
    return _Branch(weights, bias, groups, one.strides, (tall, wide))


def _in_groups(branch: _Branch, groups: int) -> Wide | None:
    """Return weights for fewer groups: of a layer whose every result reads one channel, its own."""
    if branch.groups == groups:
        return branch.weights
    if branch.weights.shape[1] != 1 or branch.weights.shape[0] != branch.groups:
        return None
    channels = np.arange(branch.groups)
    wide = np.zeros((branch.groups, branch.groups // groups, *branch.weights.shape[2:]))
    wide[channels, channels % wide.shape[1]] = branch.weights[:, 0]
    return wide


def _spanned(one: _Axis, other: _Axis) -> _Axis | None:
    """Return the taps of both; None where they do not lie in one row of equal distances, or before the pads' end."""
    gap = other.gap if one.taps == 1 else one.gap
    same = other.taps == 1 or other.gap == gap
    first, last = min(one.first, other.first), max(one.last, other.last)
    after = max(one.after - one.last, other.after - other.last) + last
    if not same or (one.first - other.first) % gap or first > 0 or after < 0:
        return None
    return _Axis(first, gap, (last - first) // gap + 1, after)


def _places(axis: _Axis, within: _Axis) -> slice:
    start = (axis.first - within.first) // within.gap
    return slice(start, start + axis.taps)


def _attributes(branch: _Branch) -> dict[str, object]:
    top, left = branch.axes
    return {
        "strides": branch.strides, "dilations": (top.gap, left.gap), "groups": branch.groups,
        "pads": (-top.first, -left.first, top.after, left.after),
    }  # fmt: skip
