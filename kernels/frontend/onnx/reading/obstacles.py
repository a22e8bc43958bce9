"""All that stands in the way of a model, at once: after a node that is refused the import goes on with what ONNX's
shape inference says of its outputs, so that those behind it are tried as well.

Of whole numbers and conditions that nobody could compute the shape is known, but a node that asks for their value would
be refused for the first refusal's sake alone: it is not told. Operators behind a tensor of unknown shape are at least
held against those that are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import onnx

from kernels.errors import ModelError, Obstacle, UnsupportedNode
from kernels.frontend.onnx.context import Context
from kernels.frontend.onnx.reading.graphs import every_node, names_read

from .inference import Inference, Told

_TYPES = frozenset(onnx.helper.get_all_tensor_dtypes())
_TOLD = 20
"""Obstacles that a message tells; the error has them all."""


class Obstacles:
    """The nodes of one model that were refused, and which tensors nothing is known of because of them."""

    def __init__(self, version: int, check: Callable[[onnx.NodeProto], None], inference: Inference) -> None:
        """`check` raises ModelError for a node that is refused whatever it reads."""
        self._version = version
        self._check = check
        self._inference = inference
        self._found: list[Obstacle] = []
        self._kinds: list[type[ModelError]] = []
        self._unknown: set[str] = set()
        self._doubtful: set[str] = set()
        """Tensors of known shape whose values follow from whole numbers that an obstacle leaves open."""

    def hide(self, node: onnx.NodeProto, to: Context) -> bool:
        """Return whether a node cannot be tried, because it reads a tensor of unknown shape."""
        read = [*names_read([node])]
        if self._unknown.isdisjoint(read):
            if not self._doubtful.isdisjoint(read):
                self._doubtful.update(node.output)
            return False
        self._tell_own(node)
        self._go_on(node, to)
        return True

    def add(self, node: onnx.NodeProto, error: ModelError, to: Context) -> None:
        """A node was refused."""
        if self._doubtful.isdisjoint(names_read([node])):
            self._tell(node, error)
        else:
            self._tell_own(node)
        self._go_on(node, to)

    def add_input(self, name: str, reason: str) -> None:
        """An input of the model was refused: nothing is known of it."""
        self._found.append(Obstacle(name, "input", self._version, reason))
        self._kinds.append(ModelError)
        self._unknown.add(name)

    def _tell_own(self, node: onnx.NodeProto) -> None:
        """Tell all that is wrong with a node, and with those inside of it, whatever they read."""
        for inner in every_node([node]):
            try:
                self._check(inner)
            except ModelError as e:
                self._tell(inner, e)

    def _tell(self, node: onnx.NodeProto, error: ModelError) -> None:
        name = node.name or next(filter(None, node.output), "")
        self._found.append(Obstacle(name, node.op_type, self._version, str(error)))
        self._kinds.append(type(error))

    def check(self) -> None:
        """Raise what was found, as one error."""
        if not self._found:
            return
        kind = UnsupportedNode if all(issubclass(kind, UnsupportedNode) for kind in self._kinds) else ModelError
        told = [each.reason for each in self._found[:_TOLD]]
        if len(self._found) > 1:
            counts = Counter(each.operator for each in self._found)
            words = ", ".join(f"{operator} ({count})" for operator, count in counts.most_common())
            told = [f"{len(self._found)} obstacles stand in the way: {words}", *told]
        if len(self._found) > _TOLD:
            told.append(f"and {len(self._found) - _TOLD} more: farm networks check tells all")
        raise kind("\n  ".join(told), tuple(self._found))

    def _go_on(self, node: onnx.NodeProto, to: Context) -> None:
        """Go on like after an accepted node, as far as the shapes of its outputs are known."""
        told: Told = {}
        if self._unknown.isdisjoint(names_read([node])):
            with suppress(ModelError):
                told = self._inference.outputs(node, to)
        for name in filter(None, node.output):
            tensor = told.get(name, onnx.TypeProto.Tensor())
            extents = tuple(extent.dim_value for extent in tensor.shape.dim)
            known = tensor.HasField("shape") and min(extents, default=1) > 0 and tensor.elem_type in _TYPES
            try:
                if known:
                    to.add_shape(name, extents)
            except ModelError:  # too large
                known = False
            if not known:
                self._unknown.add(name)
            elif tensor.elem_type != onnx.TensorProto.FLOAT:
                to.types[name] = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
                self._doubtful.add(name)
