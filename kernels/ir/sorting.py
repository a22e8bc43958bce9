"""`sort` and `suppress`: what is best in each of several rows.

`sort` gives the k best of each row (n), the largest or, without `largest`, the smallest, the best first: themselves or
their places. Of equal elements the first comes first; NaN counts as the worst. Two nodes that ask for values and places
of the same rows share a sort.

`suppress` reads boxes (batch, n, 5) as low y, low x, high y, high x, area; `order` (rows, m) of places; `valid`
(rows, 1). A picture has rows / batch rows. Each goes through the first `valid` places of its order and takes a box,
unless one that it took before overlaps it by more than `overlap` of the area that both cover. The result has the places
of those taken, at most `rounds`, and -1 behind them.
"""

from __future__ import annotations

from kernels.ir.graph import Graph, Node

GIVES = ("values", "places")


def twin(graph: Graph, node: Node) -> Node | None:
    """The node that gives the other result of the same sort."""

    def asked(one: Node) -> tuple[object, ...]:
        return one.op, one.inputs, one.attributes["k"], one.attributes["largest"]

    others = (one for one in graph.nodes if one.op == "sort" and one.attributes["gives"] != node.attributes["gives"])
    return next((one for one in others if asked(one) == asked(node)), None)
