"""softmax(scale * q k) v as one node, whose operands are read where they lie, behind reshapes, transpositions, slices.

`attention`: inputs q, k, v, which may be one tensor; attributes `sizes` (batch, heads, rows, keys, depth, columns),
`scale`, and for each of `q`, `k`, `v` and the result `out` where its elements are: (first, of a batch, of a head, of a
row), in elements; those of a row lie side by side. On a GPU a fourth input may be added to the scores: a constant
(batches, heads, rows, keys in whole vectors), of which batch b takes number b modulo batches. `attend_windows` adds a
fifth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.ir.taking import split_table

from .fuse_maps import expression_of, number_of
from .prune import prune
from .rewrite import fresh, producers, rebuilt, use_counts

_MOST_DEEP = 64
"""Numbers of a row of q, and of v, at most: a work-group has 64 rows of k in local memory."""
ATTENTION_LOCAL_BYTES = 27 << 10
"""Local memory that its kernel takes then (`kernels/lower/gpu/rows/attention.py`)."""

_Axis = tuple[tuple[int, int], ...]
"""An axis that is made of several: extents and strides, the outermost first."""


@dataclass(frozen=True)
class _Seen:
    """A tensor as a strided look at another one, times a number."""

    base: str
    start: int
    axes: tuple[_Axis, ...]
    factor: float = 1.0


def fuse_attention(graph: Graph, *, biased: bool = False) -> Graph:
    """One node for each softmax between two products, where nobody else reads the scores.

    `biased`: the backend adds constants to the scores.
    """
    counts, writers = use_counts(graph), producers(graph)
    found: dict[str, Node] = {}
    gone: set[str] = set()
    constants: dict[str, Array] = {}
    for node in graph.nodes:
        if node.op != "softmax" or node.attributes["axis"] != len(graph.shapes[node.output]) - 1:
            continue
        for product in graph.consumers(node.output) if counts[node.output] == 1 else []:
            scores, bias = _unbiased(graph, node.inputs[0], counts, writers)
            if bias is not None and not biased:
                continue
            fused = _attention(graph, node, scores, product, counts, writers)
            if fused is not None and bias is not None:
                name = fresh(graph, f"{product.output}.bias")
                constants[name] = _in_vectors(bias, fused.attributes["sizes"])
                fused = replace(fused, inputs=(*fused.inputs, name))
            if fused is not None:
                found[product.output] = fused
                gone |= {node.output}
    if not found:
        return graph
    nodes = [found.get(node.output, node) for node in graph.nodes if node.output not in gone]
    graph = rebuilt(graph, nodes, constants=constants)
    for name in [node.output for node in found.values()]:
        graph = _written_turned(graph, name)
    return prune(_rows_in_order(prune(graph)))


def _attention(
    graph: Graph, softmax: Node, scores: str, product: Node, counts: Counter[str], writers: Mapping[str, Node]
) -> Node | None:
    if product.op != "matmul" or product.inputs[0] != softmax.output or product.inputs[1] == softmax.output:
        return None
    scores, factor = _unscaled(graph, scores, counts, writers)
    first = writers.get(scores)
    if first is None or first.op != "matmul" or counts[scores] != 1:
        return None
    shape = graph.shapes[product.output]
    if graph.shapes[first.output] != graph.shapes[softmax.output]:
        return None
    q, k, v = (_seen(graph, name, writers) for name in (*first.inputs, product.inputs[1]))
    lead = shape[:-2]
    q_shape, k_shape, v_shape = (graph.shapes[name] for name in (*first.inputs, product.inputs[1]))
    if any(each[:-2] != lead for each in (q_shape, k_shape, v_shape)):
        return None
    k = replace(k, axes=(*k.axes[:-2], k.axes[-1], k.axes[-2]))
    places = [_place(each) for each in (q, k, v)]
    depth, columns = q_shape[-1], v_shape[-1]
    if None in places or depth % 4 or columns % 4 or max(depth, columns) > _MOST_DEEP:
        return None
    batch, heads = prod(lead[:-1]), (1, *lead)[-1]
    out = (0, heads * shape[-2] * columns, shape[-2] * columns, columns)
    sizes = (batch, heads, q_shape[-2], k_shape[-1], depth, columns)
    attributes = {"sizes": sizes, "scale": factor * q.factor * k.factor, "out": out}
    attributes |= dict(zip("qkv", places, strict=True))
    if v.factor != 1:
        return None
    return Node(product.name, "attention", (q.base, k.base, v.base), product.outputs, attributes)


def _unbiased(
    graph: Graph, name: str, counts: Counter[str], writers: Mapping[str, Node]
) -> tuple[str, Array | None]:
    """The scores before constants are added to them, and the sum of these in the shape of the scores."""
    shape, here = graph.shapes[name], name
    found: tuple[str, Array | None] = (name, None)
    while (node := writers.get(here)) is not None and counts[here] == 1:
        names = [each for each in node.inputs if each not in graph.constants]
        is_sum = expression_of(node) in (("add", "a", "b"), ("add", "b", "a")) and len(names) == 1
        if node.op != "reshape" and not (is_sum and graph.shapes[names[0]] == graph.shapes[here]):
            break
        if is_sum:
            (constant,) = (graph.constants[each] for each in node.inputs if each in graph.constants)
            whole = np.broadcast_to(constant, graph.shapes[here]).reshape(shape)
            found = (names[0], whole if found[1] is None else found[1] + whole)
        here = names[0]
    return found


def _in_vectors(bias: Array, sizes: tuple[int, ...]) -> Array:
    """As few batches as say the same, with rows of whole vectors."""
    batch, heads, rows, keys = sizes[:4]
    bias = bias.reshape(batch, heads, rows, keys)
    period = next(
        each
        for each in range(1, batch + 1)
        if batch % each == 0
        and np.array_equal(bias[:each], bias[-each:])
        and (bias.reshape(batch // each, each, *bias.shape[1:]) == bias[:each]).all()
    )
    return np.pad(bias[:period], ((0, 0), (0, 0), (0, 0), (0, -keys % 4))).astype(np.float32)


def _unscaled(graph: Graph, name: str, counts: Counter[str], writers: Mapping[str, Node]) -> tuple[str, float]:
    """The scores before they are multiplied by a number, and the number."""
    node = writers.get(name)
    by = _multiplied(graph, node) if node is not None and counts[name] == 1 else None
    return (name, 1.0) if by is None else by


def _multiplied(graph: Graph, node: Node) -> tuple[str, float] | None:
    """Of a product with a number, or a quotient by one: the other operand and the factor."""
    names = [name for name in node.inputs if number_of(graph, name) is None]
    numbers = [number for name in node.inputs if (number := number_of(graph, name)) is not None]
    if len(names) != 1 or node.attributes.get("activation") or graph.shapes[names[0]] != graph.shapes[node.output]:
        return None
    if node.op == "mul" and len(numbers) == 1:
        return names[0], numbers[0]
    if node.op != "map":
        return None
    expression = node.attributes["expression"]
    by: dict[str, float | None] = {
        letter: number_of(graph, name) for letter, name in zip("abcd", node.inputs, strict=False)
    }
    match expression:
        case ("mul" | "div" as function, str(left), str(right)) if by[left] is None and by[right]:
            number = float(by[right] or 1)
        case ("mul" | "div" as function, str(left), float(number)) if by[left] is None and number:
            pass
        case ("mul" as function, float(number), str(right)) if by[right] is None:
            pass
        case _:
            return None
    return names[0], 1 / number if function == "div" else number


def _seen(graph: Graph, name: str, writers: Mapping[str, Node]) -> _Seen:
    """The furthest tensor of which this one is a strided look."""
    node = writers.get(name)
    shape = graph.shapes[name]
    here = _Seen(name, 0, tuple(((extent, stride),) for extent, stride in zip(shape, _natural(shape), strict=True)))
    if node is None or name in graph.constants:
        return here
    if node.op in ("mul", "map"):
        by = _multiplied(graph, node)
        if by is None:
            return here
        before = _seen(graph, by[0], writers)
        return replace(before, factor=before.factor * by[1])
    if node.op not in ("reshape", "transpose", "slice", "take") or node.inputs[0] in graph.constants:
        return here
    before = _seen(graph, node.inputs[0], writers)
    if node.op == "take":
        return _taken(graph, node, before) or here
    if node.op == "transpose":
        return replace(before, axes=tuple(before.axes[p] for p in node.attributes["perm"]))
    if node.op == "slice":
        axis, (start, stop) = node.attributes["axis"], (node.attributes["start"], node.attributes["stop"])
        stride = _stride(before.axes[axis])
        if stride is None:
            return here
        axes = tuple(((stop - start, stride),) if at == axis else each for at, each in enumerate(before.axes))
        return replace(before, axes=axes, start=before.start + start * stride)
    axes_found = _reshaped(before.axes, shape)
    return here if axes_found is None else replace(before, axes=axes_found)


def _taken(graph: Graph, node: Node, before: _Seen) -> _Seen | None:
    """A look at all of a tensor by strides alone; None where tables say which elements are taken."""
    whole = _reshaped(before.axes, (prod(graph.shapes[node.inputs[0]]),))
    table = graph.constants[node.inputs[1]]
    if whole is None or _stride(whole[0]) != 1 or np.any(table < 0):
        return None
    found, start = list[_Axis](), before.start
    for extent, stride, part in zip(
        node.attributes["shape"], node.attributes["strides"], split_table(table, node.attributes["shape"]), strict=True
    ):
        steps = np.diff(part)
        if np.any(steps != steps[:1]):
            return None
        start += int(part[0]) * stride
        found.append(((extent, int(steps[0]) * stride if extent > 1 else 0),))
    return replace(before, axes=tuple(found), start=start)


def _natural(shape: Shape) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _reshaped(axes: Sequence[_Axis], wanted: Shape) -> tuple[_Axis, ...] | None:
    """The same elements by other axes; None where one of them would have to be divided unevenly."""
    rest = [part for axis in axes for part in axis if part[0] > 1]
    out: list[_Axis] = []
    for size in reversed(wanted):
        parts: list[tuple[int, int]] = []
        while size > 1:
            extent, stride = rest.pop()
            taken = min(size, extent)
            if size % taken or extent % taken:
                return None
            if extent > taken:
                rest.append((extent // taken, stride * taken))
            parts.append((taken, stride))
            size //= taken
        out.append(tuple(reversed(parts)))
    return tuple(reversed(out))


def _stride(axis: _Axis) -> int | None:
    """Of an axis whose parts follow on each other; 0 where it has one element."""
    parts = [part for part in axis if part[0] > 1]
    follow = all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(parts))
    return (parts[-1][1] if parts else 0) if follow else None


def _place(seen: _Seen) -> tuple[int, int, int, int] | None:
    """Where rows of four axes are; None where vectors of four do not lie side by side."""
    *lead, head, row, column = ((((1, 0),),) * 4 + seen.axes)[-max(len(seen.axes), 4) :]
    strides = [_stride(axis) for axis in (tuple(part for axis in lead for part in axis), head, row, column)]
    if strides[-1] != 1:
        return None
    place = [seen.start, *strides[:-1]]
    found = tuple(number for number in place if number is not None and number % 4 == 0)
    return (found[0], found[1], found[2], found[3]) if len(found) == 4 else None


def _written_turned(graph: Graph, name: str) -> Graph:
    """A transposition that alone reads an attention's result: the attention writes it."""
    node = next(each for each in graph.nodes if each.output == name)
    readers = graph.consumers(name)
    shape = graph.shapes[name]
    if len(readers) != 1 or readers[0].op != "transpose" or name in graph.outputs or len(shape) != 4:
        return graph
    turn, perm = readers[0], readers[0].attributes["perm"]
    if perm[3] != 3 or node.attributes["out"][1:] != _natural(shape)[:3]:
        return graph
    strides = _natural(graph.shapes[turn.output])
    out = (0, *(strides[perm.index(axis)] for axis in range(3)))
    new = replace(node, outputs=turn.outputs, attributes={**node.attributes, "out": out})
    return rebuilt(graph, [new if each is node else each for each in graph.nodes if each is not turn])


