"""The graph: tensors and nodes with static shapes, between import and lowering.

Canonical operations (what passes and lowering see; `reference/` defines their meaning, `frontend/onnx/` produces them).
Activations are NCHW or (N, features). `x` is an activation, the other inputs may be constants.

| op | inputs | attributes |
|---|---|---|
| conv | x, w (K,C/groups,kh,kw), [b (K)], [residual] | strides (h,w), pads (t,l,b,r), dilations, groups, activation |
| im2col | x -> (N,C*kh*kw,oh,ow): what each window reads, by channel and tap | kernel, strides, pads, dilations |
| dense | x (N,C), w (C,M), [b (M)] | activation |
| matmul | a (..,M,K), b (..,K,N) or (K,N), both activations | |
| relu, sigmoid | x | |
| clip | x | min, max |
| leaky_relu | x | slope (0 to 1) of what is negative |
| hard_sigmoid | x -> alpha * x + beta, clipped to [0, 1] | alpha, beta |
| hard_swish | x -> x * hard_sigmoid(x) of alpha 1/6, beta 1/2 | |
| max_pool | x | kernel, strides, pads (t,l,b,r) (ceil_mode resolved into the output's shape) |
| average_pool | x | kernel, strides, pads, count_include_pad (0/1) |
| global_average_pool | x -> (N,C,1,1) | |
| concat | x... | axis (>= 0) |
| add, mul | a, b (same shape, or b a constant that broadcasts to a's) | activation |
| affine | x (N,C,..), scale (C), shift (C) | activation (batch normalisation that could not be folded) |
| instance_norm | x, scale (C), shift (C) | epsilon, activation, groups of channels (absent: each is one) |
| softmax | x | axis (>= 0) |
| lrn | x | size, alpha, beta, bias |
| reshape | x -> attribute shape (row-major, no data moved) | shape |
| transpose | x (up to 4 dimensions) | perm |
| slice | x | axis (>= 0), start, stop (0 <= start < stop <= extent) |
| pad | x | pads (t,l,b,r), mode (constant, reflect, edge), value (of mode constant) |
| resize | x -> (N,C,h,w) | size (h,w), mode (nearest, linear), coordinates (see `resampling.py`) |
| map | up to four, which broadcast to each other | expression (see `expressions.py`): of each element |
| take | x, table (constant) | see `taking.py`: each element of the result is one of x, or `value` |
| gather | x, indices (any shape) | axis (>= 0): by whole numbers; negative ones count from the end |
| put_rows | x, rows, position (1,) -> x with the rows from position on | axis; what would end beyond x ends with it |
| reduce | x -> the axes from start on have extent 1 | start, stop (axes), kind (see `shapes.py`); squared: of x * x |
| sort | x (rows, n) -> (rows, k): the best elements of each row | k, largest, gives: see `sorting.py` |
| suppress | boxes, order, valid -> (rows, rounds): boxes of which none overlaps | rounds, overlap: see `sorting.py` |
| roi_align | x, boxes, pictures, valid -> (rows, C, h, w) | size (h,w), points, scale, half, kind: see `regions.py` |
| append, attend | attention over a cache of keys and values: see `cache.py` | |

A conv may have `pad_mode`: "reflect" (the mirror image, the edge itself not repeated); absent: zeros.

`activation` is absent, or a tuple: ("relu",), ("sigmoid",), ("clip", min, max), ("leaky_relu", slope),
("hard_sigmoid", alpha, beta), ("hard_swish",).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .types import ElementType, derived

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Node:
    """One operation; `inputs` and `outputs` are tensor names ('' for an absent optional input)."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> str:
        return self.outputs[0]


@dataclass
class Graph:
    """Nodes in topological order; every tensor's shape is known."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: list[Node]
    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, Array]
    places: int = 0
    """The largest of the whole numbers that it computes as places of elements."""
    sums: int = 0
    """The largest that its sums of products of 8 bits, which are added in floating point, may become."""
    types: dict[str, ElementType] = field(default_factory=dict)
    """The element type of every tensor; those that are not given are derived from the nodes."""
    state: dict[str, str] = field(default_factory=dict)
    """Input -> the output that is its content in the next run. A plan keeps such a pair on the device: it starts as
    zeros, and neither is a port."""

    def __post_init__(self) -> None:
        self.types = derived(self.nodes, self.types, self.inputs, self.constants)

    @property
    def ports_out(self) -> tuple[str, ...]:
        """The outputs that are for the host."""
        kept = self.state.values()
        return tuple(name for name in self.outputs if name not in kept)

    def producer(self, tensor: str) -> Node | None:
        """The node that writes a tensor; None for inputs and constants."""
        return next((node for node in self.nodes if tensor in node.outputs), None)

    @cached_property
    def readers(self) -> dict[str, list[Node]]:
        """Tensor -> the nodes that read it, each once. A graph that was asked is not changed any more."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    def consumers(self, tensor: str) -> list[Node]:
        return self.readers.get(tensor, [])
