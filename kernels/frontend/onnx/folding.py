"""Nodes whose inputs are all constants, as exporters emit them to compute shapes: evaluated at import."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from kernels.errors import ModelError

from .context import Context, OnnxNode
from .operator import Operator
from .reading import native


def fold(node: OnnxNode, to: Context, entry: Operator) -> None:
    """Evaluate a node whose inputs are all constants by its operator's `fold`."""
    assert entry.fold
    values = [to.constants[name] if name else None for name in node.inputs]
    try:
        to.reserve(node, entry.fold_bytes(node, values))
        result = np.asarray(entry.fold(node, values))
    except ModelError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, ArithmeticError) as e:
        raise ModelError(f"node {node.name!r} ({node.op}): its constant inputs do not fit: {e}") from e
    to.constants[node.outputs[0]] = result


def compute(node: OnnxNode, to: Context, most_times: int = 0) -> None:
    """Evaluate any other node whose inputs are all constants, by ONNX's reference implementation.

    Its result is no larger than shape inference says, which is asked first.
    """
    names = [name for name in node.inputs if name]
    outputs = list(node.outputs)
    if node.attributes.get("training_mode"):  # a normalisation by the batch's own statistics has three outputs
        outputs += [f"{outputs[0]}.mean", f"{outputs[0]}.variance"]
    proto = onnx.helper.make_node(node.op, list(node.inputs), outputs, **node.attributes)
    wanted = [name for name in node.outputs if name]
    graph = onnx.helper.make_graph(
        [proto],
        "constant",
        [],
        [onnx.helper.make_empty_tensor_value_info(name) for name in wanted],
        [onnx.numpy_helper.from_array(to.constants[name], name) for name in dict.fromkeys(names)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", node.opset)])
    try:
        if most_times:
            to.reserve(node, 8 * most_times * sum(to.constants[name].size for name in names))
        for port in native.with_types(model).graph.output if not most_times else ():
            inferred = port.type.tensor_type
            if not inferred.HasField("shape") or not all(extent.HasField("dim_value") for extent in inferred.shape.dim):
                node.reject("its constant result has no shape that is known before: fold it before the export")
            to.reserve(node, 8 * prod(extent.dim_value for extent in inferred.shape.dim))
        results = ReferenceEvaluator(model).run(None, {})
    except ModelError:
        raise
    except Exception as e:  # whatever the reference implementation meets in a damaged model
        raise ModelError(f"node {node.name!r} ({node.op}): its constant inputs do not fit: {e}") from e
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        node.reject("its constant result is no tensor")
    to.constants |= {name: np.asarray(result) for name, result in zip(wanted, results, strict=True)}
