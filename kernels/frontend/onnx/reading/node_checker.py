"""Check single nodes against ONNX's own schemas: required attributes, their types and values, numbers of inputs and
outputs."""

from __future__ import annotations

from functools import cache

import onnx

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx.context import STANDARD_DOMAINS
from kernels.frontend.onnx.operator import Operators
from kernels.frontend.onnx.reading.graphs import graphs_of
from kernels.frontend.onnx.reading.model_file import NEWEST_OPSET

from .attribute_values import check_values


@cache
def _first_opsets() -> dict[str, int]:
    """The opset in which ONNX had each operator first."""
    known: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():  # makes a thousand objects
        if not schema.domain:
            since = int(schema.since_version)
            known[schema.name] = min(since, known.get(schema.name, since))
    return known


def _mend(op: str, since: int) -> str:
    """Tell how to have an operator that is deprecated since an opset: in one before, or in a later one that has it
    again."""
    for later in range(since + 1, NEWEST_OPSET + 1):
        if not onnx.defs.get_schema(op, later).deprecated:
            return f"export the model with opset {later} or newer"
    return f"export the model without it, or with opset {since - 1} or older"


class NodeChecker:
    """Checks nodes of one model. Unknown operators pass: the import names them."""

    def __init__(self, opset: int, ir_version: int, operators: Operators) -> None:
        self._opset, self._operators = opset, operators
        self._context = onnx.checker.C.CheckerContext()
        self._context.ir_version = ir_version
        self._context.opset_imports = {"": opset}

    def __call__(self, node: onnx.NodeProto) -> None:
        """Raise ModelError for a node that breaks its operator's schema, UnsupportedNode for a schema too new."""
        first = _first_opsets().get(node.op_type)
        if first is None or node.domain not in STANDARD_DOMAINS or not self._operators.find(node.op_type):
            return
        name = node.name or (node.output[0] if node.output else "")
        if first > self._opset:
            raise ModelError(
                f"node {name!r}: operator {node.op_type} came in opset {first}, the model has opset {self._opset}; "
                f"export the model with opset {first} or newer"
            )
        schema = onnx.defs.get_schema(node.op_type, self._opset)
        since = schema.since_version
        if schema.deprecated:
            mend = _mend(node.op_type, since)
            raise UnsupportedNode(f"node {name!r}: {node.op_type} is deprecated in opset {self._opset}; {mend}")
        if since > NEWEST_OPSET:
            raise UnsupportedNode(
                f"node {name!r}: operator {node.op_type} (opset {self._opset}): changed in opset {since}, "
                f"supported as it was up to {NEWEST_OPSET}; export the model with opset {NEWEST_OPSET} or older"
            )
        if graphs_of(node):  # their graphs read tensors that are nowhere in this node
            return
        try:
            onnx.checker.check_node(node, self._context)
        except (onnx.checker.ValidationError, UnicodeDecodeError) as e:
            raise ModelError(f"node {name!r} ({node.op_type}): {e}".strip()) from e
        check_values(node, self._operators)
