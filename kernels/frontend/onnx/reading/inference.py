"""ONNX's own shape inference of a node: it knows rules of every operator's specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

from kernels.errors import ModelError
from kernels.frontend.onnx.context import STANDARD_DOMAINS, AnyArray, Context
from kernels.frontend.onnx.reading import native
from kernels.frontend.onnx.reading.graphs import graphs_of

Told = dict[str, onnx.TypeProto.Tensor]


class Inference:
    """Infers the nodes of one model. Equal nodes with equal inputs are inferred once."""

    def __init__(self, opset: int, ir_version: int) -> None:
        self._opset, self._ir_version = opset, ir_version
        self._known: dict[tuple[object, ...], tuple[list[onnx.TypeProto.Tensor], str]] = {}

    def check(self, node: onnx.NodeProto, to: Context) -> None:
        """Raise ModelError where inputs break a rule of their operator. Nodes of constants alone are folded by ONNX's
        reference, which has its own rules."""
        if any(name in to.shapes for name in node.input):
            self.outputs(node, to)

    def outputs(self, node: onnx.NodeProto, to: Context) -> Told:
        """Type and shape of each output, as far as ONNX can tell them; nothing of a node whose inputs are not known,
        that has a graph inside, or that is not ONNX's own. Raises ModelError where the inputs break a rule."""
        if node.domain not in STANDARD_DOMAINS or graphs_of(node):
            return {}
        if not onnx.defs.has(node.op_type, self._opset):
            return {}
        inputs = dict(_inputs(node, to))
        if len(inputs) < len({*filter(None, node.input)}):
            return {}
        places = {name: place for place, name in enumerate(inputs)}
        shared = tuple(places.get(name, -1) for name in node.input)
        attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
        key = (node.op_type, *attributes, shared, len(node.output), *(_key(*each) for each in inputs.values()))
        if key not in self._known:
            self._known[key] = self._infer(node, inputs)
        found, error = self._known[key]
        if error:
            name = node.name or next(filter(None, node.output), "")
            raise ModelError(f"node {name!r} ({node.op_type}): {error}; check its inputs, and export the model again")
        return dict(zip(node.output, found, strict=True))

    def _infer(self, node: onnx.NodeProto, inputs: dict[str, Any]) -> tuple[list[onnx.TypeProto.Tensor], str]:
        helper = onnx.helper
        types = {
            name: helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(kind), shape)
            for name, (kind, shape, _) in inputs.items()
        }
        data = {
            name: onnx.numpy_helper.from_array(array, name)
            for name, (_, _, array) in inputs.items()
            if array is not None
        }
        try:
            found = native.node_types(node, self._opset, self._ir_version, types, data)
        except native.TypesDiffer:  # NodeChecker and the import tell these better
            found = {}
        except native.InferenceFailed as e:
            return [onnx.TypeProto.Tensor() for _ in node.output], str(e)
        return [found.get(name, onnx.TypeProto()).tensor_type for name in node.output], ""


def _inputs(node: onnx.NodeProto, to: Context) -> Iterator[tuple[str, tuple[Any, tuple[int, ...], AnyArray | None]]]:
    """Name -> type, shape, content, of those inputs that are known; rows of which the input decides how many there are
    have no shape that ONNX knows of."""
    for name in dict.fromkeys(filter(None, node.input)):
        constant = to.constants.get(name)
        if constant is not None:
            is_kept = constant.nbytes <= native.KEPT_BYTES and constant.dtype.kind != "O"  # texts
            yield name, (constant.dtype, constant.shape, constant if is_kept else None)
        elif name in to.shapes and name not in to.counts and name not in to.extents:
            yield name, (to.type_of(name), to.shapes[name], None)


def _key(kind: Any, shape: tuple[int, ...], content: AnyArray | None) -> tuple[object, ...]:
    return (str(kind), shape, None if content is None else content.tobytes())
