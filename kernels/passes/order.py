"""The order of the nodes: whatever lowers the peak of what lives at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from kernels.checkpoint import checkpoint
from kernels.graph import Graph, Node
from kernels.lower.aliases import plan_aliases

from .rewrite import producers
from .split_channels import packed_elements

OVERWRITES = frozenset({"relu", "sigmoid", "clip", "leaky_relu", "affine", "instance_norm", "add", "mul"})
"""Operations that can leave their result in the place of an operand."""


def order(graph: Graph) -> Graph:
    """The best of a few orders, the graph's own first where they are equal."""
    return min(
        (replace(graph, nodes=nodes) for nodes in (graph.nodes, *(each(graph) for each in _ORDERS))), key=peak_elements
    )


def peak_elements(graph: Graph) -> int:
    """Elements that live at once at most, inputs and outputs of the graph apart: a lower bound of the arena."""
    changes = [0] * (len(graph.nodes) + 1)
    for size, first, last in _places(graph):
        changes[first] += size
        changes[last + 1] -= size
    peak = now = 0
    for change in changes:
        now += change
        peak = max(peak, now)
    return peak


def _places(graph: Graph) -> list[tuple[int, int, int]]:
    """Size, first and last step of every place in memory: results that overwrite an operand share its place."""
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    homes = {name: parent for name, (parent, _) in plan_aliases(graph, multiple=4).items()}
    places: dict[str, list[int]] = {}
    at: dict[str, str] = {}
    for index, node in enumerate(graph.nodes):
        at[node.output] = _home(graph, node, index, homes, at, places)
        place = places.setdefault(at[node.output], [_size(graph, at[node.output]), index, index])
        place[2] = max(place[2], *(last.get(name, index) for name in (node.output, at[node.output])))
    return [(size, first, end) for size, first, end in places.values()]


def _home(
    graph: Graph, node: Node, index: int, homes: dict[str, str], at: dict[str, str], places: dict[str, list[int]]
) -> str:
    """The tensor in whose place a node's output lies."""
    name = node.output
    if name in homes:
        while name in homes:
            name = homes[name]
        return name
    if node.op in ("slice", "reshape"):
        return at.get(node.inputs[0], name)
    for source in _overwritten(node):
        home = at.get(source)
        if home is not None and places[home][2] == index and places[home][0] == _size(graph, name):
            return home
    return name


def _overwritten(node: Node) -> Sequence[str]:
    """Operands in whose place the result can be written, where nobody reads them later."""
    if node.op == "conv":
        return [name for name in node.inputs[3:] if name != node.inputs[0]]
    return node.inputs[:2] if node.op in ("add", "mul") else node.inputs[:1] if node.op in OVERWRITES else ()


def _size(graph: Graph, name: str) -> int:
    shape = graph.shapes[name]
    return packed_elements(shape) if len(shape) > 1 else packed_elements((1, *shape))


def _on_demand(graph: Graph, first: Callable[[list[Node], Node], list[Node]]) -> list[Node]:
    """Each node just before the node that needs it; `first` says in which order a node's needs are met."""
    writers = producers(graph)
    done: set[str] = set()
    nodes: list[Node] = []
    for end in [node for node in graph.nodes if node.output in graph.outputs]:
        waiting = [end]
        while waiting:
            checkpoint()
            node = waiting[-1]
            needs = [writers[name] for name in node.inputs if name in writers and name not in done]
            if node.output in done:
                waiting.pop()
            elif needs:
                waiting.append(first(needs, node)[0])
            else:
                nodes.append(waiting.pop())
                done.add(node.output)
    return nodes


def _shared_first(graph: Graph) -> list[Node]:
    """What several read first, because it stays anyway; then a convolution's sum so far; then the rest."""
    at = {node.output: index for index, node in enumerate(graph.nodes)}
    readers = Counter(name for node in graph.nodes for name in set(node.inputs))

    def rank(need: Node, node: Node) -> tuple[bool, bool, int]:
        return readers[need.output] < 2, need.output not in node.inputs[3:], at[need.output]

    return _on_demand(graph, lambda needs, node: sorted(needs, key=lambda need: rank(need, node)))


def _latest_first(graph: Graph) -> list[Node]:
    at = {node.output: index for index, node in enumerate(graph.nodes)}
    return _on_demand(graph, lambda needs, _: sorted(needs, key=lambda need: -at[need.output]))


_ORDERS: tuple[Callable[[Graph], list[Node]], ...] = (_shared_first, _latest_first)
