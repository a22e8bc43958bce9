"""The tensors that layers in 8 bits hand on as whole numbers (uint8), and whether as floats too.

A layer in 8 bits that reads another's result, by steps that its model gives (`input_steps`), gets it in these steps
from that layer itself, which rounds at its end. A residual is read so where its tensor lies on a grid
(`output_steps`): then the whole numbers are all there is of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kernels.ir.graph import Graph, Node
from kernels.options import Options

from .algorithms import INT8, algorithm_of

Steps = tuple[float, int]
_RESIDUAL = 3
"""Number of the input."""


@dataclass(frozen=True)
class Codes:
    """The way in which a tensor is stored as whole numbers."""

    steps: Steps
    floats: bool
    """True if someone reads it as floats, too."""
    on_grid: bool
    """True if the floats are what the whole numbers stand for."""


def stored_as_codes(graph: Graph, options: Options, placed: Collection[str]) -> dict[str, Codes]:
    """Return the codes of each tensor that has some; `placed` are parts of other tensors, which are floats."""
    layers = {node.output for node in graph.nodes if node.op == "conv" and algorithm_of(options, graph, node) is INT8}
    uses: dict[str, list[_Use]] = {}
    for node in graph.nodes:
        for at, name in enumerate(node.inputs):
            uses.setdefault(name, []).append(_Use(node if node.output in layers else None, at))
    found = {}
    for node in graph.nodes:
        if node.output in layers and node.output not in placed:
            codes = _codes_of(node, uses.get(node.output, []), is_output=node.output in graph.outputs)
            if codes is not None:
                found[node.output] = codes
    return found


@dataclass(frozen=True)
class _Use:
    layer: Node | None
    """A layer in 8 bits; None: another operation."""
    at: int

    @property
    def steps(self) -> Steps | None:
        """The steps by which a layer wants its input."""
        return self.layer.attributes.get("input_steps") if self.layer is not None and self.at == 0 else None


def _codes_of(node: Node, uses: list[_Use], *, is_output: bool) -> Codes | None:
    grid: Steps | None = node.attributes.get("output_steps")
    steps = grid or next((use.steps for use in uses if use.steps is not None), None)
    if steps is None:
        return None
    taken = [use.steps == steps or (use.layer is not None and use.at == _RESIDUAL and grid is not None) for use in uses]
    return Codes(steps, is_output or not all(taken), grid is not None) if any(taken) else None
