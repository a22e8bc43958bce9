"""Tensors of which some axes are padded: what of them is valid, and what their padding holds.

An axis is padded to its largest extent; its first elements are valid, as many as its count says (`counts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.extent import Count, Extent
from kernels.frontend.onnx.steps import Steps

from .counts import extents_of, number

Emit = Callable[[OnnxNode, Context], None]
Counts = dict[int, Count]
PADDING = -1.0
"""The number behind the valid rows of a model's outputs."""


class Rows(Steps):
    """The steps of a node of padded tensors, and how it is imported from other inputs."""

    def __init__(self, node: OnnxNode, to: Context, emit: Emit) -> None:
        super().__init__(node, to)
        self._emit = emit

    def counts(self, index: int) -> Counts:
        return self.to.counts.get(self.node.input(index), {})

    def extents(self, index: int) -> list[Extent]:
        return extents_of(self.to, self.operand(index))

    def import_from(self, *inputs: str | None, **attributes: object) -> None:
        """Import the node, some of its inputs and attributes replaced."""
        names = [own if new is None else new for own, new in zip(self.node.inputs, (*inputs, *_NONE), strict=False)]
        changed = {**self.node.attributes, **attributes}
        self._emit(replace(self.node, inputs=tuple(names), attributes=changed), self.to)

    def tell(self, *counts: Counts) -> None:
        """Store how much of the outputs is valid."""
        for name, each in zip(self.node.outputs, counts, strict=False):
            if name and each and (name in self.to.shapes or name in self.to.constants):
                self.to.counts[name] = dict(each)

    def stored(self, values: Sequence[int] | AnyArray) -> str:
        """A new constant of whole numbers."""
        name = self.to.fresh(f"{self.node.outputs[0]}.c{len(self.to.constants)}")
        self.to.constants[name] = np.asarray(values, np.int64)
        return name

    def inside(self, name: str, axis: int, count: Count) -> tuple[AnyArray, str]:
        """Places along an axis, and the count, in shapes that broadcast to the tensor."""
        rank, extent = len(self.shape(name)), self.shape(name)[axis]
        places = np.arange(extent, dtype=np.int32).reshape([extent if k == axis else 1 for k in range(rank)])
        return places, self.reshape(number(self, count), (1,) * rank)

    def masked(self, index: int, value: float, axes: Sequence[int] | None = None) -> str:
        """An input of which the padding of these axes, or of all, holds this value."""
        return self.covered(self.operand(index), self.counts(index), value, axes)

    def covered(self, name: str, counts: Counts, value: float, axes: Sequence[int] | None = None) -> str:
        kind = self.to.type_of(name)
        for axis, count in counts.items():
            if axes is not None and axis not in axes:
                continue
            key = (name, axis, count, value)
            if key not in self.to.made:
                places, held = self.inside(name, axis, count)
                found = self.map(("select", ("less", "a", "b"), "c", "d"), places, held, self.tensor(name), value)
                self.to.made[key] = found
                self.to.types[found] = kind
            name = self.to.made[key]
        return name

    def only(self, index: int, allowed: Sequence[int], what: str) -> None:
        """Reject the node where another axis of an input is padded."""
        if wrong := [axis for axis in self.counts(index) if axis not in allowed]:
            self.refuse(f"axis {wrong[0]} of {self.node.input(index)!r} {what}")

    def differ(self, where: str = "") -> NoReturn:
        self.refuse(f"its operands may have different numbers of them{where}")

    def refuse(self, why: str) -> NoReturn:
        self.node.reject(
            f"how many rows its input has depends on the model's input, and {why}. Cut the model before it "
            f"(onnx.utils.extract_model, outputs {', '.join(filter(None, self.node.inputs))}) and do this step "
            "afterwards"
        )


_NONE = (None,) * 8


def output_counts(to: Context, outputs: Sequence[str]) -> list[str]:
    """Rows behind the valid ones become `PADDING` in the model's outputs; returns the names of further outputs (1),
    which say how many are valid: NAME.count along the first axis, NAME.count1 along the next."""
    found = []
    for name in outputs:
        for axis, count in to.counts.get(name, {}).items():
            rows = Rows(OnnxNode(name, "", to.opset, (name,), (name,), {}), to, lambda *_: None)
            inner = name if name in to.constants else _renamed(to, name)
            kind = to.type_of(inner)
            covered = rows.covered(inner, {axis: count}, PADDING)
            to.constants.pop(name, None)
            rows.end(covered)
            to.types[name] = kind
            target = to.fresh(f"{name}.count{axis or ''}")
            to.add_shape(target, (1,))
            to.nodes.append(rows.alias(number(rows, count), target))
            to.types[target] = np.dtype(np.int64)
            found.append(target)
    return found


def _renamed(to: Context, name: str) -> str:
    """Another name for a tensor."""
    new = to.fresh(f"{name}.padded")

    def names(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if each == name else each for each in given)

    to.nodes[:] = [replace(node, inputs=names(node.inputs), outputs=names(node.outputs)) for node in to.nodes]
    to.shapes[new] = to.shapes.pop(name)
    if name in to.types:
        to.types[new] = to.types.pop(name)
    return new
