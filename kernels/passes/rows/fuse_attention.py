"""softmax(scale * q k) v as one node, whose operands are read where they lie, behind reshapes, transpositions, slices.

`attention`: inputs q, k, v, which may be one tensor; attributes `sizes` (batch, heads, rows, keys, depth, columns),
`scale`, and for each of `q`, `k`, `v` and the result `out` where its elements are: (first, of a batch, of a head, of a
row), in elements; those of a row lie side by side. On a GPU there may be three inputs more, or '' for each: `bias`, a
constant (batches, heads, rows, keys in whole vectors) that is added to the scores, of which batch b takes number b
modulo batches; `places` (`attend_windows`); and `factors`, a constant (heads): rows of q and k are divided by their
lengths, or by the attribute `least` where that is more, and scores multiplied by a head's factor (Swin's second
version).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.passes.rewrite import fresh, prune, rebuilt

from .rows_in_order import rows_in_order
from .strided_looks import look_at, multiplied, natural, place_of, reshaped

MOST_DEEP = 64
"""Numbers of a row of q, and of v, at most: a work-group has 64 rows of k in local memory."""
ATTENTION_LOCAL_BYTES = 27 << 10
"""Local memory that its kernel takes then (`kernels/lower/gpu/rows/attention.py`)."""


def fuse_attention(graph: Graph, *, extended: int = 0) -> Graph:
    """One node for each softmax between two products, where nobody else reads the scores.

    `extended`: the backend adds constants to scores, and divides rows by their lengths, of heads of so many columns.
    """
    counts, writers = use_counts(graph), producers(graph)
    found: dict[str, Node] = {}
    gone: set[str] = set()
    constants: dict[str, Array] = {}
    for node in graph.nodes:
        if node.op != "softmax" or node.attributes["axis"] != len(graph.shapes[node.output]) - 1:
            continue
        for product in _readers_of_weights(graph, node, counts):
            fused = _attention(graph, node, product, counts, writers, constants)
            if fused is not None and (len(fused.inputs) == 3 or fused.attributes["sizes"][-1] <= extended):
                found[product.output] = fused
                gone |= {node.output}
    if not found:
        return graph
    nodes = [found.get(node.output, node) for node in graph.nodes if node.output not in gone]
    graph = rebuilt(graph, nodes, constants=constants)
    for name in [node.output for node in found.values()]:
        graph = _written_turned(graph, name)
    return prune(rows_in_order(prune(graph)))


def _readers_of_weights(graph: Graph, softmax: Node, counts: Counter[str]) -> list[Node]:
    """Products of which only the weights are an operand, perhaps as one batch of heads."""
    name = softmax.output
    readers = graph.consumers(name) if counts[name] == 1 else []
    if len(readers) == 1 and readers[0].op == "reshape":
        name = readers[0].output
        readers = graph.consumers(name) if counts[name] == 1 else []
    return [node for node in readers if node.op == "matmul" and node.inputs[0] == name != node.inputs[1]]


def _attention(
    graph: Graph,
    softmax: Node,
    product: Node,
    counts: Counter[str],
    writers: Mapping[str, Node],
    constants: dict[str, Array],
) -> Node | None:
    shape = graph.shapes[softmax.output]
    name, bias = _unbiased(graph, softmax.inputs[0], counts, writers)
    name, factors = _by_head(graph, name, counts, writers)
    name, factor = _unscaled(graph, name, counts, writers)
    while (reshape := writers.get(name)) is not None and reshape.op == "reshape" and counts[name] == 1:
        name = reshape.inputs[0]
    first = writers.get(name)
    if first is None or first.op != "matmul" or counts[name] != 1 or len(shape) < 2:
        return None
    operands = (*first.inputs, product.inputs[1])
    (rows, depth), columns = graph.shapes[operands[0]][-2:], graph.shapes[operands[2]][-1]
    sides = ((rows, depth), (depth, shape[-1]), (shape[-1], columns))
    if any(prod(graph.shapes[each]) != prod((*shape[:-2], *side)) for each, side in zip(operands, sides, strict=True)):
        return None
    looks = [look_at(graph, each, writers) for each in operands]
    axes = [reshaped(each.axes, (*shape[:-2], *side)) for each, side in zip(looks, sides, strict=True)]
    if axes[0] is None or axes[1] is None or axes[2] is None:
        return None
    axes[1] = (*axes[1][:-2], axes[1][-1], axes[1][-2])
    q, k, v = (replace(look, axes=each) for look, each in zip(looks, axes, strict=True) if each)
    places = [place_of(each) for each in (q, k, v)]
    if None in places or depth % 4 or columns % 4 or max(depth, columns) > MOST_DEEP:
        return None
    batch, heads = prod(shape[:-3]), (1, *shape[:-2])[-1]
    is_unit = q.unit is not None
    if (
        v.factor != 1
        or v.unit
        or q.unit != k.unit
        or (q.unit and q.unit[0] != depth)
        or (factors is not None) > is_unit
    ):
        return None
    sizes = (batch, heads, rows, shape[-1], depth, columns)
    attributes = {
        "sizes": sizes,
        "scale": factor * q.factor * k.factor,
        "out": (0, heads * rows * columns, rows * columns if heads > 1 else columns, columns),
        **dict(zip("qkv", places, strict=True)),
    }
    given: dict[str, Array | None] = {"bias": None if bias is None else _in_vectors(bias, sizes)}
    if q.unit:
        attributes["least"] = q.unit[1]
        given |= {"places": None, "factors": np.ones(heads, np.float32) if factors is None else factors}
    named = {word: fresh(graph, f"{product.output}.{word}") for word, array in given.items() if array is not None}
    constants |= {named[word]: array for word, array in given.items() if array is not None}
    beside = [named.get(word, "") for word in given] if named else []
    return Node(product.name, "attention", (q.base, k.base, v.base, *beside), product.outputs, attributes)


def _by_head(graph: Graph, name: str, counts: Counter[str], writers: Mapping[str, Node]) -> tuple[str, Array | None]:
    """The scores before they are multiplied by a constant of each head, and these."""
    node, shape = writers.get(name), graph.shapes[name]
    if node is None or counts[name] != 1 or len(shape) < 3 or len(node.inputs) != 2:
        return name, None
    x, constant = sorted(node.inputs, key=lambda each: each in graph.constants)
    array = graph.constants.get(constant)
    is_product = expression_of(node) in (("mul", "a", "b"), ("mul", "b", "a"))
    by_head = array is not None and array.shape[-3:] == (shape[-3], 1, 1) and array.size == shape[-3] > 1
    if not is_product or not by_head or array is None or graph.shapes.get(x) != shape:
        return name, None
    return x, array.reshape(-1)


def _unbiased(graph: Graph, name: str, counts: Counter[str], writers: Mapping[str, Node]) -> tuple[str, Array | None]:
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
    """Keep as few batches as say the same, with rows of whole vectors."""
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
    by = multiplied(graph, node) if node is not None and counts[name] == 1 else None
    return (name, 1.0) if by is None else by


def _written_turned(graph: Graph, name: str) -> Graph:
    """A transposition that alone reads an attention's result: the attention writes it."""
    node = next(each for each in graph.nodes if each.output == name)
    batch, heads, rows, _, _, columns = node.attributes["sizes"]
    shape, readers = (batch, heads, rows, columns), graph.consumers(name)
    if len(readers) == 1 and readers[0].op == "reshape" and graph.shapes[readers[0].output] == shape:
        name, readers = readers[0].output, [*readers, *graph.consumers(readers[0].output)]
    if not readers or readers[-1].op != "transpose" or graph.shapes[name] != shape:
        return graph
    if len(graph.consumers(name)) != 1 or {node.output, name} & set(graph.outputs):
        return graph
    turn, perm = readers[-1], readers[-1].attributes["perm"]
    if perm[3] != 3 or node.attributes["out"][1:] != natural(shape)[:3]:
        return graph
    strides = natural(graph.shapes[turn.output])
    out = (0, *(strides[perm.index(axis)] for axis in range(3)))
    new = replace(node, outputs=turn.outputs, attributes={**node.attributes, "out": out})
    gone = [each.output for each in readers]
    return rebuilt(graph, [new if each is node else each for each in graph.nodes if each.output not in gone])
