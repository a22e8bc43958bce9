"""Small ONNX models for tests, and onnxruntime as the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph
from kernels.reference import evaluate

Arrays = Mapping[str, np.ndarray[Any, Any]]


def save_model(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Arrays | None = None,
    *,
    opset: int = 17,
) -> Path:
    """Write a model of fp32 inputs; shapes of outputs stay open."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def run_onnxruntime(path: Path, inputs: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    """The model's outputs by onnxruntime, on one thread, without its optimiser."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def assert_agrees(path: Path, inputs: Arrays, *, tolerance: float = 1e-5, batch: int | None = None) -> Graph:
    """Import the model and compare every output with onnxruntime's; returns the graph.

    The difference is relative to the output's largest magnitude (at least 1).
    """
    graph = load_onnx(path, batch=batch)
    ours, theirs = evaluate(graph, inputs), run_onnxruntime(path, inputs)
    for name in graph.outputs:
        assert ours[name].shape == theirs[name].shape == graph.shapes[name], name
        scale = max(1.0, float(np.abs(theirs[name]).max(initial=0)))
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance * scale, err_msg=name)
    return graph
