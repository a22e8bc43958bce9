"""Layers that are tuned: those of a graph whose family leaves a choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from kernels.catalog import FAMILIES
from kernels.catalog.family import Family, Sizes
from kernels.ir.graph import Graph, Node
from kernels.lower.cpu import CPU_CONVOLUTIONS
from kernels.options import COMPILE_AXES, Choice, Options


@dataclass(frozen=True)
class Layer:
    """One kind of work that several nodes may share."""

    family: Family[Any]
    sizes: Sizes

    @property
    def key(self) -> str:
        """Names the sizes: the same key, the same work."""
        return self.sizes.key


def layer_of(graph: Graph, node: Node, options: Options) -> Layer | None:
    """The layer of a node that can be tuned; None for others, and in 8 bits, where the precision chooses."""
    if options.precision == "int8":
        return None
    families = (CPU_CONVOLUTIONS,) if options.backend == "cpu" else FAMILIES
    family: Family[Any] | None = next((one for one in families if node.op in one.ops), None)
    return Layer(family, family.sizes(graph, node)) if family and family.has_choice(graph, node) else None


def untuned(options: Options) -> Options:
    """Return the options as if nothing had been asked for or found."""
    names = {name for family in FAMILIES for name in (family.option, *family.tile_options)}
    return replace(options, tuned={}, **{name: COMPILE_AXES[name].default for name in names})


def in_turn(columns: Sequence[Sequence[Choice]]) -> list[Choice]:
    """The first of each, then the second of each ..."""
    return [choice for row in zip_longest(*columns) for choice in row if choice is not None]
