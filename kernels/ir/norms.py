"""Normalisations of rows (`row_norm`): how they differ, for those that compute them on the way."""

from __future__ import annotations

import numpy as np

from .graph import Graph, Node


def is_root_mean_square(graph: Graph, node: Node) -> bool:
    """Return whether a node divides rows by the root of their mean square, and scales them by constants, and no more
    (RMSNorm, Zhang and Sennrich 2019)."""
    a = node.attributes
    if node.op != "row_norm" or len(node.inputs) != 3 or a.get("centred", True) or a.get("least") or a.get("of_image"):
        return False
    constants = [graph.constants.get(name) for name in node.inputs[1:]]
    return constants[0] is not None and constants[1] is not None and not np.any(constants[1])
