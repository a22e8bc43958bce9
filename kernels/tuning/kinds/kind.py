"""How one kind of layer is tuned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernels.catalog import Convolution
from kernels.catalog.additions import Addition
from kernels.catalog.products import Product
from kernels.catalog.transposes import Transpose
from kernels.ir.graph import Array, Graph, Node
from kernels.options import Choice, Limits, Options

Layer = Convolution | Product | Transpose | Addition
"""Sizes of what is tuned, named by their `key`."""


class Kind(Protocol):
    """How one kind of layer is tuned; `layer` is of that kind."""

    def is_open(self, options: Options) -> bool:
        """Whether the options leave the choice to tuning."""
        ...

    def default(self, layer: Layer, options: Options, limits: Limits) -> Choice:
        """What the compiler takes where nothing was tuned."""
        ...

    def choices(self, layer: Layer, options: Options, limits: Limits) -> Sequence[Sequence[Choice]]:
        """Of every algorithm that fits the tiles worth trying."""
        ...

    def footprint_bytes(self, layer: Layer, choice: Choice) -> int:
        """About what one candidate adds to a trial plan, in fp32."""
        ...

    def graph(self, layer: Layer, names: Sequence[str]) -> Graph:
        """The layer once a name, with random weights."""
        ...


def trial_graph(
    inputs: dict[str, tuple[int, ...]],
    nodes: list[Node],
    shapes: dict[str, tuple[int, ...]],
    constants: dict[str, Array],
) -> Graph:
    """Nodes whose results have `shapes`, by the name of the tensor; the last one's is the output."""
    return Graph(
        name="trial",
        inputs=tuple(inputs),
        outputs=nodes[-1].outputs,
        nodes=nodes,
        constants=constants,
        shapes={**inputs, **{name: array.shape for name, array in constants.items()}, **shapes},
    )


def alike(nodes: Sequence[Node], shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Results of one shape."""
    return {node.output: shape for node in nodes}
