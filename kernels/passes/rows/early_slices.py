"""Take the rows that a network reads before what computes each row by itself: of the last layer of a classifying
transformer one row a picture is read, and the others need no product.

A slice moves in front of element-wise nodes, normalisations of rows, dense layers, transpositions and reshapes, and in
front of attention, of which it takes queries. It moves while all that reads a tensor is the same slice.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import prod

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, once, prune, rebuilt

_ELEMENTWISE = {*ACTIVATIONS, "add", "mul", "map"}
_KEPT = 0.5
"""The largest share of an axis: of more rows copies would cost what they save."""


def early_slices(graph: Graph) -> Graph:
    """The same results; what they do not need is not computed."""
    moved: Graph | None = graph
    while moved is not None and any(_is_small(moved, node) for node in moved.nodes):
        graph = prune(once(moved, ("slice", "reshape")))
        moved = _Move(graph).moved()
    return graph if moved is None else moved


def _is_small(graph: Graph, node: Node) -> bool:
    """Return whether a node takes few of several rows."""
    if node.op != "slice":
        return False
    shape, axis = graph.shapes[node.inputs[0]], node.attributes["axis"]
    kept = node.attributes["stop"] - node.attributes["start"]
    return bool(axis < len(shape) - 1 and kept <= _KEPT * shape[axis])


class _Move:
    """One step of every slice that can take one."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._writers = graph, producers(graph)
        self._readers: dict[str, int] = defaultdict(int)
        for name in (*graph.outputs, *(name for node in graph.nodes for name in node.inputs)):
            self._readers[name] += 1
        self._new: list[Node] = []
        self._shapes: dict[str, Shape] = {}
        self._constants: dict[str, Array] = {}

    def moved(self) -> Graph | None:
        """None where none can."""
        nodes, is_moved = list[Node](), False
        for node in self._graph.nodes:
            self._new = []
            last = self._before(node) if _is_small(self._graph, node) else None
            nodes += [node] if last is None else [*self._new, last]
            is_moved = is_moved or last is not None
        return rebuilt(self._graph, nodes, constants=self._constants, shapes=self._shapes) if is_moved else None

    def _before(self, cut: Node) -> Node | None:
        """Compute the slice's result from slices of what was before it, which are in `_new`."""
        node = self._writers.get(cut.inputs[0])
        if node is None:
            return None
        if node.op == "reshape":
            return self._through_reshape(cut, node)
        if self._readers[node.output] > 1:
            return None
        if node.op in _ELEMENTWISE:
            inputs = tuple(self._operand(cut, name) for name in node.inputs)
        elif node.op == "row_norm":
            axis = cut.attributes["axis"]
            added = (self._cut(name, cut, axis) for name in node.inputs[3:])
            inputs = (self._cut(node.inputs[0], cut, axis), *node.inputs[1:3], *added)
        elif node.op == "transpose":
            inputs = (self._cut(node.inputs[0], cut, node.attributes["perm"][cut.attributes["axis"]]),)
        elif node.op == "dense" and "own_range" not in node.attributes:
            x, *constants = node.inputs[:3]
            inputs = (self._cut(x, cut, 0), *constants, *(self._cut(name, cut, 0) for name in node.inputs[3:]))
        else:
            return None
        return replace(node, inputs=inputs, outputs=cut.outputs)

    def _through_reshape(self, cut: Node, reshape: Node) -> Node | None:
        source, shape, axis = reshape.inputs[0], self._shape(reshape.output), cut.attributes["axis"]
        before = self._shape(source)
        for at, extent in enumerate(before[:-1]):
            if prod(before[:at]) == prod(shape[:axis]) and extent == shape[axis]:
                return self._reshaped(self._cut(source, cut, at), cut.outputs)
        node = self._writers.get(source)
        if node is None:
            return None
        if node.op == "reshape":
            whole = self._add(replace(reshape, inputs=node.inputs), shape)
            return replace(cut, inputs=(whole,))
        if self._readers[source] > 1 or self._readers[reshape.output] > 1:
            return None
        if node.op in _ELEMENTWISE and len(node.inputs) == 1:
            whole = self._add(replace(reshape, inputs=node.inputs), shape)
            return replace(node, inputs=(self._cut(whole, cut, axis),), outputs=cut.outputs)
        if node.op == "dense" and before[-1:] == shape[-1:] and "own_range" not in node.attributes:
            return self._dense(cut, node, shape)
        return self._attention(cut, node, shape) if node.op == "attention" else None

    def _dense(self, cut: Node, node: Node, shape: Shape) -> Node:
        """Compute the rows that the slice takes of (..., columns)."""
        inputs = list(node.inputs)
        for at in (0, 3) if len(inputs) > 3 else (0,):
            wide = (*shape[:-1], self._shape(inputs[at])[-1])
            whole = self._add(Node(node.name, "reshape", (inputs[at],), (), {"shape": wide}), wide)
            part = self._cut(whole, cut, cut.attributes["axis"])
            flat = (prod(self._shape(part)[:-1]), wide[-1])
            inputs[at] = self._add(Node(node.name, "reshape", (part,), (), {"shape": flat}), flat)
        rows = (self._shape(inputs[0])[0], shape[-1])
        return self._reshaped(self._add(replace(node, inputs=tuple(inputs)), rows), cut.outputs)

    def _attention(self, cut: Node, node: Node, shape: Shape) -> Node | None:
        """Attend from fewer queries, where the result lies as (batch, rows, columns of all heads); not with biases or
        masks."""
        if len(node.inputs) > 3:
            return None
        batch, heads, rows, keys, depth, columns = node.attributes["sizes"]
        width, a, out = heads * columns, cut.attributes, node.attributes["out"]
        lies = (0, *((rows * width,) if batch > 1 else out[1:2]), *((columns,) if heads > 1 else out[2:3]), width)
        is_viewed = (prod(shape[:-2]), *shape[-2:]) == (batch, rows, width) and a["axis"] == len(shape) - 2
        if not is_viewed or out != lies:
            return None
        count, (start, *strides) = a["stop"] - a["start"], node.attributes["q"]
        changed = {
            "sizes": (batch, heads, count, keys, depth, columns), "q": (start + a["start"] * strides[-1], *strides),
            "out": (0, count * width, columns, width),
        }  # fmt: skip
        return replace(node, outputs=cut.outputs, attributes={**node.attributes, **changed})

    def _operand(self, cut: Node, name: str) -> str:
        """Cut an operand of an element-wise node, which may have fewer axes, or one element along the slice's."""
        shape, a = self._shape(name), cut.attributes
        axis = a["axis"] - (len(self._shape(cut.inputs[0])) - len(shape))
        if axis < 0 or shape[axis] == 1:
            return name
        if name not in self._graph.constants:
            return self._cut(name, cut, axis)
        new = self._fresh(f"{name}.part")
        part = self._graph.constants[name].take(range(a["start"], a["stop"]), axis)
        self._constants[new], self._shapes[new] = part, part.shape
        return new

    def _cut(self, name: str, cut: Node, axis: int) -> str:
        shape, a = list(self._shape(name)), cut.attributes
        shape[axis] = a["stop"] - a["start"]
        return self._add(replace(cut, inputs=(name,), attributes={**a, "axis": axis}), tuple(shape))

    def _reshaped(self, name: str, outputs: tuple[str, ...]) -> Node:
        return Node(outputs[0], "reshape", (name,), outputs, {"shape": self._shape(outputs[0])})

    def _add(self, node: Node, shape: Shape) -> str:
        """The result of a new node."""
        name = self._fresh(f"{node.inputs[0]}.part")
        self._shapes[name] = shape
        self._new.append(replace(node, outputs=(name,)))
        return name

    def _fresh(self, base: str) -> str:
        name = fresh(self._graph, base)
        while name in self._shapes:
            name += "_"
        return name

    def _shape(self, name: str) -> Shape:
        return self._shapes[name] if name in self._shapes else self._graph.shapes[name]
