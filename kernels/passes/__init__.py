"""Passes: graph -> graph, one idea a file, pure; each leaves the graph's ports and their values as they were."""

from __future__ import annotations

from collections.abc import Callable

from kernels.graph import Graph

from .fold_affine import fold_affine
from .fuse_activations import fuse_activations
from .fuse_residuals import fuse_residuals
from .identities import eliminate_identities
from .prune import prune
from .transposes import fold_transposes

__all__ = ["PASSES", "optimise"]

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    prune,  # nobody reads it: do not work on it
    eliminate_identities,  # so that neighbours see each other
    fold_transposes,  # may leave identities, reshapes and unread nodes
    eliminate_identities,
    prune,  # an unread node must not count as a reader
    fold_affine,  # before activations, which would stand in the way
    fuse_activations,  # into conv, dense, add, mul, instance_norm
    fuse_residuals,  # takes the add's activation with it
)
"""In the order in which `optimise` applies them."""


def optimise(graph: Graph, *, fuse: bool) -> Graph:
    """Simplify a graph for execution.

    With `fuse=False` the graph stays as imported: each ONNX node's output is a tensor under its own name (Dropout and
    Identity as `reshape` to the same shape, batch normalisation as `affine`). Ports keep names, order and shapes.
    """
    if not fuse:
        return graph
    for one_pass in PASSES:
        graph = one_pass(graph)
    return graph
