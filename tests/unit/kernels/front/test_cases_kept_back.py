"""Small models that failed once, each with what is right: `shared/cases/engine`, where a machine has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.errors import ModelError
from kernels.frontend.input_file import read_arrays
from kernels.frontend.load import load_inputs
from kernels.frontend.onnx import load_onnx
from kernels.reference import evaluate
from tests.source_tree import ROOT

from .onnx_models import run_onnxruntime

CASES = ROOT.parent / "shared" / "cases" / "engine"


def case(name: str) -> Path:
    """Its model; skips the test where this machine has none."""
    path = CASES / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"shared/cases/engine/{name}.onnx is not on this machine")
    return path


@pytest.mark.parametrize("name", ["scalar_input", "function_default_attribute", "cast_neg_uint8"])
def test_what_runs(name: str) -> None:
    """The results are onnxruntime's."""
    path = case(name)
    graph = load_onnx(path)
    file = next(each for each in (path.with_suffix(".npz"), path.with_suffix(".x.npy")) if each.is_file())
    arrays = {name or graph.inputs[0]: array for name, array in read_arrays(file).items()}
    found, wanted = evaluate(graph, load_inputs(graph, file)), run_onnxruntime(path, arrays)
    assert found.keys() == wanted.keys()
    for output, values in wanted.items():
        np.testing.assert_allclose(found[output], values, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("loop_early_exit", "Loop"),
        ("resize_nearest_ceil_align", "Resize"),
        ("nontopo", "is written by a later node"),
        ("groupnorm18", "GroupNormalization is deprecated in opset 18; export the model with opset 21 or newer"),
    ],
)
def test_what_is_refused(name: str, told: str) -> None:
    with pytest.raises(ModelError, match=f"node '.+{told}"):
        load_onnx(case(name))