def _rows_in_order(graph: Graph) -> Graph:
    """Where rows are transposed before the layer that makes q, k and v, and back behind the one that follows: not so.

    Both layers compute each row by itself. An exporter puts the places of a sequence before its batch.
    """
    for node in [each for each in graph.nodes if each.op == "attention"]:
        graph = _in_order_before(graph, node)
    for name in [each.output for each in graph.nodes if each.op == "attention"]:
        graph = _in_order_behind(graph, name)
    return graph


def _in_order_before(graph: Graph, node: Node) -> Graph:
    writers = producers(graph)
    chain = _row_by_row(graph, node.inputs[0], writers)
    if len(set(node.inputs[:3])) != 1 or chain is None or graph.consumers(node.inputs[0]) != [node]:
        return graph
    turn = chain
    rows, batch = graph.shapes[turn.output][:2]
    columns = graph.shapes[node.inputs[0]][-1]
    places = {}
    for word in "qkv":
        first, *strides = node.attributes[word]
        if strides[0] != columns or strides[2] != batch * columns or first >= columns or strides[1] >= columns:
            return graph
        places[word] = (first, rows * columns, strides[1], columns)
    if node.attributes["sizes"][0] != batch or node.attributes["sizes"][2] != rows:
        return graph
    flat = Node(turn.name, "reshape", turn.inputs, turn.outputs, {"shape": graph.shapes[turn.output]})
    replaced = {turn.output: flat, node.output: replace(node, attributes={**node.attributes, **places})}
    return rebuilt(graph, [replaced.get(each.output, each) for each in graph.nodes])


