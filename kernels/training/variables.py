"""The layout of a weight on the device: a matrix, each of its extents filled up to a multiple of four.

With zeros, so that what is beyond the last column of an activation is zero as well, and no gradient reaches it. Sigmoid
of zero is not: there the bias is so low that nothing is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array, Graph

Shape = tuple[int, ...]
FAR_BELOW = -80.0
"""Sigmoid of it is 2e-35."""


def up(extent: int) -> int:
    """Fill up to a whole number of vectors of four."""
    return -(-extent // 4) * 4


@dataclass(frozen=True)
class Variable:
    """A weight or bias of the network, by its name there."""

    name: str
    shape: Shape
    image: Shape = ()
    """The image that a dense layer with these weights reads: channels, height and width; empty: it reads none."""
    filler: float = 0.0

    @property
    def rows(self) -> int:
        """Rows that hold weights; those of channels that fill up a vector among them."""
        if len(self.shape) == 4:
            return prod(self.shape[1:])
        if len(self.shape) == 1:
            return 1
        return up(self.image[0]) * prod(self.image[1:]) if self.image else self.shape[0]

    @property
    def columns(self) -> int:
        return self.shape[0] if len(self.shape) in (1, 4) else self.shape[1]

    def lay(self, array: Array) -> Array:
        """Lay an array out for the device: (rows, columns), both filled up."""
        matrix = self._matrix(array)
        shape = (1 if len(self.shape) == 1 else up(self.rows), up(self.columns))
        whole = np.full(shape, self.filler, np.float32)
        whole[: matrix.shape[0], : matrix.shape[1]] = matrix
        return whole

    def take(self, content: bytes) -> Array:
        """The network's own array, from what the device has."""
        places = self._matrix(np.arange(1, prod(self.shape) + 1, dtype=np.int64).reshape(self.shape))
        stride = up(self.columns)
        laid = np.frombuffer(content, np.float32)[: places.shape[0] * stride].reshape(-1, stride)
        found = np.empty(prod(self.shape), np.float32)
        real = places > 0
        found[places[real] - 1] = laid[:, : self.columns][real]
        return found.reshape(self.shape)

    def _matrix(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(rows, columns)."""
        if len(self.shape) == 4:  # (K, C, kh, kw) -> taps with their channels side by side
            return array.transpose(2, 3, 1, 0).reshape(self.rows, self.columns)
        if len(self.shape) == 1:
            return array.reshape(1, -1)
        if not self.image:
            return array
        c, h, w = self.image
        pixels = array.reshape(c, h * w, -1).transpose(1, 0, 2)
        whole = np.zeros((h * w, up(c), self.columns), array.dtype)
        whole[:, :c] = pixels
        return whole.reshape(self.rows, self.columns)


def variables_of(graph: Graph) -> dict[str, Variable]:
    """Every weight and bias that conv and dense layers read, by name."""
    found: dict[str, Variable] = {}
    flattened = {node.output: graph.shapes[node.inputs[0]] for node in graph.nodes if node.op == "reshape"}
    for node in graph.nodes:
        if node.op not in ("conv", "dense"):
            continue
        image = flattened.get(node.inputs[0], ()) if node.op == "dense" else ()
        for name in node.inputs[1:3]:
            if name and name in graph.constants and name not in found:
                shape = graph.shapes[name]
                low = len(shape) == 1 and node.attributes.get("activation") == ("sigmoid",)
                image_here = image[1:] if len(image) == 4 and len(shape) == 2 else ()
                found[name] = Variable(name, shape, image_here, FAR_BELOW if low else 0.0)
    return found
