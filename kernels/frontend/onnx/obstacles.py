"""What stands in the way of a model, all at once: after a node that is refused the import goes on with what ONNX's
shape inference says of its outputs, so that those behind it are tried as well."""

from __future__ import annotations

from collections import Counter

import onnx

from kernels.errors import ModelError, Obstacle, UnsupportedNode

from .context import Context
from .control import names_read

_KEPT_BYTES = 1 << 12
"""Of constants that shape inference may look into."""
_TOLD = 20
"""Obstacles that a message tells; the error has them all."""


class Obstacles:
    """The nodes of one model that were refused, and which tensors nothing is known of because of them."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._found: list[Obstacle] = []
        self._kinds: list[type[ModelError]] = []
        self._unknown: set[str] = set()

    def hide(self, node: onnx.NodeProto, to: Context) -> bool:
        """Whether a node cannot be tried, because it reads what an obstacle leaves unknown."""
        if self._unknown.isdisjoint(names_read([node])):
            return False
        self._go_on(node, to)
        return True

    def add(self, node: onnx.NodeProto, error: ModelError, to: Context) -> None:
        """A node was refused."""
        name = node.name or next(filter(None, node.output), "")
        self._found.append(Obstacle(name, node.op_type, self._version, str(error)))
        self._kinds.append(type(error))
        self._go_on(node, to)

    def check(self) -> None:
        """Raise what was found, as one error."""
        if not self._found:
            return
        kind = UnsupportedNode if all(issubclass(kind, UnsupportedNode) for kind in self._kinds) else ModelError
        told = [each.reason for each in self._found[:_TOLD]]
        if len(self._found) > 1:
            counts = Counter(each.operator for each in self._found)
            words = ", ".join(f"{operator} ({count})" for operator, count in counts.most_common())
            told = [f"{len(self._found)} nodes stand in the way: {words}", *told]
        if len(self._found) > _TOLD:
            told.append(f"and {len(self._found) - _TOLD} more: farm networks check tells all")
        raise kind("\n  ".join(told), tuple(self._found))

    def _go_on(self, node: onnx.NodeProto, to: Context) -> None:
        """As if the node had been taken, as far as its outputs' shapes can be told."""
        told = self._inferred(node, to) if self._unknown.isdisjoint(names_read([node])) else {}
        for name in filter(None, node.output):
            tensor = told.get(name, onnx.TypeProto.Tensor())
            extents = tuple(extent.dim_value for extent in tensor.shape.dim)
            known = tensor.HasField("shape") and min(extents, default=1) > 0
            # whole numbers may be a shape or an index, whose value would be asked for
            if not known or tensor.elem_type != onnx.TensorProto.FLOAT:
                self._unknown.add(name)
                continue
            try:
                to.add_shape(name, extents)
            except ModelError:  # too large
                self._unknown.add(name)

    def _inferred(self, node: onnx.NodeProto, to: Context) -> dict[str, onnx.TypeProto.Tensor]:
        """What ONNX tells of the outputs of a node; nothing of one that is not its own, or damaged."""
        helper, ports, stored = onnx.helper, [], []
        for name in dict.fromkeys(filter(None, node.input)):
            constant = to.constants.get(name)
            if constant is not None and constant.nbytes <= _KEPT_BYTES:
                stored.append(onnx.numpy_helper.from_array(constant, name))
            elif constant is not None or name in to.shapes:
                shape = to.shapes[name] if constant is None else constant.shape
                kind = helper.np_dtype_to_tensor_dtype(to.type_of(name))
                ports.append(helper.make_tensor_value_info(name, kind, shape))
        outputs = [helper.make_empty_tensor_value_info(name) for name in filter(None, node.output)]
        graph = helper.make_graph([node], "one", ports, outputs, stored)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._version)])
        try:
            found = onnx.shape_inference.infer_shapes(model).graph.output
        except Exception:
            return {}
        return {each.name: each.type.tensor_type for each in found}
