"""Functions written out: those that a model brings along, and operators that ONNX itself defines by others."""

from __future__ import annotations

import onnx

from kernels.errors import ModelError
from kernels.frontend.onnx.context import STANDARD_DOMAINS
from kernels.frontend.onnx.importing import RANDOM
from kernels.frontend.onnx.operator import Operators
from kernels.frontend.onnx.reading import native
from kernels.frontend.onnx.reading.attribute_values import check_values
from kernels.frontend.onnx.reading.graphs import every_node

from .calls import Calls


def expanded(model: onnx.ModelProto, opset: int, operators: Operators) -> onnx.ModelProto:
    """The model in operators that the import knows, as far as functions say how. Raises ModelError."""
    kept = [(domain, op) for op in operators.names() | RANDOM for domain in STANDARD_DOMAINS]
    if not model.functions and not any(_has_body(node, opset, operators) for node in every_node(model.graph.node)):
        return model
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for function in typed.functions:
        _take_opset(function, opset)
    Calls(typed, {*kept}).write_out(typed.graph)
    del typed.functions[:]
    called = [node for node in every_node(typed.graph.node) if _has_body(node, opset, operators)]
    if not called:
        return typed
    for tensor in model.graph.initializer:  # else the inliner does not know their types
        typed.graph.value_info.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tuple(tensor.dims))
        )
    # the inliner asks for the type of inputs that are left out, too
    typed.graph.value_info.append(onnx.helper.make_tensor_value_info("", onnx.TensorProto.FLOAT, None))
    for node in called:
        check_values(node, operators)
        _add_defaults(node, opset)
    _check_shapes(typed, opset, operators)
    try:
        found = native.inlined(typed, kept)
    except native.BrokenDown:  # the import names the node
        return typed
    except native.InferenceFailed as e:
        raise ModelError(f"its functions cannot be written out: {e}; export the model without functions") from e
    _check_rest(typed, found, opset, operators)
    return found


def _check_rest(model: onnx.ModelProto, found: onnx.ModelProto, opset: int, operators: Operators) -> None:
    """Raise ModelError where a node that has no body is another one after ONNX's inliner."""
    left = {node.SerializeToString(deterministic=True) for node in found.graph.node}
    for node in model.graph.node:
        if any(_has_body(each, opset, operators) for each in every_node([node])):
            continue
        if node.SerializeToString(deterministic=True) not in left:
            name = node.name or next(filter(None, node.output), "")
            raise ModelError(f"node {name!r} ({node.op_type}): ONNX's inliner changed it; export without functions")


def _check_shapes(model: onnx.ModelProto, opset: int, operators: Operators) -> None:
    """Raise ModelError where inputs do not fit an operator that has a body: the body's own nodes may not tell."""
    try:
        known = native.with_types(model).graph
    except native.InferenceFailed:  # the inliner tells what is damaged
        return
    types = {port.name: port.type for port in (*known.value_info, *known.input)}
    for node in known.node:
        if _has_body(node, opset, operators) and types.keys() >= {*node.input} - {""}:
            given = {name: types[name] for name in node.input if name}
            if node.op_type == "RotaryEmbedding":
                _check_caches(node, [_extents(types[name]) for name in node.input if name])
            try:
                native.node_types(_strict(node), opset, model.ir_version, given, {})
            except native.TypesDiffer:  # which the import tells better
                continue
            except native.InferenceFailed as e:
                raise ModelError(f"node {node.name or node.output[0]!r} ({node.op_type}): {e}") from e


def _extents(kind: onnx.TypeProto) -> tuple[int, ...]:
    return tuple(extent.dim_value for extent in kind.tensor_type.shape.dim)


def _check_caches(node: onnx.NodeProto, shapes: list[tuple[int, ...]]) -> None:
    """Raise ModelError where the sines and cosines of a RotaryEmbedding are not as many as half of what is turned."""
    attributes = {each.name: each.i for each in node.attribute}
    x, cos, sin = shapes[:3]
    if not all(shape and all(shape) for shape in (x, cos, sin)):  # not known before the import
        return
    head = x[-1] // max(1, attributes.get("num_heads", 1)) if len(x) == 3 else x[-1]
    turned = attributes.get("rotary_embedding_dim") or head
    if cos != sin or 2 * cos[-1] != turned:
        raise ModelError(
            f"node {node.name or node.output[0]!r} (RotaryEmbedding): caches of shapes {cos} and {sin} do not fit "
            f"{turned} of {head} numbers that are turned: the last extent of both is half of them"
        )


def _strict(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node, or one that asks the same of its inputs, where ONNX's inference of the operator itself asks nothing."""
    if node.op_type != "SoftmaxCrossEntropyLoss":
        return node
    strict = onnx.NodeProto()
    strict.CopyFrom(node)
    strict.op_type = "NegativeLogLikelihoodLoss"
    del strict.output[1:]
    return strict


def _take_opset(function: onnx.FunctionProto, opset: int) -> None:
    """The model's opset in place of the function's own, where all its operators mean the same in both."""
    for own in function.opset_import:
        if own.domain not in STANDARD_DOMAINS or own.version == opset:
            continue
        nodes = [node for node in every_node(function.node) if node.domain in STANDARD_DOMAINS]
        if all(_since(node.op_type, own.version) == _since(node.op_type, opset) for node in nodes):
            own.version = opset


def _since(op: str, opset: int) -> int:
    """The opset that defines an operator as another one has it; 0 where that has none."""
    return onnx.defs.get_schema(op, opset, "").since_version if onnx.defs.has(op, opset, "") else 0


def _has_body(node: onnx.NodeProto, opset: int, operators: Operators) -> bool:
    """Return whether ONNX defines an operator that the import does not know."""
    if node.domain not in STANDARD_DOMAINS or node.op_type in RANDOM or operators.find(node.op_type):
        return False
    if not onnx.defs.has(node.op_type, opset, ""):
        return False
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    return bool(schema.has_function or schema.has_context_dependent_function)


def _add_defaults(node: onnx.NodeProto, opset: int) -> None:
    """The attributes that a node leaves to their defaults, which a body that names them would miss."""
    given = {attribute.name for attribute in node.attribute}
    for name, declared in onnx.defs.get_schema(node.op_type, opset, "").attributes.items():
        if name not in given and declared.default_value.name:
            node.attribute.append(declared.default_value)
