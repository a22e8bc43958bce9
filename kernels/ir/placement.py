"""What the CPU computes beside a GPU, in the words of the axis `on_cpu`."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kernels.errors import OptionError

if TYPE_CHECKING:
    from .graph import Graph  # with NumPy, which no start of a command pays for

NOTHING = "none"
KINDS: dict[str, tuple[str, ...]] = {
    "convolutions": ("conv",),
    "products": ("dense", "matmul"),
    "pooling": ("max_pool", "average_pool", "global_average_pool"),
    "normalisation": ("lrn", "instance_norm"),
    "softmax": ("softmax",),
    "joins": ("concat", "add", "mul"),
}
"""Kind of layer -> its operations."""
PLACED = ("convolutions", "products", "pooling")
"""Kinds that are the GPU's where nothing is said. What is of no kind, or of another that is not named, stays where its
first operand is made: it is not worth a transfer."""
LAYERS = ("after", "until")


@dataclass(frozen=True)
class Placement:
    """`kinds` of layers, or the layers `after`, or `until` and with, the one of a name."""

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
                f"on_cpu: {words!r} places nothing; write `none`, `after LAYER`, `until LAYER`, or some of {known}, "
                "joined by `+`"
            )
        return cls(kinds=() if words == NOTHING else kinds)

    def on_cpu(self, graph: Graph) -> dict[str, bool]:
        """Node -> whether the CPU computes it. Raises OptionError where all or none would be."""
        operations = {operation for kind in self.kinds for operation in KINDS[kind]}
        border = self._border(graph) if self.layer else 0
        placed: dict[str, bool] = {}
        of_tensor: dict[str, bool] = {}
        for index, node in enumerate(graph.nodes):
            beside = next((of_tensor[name] for name in node.inputs if name in of_tensor), None)
            here = node.op in operations
            if node.op not in operations | _HEAVY and beside is not None:
                here = beside
            elif self.layer:
                here = index > border if self.side == "after" else index <= border
            placed[node.name] = here
            of_tensor |= dict.fromkeys(node.outputs, here)
        if len(set(placed.values())) < 2:
            whose = "all" if all(placed.values()) else "none"
            raise OptionError(
                f"on_cpu: {whose} of the layers of {graph.name} would be on the CPU; leave it out, or {_HINT}"
            )
        return placed

    def _border(self, graph: Graph) -> int:
        names = [node.name for node in graph.nodes]
        if self.layer in names:
            return names.index(self.layer)
        near = get_close_matches(self.layer, names, n=1)
        raise OptionError(
            f"on_cpu: {graph.name} has no layer {self.layer}{f'; did you mean {near[0]}?' if near else ''}"
        )


_HINT = "choose the backend `cpu` for the whole network"
_HEAVY = frozenset(operation for kind in PLACED for operation in KINDS[kind])


def placement_words(value: object) -> object:
    """A list of kinds in words, and `false` as `none`; another value as it is."""
    if value is False:
        return NOTHING
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def why_no_placement(words: str) -> str:
    """Why words place nothing; empty where they do."""
    try:
        Placement.of(words)
    except OptionError as e:
        return str(e)
    return ""
