"""The least memory of a plan, known before anything is lowered: a lower bound, however a graph is lowered and placed.

Weights as they are in the model: every algorithm keeps them so, padded or transformed into more numbers. Content that
may be kept once counts once. Of the activations what must live at once; a result that may be written straight into an
output, and a view of an input, count nothing beside those.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kernels.ir.graph import Graph
from kernels.ir.packed import PackedMatrix
from kernels.lower.aliases import plan_aliases
from kernels.options import Options
from kernels.passes.order import Stay, peak, places

_WEIGHTED = ("conv", "dense")
_VECTOR = 16
"""Bytes to which every buffer is rounded up."""


@dataclass(frozen=True)
class Floor:
    """Bytes of device memory."""

    weights: int
    inputs: int
    outputs: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.inputs + self.outputs + self.activations

    @property
    def words(self) -> str:
        known = f"weights {self.weights}, inputs {self.inputs}, outputs {self.outputs}"
        return f"{known}, activations at once {self.activations}" if self.activations else known


def floor_of(prepared: Graph, options: Options, *, swap: bool = False) -> Floor:
    """Return the floor of a graph that is prepared for lowering. `swap`: only the largest activation and weight count,
    as others may be away."""
    item = 1 if options.precision == "int8" else 2 if options.half else 4
    stays = _activations(prepared, options)
    elements = max((stay.size for stay in stays), default=0) if swap else peak(stays)
    return Floor(
        _weights(prepared, item, swap=swap),
        sum(_buffer(prepared, name) for name in prepared.inputs),
        sum(_buffer(prepared, name) for name in prepared.outputs),
        elements * item,
    )


def _buffer(graph: Graph, port: str) -> int:
    return max(_VECTOR, -(-prod(graph.shapes[port]) * 4 // _VECTOR) * _VECTOR)


def _weights(graph: Graph, item: int, *, swap: bool) -> int:
    """Bytes of weights; those whose numbers have the same sum, bit patterns seen as integers, may be the same."""
    sizes: dict[int | str, int] = {}
    kind, pattern = (np.float16, np.uint16) if item == 2 else (np.float32, np.uint32)
    for name in {node.inputs[1] for node in graph.nodes if node.op in _WEIGHTED} & graph.constants.keys():
        packed: Any = graph.constants[name]
        if isinstance(packed, PackedMatrix):
            sizes[packed.digest] = packed.stored_bytes
            continue
        array = np.ascontiguousarray(graph.constants[name], kind)
        total = int(array.view(pattern).sum(dtype=np.uint64))
        size = 0 if _is_one_number(array.reshape(-1)) else array.size * item  # parts of such an array are the same
        sizes[total] = min(sizes.get(total, size), size)
    return max(sizes.values(), default=0) if swap else sum(sizes.values())


def _is_one_number(numbers: np.ndarray[Any, Any]) -> bool:
    """Most arrays tell by their ends: the least of halves takes long to find."""
    return not numbers.size or (numbers[0] == numbers[-1] and bool(np.all(numbers == numbers[0])))


def _activations(graph: Graph, options: Options) -> list[Stay]:
    aliases = plan_aliases(graph, multiple=4) if "concat" in options.fusions else {}
    stays, at = places(graph, _elements, aliases)
    elsewhere = {at[name] for name in graph.outputs if name in at}
    elsewhere |= {node.output for node in graph.nodes if node.op in ("slice", "reshape") and node.inputs[0] not in at}
    return [stay for name, stay in stays.items() if name not in elsewhere]


def _elements(graph: Graph, name: str) -> int:
    return prod(graph.shapes[name])
