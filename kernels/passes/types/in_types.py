"""Write out where a graph's numbers change their type, so that each operation finds its operands in one that it has.

Backends move, add up and sort whole numbers as they are; all other operations compute in fp32. A node that gives
another type than it computes in gets a map behind it that converts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from kernels.ir.activations import ACTIVATIONS, expression_of
from kernels.ir.cache import CACHED
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.programs import WRAPS, Held, held, program_type
from kernels.ir.taking import NOTHING, joined
from kernels.ir.types import ElementType, is_whole, output_type, to_numpy
from kernels.passes.rewrite import fresh, rebuilt

_MOVES = ("take", "reshape", "transpose", "slice", "gather")
"""Operations that move the elements of their first operand."""
Wanted = Held | Literal["places"] | None
"""The type that an operand is to have: places are whole numbers of any width; None: anything."""
_BY_ELEMENT = frozenset({"add", "mul", *ACTIVATIONS})


def in_types(graph: Graph, *, on_gpu: bool = False) -> Graph:
    """Return the graph with all changes of type between maps, or in one. Ports keep their types.

    `on_gpu`: floats are gathered by places in fp32, too, and boxes are chosen in 32 bits, too.
    """
    typing = _Typing(graph, on_gpu)
    for node in graph.nodes:
        typing.add(node)
    nodes = [_saying_its_type(node, typing.graph.types) for node in typing.nodes]
    return rebuilt(typing.graph, nodes, constants=typing.constants)


def _saying_its_type(node: Node, types: Mapping[str, ElementType]) -> Node:
    """Return the node with the whole numbers' type that it gives, where its operands do not show it: a pass may write
    the same to a tensor of another name."""
    kind, shown = types[node.output], output_type(node, types)
    is_shown = kind == shown or not (is_whole(kind) or is_whole(shown))
    return node if is_shown else replace(node, attributes={**node.attributes, "type": kind})


def _gives_places(node: Node) -> bool:
    if node.op == "reduce":
        return "arg" in node.attributes["kind"]
    return node.op == "suppress" or (node.op == "sort" and node.attributes["gives"] == "places")


class _Typing:
    def __init__(self, graph: Graph, on_gpu: bool) -> None:
        self.on_gpu = on_gpu
        self.place: Held = "i32" if on_gpu else "i64"
        """The type of places that are computed, and of which nothing else says it."""
        self.graph = replace(graph, shapes=dict(graph.shapes), types=dict(graph.types))
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.cast: dict[tuple[str, Held], str] = {}

    def add(self, node: Node) -> None:
        kinds = [self.graph.types[name] for name in (*node.inputs, *node.outputs) if name]
        expression = expression_of(node) if node.op in _BY_ELEMENT else None
        if expression is not None and any(held(kind) != "f32" for kind in kinds):
            node = replace(node, op="map", attributes={"expression": expression})
        kind = self.graph.types[node.output]
        if node.op == "pad" and held(kind) != "f32":
            node = self.as_take(node)
        if node.op == "dense" and held(kind) != "f32" and all(map(self._is_whole, node.inputs)):
            node = self.without_bias(node)
        if node.op == "map":
            self.end(node, held(kind))
            return
        operands, result = self.types_of(node, held(kind))
        if node.op in (*_MOVES, "concat") and kind in WRAPS:
            moved = len(node.inputs) if node.op == "concat" else 1
            names = (self.last_bits(name, kind) for name in node.inputs[:moved])
            node = replace(node, inputs=(*names, *node.inputs[moved:]))
        inputs = (self.read(name, wanted) for name, wanted in zip(node.inputs, operands, strict=True))
        self.end(replace(node, inputs=tuple(inputs)), result)

    def as_take(self, node: Node) -> Node:
        """Return a padding of images as a choice of their elements, which any type has."""
        a, shape = node.attributes, self.graph.shapes[node.inputs[0]]
        (top, left, bottom, right), fill = a["pads"], {"constant_values": NOTHING} if a["mode"] == "constant" else {}
        widths = ((0, 0), (0, 0), (top, bottom), (left, right))
        axes = zip(shape, widths, strict=True)
        parts = [np.pad(np.arange(extent, dtype=np.float32), width, a["mode"], **fill) for extent, width in axes]
        table = fresh(self.graph, f"{node.output}.table")
        self.constants[table], self.graph.types[table] = joined(parts), "f32"
        self.graph.shapes[table] = self.constants[table].shape
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        attributes = {"shape": self.graph.shapes[node.output], "strides": strides, "value": a["value"]}
        return replace(node, op="take", inputs=(node.inputs[0], table), attributes=attributes)

    def without_bias(self, node: Node) -> Node:
        """Append the product; returns the sum with its bias, if there is one."""
        product = replace(node, op="matmul", inputs=node.inputs[:2], attributes={})
        if len(node.inputs) < 3:
            return product
        source = self.new(f"{node.output}:product", node.output, self.graph.types[node.output])
        self.add(replace(product, outputs=(source,)))
        return replace(node, op="map", inputs=(source, node.inputs[2]), attributes={"expression": ("add", "a", "b")})

    def types_of(self, node: Node, own: Held) -> tuple[list[Wanted], Held]:
        """Return the types in which a node takes its operands (None: as they are) and gives its result."""
        others: list[Wanted] = [None] * (len(node.inputs) - 1)
        whole = self.place if own == "f32" else own
        if _gives_places(node) and node.op != "suppress":
            return [None], whole
        if node.op == "gather":
            in_f32 = self.on_gpu and own == held(self.graph.types[node.inputs[1]]) == "f32"
            return [own, None if in_f32 else "places"], own
        if node.op == "put_rows":
            return [own, own, "places"], own
        if node.op in _MOVES:
            return [own, *others], own
        if node.op == "concat":
            return [own] * len(node.inputs), own
        if node.op == "suppress":
            return ["f32", "places", "places"], whole if self.on_gpu else "i64"
        if node.op in CACHED:
            return ["places" if i == 2 + (node.op == "attend") else "f32" for i in range(len(node.inputs))], "f32"
        if node.op == "matmul" and own != "f32" and all(map(self._is_whole, node.inputs)):
            return [own, own], own
        if node.op in ("reduce", "sort") and node.attributes.get("kind") != "mean" and self._is_whole(node.inputs[0]):
            return [own], own
        return ["f32"] * len(node.inputs), "f32"

    def _is_whole(self, name: str) -> bool:
        kind = self.graph.types[name]
        return held(kind) != "f32" or kind == "bool"

    def read(self, name: str, wanted: Wanted) -> str:
        """Return an operand in a type."""
        own = held(self.graph.types[name]) if name else None
        if wanted == "places":
            wanted = self.place if own == "f32" else own
        if wanted is None or own in (wanted, None):
            return name
        if (name, wanted) not in self.cast:
            target = self.new(f"{name}:{wanted}", name, wanted)
            self.cast[name, wanted] = target
            if name in self.graph.constants:
                self.constants[target] = self.graph.constants[name].astype(to_numpy(wanted))
            else:
                self.nodes.append(Node(target, "map", (name,), (target,), {"expression": "a"}))
        return self.cast[name, wanted]

    def last_bits(self, name: str, kind: ElementType) -> str:
        """Return whole numbers as a narrow type holds them."""
        own = self.graph.types[name]
        if not is_whole(own) or own == "bool" or np.can_cast(to_numpy(own), to_numpy(kind)):
            return name
        target = self.new(f"{name}:{kind}", name, kind)
        self.nodes.append(Node(target, "map", (name,), (target,), {"expression": "a"}))
        return target

    def new(self, name: str, like: str, kind: ElementType) -> str:
        target = fresh(self.graph, name)
        self.graph.shapes[target], self.graph.types[target] = self.graph.shapes[like], kind
        return target

    def end(self, node: Node, result: Held) -> None:
        """Append a node that gives numbers held so; others of its output's type follow from them."""
        name = node.output
        kind = self.graph.types[name]
        cut = node.op == "map" and kind == "u32" and program_type(node, self.graph.types) == "f32"
        narrow = cut or (node.op in ("reduce", "matmul") and kind in WRAPS)
        if held(kind) == result and not narrow:
            self.nodes.append(node)
            return
        source = self.new(f"{name}:{result}", name, result)
        self.nodes.append(replace(node, outputs=(source, *node.outputs[1:])))
        self.nodes.append(Node(node.name, "map", (source,), (name,), {"expression": "a"}))
