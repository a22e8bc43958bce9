"""The published SqueezeNet v1.0 of study S: Caffe's own probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.frontend.load import load_inputs
from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph
from kernels.passes import optimise
from kernels.reference import evaluate

FOLDER = Path(__file__).parents[5] / "shared" / "data" / "squeezenet_v1_0"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the trained network is absent ({FOLDER})")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_onnx(FOLDER / "squeezenet_v1_0.onnx")


@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_equal_caffes(graph: Graph, simplified: bool, dtype: type) -> None:
    expected = np.load(FOLDER / "prob.npy")
    inputs = load_inputs(graph, FOLDER / "input.npy")
    given = evaluate(optimise(graph) if simplified else graph, inputs, dtype=dtype)["prob"]
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-5)
    assert given.argmax() == expected.argmax() == 967
    np.testing.assert_array_equal(np.argsort(given[0])[-5:], np.argsort(expected[0])[-5:])
