"""The part that the CPU computes beside a GPU, in the words of the axis `on_cpu`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING

from kernels.errors import OptionError

if TYPE_CHECKING:
    from .graph import Graph  # with NumPy, which no start of a command pays for

NOTHING = "none"
KINDS: dict[str, tuple[str, ...]] = {
    "convolutions": ("conv",),
    "im2col": ("im2col",),
    "gemm": ("conv",),
    "products": ("dense", "matmul"),
    "pooling": ("max_pool", "average_pool", "global_average_pool"),
    "normalisation": ("lrn", "instance_norm"),
    "softmax": ("softmax",),
    "joins": ("concat", "add", "mul"),
}
"""Kind of layer -> its operations."""
APART = ("im2col", "gemm")
"""The two steps of a convolution by im2col, its windows and their product, where they are placed apart."""
PLACED = ("convolutions", "im2col", "products", "pooling")
"""Kinds that are the GPU's where nothing is said. What is of no kind, or of another that is not named, stays where its
first operand is made: it is not worth a transfer."""
LAYERS = ("after", "until", "layers")
RANGE = ".."


@dataclass(frozen=True)
class Placement:
    """`kinds` of layers, or the layers `after`, or `until` and with, the one of a name, or the `layers` of some names.

    Names are joined by `+`; `A..B` is A, B and what the network has between them.
    """

    kinds: tuple[str, ...] = ()
    side: str = ""
    layer: str = ""

    @classmethod
    def of(cls, words: str) -> Placement:
        """Raises OptionError for words that are none."""
        side, _, layer = words.partition(" ")
        if side in LAYERS and layer.strip():
            return cls(side=side, layer=layer.strip())
        kinds = tuple(words.split("+"))
        if words != NOTHING and not set(kinds) <= KINDS.keys():
            known = ", ".join(KINDS)
            raise OptionError(
                f"on_cpu: {words!r} places nothing; write `none`, `after LAYER`, `until LAYER`, `layers FIRST..LAST`, "
                f"or some of {known}, joined by `+`"
            )
        if len({"convolutions", *APART} & set(kinds)) > 1:
            raise OptionError("on_cpu: `im2col` and `gemm` are the two steps of `convolutions`: name one of the three")
        return cls(kinds=() if words == NOTHING else kinds)

    @property
    def apart(self) -> bool:
        """True if the two steps of convolutions are on different sides."""
        return bool(set(APART) & set(self.kinds))

    def on_cpu(self, graph: Graph) -> dict[str, bool]:
        """Tensor -> whether the CPU makes it. Raises OptionError where all or none would be."""
        operations = {operation for kind in self.kinds for operation in KINDS[kind]}
        chosen = self._chosen([node.name for node in graph.nodes], graph.name) if self.layer else frozenset()
        placed: dict[str, bool] = {}
        for index, node in enumerate(graph.nodes):
            beside = next((placed[name] for name in node.inputs if name in placed), None)
            here = node.op in operations or index in chosen
            if node.op not in operations | _HEAVY and beside is not None:
                here = beside
            placed |= dict.fromkeys(filter(None, node.outputs), here)
        if len(set(placed.values())) < 2:
            whose = "all" if all(placed.values()) else "none"
            raise OptionError(
                f"on_cpu: {whose} of the layers of {graph.name} would be on the CPU; leave it out, or {_HINT}"
            )
        return placed

    def _chosen(self, names: list[str], network: str) -> frozenset[int]:
        """Places of the layers that words name."""

        def places(layer: str) -> list[int]:
            """Several where one node of the model has become several."""
            if layer in names:
                return [index for index, name in enumerate(names) if name == layer]
            near = get_close_matches(layer, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise OptionError(f"on_cpu: {network} has no layer {layer}{hint}")

        if self.side != "layers":
            border = places(self.layer)[-1] + 1
            return frozenset(range(border, len(names)) if self.side == "after" else range(border))
        found: set[int] = set()
        for part in self.layer.split("+"):
            first, _, last = (part, "", "") if part in names else part.partition(RANGE)
            found.update(range(places(first)[0], places(last)[-1] + 1) if last else places(first))
        return frozenset(found)


def owners(graph: Graph) -> dict[str, str]:
    """Layer -> the layer beside which it is placed: itself, or for what is cheap the one that makes its operand.

    A layer that has become several nodes is itself where any of them is.
    """
    makers, found = deciders(graph), {}
    for node in graph.nodes:
        if makers[node.output] == node.name:
            found[node.name] = node.name
        found.setdefault(node.name, makers[node.output])
    return found


def deciders(graph: Graph) -> dict[str, str]:
    """Tensor -> the layer beside which the node that makes it is placed."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        beside = next((found[name] for name in node.inputs if name in found), None)
        decides = node.name if node.op in _HEAVY or beside is None else beside
        found |= dict.fromkeys(filter(None, node.outputs), decides)
    return found


def words_of(graph: Graph, chosen: Collection[str]) -> str:
    """The axis value that places just these layers, some of `owners`, on the CPU."""
    own = owners(graph)
    deciding = [name for name, by in own.items() if name == by]
    runs = [list(run) for here, run in groupby(deciding, lambda name: name in chosen) if here]
    return "layers " + "+".join(run[0] if len(run) == 1 else f"{run[0]}{RANGE}{run[-1]}" for run in runs)


_HINT = "choose the backend `cpu` for the whole network"
_HEAVY = frozenset(operation for kind in PLACED for operation in KINDS[kind])


def placement_words(value: object) -> object:
    """A list of kinds in words, and `false` as `none`; another value as it is."""
    if value is False:
        return NOTHING
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def why_no_placement(words: str) -> str:
    """Return why words place nothing; empty: they do."""
    try:
        Placement.of(words)
    except OptionError as e:
        return str(e)
    return ""
