"""ONNX's own cases, which nobody here wrote: single operators, and models with data that PyTorch once exported."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.loader import DATA_DIR

from kernels.compile import compile_graph
from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx
from kernels.options import Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent

OPERATORS = (
    "add", "batch_normalization", "clip", "concat", "conv", "div", "dropout", "flatten", "gather", "gemm",
    "globalaveragepool", "hardsigmoid", "hardswish", "identity", "instance_normalization", "leakyrelu", "lrn", "matmul",
    "mul", "pad", "reducemean", "relu", "reshape", "resize", "sigmoid", "slice", "softmax", "split", "squeeze", "sub",
    "transpose", "unsqueeze", "upsample",
)  # fmt: skip
"""Without pooling, whose cases take long to make; it is among the exported models."""
FEWEST_NODES, FEWEST_MODELS = 145, 45
OPSET = 13
"""To which older models are converted."""

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass
class Case:
    """A model with inputs and the outputs that they give."""

    name: str
    model: onnx.ModelProto
    inputs: Arrays
    outputs: Arrays

    def load(self, path: Path, activations: tuple[str, ...]) -> Any:
        """The graph of which these inputs stay inputs and the others are stored."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        stored = [port for port in model.graph.input if port.name in self.inputs and port.name not in activations]
        for port in stored:
            model.graph.input.remove(port)
            model.graph.initializer.append(onnx.numpy_helper.from_array(self.inputs[port.name], port.name))
        path.write_bytes(model.SerializeToString())
        return load_onnx(path)

    def variants(self) -> Iterator[tuple[str, ...]]:
        """Which inputs are activations: all, those of fp32, the first of these."""
        floats = tuple(name for name, array in self.inputs.items() if array.dtype == np.float32)
        yield from dict.fromkeys((tuple(self.inputs), floats, floats[:1]))

    def check(self, got: Arrays) -> None:
        for name, wanted in self.outputs.items():
            assert got[name].shape == wanted.shape, self.name
            np.testing.assert_allclose(got[name], wanted, rtol=1e-3, atol=1e-5, err_msg=self.name)


def nodes() -> Iterator[Case]:
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx's: infinities that its cases are about
        for name in OPERATORS:
            import_module(f"{node_cases.__name__}.{name}")
    for case in node_cases._NodeTestCases:
        inputs, outputs = case.data_sets[0]
        graph = case.model.graph
        plain = all(isinstance(array, np.ndarray | np.generic) for array in (*inputs, *outputs))
        if plain and len(inputs) == len(graph.input) and any(array.dtype == np.float32 for array in inputs):
            given = {port.name: np.asarray(array) for port, array in zip(graph.input, inputs, strict=True)}
            wanted = {port.name: np.asarray(array) for port, array in zip(graph.output, outputs, strict=True)}
            yield Case(case.name, case.model, given, wanted)


def exported(pattern: str = "*") -> Iterator[Case]:
    for folder in sorted(Path(DATA_DIR).glob(f"pytorch-*/{pattern}")):
        if (folder / "model.onnx").exists():
            model = onnx.load(folder / "model.onnx")
            stored = {tensor.name for tensor in model.graph.initializer}
            ports = [port for port in model.graph.input if port.name not in stored]
            if model.opset_import[0].version < OPSET:
                with contextlib.suppress(
                    RuntimeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError
                ):
                    model = onnx.version_converter.convert_version(model, OPSET)
            sets = ((ports, "input"), (model.graph.output, "output"))
            inputs, outputs = ({p.name: _array(folder, k, i) for i, p in enumerate(some)} for some, k in sets)
            yield Case(folder.name, model, inputs, outputs)


def _array(folder: Path, kind: str, index: int) -> np.ndarray[Any, Any]:
    tensor = onnx.TensorProto.FromString((folder / "test_data_set_0" / f"{kind}_{index}.pb").read_bytes())
    return np.asarray(onnx.numpy_helper.to_array(tensor))


@pytest.mark.parametrize(("cases", "fewest"), [(nodes, FEWEST_NODES), (exported, FEWEST_MODELS)])
def test_what_is_taken_computes_what_it_should(tmp_path: Path, cases: Any, fewest: int) -> None:
    taken = set()
    for case in cases():
        for activations in case.variants():
            with contextlib.suppress(ModelError):
                graph = case.load(tmp_path / "m.onnx", activations)
                case.check(evaluate(graph, {name: case.inputs[name] for name in activations}))
                taken.add(case.name)
    assert len(taken) >= fewest, sorted(taken)


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_batch_normalisation_of_every_rank(tmp_path: Path, agent: Agent, api: str) -> None:
    tried = 0
    for case in exported("test_BatchNorm*"):
        run(case, tmp_path / "m.onnx", agent, api)
        tried += 1
    assert tried >= 5


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_hard_swish_and_hard_sigmoid(tmp_path: Path, agent: Agent, api: str) -> None:
    for name in ("test_hardswish", "test_hardswish_expanded", "test_hardsigmoid", "test_hardsigmoid_default"):
        (case,) = (case for case in nodes() if case.name == name)
        run(case, tmp_path / "m.onnx", agent, api)


def run(case: Case, path: Path, agent: Agent, api: str) -> None:
    """A case in the agent, all its inputs activations."""
    graph = case.load(path, tuple(case.inputs))
    bundle = compile_graph(graph, Options(api), Limits(cpu_device=True))  # type: ignore[arg-type]
    ended = agent.run(bundle, dict(case.inputs), "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    got = {event.name: ended.output(i) for i, event in enumerate(ended.all("output"))}
    case.check({name: got[name].reshape(graph.shapes[name]) for name in graph.outputs})
