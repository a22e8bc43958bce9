"""The order of the nodes: whatever lowers the peak of what lives at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from kernels.errors import checkpoint
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.lower.aliases import plan_aliases

from .channels.split_channels import packed_elements

OVERWRITES = frozenset({*ACTIVATIONS, "affine", "instance_norm", "add", "mul"})
"""Operations that can leave their result in the place of an operand."""


def order(graph: Graph) -> Graph:
    """The best of a few orders, the graph's own first where they are equal."""
    return min(
        (replace(graph, nodes=nodes) for nodes in (graph.nodes, *(each(graph) for each in _ORDERS))), key=peak_elements
    )


def peak_elements(graph: Graph) -> int:
    """Elements that live at once at most, whole stacks of channels, the graph's inputs apart."""
    return peak(places(graph, _size, plan_aliases(graph, multiple=4))[0].values())


@dataclass
class Stay:
    """A place in memory, which results that overwrite an operand share: its size, first and last step."""

    size: int
    first: int
    last: int


def peak(stays: Iterable[Stay]) -> int:
    """The most that lives at once."""
    changes: Counter[int] = Counter()
    for stay in stays:
        changes[stay.first] += stay.size
        changes[stay.last + 1] -= stay.size
    return max(accumulate((changes[step] for step in sorted(changes)), initial=0))


def places(
    graph: Graph, size: Callable[[Graph, str], int], aliases: Mapping[str, tuple[str, int]]
) -> tuple[dict[str, Stay], dict[str, str]]:
    """Places by the tensor that each was made for, and in whose place every node's result lies."""
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    stays: dict[str, Stay] = {}
    at: dict[str, str] = {}
    for index, node in enumerate(graph.nodes):
        at[node.output] = home = _home(graph, node, index, aliases, at, stays, size)
        stay = stays.setdefault(home, Stay(size(graph, home), index, index))
        stay.last = max(stay.last, *(last.get(name, index) for name in (node.output, home)))
    return stays, at


def _home(
    graph: Graph,
    node: Node,
    index: int,
    aliases: Mapping[str, tuple[str, int]],
    at: Mapping[str, str],
    stays: Mapping[str, Stay],
    size: Callable[[Graph, str], int],
) -> str:
    """The tensor in whose place a node's output lies."""
    name = node.output
    if name in aliases:
        while name in aliases:
            name = aliases[name][0]
        return name
    if node.op in ("slice", "reshape"):
        return at.get(node.inputs[0], name)
    for source in _overwritten(node):
        home = at.get(source)
        if home is not None and stays[home].last == index and stays[home].size == size(graph, name):
            return home
    return name


def _overwritten(node: Node) -> Sequence[str]:
    """Operands in whose place the result can be written, where nobody reads them later."""
    if node.op == "conv":
        return [name for name in node.inputs[3:] if name != node.inputs[0]]
    return node.inputs[:2] if node.op in ("add", "mul") else node.inputs[:1] if node.op in OVERWRITES else ()


def _size(graph: Graph, name: str) -> int:
    return packed_elements(graph.shapes[name])


def _on_demand(graph: Graph, first: Callable[[list[Node], Node], list[Node]]) -> list[Node]:
    """Each node just before the node that needs it; `first` says in which order a node's needs are met."""
    writers = producers(graph)
    done: set[str] = set()
    nodes: list[Node] = []

    def needs(node: Node) -> Iterator[Node]:
        return iter(first([writers[name] for name in node.inputs if name in writers], node))

    for end in [node for node in graph.nodes if node.output in graph.outputs]:
        waiting = [(end, needs(end))]
        while waiting:
            checkpoint()
            node, left = waiting[-1]
            need = next((each for each in left if each.output not in done), None)
            if need is not None:
                waiting.append((need, needs(need)))
                continue
            waiting.pop()
            if node.output not in done:
                nodes.append(node)
                done.add(node.output)
    return nodes


def _shared_first(graph: Graph) -> list[Node]:
    """Put what several read first, because it stays anyway; then a convolution's sum so far; then the rest."""
    at = {node.output: index for index, node in enumerate(graph.nodes)}
    readers = Counter(name for node in graph.nodes for name in set(node.inputs))

    def rank(need: Node, node: Node) -> tuple[bool, bool, int]:
        return readers[need.output] < 2, need.output not in node.inputs[3:], at[need.output]

    return _on_demand(graph, lambda needs, node: sorted(needs, key=lambda need: rank(need, node)))


def _latest_first(graph: Graph) -> list[Node]:
    at = {node.output: index for index, node in enumerate(graph.nodes)}
    return _on_demand(graph, lambda needs, _: sorted(needs, key=lambda need: -at[need.output]))


_ORDERS: tuple[Callable[[Graph], list[Node]], ...] = (_shared_first, _latest_first)
