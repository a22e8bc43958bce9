"""A graph as other engines get it: what every framework's exporter folds and fuses, and nothing of ours."""

from __future__ import annotations

from kernels.ir.graph import Graph
from kernels.passes.fold_affine import fold_affine
from kernels.passes.functions.fuse_activations import fuse_activations
from kernels.passes.identities import eliminate_identities
from kernels.passes.rewrite import prune


def simplified(graph: Graph) -> Graph:
    """Return a graph without unread and idle nodes; with batch normalisation and activations fused."""
    for one_pass in (prune, eliminate_identities, fold_affine, fuse_activations):
        graph = one_pass(graph)
    return graph
