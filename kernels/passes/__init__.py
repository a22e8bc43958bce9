"""Passes: graph -> graph, one idea a file, pure; each leaves the graph's ports and their values as they were."""

from __future__ import annotations

from collections.abc import Callable

from kernels.graph import Graph
from kernels.options import Options

from .fold_affine import fold_affine
from .fold_pads import fold_pads
from .fuse_activations import fuse_activations
from .fuse_residuals import fuse_residuals
from .identities import eliminate_identities
from .prune import prune
from .transposes import fold_transposes

__all__ = ["PASSES", "optimise", "prepare"]

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


def prepare(graph: Graph, options: Options) -> Graph:
    """The graph that is lowered for these options."""
    return optimise(graph, fuse=options.fuse and not options.keep_all, reflect=options.backend != "cpu")


def optimise(graph: Graph, *, fuse: bool, reflect: bool = False) -> Graph:
    """Simplify a graph for execution.

    With `fuse=False` the graph stays as imported: each ONNX node's output is a tensor under its own name (Dropout and
    Identity as `reshape` to the same shape, batch normalisation as `affine`). Ports keep names, order and shapes.
    `reflect`: the backend's convolutions can mirror their input at its edges.
    """
    if not fuse:
        return graph
    for one_pass in PASSES:
        graph = one_pass(graph)
    return fold_pads(graph, reflect=reflect)
