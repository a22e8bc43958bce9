"""A network ends in as many steps, whoever wrote its file.

`exports/` has small networks as PyTorch's two exporters (2.13) and tf2onnx (1.17) wrote them: NAME.WAY.onnx. The test
adds what onnxruntime's optimiser makes of each, and nodes written anew at random.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.options import Limits, Options
from kernels.plan.opencl_interpreter import run_opencl

from .onnx_models import run_onnxruntime
from .respelling import respelt

EXPORTS = Path(__file__).parent / "exports"
FIRST = ("script", "tf2onnx")
"""The ways with which others are compared."""
NAMES = sorted(path.name.split(".")[0] for way in FIRST for path in EXPORTS.glob(f"*.{way}.onnx"))
BACKENDS = {"cpu": (Options("cpu"), Limits()), "opencl": (Options("opencl"), Limits(local_bytes=32 << 10))}


def spellings(name: str, seed: int, folder: Path) -> list[Path]:
    """Return the files of a network, the first exporter's first."""
    files = sorted(EXPORTS.glob(f"{name}.*.onnx"), key=lambda path: path.name.split(".")[1] not in FIRST)
    found = [*files]
    for path in files:
        for level in ("BASIC", "EXTENDED"):
            found.append(folder / f"{path.stem}.{level}.onnx")
            options = onnxruntime.SessionOptions()
            options.log_severity_level, options.intra_op_num_threads = 4, 1
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
            options.optimized_model_filepath = str(found[-1])
            onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    found.append(folder / f"{name}.respelt.onnx")
    found[-1].write_bytes(respelt(onnx.load(files[0]), rng).SerializeToString())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_whoever_wrote_a_network_it_has_the_same_steps_and_computes_the_same(
    name: str, seed: int, tmp_path: Path
) -> None:
    """Each file is compiled; one of them, drawn at random, agrees through OpenCL."""
    files = spellings(name, seed, tmp_path)
    assert len(files) >= 4
    counts = {
        backend: {path.name: len(compile_graph(load_onnx(path), *way).plan.steps) for path in files}
        for backend, way in BACKENDS.items()
    }
    for backend, found in counts.items():
        first = found[files[0].name]
        assert not {way: count for way, count in found.items() if count != first}, f"{backend}: the first has {first}"
    rng, port = np.random.default_rng([seed, 1, zlib.crc32(name.encode())]), onnx.load(files[0]).graph.input[0]
    x = rng.standard_normal([each.dim_value for each in port.type.tensor_type.shape.dim]).astype(np.float32)
    (expected,) = run_onnxruntime(files[0], {port.name: x}).values()
    graph = load_onnx(files[int(rng.integers(len(files)))])
    run = run_opencl(compile_graph(graph, Options("opencl"), Limits(cpu_device=True)), {graph.inputs[0]: x})
    atol = 1e-4 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(run.outputs[graph.outputs[0]], expected, rtol=0, atol=atol)
