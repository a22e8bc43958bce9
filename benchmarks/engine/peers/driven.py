"""Peers that are engines of the farm: the same drivers, in the benchmark's own environment."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import onnx

from kernels.frontend.load import load_workload
from kernels.passes.simplified import simplified

from .engine import Engine, Model, PeerError

ENGINES = Path(__file__).resolve().parents[3] / "workers" / "engines"
Files = tuple[dict[str, str], list[str], list[str]]
"""The model's files by their names, and the names of its inputs and outputs."""


def as_onnx(model: Model) -> Files:
    """The file is ONNX already."""
    graph = onnx.load(model.onnx, load_external_data=False).graph
    constants = {each.name for each in graph.initializer}
    inputs = [each.name for each in graph.input if each.name not in constants]
    return {"model.onnx": str(model.onnx)}, inputs, [each.name for each in graph.output]


def by_pnnx(model: Model) -> Files:
    """Have pnnx write ncnn's files. Raises PeerError."""
    files, *ports = as_onnx(model)
    spec = find_spec("pnnx")
    if spec is None or spec.origin is None:
        raise PeerError("pnnx is not installed")
    made = {name: str(model.folder / name) for name in ("model.ncnn.param", "model.ncnn.bin")}
    work = model.folder / "model.onnx"
    work.write_bytes(Path(files["model.onnx"]).read_bytes())
    argv = [str(Path(spec.origin).with_name("pnnx")), work.name, "fp16=0"]
    done = subprocess.run(argv, cwd=model.folder, capture_output=True, text=True, check=False)
    if done.returncode or not all(map(Path.is_file, map(Path, made.values()))):
        raise PeerError(f"pnnx makes no model of it: {done.stderr[-300:]}")
    return made, *ports


def as_tflite(model: Model) -> Files:
    """Write the file from our graph. Raises PeerError."""
    graph = load_workload(network=model.network, onnx=None, seed=model.seed, batch=model.batch)
    made = model.folder / "model.tflite"
    (model.folder / "graph.pickle").write_bytes(pickle.dumps(simplified(graph)))
    argv = [sys.executable, str(ENGINES / "litert" / "convert.py"), str(ENGINES.parents[1])]
    done = subprocess.run(argv, cwd=model.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"no .tflite file of it: {done.stderr[-300:]}")
    return {made.name: str(made)}, list(graph.inputs), list(graph.outputs)


def loaded(engine: str, model: Model, prepared: Files, backend: str = "cpu") -> Engine:
    """Return the engine as its driver loads it."""
    spec = spec_from_file_location("driver", ENGINES / engine / "driver.py")
    assert spec is not None and spec.loader is not None
    driver: Any = module_from_spec(spec)
    spec.loader.exec_module(driver)
    files, inputs, outputs = prepared
    settings = {
        "threads": model.threads, "backend": backend, "precision": model.precision, "device": model.device,
        "inputs": inputs, "outputs": outputs,
    }  # fmt: skip
    found: Engine = driver.load(files, settings)
    return found
