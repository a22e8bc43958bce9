"""Products of whole numbers of 8 bits that are multiplied by the scales of both factors become layers in 8 bits, whose
weights are in floating point: of an input by the scale and zero that it was rounded to, or by its own range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.compositions import ROUNDED
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.types import ElementType, is_whole
from kernels.lower.cpu.algorithms import fits_int8
from kernels.lower.cpu.packing import MOST_WITH_OFFSETS
from kernels.options import Options
from kernels.passes.rewrite import fresh, prune, rebuilt

from .pairs import Input, counted, is_own_range

Array = npt.NDArray[Any]
_LEVELS = 255
_LEAST_SCALE = 1e-30
"""A scale above which fp32 holds 255 times it without loss."""
_LOW: Mapping[ElementType, float] = {"i8": -128.0, "u8": 0.0}


def float_products(graph: Graph, options: Options) -> Graph:
    """Return the graph with such layers, which only the CPU backend has in every precision."""
    products = _Products(graph, options)
    for node in graph.nodes:
        products.add(node)
    return prune(rebuilt(products.graph, products.nodes)) if products.found else graph


class _Products:
    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph = replace(graph, shapes=dict(graph.shapes), constants=dict(graph.constants), types=dict(graph.types))
        self.options, self.by, self.nodes, self.found = options, producers(graph), list[Node](), False

    def add(self, node: Node) -> None:
        """Append a node, or the layer that ends in it."""
        for name, factor in _both_ways(node) if self.graph.types[node.output] == "f32" else ():
            product = self.by.get(counted(self.by, name)) if isinstance(name, str) else None
            if product is None or product.op not in ("conv", "dense") or not is_whole(self.graph.types[product.output]):
                continue
            if (layer := self.layer(node, product, factor)) is not None:
                shape = {"shape": self.graph.shapes[node.output]}
                self.nodes += [layer, Node(node.name, "reshape", layer.outputs, node.outputs, shape)]
                self.found = True
                return
        self.nodes.append(node)

    def layer(self, end: Node, product: Node, factor: str | float) -> Node | None:
        """Return the layer whose result `end` scales, if there is one."""
        known = [self.graph.constants[name] for name in product.inputs[1:] if name in self.graph.constants]
        source, scale = self.rounding(product.inputs[0]), None
        if source is not None and len(known) == len(product.inputs) - 1 < 2 + (source.steps is not None):
            scale = self.by_channel(end, product, self.scale_of(factor, source))
        if source is None or scale is None:
            return None
        axes = (1, -1) if product.op == "dense" else (-1, 1, 1, 1)
        names = [self.stored(f"{product.output}.weight", known[0] * scale.reshape(axes))]
        if len(known) > 1:
            names.append(self.stored(f"{product.output}.bias", known[1] * scale * (source.steps or (1.0,))[0]))
        attributes = {**product.attributes, **source.attributes}
        name = self.shaped(source.name, self.graph.shapes[product.inputs[0]])
        target = self.new(f"{product.output}.real", self.graph.shapes[product.output])
        layer = replace(product, inputs=(name, *names), outputs=(target,), attributes=attributes)
        return layer if _is_small(product, known[0]) and fits_int8(self.options, self.graph, layer) else None

    def rounding(self, x: str) -> Input | None:
        """Return what was rounded to the whole numbers of a factor, and how."""
        name = counted(self.by, x)
        zero: str | float = 0.0
        node = self.by.get(name)
        if node is not None and node.op == "map" and node.attributes["expression"][0] == "sub":
            _, _, by = node.attributes["expression"]
            zero = counted(self.by, node.inputs[1]) if by == "b" else by
            name = counted(self.by, node.inputs[0])
        low, node = _LOW.get(self.graph.types[name]), self.by.get(name)
        if low is None:
            return None
        if node is not None and node.op == "map":
            match node.attributes["expression"]:
                case ("min", ("max", ("add", ("round", ("div", "a", float(scale))), float(at)), float(_)), float(_)):
                    if at == zero and scale > 0:
                        return Input(node.inputs[0], (scale, int(at - low)))
                case expression if expression == ROUNDED and counted(self.by, node.inputs[2]) == zero:
                    if is_own_range(self.graph, self.by, *node.inputs):
                        return Input(node.inputs[0], None, counted(self.by, node.inputs[1]))
        return Input(x, (1.0, int(zero - low))) if not isinstance(zero, str) else None

    def scale_of(self, factor: str | float, source: Input) -> Array | None:
        """Return the scale of the weights: the factor without the input's scale."""
        if source.steps is not None:
            number = self.number(factor)
            return None if number is None else number / source.steps[0]
        name = counted(self.by, factor) if isinstance(factor, str) else ""
        if name == source.scale:
            return np.ones(())
        for one, other in _both_ways(self.by[name]) if name in self.by else ():
            if isinstance(one, str) and counted(self.by, one) == source.scale:
                return self.number(other)
        return None

    def by_channel(self, end: Node, product: Node, scale: Array | None) -> Array | None:
        """Return a scale for each channel of a product; None where it is not one, or is no number above 0."""
        shape = self.graph.shapes[end.output]
        axis = len(shape) - 1 if product.op == "dense" else 1
        channels = self.graph.shapes[product.output][1]
        if (
            scale is None
            or not np.all((scale > _LEAST_SCALE) & np.isfinite(scale))
            or shape[axis : axis + 1] != (channels,)
        ):
            return None
        aligned = scale.reshape((1,) * (len(shape) - scale.ndim) + scale.shape)
        return np.broadcast_to(aligned.reshape(-1), channels) if aligned.size in (1, aligned.shape[axis]) else None

    def number(self, operand: str | float) -> Array | None:
        known = self.graph.constants.get(operand) if isinstance(operand, str) else np.asarray(operand)
        return None if known is None else np.asarray(known, np.float64)

    def shaped(self, name: str, shape: tuple[int, ...]) -> str:
        """Return a tensor in a shape."""
        if self.graph.shapes[name] == shape:
            return name
        target = self.new(f"{name}.rows", shape, self.graph.types[name])
        self.nodes.append(Node(target, "reshape", (name,), (target,), {"shape": shape}))
        return target

    def stored(self, name: str, array: Array) -> str:
        single = np.asarray(array, np.float32)
        target = self.new(name, single.shape)
        self.graph.constants[target] = single
        return target

    def new(self, base: str, shape: tuple[int, ...], kind: ElementType = "f32") -> str:
        target = fresh(self.graph, base)
        self.graph.shapes[target], self.graph.types[target] = shape, kind
        return target


def _is_small(product: Node, weight: Array) -> bool:
    """Return whether whole numbers of each output lie within 8 bits, or within an offset of them."""
    rows = weight.T if product.op == "dense" else weight.reshape(len(weight), -1)
    low, high = rows.min(axis=1, initial=0), rows.max(axis=1, initial=0)
    with_offset = (high - low <= _LEVELS) & (rows.shape[1] <= MOST_WITH_OFFSETS)
    return bool(np.all(((low >= -128) & (high <= 127)) | with_offset))


def _both_ways(node: Node) -> list[tuple[str | float, str | float]]:
    """Return both factors of a product of elements, in either order."""
    if node.op == "mul" and "activation" not in node.attributes:
        a, b = node.inputs
        return [(a, b), (b, a)]
    match node.attributes.get("expression"):
        case ("mul", "a", "b"):
            return [(node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])]
        case ("mul", "a", float(number)):
            return [(node.inputs[0], number)]
        case _:
            return []