def _row_by_row(graph: Graph, name: str, writers: Mapping[str, Node]) -> Node | None:
    """The transposition of the first two of three axes from which a tensor is computed row by row."""
    is_first = True
    while (node := writers.get(name)) is not None:
        last = graph.shapes[node.inputs[0]][-1]
        by_row = node.op == "dense" or (node.op in ("add", "reshape") and graph.shapes[node.output][-1] == last)
        if node.op == "transpose" and node.attributes["perm"] == (1, 0, 2):
            return node if len(graph.consumers(node.output)) == 1 else None
        if not by_row or (not is_first and len(graph.consumers(node.output)) != 1):
            return None
        if node.op == "add" and not _is_by_column(graph, node):
            return None
        is_first, name = False, node.inputs[0]
    return None


def _is_by_column(graph: Graph, node: Node) -> bool:
    constant = graph.constants.get(node.inputs[1])
    return constant is not None and constant.size in (1, constant.shape[-1] if constant.ndim else 1)


def _in_order_behind(graph: Graph, name: str) -> Graph:
    node = next(each for each in graph.nodes if each.output == name)
    batch, heads, rows, _, _, columns = node.attributes["sizes"]
    if node.attributes["out"] != (0, heads * columns, columns, batch * heads * columns):
        return graph
    readers, tensor, turn = graph.consumers(name), name, None
    while len(readers) == 1 and tensor not in graph.outputs:
        reader = readers[0]
        if reader.op == "transpose" and reader.attributes["perm"] == (1, 0, 2):
            turn = reader if graph.shapes[tensor][:2] == (rows, batch) else None
            break
        shape, then = graph.shapes[tensor], graph.shapes[reader.output]
        flat = reader.op == "reshape" and prod(then[:-1]) == rows * batch
        dense = reader.op == "dense" and shape[0] == rows * batch
        if not flat and not dense and (reader.op != "add" or not _is_by_column(graph, reader)):
            break
        tensor, readers = reader.output, graph.consumers(reader.output)
    if turn is None:
        return graph
    out = (0, rows * heads * columns, columns, heads * columns)
    flat_node = Node(turn.name, "reshape", turn.inputs, turn.outputs, {"shape": graph.shapes[turn.output]})
    replaced = {name: replace(node, attributes={**node.attributes, "out": out}), turn.output: flat_node}
    return rebuilt(graph, [replaced.get(each.output, each) for each in graph.nodes])
