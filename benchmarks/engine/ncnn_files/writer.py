"""ncnn's layers as they are gathered: blobs by name, weights in the order of the layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.ir.graph import Graph

_FP32 = b"\0\0\0\0"
"""Tag before a weight that is kept as it is."""
Parameters = dict[int, "int | float | list[float] | list[int]"]
"""Parameters by number, as in ncnn's operator documentation."""
Layer = tuple[str, str, list[str], list[str], Parameters]
"""Kind, name, blobs read, blobs written, parameters."""


class Unsupported(Exception):
    """ncnn, or this writer, has no counterpart."""


@dataclass
class Writer:
    graph: Graph
    layers: list[Layer] = field(default_factory=list)
    weights: list[bytes] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    """Tensor -> blob, where a node writes no blob of its own."""

    def blob(self, tensor: str) -> str:
        return self.blobs.get(tensor, tensor)

    def add(self, kind: str, name: str, inputs: Iterable[str], output: str, parameters: Parameters) -> None:
        self.layers.append((kind, name, [self.blob(tensor) for tensor in inputs], [output], parameters))

    def constant(self, name: str) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(self.graph.constants[name], np.float32)

    def raw(self, array: np.ndarray[Any, Any], *, tagged: bool = False) -> None:
        self.weights.append((_FP32 if tagged else b"") + np.ascontiguousarray(array, np.float32).tobytes())
