"""The activations, declared once: what passes, lowerings and the reference list of them derives from this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from . import compositions as c
from .expressions import Expression
from .graph import Node


@dataclass(frozen=True)
class Activation:
    """A function of one number, that a node is or that the layer before it applies."""

    code: int
    """The code that kernels (`ACTIVATE` in `source/macros.py`) and the agent's operations (`operation.h`) are told."""
    attributes: tuple[str, ...] = ()
    """A node's attributes, in the order of a fused activation's tuple and of the scalars `lo` and `hi`."""


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(1),
    "clip": Activation(2, ("min", "max")),
    "sigmoid": Activation(3),
    "leaky_relu": Activation(4, ("slope",)),
    "hard_sigmoid": Activation(5, ("alpha", "beta")),
    "hard_swish": Activation(6),
}


def activation_of(node: Node) -> tuple[Any, ...]:
    """The activation that a node is, or that is fused into it, e.g. ("clip", 0.0, 6.0); empty: none."""
    if node.op in ACTIVATIONS:
        return (node.op, *(node.attributes[name] for name in ACTIVATIONS[node.op].attributes))
    return tuple(node.attributes.get("activation") or ())


def expression_of(node: Node) -> Expression | None:
    """Return the expression that a node computes of each element; None where it computes something else."""
    if node.op == "map":
        found: Expression = node.attributes["expression"]
        return found
    if node.op in ACTIVATIONS:
        return activated("a", activation_of(node))
    if node.op in ("add", "mul") and len(node.inputs) == 2:
        return activated((node.op, "a", "b"), activation_of(node))
    return None


def as_map(node: Node) -> Node:
    """Return the map that computes the same as a map or an activation."""
    return replace(node, op="map", attributes={"expression": expression_of(node)})


def activated(x: Expression, activation: tuple[Any, ...]) -> Expression:
    if not activation:
        return x
    name, *numbers = activation
    return _MEANINGS[name](x, *numbers)


_MEANINGS: dict[str, Callable[..., Expression]] = {
    "relu": c.relu,
    "clip": c.clip,
    "sigmoid": c.sigmoid,
    "leaky_relu": c.leaky_relu,
    "hard_sigmoid": c.hard_sigmoid,
    "hard_swish": c.hard_swish,
}
