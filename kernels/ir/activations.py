"""The activations, declared once: what passes, lowerings and the reference list of them derives from this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
