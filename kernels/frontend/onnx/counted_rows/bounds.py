"""Bounds of the tensors of an import, of which nodes are there so far."""

from __future__ import annotations

from collections import ChainMap

from kernels.frontend.onnx.context import Context
from kernels.ir.bounds import Reading
from kernels.ir.intervals import Bounds


def bounds_of(to: Context, name: str) -> Bounds:
    """Return the bounds of all elements of a tensor, those in its padding included."""
    stored = ChainMap(to.weights, to.constants)
    return Reading(to.nodes, stored, to.shapes, to.bounds).bounds(name)
